// Cumulative sums, products and extremes along any dimension.
//
// float32 is added and multiplied in float64. Sums of float64 begin anew in each block; what comes
// before it is kept with its rounding errors, so that these do not grow with the length.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel.h"
#include "parallel.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Positions whose results are combined before they are added to what comes before.
constexpr int64_t kBlock = 1024;
// Elements side by side that are combined at once.
constexpr int64_t kSide = 256;

enum Operation : int64_t { kSum, kProduct, kMaximum, kMinimum };

template <typename T>
constexpr int kLanes = kVectorBytes / int{sizeof(T)};

template <typename T, int kCount>
using Lanes __attribute__((vector_size(kCount * sizeof(T)))) = T;

// What combines numbers, or vectors of them.
template <typename T, int64_t kOperation>
struct Combine {
  using Type = T;
  // Sums whose rounding errors are kept.
  static constexpr bool kCompensated = kOperation == kSum && std::is_same_v<T, double>;

  static T Identity() {
    using Limits = std::numeric_limits<T>;
    if (kOperation == kSum) return T(0);
    if (kOperation == kProduct) return T(1);
    if (kOperation == kMaximum) return Limits::has_infinity ? T(-Limits::infinity()) : Limits::min();
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }

  // NaN where either is.
  template <typename V>
  static V Of(V a, V b) {
    if constexpr (kOperation == kSum) {
      return a + b;
    } else if constexpr (kOperation == kProduct) {
      return a * b;
    } else if constexpr (std::is_floating_point_v<T>) {
      if constexpr (kOperation == kMaximum) return ((a > b) | (a != a)) ? a : b;
      if constexpr (kOperation == kMinimum) return ((a < b) | (a != a)) ? a : b;
    } else {
      if constexpr (kOperation == kMaximum) return (a > b) ? a : b;
      if constexpr (kOperation == kMinimum) return (a < b) ? a : b;
    }
  }
};

// What comes before a block: a number and, of sums, what was lost in rounding it.
template <typename C>
struct Before {
  using T = typename C::Type;
  T value = C::Identity();
  T lost = T(0);

  T With(T local) const {
    return C::kCompensated ? C::Of(value, T(local + lost)) : C::Of(value, local);
  }

  void Add(T local) {
    if constexpr (C::kCompensated) {
      const T sum = value + local, part = sum - value;
      const T error = (value - (sum - part)) + (local - part);
      if (std::isfinite(error)) lost += error;
      value = sum;
    } else {
      value = C::Of(value, local);
    }
  }
};

// The vector whose lane i is lane i - kBy, or i + kBy backwards, of `v`, and of `fill` where there is
// none.
template <int kBy, bool kReverse, typename V, int... kIndex>
inline V Shifted(V v, V fill, std::integer_sequence<int, kIndex...>) {
  constexpr int kCount = sizeof...(kIndex);
#if __has_builtin(__builtin_shufflevector)
  return __builtin_shufflevector(
      v, fill,
      (kReverse ? (kIndex + kBy < kCount ? kIndex + kBy : kCount)
                : (kIndex >= kBy ? kIndex - kBy : kCount))...);
#else
  for (int i = 0; i + kBy < kCount; ++i) fill[kReverse ? i : i + kBy] = v[kReverse ? i + kBy : i];
  return fill;
#endif
}

// The results within a vector.
template <typename C, bool kReverse, int kBy = 1, typename V>
inline V Within(V v, V identity) {
  constexpr int kCount = kLanes<typename C::Type>;
  if constexpr (kBy < kCount) {
    const V before = Shifted<kBy, kReverse>(v, identity, std::make_integer_sequence<int, kCount>());
    return Within<C, kReverse, 2 * kBy>(kReverse ? C::Of(v, before) : C::Of(before, v), identity);
  } else {
    return v;
  }
}

