// Sums and products of numbers, and sums of products of two, along a dimension.
//
// What is added to what depends on the shape alone, so that the results do not depend on the number
// of threads. A float is added to few others of its precision: what many come to is kept in
// float64, or in float64 added in pairs.

#ifndef DOVETAIL_CPU_SUMS_H_
#define DOVETAIL_CPU_SUMS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "bits.h"
#include "columns.h"
#include "extremes.h"
#include "parallel.h"
#include "streams.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

// Vectors that are combined side by side, and how often before the result of the block is joined to
// those of the others.
constexpr int kVectors = 8, kTimes = 32;
template <typename T>
constexpr int64_t kSummed = kTimes * kVectors * kVectorBytes / sizeof(T);

// A shape seen as three dimensions, of which the middle one is reduced.
struct Sizes {
  int64_t outer = 1, size = 1, inner = 1;

  // Reduces `count` dimensions, after which there are `after` others.
  Sizes(xla::ffi::Span<const int64_t> shape, int64_t count, int64_t after) {
    const int64_t rank = static_cast<int64_t>(shape.size());
    for (int64_t i = 0; i < rank; ++i) {
      (i >= rank - after ? inner : i >= rank - after - count ? size : outer) *= shape[i];
    }
  }
};

struct Plus {
  static constexpr int kIdentity = 0;
  template <typename V>
  static V Of(V a, V b) {
    return a + b;
  }
};

struct Times {
  static constexpr int kIdentity = 1;
  template <typename V>
  static V Of(V a, V b) {
    return a * b;
  }
};

// In bytes: where numbers are only read.
constexpr int kFarAhead = 2048;

// Terms that are added up have a constant kSideBySide: how many rows, or parts of one, are.
//
// Of two arrays half as many parts are.
constexpr int kStreamsOfTwo = (kStreams + 1) / 2;

// The numbers of an array.
template <typename T>
struct Numbers {
  using Type = T;
  static constexpr int kSideBySide = kStreams;
  const T* x;

  Numbers operator+(int64_t offset) const { return {x + offset}; }
  void FetchAhead(int64_t i) const { dovetail::FetchAhead<kFarAhead>(x + i); }
  // The number or the vector of them that begins at a position.
  template <typename V>
  V At(int64_t i) const {
    return Load<V>(x + i);
  }
};

// The elements of an array that are numbers, or how many each is; nothing for NaN.
template <typename T, bool kCounted>
struct NotNan {
  using Type = T;
  static constexpr int kSideBySide = kStreams;
  const T* x;

  NotNan operator+(int64_t offset) const { return {x + offset}; }
  void FetchAhead(int64_t i) const { dovetail::FetchAhead<kFarAhead>(x + i); }
  template <typename V>
  static V Of(V value) {
    return value == value ? (kCounted ? V{} + T(1) : value) : V{};
  }
  template <typename V>
  V At(int64_t i) const {
    return Of(Load<V>(x + i));
  }
};

// 1 for each element of an array that is not 0, else 0, in integers as wide.
template <typename T>
struct NotZero {
  using Type = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static constexpr int kSideBySide = kStreams;
  const T* x;

  NotZero operator+(int64_t offset) const { return {x + offset}; }
  void FetchAhead(int64_t i) const { dovetail::FetchAhead<kFarAhead>(x + i); }
  template <typename V>
  V At(int64_t i) const {
    if constexpr (sizeof(V) == sizeof(T)) {
      return x[i] != 0;
    } else {
      typedef T Source __attribute__((vector_size(sizeof(V))));
      return As<V>(Load<Source>(x + i) != Source{}) & Type(1);
    }
  }
};

// Floats of 16 bits, the upper halves of float32.
struct BFloat16s {
  using Type = float;
  static constexpr int kSideBySide = 1;
  const uint16_t* x;

  BFloat16s operator+(int64_t offset) const { return {x + offset}; }
};

