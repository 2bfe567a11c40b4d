// Extremes, their positions, and sums of narrow integers, along neighbouring dimensions.
//
// An extreme is looked for block by block, and no further once nothing can surpass it: so `any` and
// `all`, which are extremes of booleans, end at the first that decides.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>
#include <vector>

#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Bytes after which it is seen whether an extreme can still be surpassed.
constexpr int64_t kBlockBytes = 1 << 13;
// Elements side by side that are combined at once.
constexpr int64_t kSide = 256;

enum Operation : int64_t { kMaximum, kMinimum, kSum };

// A boolean, which XLA stores as a byte that is 0 or 1.
enum class Bool : uint8_t {};

template <typename T>
struct Number {
  using Type = T;
  static constexpr T kGreatest = std::numeric_limits<T>::has_infinity
                                     ? std::numeric_limits<T>::infinity()
                                     : std::numeric_limits<T>::max();
  static constexpr T kLeast = std::numeric_limits<T>::has_infinity
                                  ? -std::numeric_limits<T>::infinity()
                                  : std::numeric_limits<T>::lowest();
};

template <>
struct Number<Bool> {
  using Type = uint8_t;
  static constexpr uint8_t kGreatest = 1, kLeast = 0;
};

// An order of numbers: those that are looked for are last, and NaN is beyond all.
template <typename Element, bool kLargest>
struct Order {
  using T = typename Number<Element>::Type;
  static constexpr bool kIsFloat = std::is_floating_point_v<T>;
  static constexpr T kFirst = kLargest ? Number<Element>::kLeast : Number<Element>::kGreatest;
  static constexpr T kLast = kLargest ? Number<Element>::kGreatest : Number<Element>::kLeast;

  static bool IsBeyond(T a, T b) { return kLargest ? a > b : a < b; }
  // Of numbers and of vectors; where the second is NaN it may be either.
  template <typename V>
  static V Beyond(V a, V b) {
    return kLargest ? (b > a ? b : a) : (b < a ? b : a);
  }
  // NaN where either is.
  static T BeyondOrNan(T a, T b) {
    if constexpr (kIsFloat) return ((IsBeyond(b, a) | (b != b)) & (a == a)) ? b : a;
    return IsBeyond(b, a) ? b : a;
  }
};

// The extreme of a block, and whether there is a NaN, which is then no part of it.
template <typename O>
typename O::T BlockExtreme(const typename O::T* from, int64_t size, bool& has_nan) {
  using T = typename O::T;
  constexpr int kLanes = 64 / sizeof(T), kVectors = 4;
  typedef T V __attribute__((vector_size(64)));
  V best[kVectors];
  for (V& v : best) v = O::kFirst - V{};
  auto unordered = best[0] != best[0];
  int64_t i = 0;
  for (; i + kVectors * kLanes <= size; i += kVectors * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j) {
      V v;
      std::memcpy(&v, from + i + j * kLanes, sizeof(v));
      best[j] = O::Beyond(best[j], v);
      if constexpr (O::kIsFloat) unordered |= v != v;
    }
  }
  T lanes[kLanes];
  for (int j = 1; j < kVectors; ++j) best[0] = O::Beyond(best[0], best[j]);
  std::memcpy(lanes, &best[0], sizeof(lanes));
  T result = O::kFirst;
  for (T lane : lanes) result = O::Beyond(result, lane);
  bool found = false;
  if constexpr (O::kIsFloat) {
    for (int lane = 0; lane < kLanes; ++lane) found |= unordered[lane] != 0;
  }
  for (; i < size; ++i) {
    result = O::Beyond(result, from[i]);
    found |= from[i] != from[i];
  }
  has_nan = found;
  return result;
}

// An extreme of part of a row, and the place of a block that has it, or has the first NaN.
template <typename T>
struct Found {
  T best;
  int64_t block;
  bool has_nan;
};

template <typename O>
Found<typename O::T> RowExtreme(const typename O::T* from, int64_t begin, int64_t end) {
  using T = typename O::T;
  constexpr int64_t kBlock = kBlockBytes / sizeof(T);
  Found<T> found{O::kFirst, begin, false};
  for (int64_t at = begin; at < end; at += kBlock) {
    bool has_nan = false;
    const T best = BlockExtreme<O>(from + at, std::min(kBlock, end - at), has_nan);
    if (has_nan) return {best, at, true};
    if (O::IsBeyond(best, found.best)) {
      found.best = best;
      found.block = at;
      if (!O::kIsFloat && best == O::kLast) break;
    }
  }
  return found;
}