// Writes the results of up to kBlock positions, and returns the last without what is before.
template <typename C, bool kReverse, typename T>
typename C::Type ScanBlock(const T* from, T* to, int64_t size, const Before<C>& before) {
  using Number = typename C::Type;
  constexpr int kCount = kLanes<Number>;
  using V = Lanes<Number, kCount>;
  using Stored = Lanes<T, kCount>;
  const auto splat = [](Number x) { return x - V{}; };  // Subtracting zero keeps the sign of zero.
  const V identity = splat(C::Identity());
  const V value = splat(before.value), lost = splat(before.lost);
  V carry = identity;
  const int64_t whole = size / kCount;
  for (int64_t step = 0; step < whole; ++step) {
    const int64_t at = kReverse ? size - (step + 1) * kCount : step * kCount;
    Stored stored;
    std::memcpy(&stored, from + at, sizeof(stored));
    const V v = Within<C, kReverse>(__builtin_convertvector(stored, V), identity);
    V out = C::Of(carry, v);
    carry = C::Of(carry, splat(v[kReverse ? 0 : kCount - 1]));
    out = C::kCompensated ? C::Of(value, out + lost) : C::Of(value, out);
    stored = __builtin_convertvector(out, Stored);
    std::memcpy(to + at, &stored, sizeof(stored));
  }
  Number last = carry[0];
  for (int64_t i = whole * kCount; i < size; ++i) {
    const int64_t at = kReverse ? size - 1 - i : i;
    last = C::Of(last, Number(from[at]));
    to[at] = T(before.With(last));
  }
  return last;
}

template <typename C, bool kReverse, typename T>
void ScanRow(const T* from, T* to, int64_t size, Before<C> before) {
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    EndIfInterrupted();
    const int64_t count = std::min(kBlock, size - begin);
    const int64_t at = kReverse ? size - begin - count : begin;
    before.Add(ScanBlock<C, kReverse>(from + at, to + at, count, before));
  }
}

// The result for all of a row.
template <typename C, typename T>
Before<C> Reduce(const T* from, int64_t size) {
  using Number = typename C::Type;
  Before<C> before;
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    EndIfInterrupted();
    constexpr int kCount = 4 * kLanes<Number>;
    Number lanes[kCount];
    std::fill_n(lanes, kCount, C::Identity());
    const int64_t end = std::min(size, begin + kBlock);
    int64_t i = begin;
    for (; i + kCount <= end; i += kCount) {
      for (int lane = 0; lane < kCount; ++lane) {
        lanes[lane] = C::Of(lanes[lane], Number(from[i + lane]));
      }
    }
    for (; i < end; ++i) lanes[0] = C::Of(lanes[0], Number(from[i]));
    Number local = lanes[0];
    for (int lane = 1; lane < kCount; ++lane) local = C::Of(local, lanes[lane]);
    before.Add(local);
  }
  return before;
}

// One long row on all threads: the parts' results first.
template <typename C, bool kReverse, typename T>
void ScanLongRow(ffi::ThreadPool& pool, const T* from, T* to, int64_t size) {
  const int64_t parts = PartsOf(pool, size);
  const auto begin = [&](int64_t part) {
    return size * (kReverse ? parts - part - 1 : part) / parts;
  };
  const auto count = [&](int64_t part) {
    return size * (kReverse ? parts - part : part + 1) / parts - begin(part);
  };
  std::vector<Before<C>> before(parts);
  ParallelFor(pool, parts - 1, [&](int64_t part) {
    before[part + 1] = Reduce<C>(from + begin(part), count(part));
  });
  for (int64_t part = 1; part < parts; ++part) {
    Before<C> sum = before[part - 1];
    sum.Add(before[part].value);
    sum.lost += before[part].lost;
    before[part] = sum;
  }
  ParallelFor(pool, parts, [&](int64_t part) {
    ScanRow<C, kReverse>(from + begin(part), to + begin(part), count(part), before[part]);
  });
}