// The products of the numbers of two arrays.
template <typename T>
struct Products {
  using Type = T;
  static constexpr int kSideBySide = kStreamsOfTwo;
  const T *x, *y;

  Products operator+(int64_t offset) const { return {x + offset, y + offset}; }
  void FetchAhead(int64_t i) const {
    dovetail::FetchAhead<kFarAhead>(x + i);
    dovetail::FetchAhead<kFarAhead>(y + i);
  }
  template <typename V>
  V At(int64_t i) const {
    return Load<V>(x + i) * Load<V>(y + i);
  }
};

template <typename T>
using WholeOf = std::conditional_t<std::is_same_v<T, float>, double, T>;

// The results of blocks of a size, one beginning at each of the terms.
template <typename Op, int kCount, typename Terms, typename Whole>
void BlockResults(const Terms (&terms)[kCount], int64_t size, Whole (&to)[kCount]) {
  using T = typename Terms::Type;
  constexpr int kLanes = kVectorBytes / sizeof(T);
  typedef T V __attribute__((vector_size(kVectorBytes)));
  V all[kCount][kVectors];
#pragma GCC unroll 4
  for (int stream = 0; stream < kCount; ++stream) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) all[stream][j] = T(Op::kIdentity) - V{};
  }
  int64_t done = 0;
  for (; done + kVectors * kLanes <= size; done += kVectors * kLanes) {
#pragma GCC unroll 4
    for (int stream = 0; stream < kCount; ++stream) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) {
        terms[stream].FetchAhead(done + j * kLanes);
        all[stream][j] =
            Op::Of(all[stream][j], terms[stream].template At<V>(done + j * kLanes));
      }
    }
  }
#pragma GCC unroll 4
  for (int stream = 0; stream < kCount; ++stream) {
    const Terms from = terms[stream];
    V results[kVectors];
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) results[j] = all[stream][j];
    int64_t i = done;
    for (; i + kLanes <= size; i += kLanes) results[0] = Op::Of(results[0], from.template At<V>(i));
    Whole rest(Op::kIdentity);
    if (i < size && size >= kLanes) {
      // The last vector, without what has been seen of it.
      const auto lanes = NumbersOf<decltype(results[0] < results[0]), kLanes>();
      const V last = from.template At<V>(size - kLanes);
      const int seen = kLanes - static_cast<int>(size - i);
      results[1] = Op::Of(results[1], lanes >= seen ? last : T(Op::kIdentity) - V{});
    } else {
      for (; i < size; ++i) rest = Op::Of(rest, Whole(from.template At<T>(i)));
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) results[j] = Op::Of(results[j], results[j + 4]);
    const V halves[] = {Op::Of(results[0], results[2]), Op::Of(results[1], results[3])};
    to[stream] = Op::Of(rest, Whole(Across<Op, T>(Op::Of(halves[0], halves[1]))));
  }
}

// Of two neighbours, which are in one lane, each is added to others at its side.
template <typename Op>
double BlockResult(BFloat16s terms, int64_t size) {
  constexpr int kLanes = kVectorBytes / sizeof(float), kPairs = kVectors / 2;
  typedef float V __attribute__((vector_size(kVectorBytes)));
  typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
  V sums[kVectors]{};
  const auto add = [&](int64_t i, int j) {
    const Words words = Load<Words>(terms.x + i);
    sums[2 * j] += As<V>(words << 16);
    sums[2 * j + 1] += As<V>(words & 0xFFFF0000);
  };
  int64_t i = 0;
  for (; i + kVectors * kLanes <= size; i += kVectors * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < kPairs; ++j) add(i + j * 2 * kLanes, j);
  }
  for (; i + 2 * kLanes <= size; i += 2 * kLanes) add(i, 0);
  double rest = 0;
  for (; i < size; ++i) rest += As<float>(uint32_t{terms.x[i]} << 16);
#pragma GCC unroll 8
  for (int j = 1; j < kVectors; ++j) sums[0] += sums[j];
  return rest + double(Across<Op, float>(sums[0]));
}