template <typename O>
Found<typename O::T> LongRowExtreme(ffi::ThreadPool& pool, const typename O::T* from,
                                    int64_t size) {
  using T = typename O::T;
  const int64_t parts = PartsOf(pool, size);
  std::vector<Found<T>> founds(parts);
  ParallelFor(pool, parts, [&](int64_t part) {
    founds[part] = RowExtreme<O>(from, size * part / parts, size * (part + 1) / parts);
  });
  Found<T> found = founds[0];
  for (const Found<T>& later : founds) {
    if (!found.has_nan && (later.has_nan || O::IsBeyond(later.best, found.best))) found = later;
  }
  return found;
}

// The first position of what was found.
template <typename O>
int64_t PositionOf(const typename O::T* from, int64_t size, const Found<typename O::T>& found) {
  int64_t i = found.block;
  if constexpr (O::kIsFloat) {
    if (found.has_nan) {
      while (i + 1 < size && from[i] == from[i]) ++i;
      return i;
    }
  }
  const typename O::T* const end = from + std::min<int64_t>(size, i + kBlockBytes / sizeof(typename O::T));
  const int64_t at = std::find(from + i, end, found.best) - from;
  return std::min(at, size - 1);
}

// Calls write(row, from, found) for each row.
template <typename O, typename Write>
void ForRowExtremes(ffi::ThreadPool& pool, const typename O::T* from, int64_t rows, int64_t size,
                    const Write& write) {
  if (rows == 1 || (rows < ThreadsOf(pool) && size >= 2 * kPerThread)) {
    for (int64_t row = 0; row < rows; ++row) {
      write(row, from + row * size, LongRowExtreme<O>(pool, from + row * size, size));
    }
    return;
  }
  const int64_t parts = std::min(rows, PartsOf(pool, rows * size));
  ParallelFor(pool, parts, [&](int64_t part) {
    for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
      write(row, from + row * size, RowExtreme<O>(from + row * size, 0, size));
    }
  });
}

// Calls body(from, to, count) for the first of up to kSide neighbours that are reduced side by side.
template <typename T, typename Out, typename Body>
void ForSides(ffi::ThreadPool& pool, const T* from, Out* to, int64_t outer, int64_t size,
              int64_t inner, const Body& body) {
  const int64_t sides = (inner + kSide - 1) / kSide, works = outer * sides;
  const int64_t parts = std::min(works, PartsOf(pool, outer * size * inner));
  ParallelFor(pool, parts, [&](int64_t part) {
    for (int64_t work = works * part / parts; work < works * (part + 1) / parts; ++work) {
      const int64_t row = work / sides, side = work % sides * kSide;
      body(from + row * size * inner + side, to + row * inner + side,
           std::min(kSide, inner - side));
    }
  });
}

template <typename O>
void Extremes(ffi::ThreadPool& pool, const void* from, void* to, int64_t outer, int64_t size,
              int64_t inner) {
  using T = typename O::T;
  const T* source = static_cast<const T*>(from);
  T* target = static_cast<T*>(to);
  if (inner == 1) {
    ForRowExtremes<O>(pool, source, outer, size,
                      [&](int64_t row, const T*, const Found<T>& found) {
                        target[row] = found.best;
                        if constexpr (O::kIsFloat) {
                          if (found.has_nan) target[row] = std::numeric_limits<T>::quiet_NaN();
                        }
                      });
    return;
  }
  ForSides(pool, source, target, outer, size, inner, [&](const T* from, T* to, int64_t count) {
    T best[kSide];
    std::fill_n(best, count, O::kFirst);
    for (int64_t step = 0; step < size; ++step, from += inner) {
      for (int64_t i = 0; i < count; ++i) best[i] = O::BeyondOrNan(best[i], from[i]);
    }
    std::copy_n(best, count, to);
  });
}

template <typename O>
void Positions(ffi::ThreadPool& pool, const void* from, int32_t* to, int64_t rows, int64_t size) {
  using T = typename O::T;
  ForRowExtremes<O>(pool, static_cast<const T*>(from), rows, size,
                    [&](int64_t row, const T* source, const Found<T>& found) {
                      to[row] = static_cast<int32_t>(PositionOf<O>(source, size, found));
                    });
}

template <typename T, typename Sum>
Sum SumOf(const T* from, int64_t size) {
  Sum sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += static_cast<Sum>(from[i]);
  return sum;
}

// How many are true: in bytes, as long as none overflows.
template <typename Sum>
Sum CountOf(const uint8_t* from, int64_t size) {
  typedef uint8_t V __attribute__((vector_size(64)));
  constexpr int64_t kMany = 255;
  Sum sum = 0;
  while (size >= 64) {
    V counts{};
    const int64_t vectors = std::min(kMany, size / 64);
    for (int64_t i = 0; i < vectors; ++i, from += 64) {
      V v;
      std::memcpy(&v, from, sizeof(v));
      counts += v;
    }
    size -= vectors * 64;
    uint8_t lanes[64];
    std::memcpy(lanes, &counts, sizeof(lanes));
    sum += SumOf<uint8_t, uint32_t>(lanes, 64);
  }
  return sum + SumOf<uint8_t, Sum>(from, size);
}