// Up to kSide elements side by side, whose successors along the dimension are `stride` apart.
template <typename C, typename T>
void ScanSide(const T* from, T* to, int64_t size, int64_t stride, int64_t count) {
  using Number = typename C::Type;
  Number local[kSide];
  Before<C> before[C::kCompensated ? kSide : 1];
  std::fill_n(local, count, C::Identity());
  for (int64_t step = 0; step < size; ++step) {
    if (step % kBlock == 0) EndIfInterrupted();
    const int64_t at = step * stride;
    if constexpr (C::kCompensated) {
      if (step > 0 && step % kBlock == 0) {
        for (int64_t i = 0; i < count; ++i) before[i].Add(local[i]);
        std::fill_n(local, count, C::Identity());
      }
    }
    for (int64_t i = 0; i < count; ++i) local[i] = C::Of(local[i], Number(from[at + i]));
    if (C::kCompensated && step >= kBlock) {
      for (int64_t i = 0; i < count; ++i) to[at + i] = T(before[i].With(local[i]));
    } else {
      for (int64_t i = 0; i < count; ++i) to[at + i] = T(local[i]);
    }
  }
}

template <typename C, typename T>
void Scan(ffi::ThreadPool& pool, const T* from, T* to, int64_t outer, int64_t size, int64_t inner,
          bool reverse) {
  const int64_t total = outer * size * inner;
  if (inner == 1 && (outer == 1 || (outer < ThreadsOf(pool) && size >= 2 * kPerThread))) {
    const auto scan = reverse ? ScanLongRow<C, true, T> : ScanLongRow<C, false, T>;
    for (int64_t row = 0; row < outer; ++row) scan(pool, from + row * size, to + row * size, size);
    return;
  }
  const auto scan = reverse ? ScanRow<C, true, T> : ScanRow<C, false, T>;
  const int64_t sides = (inner + kSide - 1) / kSide, works = outer * sides;
  const int64_t parts = std::min(works, PartsOf(pool, total));
  ForNeighbours(pool, works, parts, [&](int64_t work) {
    const int64_t side = work % sides * kSide;
    int64_t at = work / sides * size * inner + side;
    if (inner == 1) return scan(from + at, to + at, size, Before<C>());
    if (reverse) at += (size - 1) * inner;
    ScanSide<C>(from + at, to + at, size, reverse ? -inner : inner, std::min(kSide, inner - side));
  });
}

// `T` are the numbers in memory; sums and products are those of `Wide`.
template <typename T, typename Wide>
void ScanAny(ffi::ThreadPool& pool, const void* from, void* to, int64_t outer, int64_t size,
             int64_t inner, int64_t operation, bool reverse) {
  const auto scan = [&](auto combine) {
    using C = decltype(combine);
    // Integers that wrap around are unsigned.
    using Stored = std::conditional_t<std::is_unsigned_v<typename C::Type>, Wide, T>;
    Scan<C>(pool, static_cast<const Stored*>(from), static_cast<Stored*>(to), outer, size, inner,
            reverse);
  };
  switch (operation) {
    case kSum:
      return scan(Combine<Wide, kSum>());
    case kProduct:
      return scan(Combine<Wide, kProduct>());
    case kMaximum:
      return scan(Combine<T, kMaximum>());
    default:
      return scan(Combine<T, kMinimum>());
  }
}

// The results along the dimension after which there are `after` others.
ffi::Error Cumulative(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                      int64_t operation, int64_t reverse, int64_t after) {
  const auto shape = x.dimensions();
  const int64_t axis = static_cast<int64_t>(shape.size()) - 1 - after;
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= shape[i];
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  if (x.element_count() == 0) return ffi::Error::Success();
  const auto scan = [&](auto element, auto wide) {
    ScanAny<decltype(element), decltype(wide)>(pool, x.untyped_data(), out->untyped_data(), outer,
                                               shape[axis], inner, operation, reverse != 0);
    return ffi::Error::Success();
  };
  switch (x.element_type()) {
    case ffi::DataType::S32:
      return scan(int32_t(), uint32_t());
    case ffi::DataType::S64:
      return scan(int64_t(), uint64_t());
    case ffi::DataType::F32:
      return scan(float(), double());
    case ffi::DataType::F64:
      return scan(double(), double());
    default:
      return ffi::Error(ffi::ErrorCode::kInvalidArgument, "no cumulative kernel for the dtype");
  }
}