template <typename Op, int kCount>
void BlockResults(const BFloat16s (&terms)[kCount], int64_t size, double (&to)[kCount]) {
  for (int stream = 0; stream < kCount; ++stream) to[stream] = BlockResult<Op>(terms[stream], size);
}

// What the results of blocks come to, combined in pairs.
template <typename Op, typename ResultOf>
auto InPairs(int64_t begin, int64_t end, const ResultOf& result_of) -> decltype(result_of(begin)) {
  if (end - begin == 1) return result_of(begin);
  const int64_t middle = begin + (end - begin) / 2;
  return Op::Of(InPairs<Op>(begin, middle, result_of), InPairs<Op>(middle, end, result_of));
}

// Folds blocks of `length` that begin at `first`, and `apart` from one another; what they come to
// is `step` apart.
template <typename Op, int kCount, typename Terms, typename Whole>
inline void FoldBlocks(Terms terms, int64_t first, int64_t apart, int64_t length, Whole* results,
                       int64_t step) {
  Terms starts[kCount];
  Whole found[kCount];
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) starts[k] = terms + (first + k * apart);
  BlockResults<Op, kCount>(starts, length, found);
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) results[k * step] = found[k];
}

// Elements that the nearer caches hold, of which one part is fetched as fast as several.
template <typename T>
constexpr int64_t kNear = (1 << 18) / sizeof(T);

template <typename T>
int64_t BlocksOf(int64_t size) {
  return std::max<int64_t>(1, (size + kSummed<T> - 1) / kSummed<T>);
}

// What one row comes to; `for_ranges(size, body)` calls body(begin, end) for parts of it.
template <typename Op, typename ForRanges, typename Terms>
typename Terms::Type FoldRow(const ForRanges& for_ranges, Terms terms, int64_t size) {
  using T = typename Terms::Type;
  constexpr int64_t kSize = kSummed<T>;
  std::vector<WholeOf<T>> results(BlocksOf<T>(size));
  for_ranges(size, [&](int64_t begin, int64_t end) {
    // A block belongs to the range that has its first element.
    const int64_t first = (begin + kSize - 1) / kSize, last = (end + kSize - 1) / kSize;
    if (first == last) return;
    const auto some = [&](auto count, int64_t i, int64_t apart) {
      FoldBlocks<Op, decltype(count)::value>(terms, i * kSize, apart * kSize,
                                             std::min(kSize, size - i * kSize), &results[i], apart);
    };
    // The last may be shorter.
    if (size < kNear<T>) {
      InStreams<1>(first, last - 1, some);
    } else {
      InStreams<Terms::kSideBySide>(first, last - 1, some);
    }
    some(std::integral_constant<int, 1>(), last - 1, 0);
  });
  return T(InPairs<Op>(0, BlocksOf<T>(size), [&](int64_t i) { return results[i]; }));
}

template <typename Op, typename Terms>
void FoldRows(xla::ffi::ThreadPool& pool, Terms terms, typename Terms::Type* to, int64_t rows,
              int64_t size) {
  using T = typename Terms::Type;
  using Whole = WholeOf<T>;
  constexpr int64_t kSize = kSummed<T>;
  constexpr int kMost = Terms::kSideBySide;
  if (rows == 1 || (rows < std::max<int64_t>(ThreadsOf(pool), kMost) && size >= 2 * kPerThread)) {
    const auto for_ranges = [&](int64_t count, const auto& body) { ForRanges(&pool, count, body); };
    for (int64_t row = 0; row < rows; ++row) {
      to[row] = FoldRow<Op>(for_ranges, terms + row * size, size);
    }
    return;
  }
  const int64_t blocks = BlocksOf<T>(size), parts = std::min(rows, PartsOf(pool, rows * size));
  ParallelFor(pool, parts, [&](int64_t part) {
    std::vector<Whole> results(kMost * blocks);
    const auto some = [&](auto count, int64_t row, int64_t apart) {
      for (int64_t i = 0; i < blocks; ++i) {
        FoldBlocks<Op, decltype(count)::value>(terms, row * size + i * kSize, apart * size,
                                               std::min(kSize, size - i * kSize), &results[i],
                                               blocks);
      }
      for (int k = 0; k < count; ++k) {
        const Whole* const own = results.data() + k * blocks;
        to[row + k * apart] = T(InPairs<Op>(0, blocks, [own](int64_t i) { return own[i]; }));
      }
    };
    InStreams<kMost>(rows * part / parts, rows * (part + 1) / parts, some);
  });
}

