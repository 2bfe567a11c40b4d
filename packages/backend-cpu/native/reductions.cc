// Extremes, their positions, sums and products, along neighbouring dimensions.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "extremes.h"
#include "kernel.h"
#include "sums.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

enum Operation : int64_t {
  kMaximum,
  kMinimum,
  kSum,
  kProduct,
  kSumOfNumbers,
  kCountOfNumbers,
  kCountOfNonzero,
  kMaximumOfNumbers,
  kMinimumOfNumbers,
  kAnyNumber
};

ffi::Error UnknownType() {
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, "no kernel reduces this dtype");
}

// Calls f with a value of the type of the elements, which are compared.
template <typename F>
ffi::Error ByType(ffi::DataType type, const F& f) {
  switch (type) {
    case ffi::DataType::PRED:
      return f(Bool());
    case ffi::DataType::S8:
      return f(int8_t());
    case ffi::DataType::S32:
      return f(int32_t());
    case ffi::DataType::S64:
      return f(int64_t());
    case ffi::DataType::U8:
      return f(uint8_t());
    case ffi::DataType::F32:
      return f(float());
    case ffi::DataType::F64:
      return f(double());
    default:
      return UnknownType();
  }
}

// Calls f with a number of the type in which elements of 32 and 64 bits are combined. Integers wrap
// around, signed ones, too.
template <typename F>
ffi::Error ByNumber(ffi::DataType type, const F& f) {
  switch (type) {
    case ffi::DataType::S32:
    case ffi::DataType::U32:
      return f(uint32_t());
    case ffi::DataType::S64:
    case ffi::DataType::U64:
      return f(uint64_t());
    case ffi::DataType::F32:
      return f(float());
    case ffi::DataType::F64:
      return f(double());
    default:
      return UnknownType();
  }
}

// What a few neighbours come to, combined in pairs.
template <typename Op, int kSize, typename T>
inline T FoldFew(const T* x) {
  if constexpr (kSize == 1) {
    return *x;
  } else {
    constexpr int kFirst = kSize > 4 ? 4 : kSize > 2 ? 2 : 1;
    return Op::Of(FoldFew<Op, kFirst>(x), FoldFew<Op, kSize - kFirst>(x + kFirst));
  }
}

// Rows of 1 to kFew elements, of which compilers make loops of vectors.
constexpr int kFew = 8;
template <typename Op, int kSize = 1, typename T>
void FoldShortRows(ffi::ThreadPool& pool, const T* x, T* to, int64_t rows, int64_t size) {
  if constexpr (kSize < kFew) {
    if (size > kSize) return FoldShortRows<Op, kSize + 1>(pool, x, to, rows, size);
  }
  ForRanges(&pool, rows, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = FoldFew<Op, kSize>(x + i * kSize);
  });
}

// The better of two, or what is NaN.
template <bool kLargest>
struct Better {
  template <typename T>
  static T Of(T a, T b) {
    return ((kLargest ? a > b : a < b) | (a != a)) ? a : b;
  }
};

template <bool kLargest>
ffi::Error ExtremesOf(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, void* to, const Sizes& s) {
  return ByType(x.element_type(), [&](auto element) {
    using T = decltype(element);
    if constexpr (sizeof(T) >= 4) {
      if (s.inner == 1 && s.size > 0 && s.size <= kFew) {
        FoldShortRows<Better<kLargest>>(pool, static_cast<const T*>(x.untyped_data()),
                                        static_cast<T*>(to), s.outer, s.size);
        return ffi::Error::Success();
      }
    }
    Extremes<Order<T, kLargest>>(pool, x.untyped_data(), to, s.outer, s.size, s.inner);
    return ffi::Error::Success();
  });
}

// Those of what is not NaN.
template <bool kLargest>
ffi::Error ExtremesOfNumbers(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, void* to,
                             const Sizes& s) {
  switch (x.element_type()) {
    case ffi::DataType::F32:
      Extremes<OrderOfNumbers<float, kLargest>>(pool, x.untyped_data(), to, s.outer, s.size,
                                                s.inner);
      return ffi::Error::Success();
    case ffi::DataType::F64:
      Extremes<OrderOfNumbers<double, kLargest>>(pool, x.untyped_data(), to, s.outer, s.size,
                                                 s.inner);
      return ffi::Error::Success();
    default:
      return UnknownType();
  }
}