// y[i] = a[i] * y[i - 1] + b[i], with y = 0 before the first.
template <typename T>
void RecurRow(const T* a, const T* b, T* to, int64_t size, int64_t stride) {
  double y = 0;
  for (int64_t step = 0; step < size; ++step) {
    if (step % kBlock == 0) EndIfInterrupted();
    const int64_t at = step * stride;
    y = double(a[at]) * y + double(b[at]);
    to[at] = T(y);
  }
}

// Likewise of up to kSide neighbours.
template <typename T>
void RecurSide(const T* a, const T* b, T* to, int64_t size, int64_t stride, int64_t count) {
  double y[kSide] = {};
  for (int64_t step = 0; step < size; ++step) {
    if (step % kBlock == 0) EndIfInterrupted();
    const int64_t at = step * stride;
    for (int64_t i = 0; i < count; ++i) {
      y[i] = double(a[at + i]) * y[i] + double(b[at + i]);
      to[at + i] = T(y[i]);
    }
  }
}

template <typename T>
void Recur(ffi::ThreadPool& pool, const T* a, const T* b, T* to, int64_t outer, int64_t size,
           int64_t inner, bool reverse) {
  const int64_t sides = (inner + kSide - 1) / kSide, works = outer * sides;
  const int64_t parts = std::min(works, PartsOf(pool, outer * size * inner));
  const int64_t stride = reverse ? -inner : inner;
  ForNeighbours(pool, works, parts, [&](int64_t work) {
    const int64_t side = work % sides * kSide;
    const int64_t at =
        work / sides * size * inner + side + (reverse ? (size - 1) * inner : int64_t{0});
    if (inner == 1) {
      RecurRow(a + at, b + at, to + at, size, stride);
    } else {
      RecurSide(a + at, b + at, to + at, size, stride, std::min(kSide, inner - side));
    }
  });
}

// The linear recurrence along the dimension after which there are `after` others.
ffi::Error LinearRecurrence(ffi::ThreadPool pool, ffi::AnyBuffer a, ffi::AnyBuffer b,
                            ffi::Result<ffi::AnyBuffer> out, int64_t reverse, int64_t after) {
  const auto shape = a.dimensions();
  const int64_t axis = static_cast<int64_t>(shape.size()) - 1 - after;
  int64_t outer = 1, inner = 1;
  for (int64_t i = 0; i < axis; ++i) outer *= shape[i];
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  if (a.element_count() == 0) return ffi::Error::Success();
  const auto recur = [&](auto element) {
    using T = decltype(element);
    Recur(pool, static_cast<const T*>(a.untyped_data()), static_cast<const T*>(b.untyped_data()),
          static_cast<T*>(out->untyped_data()), outer, shape[axis], inner, reverse != 0);
    return ffi::Error::Success();
  };
  switch (a.element_type()) {
    case ffi::DataType::F32:
      return recur(float());
    case ffi::DataType::F64:
      return recur(double());
    default:
      return ffi::Error(ffi::ErrorCode::kInvalidArgument, "no recurrence kernel for the dtype");
  }
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_cumulative, dovetail::Cumulative,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("operation")
                    .Attr<int64_t>("reverse")
                    .Attr<int64_t>("after"));
DOVETAIL_KERNEL(dovetail_linear_recurrence, dovetail::LinearRecurrence,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("reverse")
                    .Attr<int64_t>("after"));
#pragma GCC visibility pop