template <typename Element, typename Sum>
void Sums(ffi::ThreadPool& pool, const void* from, void* to, int64_t outer, int64_t size,
          int64_t inner) {
  using T = typename Number<Element>::Type;
  const T* source = static_cast<const T*>(from);
  Sum* target = static_cast<Sum*>(to);
  if (inner > 1) {
    ForSides(pool, source, target, outer, size, inner,
             [&](const T* from, Sum* to, int64_t count) {
               Sum sums[kSide];
               std::fill_n(sums, count, Sum(0));
               for (int64_t step = 0; step < size; ++step, from += inner) {
                 for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<Sum>(from[i]);
               }
               std::copy_n(sums, count, to);
             });
    return;
  }
  const auto sum = [](const T* from, int64_t size) {
    if constexpr (std::is_same_v<Element, Bool>) return CountOf<Sum>(from, size);
    return SumOf<T, Sum>(from, size);
  };
  const bool within_rows = outer == 1;
  const int64_t parts = within_rows ? PartsOf(pool, size) : std::min(outer, PartsOf(pool, outer * size));
  std::vector<Sum> sums(within_rows ? parts : 0);
  ParallelFor(pool, parts, [&](int64_t part) {
    if (within_rows) {
      const int64_t begin = size * part / parts;
      sums[part] = sum(source + begin, size * (part + 1) / parts - begin);
      return;
    }
    for (int64_t row = outer * part / parts; row < outer * (part + 1) / parts; ++row) {
      target[row] = sum(source + row * size, size);
    }
  });
  if (!within_rows) return;
  target[0] = 0;
  for (const Sum& part : sums) target[0] += part;
}

// Calls f with a value of the type of the elements.
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
      return ffi::Error(ffi::ErrorCode::kInvalidArgument, "no kernel reduces this dtype");
  }
}

// Reduces `count` dimensions, after which there are `after` others.
ffi::Error Reduce(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                  int64_t operation, int64_t count, int64_t after) try {
  const auto shape = x.dimensions();
  const int64_t rank = static_cast<int64_t>(shape.size());
  int64_t outer = 1, size = 1, inner = 1;
  for (int64_t i = 0; i < rank; ++i) {
    (i >= rank - after ? inner : i >= rank - after - count ? size : outer) *= shape[i];
  }
  if (out->element_count() == 0) return ffi::Error::Success();
  return ByType(x.element_type(), [&](auto element) {
    using E = decltype(element);
    if (operation == kMaximum) {
      Extremes<Order<E, true>>(pool, x.untyped_data(), out->untyped_data(), outer, size, inner);
    } else if (operation == kMinimum) {
      Extremes<Order<E, false>>(pool, x.untyped_data(), out->untyped_data(), outer, size, inner);
    } else if constexpr (sizeof(E) == 1) {
      // Sums of signed integers wrap around, as those of unsigned ones do.
      const auto sums = ffi::ByteWidth(out->element_type()) == 8 ? Sums<E, uint64_t>
                                                                 : Sums<E, uint32_t>;
      sums(pool, x.untyped_data(), out->untyped_data(), outer, size, inner);
    } else {
      return ffi::Error(ffi::ErrorCode::kInvalidArgument, "no kernel adds this dtype");
    }
    return ffi::Error::Success();
  });
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "out of memory in a reduction");
}

// The first positions of extremes along the last dimension.
ffi::Error ExtremePositions(ffi::ThreadPool pool, ffi::AnyBuffer x,
                            ffi::Result<ffi::Buffer<ffi::S32>> out, int64_t largest) try {
  const int64_t size = x.dimensions().back();
  const int64_t rows = static_cast<int64_t>(out->element_count());
  if (rows == 0) return ffi::Error::Success();
  return ByType(x.element_type(), [&](auto element) {
    using E = decltype(element);
    const auto positions = largest != 0 ? Positions<Order<E, true>> : Positions<Order<E, false>>;
    positions(pool, x.untyped_data(), out->typed_data(), rows, size);
    return ffi::Error::Success();
  });
} catch (const std::bad_alloc&) {
  return ffi::Error(ffi::ErrorCode::kResourceExhausted, "out of memory in a reduction");
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
XLA_FFI_DEFINE_HANDLER_SYMBOL(dovetail_reduce, dovetail::Reduce,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<int64_t>("operation")
                                  .Attr<int64_t>("count")
                                  .Attr<int64_t>("after"));
XLA_FFI_DEFINE_HANDLER_SYMBOL(dovetail_extreme_positions, dovetail::ExtremePositions,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::S32>>()
                                  .Attr<int64_t>("largest"));
#pragma GCC visibility pop