// Whether there is one that is not NaN in each row, which the first elements often decide.
ffi::Error AnyNumber(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, void* to, const Sizes& s) {
  const auto look = [&](const auto* from) {
    ForRanges(&pool, s.outer, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        EndIfInterrupted();
        const auto* const first = from + row * s.size;
        const auto is_number = [](auto value) { return value == value; };
        static_cast<bool*>(to)[row] = std::any_of(first, first + s.size, is_number);
      }
    });
    return ffi::Error::Success();
  };
  switch (x.element_type()) {
    case ffi::DataType::F32:
      return look(static_cast<const float*>(x.untyped_data()));
    case ffi::DataType::F64:
      return look(static_cast<const double*>(x.untyped_data()));
    default:
      return UnknownType();
  }
}

template <typename Op>
ffi::Error Fold(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, void* to, const Sizes& s) {
  return ByNumber(x.element_type(), [&](auto number) {
    using T = decltype(number);
    if (s.inner == 1 && s.size > 0 && s.size <= kFew) {
      FoldShortRows<Op>(pool, static_cast<const T*>(x.untyped_data()), static_cast<T*>(to),
                        s.outer, s.size);
    } else {
      FoldNumbers<Op, T>(pool, x.untyped_data(), to, s.outer, s.size, s.inner);
    }
    return ffi::Error::Success();
  });
}

template <typename Terms>
struct SumFold : OpFold<Plus, typename Terms::Type, typename Terms::Type> {
  using T = typename Terms::Type;
  static T Add(T part, T x) { return part + Terms::Of(x); }
};

template <typename T, bool kCounted>
void SumNotNan(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, void* to, const Sizes& s) {
  using Terms = NotNan<T, kCounted>;
  const T* from = static_cast<const T*>(x.untyped_data());
  T* target = static_cast<T*>(to);
  if (s.inner == 1) return FoldRows<Plus>(pool, Terms{from}, target, s.outer, s.size);
  FoldColumns<SumFold<Terms>>(pool, from, target, s.outer, s.size, s.inner);
}

template <bool kCounted>
ffi::Error SumNotNan(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, void* to, const Sizes& s) {
  switch (x.element_type()) {
    case ffi::DataType::F32:
      SumNotNan<float, kCounted>(pool, x, to, s);
      return ffi::Error::Success();
    case ffi::DataType::F64:
      SumNotNan<double, kCounted>(pool, x, to, s);
      return ffi::Error::Success();
    default:
      return UnknownType();
  }
}

// Counts along rows, into integers as wide as the elements.
ffi::Error CountNotZero(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, void* to, const Sizes& s) {
  const auto count = [&](auto element) {
    using Terms = NotZero<decltype(element)>;
    FoldRows<Plus>(pool, Terms{static_cast<decltype(element)*>(x.untyped_data())},
                   static_cast<typename Terms::Type*>(to), s.outer, s.size);
    return ffi::Error::Success();
  };
  switch (x.element_type()) {
    case ffi::DataType::F32:
      return count(float());
    case ffi::DataType::F64:
      return count(double());
    case ffi::DataType::S32:
    case ffi::DataType::U32:
      return count(uint32_t());
    case ffi::DataType::S64:
    case ffi::DataType::U64:
      return count(uint64_t());
    default:
      return UnknownType();
  }
}

template <typename Element>
ffi::Error SumOfBytes(ffi::ThreadPool& pool, const void* from, ffi::AnyBuffer& to, const Sizes& s) {
  const auto sum = ffi::ByteWidth(to.element_type()) == 8 ? SumBytes<Element, uint64_t>
                                                          : SumBytes<Element, uint32_t>;
  sum(pool, from, to.untyped_data(), s.outer, s.size, s.inner);
  return ffi::Error::Success();
}