template <typename Op, typename Element, typename Sum>
struct OpFold {
  using In = Element;
  using Part = Sum;
  using Whole = WholeOf<Sum>;
  static constexpr Part kFirst = Part(Op::kIdentity);

  static Part Add(Part part, In x) { return Op::Of(part, static_cast<Part>(x)); }
  static int64_t AddVectors(Part*, const In*, int64_t, int64_t) { return 0; }
  static Whole Join(Whole a, Whole b) { return Op::Of(a, b); }
};

template <typename Op, typename T>
void FoldNumbers(xla::ffi::ThreadPool& pool, const void* from, void* to, int64_t outer,
                 int64_t size, int64_t inner) {
  const T* source = static_cast<const T*>(from);
  T* target = static_cast<T*>(to);
  if (inner == 1) return FoldRows<Op>(pool, Numbers<T>{source}, target, outer, size);
  FoldColumns<OpFold<Op, T, T>>(pool, source, target, outer, size, inner);
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
  typedef uint8_t V __attribute__((vector_size(kVectorBytes)));
  constexpr int64_t kMany = 255, kBytes = kVectors * kVectorBytes;
  Sum sum = 0;
  while (size >= kBytes) {
    V counts[kVectors]{};
    const int64_t times = std::min(kMany, size / kBytes);
    for (int64_t i = 0; i < times; ++i, from += kBytes) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; ++j) counts[j] += Load<V>(from + j * kVectorBytes);
    }
    size -= times * kBytes;
    uint8_t lanes[kBytes];
    std::memcpy(lanes, counts, sizeof(lanes));
    sum += SumOf<uint8_t, uint32_t>(lanes, kBytes);
  }
  return sum + SumOf<uint8_t, Sum>(from, size);
}

// Sums of bytes in wider integers.
template <typename Element, typename Sum>
void SumBytes(xla::ffi::ThreadPool& pool, const void* from, void* to, int64_t outer,
              int64_t size, int64_t inner) {
  using T = std::conditional_t<std::is_same_v<Element, Bool>, uint8_t, Element>;
  const T* source = static_cast<const T*>(from);
  Sum* target = static_cast<Sum*>(to);
  if (inner > 1) {
    FoldColumns<OpFold<Plus, T, Sum>>(pool, source, target, outer, size, inner);
    return;
  }
  const auto sum = [](const T* from, int64_t size) {
    if constexpr (std::is_same_v<Element, Bool>) return CountOf<Sum>(from, size);
    return SumOf<T, Sum>(from, size);
  };
  const bool within_rows = outer == 1;
  const int64_t parts =
      within_rows ? PartsOf(pool, size) : std::min(outer, PartsOf(pool, outer * size));
  std::vector<Sum> sums(within_rows ? parts : 0);
  ParallelFor(pool, parts, [&](int64_t part) {
    if (within_rows) {
      const int64_t begin = size * part / parts;
      sums[part] = sum(source + begin, size * (part + 1) / parts - begin);
      return;
    }
    for (int64_t row = outer * part / parts; row < outer * (part + 1) / parts; ++row) {
      EndIfInterrupted();
      target[row] = sum(source + row * size, size);
    }
  });
  if (!within_rows) return;
  target[0] = 0;
  for (const Sum& part : sums) target[0] += part;
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_SUMS_H_