ffi::Error Sum(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, ffi::AnyBuffer& to, const Sizes& s) {
  switch (x.element_type()) {
    case ffi::DataType::PRED:
      return SumOfBytes<Bool>(pool, x.untyped_data(), to, s);
    case ffi::DataType::S8:
      return SumOfBytes<int8_t>(pool, x.untyped_data(), to, s);
    case ffi::DataType::U8:
      return SumOfBytes<uint8_t>(pool, x.untyped_data(), to, s);
    case ffi::DataType::BF16:  // Into float32, of rows alone.
      FoldRows<Plus>(pool, BFloat16s{static_cast<const uint16_t*>(x.untyped_data())},
                     static_cast<float*>(to.untyped_data()), s.outer, s.size);
      return ffi::Error::Success();
    default:
      return Fold<Plus>(pool, x, to.untyped_data(), s);
  }
}

ffi::Error Reduce(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                  int64_t operation, int64_t count, int64_t after) {
  if (out->element_count() == 0) return ffi::Error::Success();
  const Sizes sizes(x.dimensions(), count, after);
  switch (operation) {
    case kMaximum:
      return ExtremesOf<true>(pool, x, out->untyped_data(), sizes);
    case kMinimum:
      return ExtremesOf<false>(pool, x, out->untyped_data(), sizes);
    case kSum:
      return Sum(pool, x, *out, sizes);
    case kSumOfNumbers:
      return SumNotNan<false>(pool, x, out->untyped_data(), sizes);
    case kCountOfNumbers:
      return SumNotNan<true>(pool, x, out->untyped_data(), sizes);
    case kCountOfNonzero:
      return CountNotZero(pool, x, out->untyped_data(), sizes);
    case kMaximumOfNumbers:
      return ExtremesOfNumbers<true>(pool, x, out->untyped_data(), sizes);
    case kMinimumOfNumbers:
      return ExtremesOfNumbers<false>(pool, x, out->untyped_data(), sizes);
    case kAnyNumber:
      return AnyNumber(pool, x, out->untyped_data(), sizes);
    default:
      return Fold<Times>(pool, x, out->untyped_data(), sizes);
  }
}

// The first positions of extremes along the dimension after which there are `after` others.
ffi::Error ExtremePositions(ffi::ThreadPool pool, ffi::AnyBuffer x,
                            ffi::Result<ffi::Buffer<ffi::S32>> out, int64_t largest,
                            int64_t after) {
  if (out->element_count() == 0) return ffi::Error::Success();
  const Sizes s(x.dimensions(), 1, after);
  return ByType(x.element_type(), [&](auto element) {
    using E = decltype(element);
    const auto positions = largest != 0 ? Positions<Order<E, true>> : Positions<Order<E, false>>;
    positions(pool, x.untyped_data(), out->typed_data(), s.outer, s.size, s.inner);
    return ffi::Error::Success();
  });
}

// The sums of products along the last dimensions, of which the result has the first.
ffi::Error SumOfProducts(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer y,
                         ffi::Result<ffi::AnyBuffer> out) {
  const int64_t rows = static_cast<int64_t>(out->element_count());
  if (rows == 0) return ffi::Error::Success();
  const int64_t size = static_cast<int64_t>(x.element_count()) / rows;
  return ByNumber(x.element_type(), [&](auto number) {
    using T = decltype(number);
    const Products<T> terms{static_cast<const T*>(x.untyped_data()),
                            static_cast<const T*>(y.untyped_data())};
    FoldRows<Plus>(pool, terms, static_cast<T*>(out->untyped_data()), rows, size);
    return ffi::Error::Success();
  });
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_reduce, dovetail::Reduce,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("operation")
                    .Attr<int64_t>("count")
                    .Attr<int64_t>("after"));
DOVETAIL_KERNEL(dovetail_extreme_positions, dovetail::ExtremePositions,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::Buffer<xla::ffi::S32>>()
                    .Attr<int64_t>("largest")
                    .Attr<int64_t>("after"));
DOVETAIL_KERNEL(dovetail_sum_of_products, dovetail::SumOfProducts,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>());
#pragma GCC visibility pop
