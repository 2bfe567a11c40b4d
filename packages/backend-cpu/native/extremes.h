// Extremes and their positions, along a dimension.
//
// An extreme is looked for block by block, and no further once nothing can surpass it: so `any` and
// `all`, which are extremes of booleans, end at the first that decides.

#ifndef DOVETAIL_CPU_EXTREMES_H_
#define DOVETAIL_CPU_EXTREMES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "bits.h"
#include "columns.h"
#include "parallel.h"
#include "streams.h"
#include "vector_width.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

// Bytes after which it is seen whether an extreme can still be surpassed.
constexpr int64_t kBlockBytes = 1 << 13;

// Rows of up to this many elements are searched element by element.
constexpr int64_t kShortRow = 12;

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

template <typename T>
struct VectorType {
  // No wider than the processor's: GCC compares the lanes of wider ones one by one.
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};

template <typename T>
using VectorOf = typename VectorType<T>::Type;

// Where one of two is NaN.
template <typename V>
inline auto Unordered(V a, V b) {
  using Mask = decltype(a != b);
#if defined(DOVETAIL_AVX2)
  if constexpr (std::is_same_v<V, VectorOf<float>>) {
    return (Mask)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
  } else if constexpr (std::is_same_v<V, VectorOf<double>>) {
    return (Mask)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_UNORD_Q);
  }
#endif
  return Mask((a != a) | (b != b));
}

// An order of numbers: those that are looked for are last, and NaN is beyond all.
template <typename Element, bool kLargest>
struct Order {
  using T = typename Number<Element>::Type;
  static constexpr bool kIsFloat = std::is_floating_point_v<T>;
  static constexpr bool kIsBool = std::is_same_v<Element, Bool>;
  static constexpr T kFirst = kLargest ? Number<Element>::kLeast : Number<Element>::kGreatest;
  static constexpr T kLast = kLargest ? Number<Element>::kGreatest : Number<Element>::kLeast;

  template <typename V>
  static auto IsBeyond(V a, V b) {
    return kLargest ? a > b : a < b;
  }
  // What is beyond, of numbers and of vectors; the first where both are equal or one is NaN.
  template <typename V>
  static V Of(V a, V b) {
#if defined(DOVETAIL_AVX2)  // Compilers compare and choose instead.
    if constexpr (std::is_same_v<V, VectorOf<float>>) {
      return kLargest ? (V)_mm256_max_ps((__m256)b, (__m256)a)
                      : (V)_mm256_min_ps((__m256)b, (__m256)a);
    } else if constexpr (std::is_same_v<V, VectorOf<double>>) {
      return kLargest ? (V)_mm256_max_pd((__m256d)b, (__m256d)a)
                      : (V)_mm256_min_pd((__m256d)b, (__m256d)a);
    }
#endif
    return kLargest ? (b > a ? b : a) : (b < a ? b : a);
  }
  // Whether the second takes the place of the first, which is the best so far: the first NaN does.
  static bool IsBetter(T best, T x) { return IsBeyond(x, best) | ((x != x) & (best == best)); }
  // NaN where either is.
  static T BeyondOrNan(T a, T b) {
    const T beyond = Of(a, b);
    return b != b ? b : beyond;
  }
};

// Each lane's number.
template <typename Integers, int kLanes>
inline Integers NumbersOf() {
  Integers numbers{};
  for (int i = 0; i < kLanes; ++i) numbers[i] = i;
  return numbers;
}

// The same order of numbers alone: NaN is passed over, as it never is beyond anything.
template <typename Element, bool kLargest>
struct OrderOfNumbers : Order<Element, kLargest> {
  using Base = Order<Element, kLargest>;
  static constexpr bool kIsFloat = false;
  static typename Base::T BeyondOrNan(typename Base::T a, typename Base::T b) {
    return Base::Of(a, b);
  }
};

// What the lanes of a vector come to, combined in halves.
template <typename Op, typename T, typename V>
T Across(V v) {
  if constexpr (sizeof(V) == sizeof(T)) {
    return v[0];
  } else {
    typedef T Half __attribute__((vector_size(sizeof(V) / 2)));
    const char* const bytes = reinterpret_cast<const char*>(&v);
    return Across<Op, T>(Op::Of(Load<Half>(bytes), Load<Half>(bytes + sizeof(Half))));
  }
}

struct Or {
  template <typename V>
  static V Of(V a, V b) {
    return a | b;
  }
};

// The extremes of blocks that begin `apart` from one another, and whether there is a NaN in each,
// which is then no part of it.
template <typename O, int kCount>
void BlockExtremes(const typename O::T* from, int64_t apart, int64_t size,
                   typename O::T (&results)[kCount], bool (&has_nan)[kCount]) {
  using T = typename O::T;
  using V = VectorOf<T>;
  constexpr int kLanes = kVectorBytes / sizeof(T);
  constexpr int kVectors = kVectorBytes == 64 ? 4 : 8 / kCount;
  using Mask = decltype(V{} != V{});
  V best[kCount][kVectors];
  Mask unordered[kCount];
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) {
#pragma GCC unroll 8
    for (int j = 0; j < kVectors; ++j) best[k][j] = O::kFirst - V{};
    unordered[k] = Mask{};
  }
  int64_t done = 0;
  for (; done + kVectors * kLanes <= size; done += kVectors * kLanes) {
#pragma GCC unroll 4
    for (int k = 0; k < kCount; ++k) {
#pragma GCC unroll 8
      for (int j = 0; j < kVectors; j += 2) {
        const T* const two = from + k * apart + done + j * kLanes;
        const V v = Load<V>(two), next = Load<V>(two + kLanes);
        best[k][j] = O::Of(best[k][j], v);
        best[k][j + 1] = O::Of(best[k][j + 1], next);
        if constexpr (O::kIsFloat) unordered[k] |= Unordered(v, next);
      }
    }
  }
#pragma GCC unroll 4
  for (int k = 0; k < kCount; ++k) {
    const T* const own = from + k * apart;
#pragma GCC unroll 8
    for (int j = 1; j < kVectors; ++j) best[k][0] = O::Of(best[k][0], best[k][j]);
    int64_t i = done;
    for (; i + kLanes <= size; i += kLanes) {
      const V v = Load<V>(own + i);
      best[k][0] = O::Of(best[k][0], v);
      if constexpr (O::kIsFloat) unordered[k] |= v != v;
    }
    T result = Across<O, T>(best[k][0]);
    bool found = false;
    if constexpr (O::kIsFloat) {
      typedef int64_t Bits __attribute__((vector_size(kVectorBytes)));
      found = Across<Or, int64_t>(As<Bits>(unordered[k])) != 0;
    }
    for (; i < size; ++i) {
      result = O::Of(result, own[i]);
      if constexpr (O::kIsFloat) found |= own[i] != own[i];
    }
    results[k] = result;
    has_nan[k] = found;
  }
}

// An extreme of part of a row, and the place of a block that has it, or has the first NaN.
template <typename T>
struct Found {
  T best;
  int64_t block;
  bool has_nan;
};

// Parts of one row end with the first of them that nothing can surpass, rows with the last.
template <typename O, int kCount>
void PartExtremes(const typename O::T* from, int64_t apart, int64_t begin, int64_t end,
                  bool one_row, Found<typename O::T> (&founds)[kCount]) {
  using T = typename O::T;
  constexpr int64_t kBlock = kBlockBytes / sizeof(T);
  for (Found<T>& found : founds) found = {O::kFirst, begin, false};
  bool is_done[kCount]{};
  // The first booleans often decide.
  int64_t size = O::kIsBool ? 256 : kBlock;
  for (int64_t at = begin; at < end; at += size, size = kBlock) {
    EndIfInterrupted();
    T best[kCount];
    bool has_nan[kCount];
    BlockExtremes<O, kCount>(from + at, apart, std::min(size, end - at), best, has_nan);
    bool all_done = true;
    for (int k = 0; k < kCount; ++k) {
      if (!is_done[k] && (has_nan[k] || O::IsBeyond(best[k], founds[k].best))) {
        founds[k] = {best[k], at, has_nan[k]};
        is_done[k] = has_nan[k] || (!O::kIsFloat && best[k] == O::kLast);
      }
      all_done &= is_done[k] || (one_row && k > 0);
    }
    if (all_done) break;
  }
}

// Of booleans one: the first often decide.
template <typename O>
constexpr int kStreamsOf = O::kIsBool ? 1 : kStreams;

// What the parts of a row come to, of which the first is before the second.
template <typename O>
void JoinFound(Found<typename O::T>& found, const Found<typename O::T>& later) {
  if (!found.has_nan && (later.has_nan || O::IsBeyond(later.best, found.best))) found = later;
}

// Whether positions are kept beside extremes of short rows: processors whose vectors are long have
// the time for it while memory comes, but not for a second look at each row.
template <typename T>
constexpr bool kKeepsPositions = kVectorBytes == 64 && sizeof(T) >= 4;

// The extreme of a block and its first position, which are the first NaN and its, if there is one.
template <typename O>
Found<typename O::T> BlockPosition(const typename O::T* from, int64_t size) {
  using T = typename O::T;
  using V = VectorOf<T>;
  using Places = decltype(V{} != V{});
  using Place = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  constexpr int kLanes = kVectorBytes / sizeof(T), kVectors = 4;
  V best[kVectors];
  Places places[kVectors], unordered{};
  const Places lanes = NumbersOf<Places, kLanes>();
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) {
    best[j] = O::kFirst - V{};
    places[j] = lanes;
  }
  const auto add = [&](int j, V v, Places place) {
    const Places is_beyond = O::IsBeyond(v, best[j]);
    best[j] = is_beyond ? v : best[j];
    places[j] = is_beyond ? place : places[j];
  };
  int64_t i = 0;
  for (Places place = lanes; i + kVectors * kLanes <= size; i += kVectors * kLanes) {
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; j += 2, place += Place{2 * kLanes}) {
      const V v = Load<V>(from + i + j * kLanes), next = Load<V>(from + i + (j + 1) * kLanes);
      add(j, v, place);
      add(j + 1, next, place + Place{kLanes});
      if constexpr (O::kIsFloat) unordered |= Unordered(v, next);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) {
    if (i >= size) break;
    // The last one goes back to what has been seen, which changes nothing.
    V v = O::kFirst - V{};
    if (size >= kLanes) {
      i = std::min(i, size - kLanes);
      v = Load<V>(from + i);
    } else {
      std::memcpy(&v, from, size * sizeof(T));
    }
    add(j, v, lanes + static_cast<Place>(i));
    if constexpr (O::kIsFloat) unordered |= v != v;
    i += kLanes;
  }
  if constexpr (O::kIsFloat) {
    typedef int64_t Bits __attribute__((vector_size(kVectorBytes)));
    if (Across<Or, int64_t>(As<Bits>(unordered)) != 0) {
      const T* const nan = std::find_if(from, from + size, [](T x) { return x != x; });
      return {*nan, nan - from, true};
    }
  }
  V all = best[0];
#pragma GCC unroll 4
  for (int j = 1; j < kVectors; ++j) all = O::Of(all, best[j]);
  const T result = Across<O, T>(all);
  Places first = std::numeric_limits<Place>::max() - Places{};
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) {
    const Places is_first = (best[j] == result) & (places[j] < first);
    first = is_first ? places[j] : first;
  }
  return {result, Across<Order<Place, false>, Place>(first), false};
}

// The first position of the extreme of a row.
template <typename O>
int64_t RowPosition(const typename O::T* from, int64_t size) {
  using T = typename O::T;
  constexpr int64_t kBlock = kBlockBytes / sizeof(T);
  Found<T> found = BlockPosition<O>(from, std::min(kBlock, size));
  for (int64_t at = kBlock; at < size && !found.has_nan; at += kBlock) {
    EndIfInterrupted();
    Found<T> later = BlockPosition<O>(from + at, std::min(kBlock, size - at));
    later.block += at;
    JoinFound<O>(found, later);
  }
  return found.block;
}

template <typename O>
Found<typename O::T> RowExtreme(const typename O::T* from, int64_t begin, int64_t end) {
  constexpr int kCount = kStreamsOf<O>;
  Found<typename O::T> whole[1];
  if constexpr (kCount > 1) {
    if constexpr (!O::kIsFloat) {  // The first may have what nothing surpasses.
      const int64_t block = std::min<int64_t>(end, begin + kBlockBytes / sizeof(typename O::T));
      PartExtremes<O, 1>(from, 0, begin, block, true, whole);
      if (block == end || whole[0].best == O::kLast) return whole[0];
    }
    const int64_t apart = (end - begin) / kCount;
    if (apart * int64_t{sizeof(typename O::T)} >= kBlockBytes) {
      Found<typename O::T> founds[kCount];
      PartExtremes<O, kCount>(from, apart, begin, begin + apart, true, founds);
      for (int k = 1; k < kCount; ++k) {
        founds[k].block += k * apart;
        JoinFound<O>(founds[0], founds[k]);
      }
      if (begin + kCount * apart < end) {
        PartExtremes<O, 1>(from, 0, begin + kCount * apart, end, true, whole);
        JoinFound<O>(founds[0], whole[0]);
      }
      return founds[0];
    }
  }
  PartExtremes<O, 1>(from, 0, begin, end, true, whole);
  return whole[0];
}

template <typename O>
Found<typename O::T> LongRowExtreme(xla::ffi::ThreadPool& pool, const typename O::T* from,
                                    int64_t size) {
  using T = typename O::T;
  const int64_t threads = PartsOf(pool, size), parts = threads == 1 ? 1 : FinerParts(threads, size);
  std::vector<Found<T>> founds(parts);
  ParallelFor(pool, parts, [&](int64_t part) {
    founds[part] = RowExtreme<O>(from, size * part / parts, size * (part + 1) / parts);
  });
  Found<T> found = founds[0];
  for (const Found<T>& later : founds) JoinFound<O>(found, later);
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
  using T = typename O::T;
  // Of the width of the elements, so that they are compared side by side.
  using Hits = std::conditional_t<sizeof(T) == 8, int64_t,
                                  std::conditional_t<sizeof(T) == 4, int32_t, int8_t>>;
  const auto skip = [&](auto at_once) {
    for (; i + at_once < size; i += at_once) {
      Hits hits = 0;
      for (int64_t j = 0; j < at_once; ++j) hits |= from[i + j] == found.best ? Hits(-1) : Hits(0);
      if (hits != 0) break;
    }
  };
  skip(std::integral_constant<int64_t, 128>());
  skip(std::integral_constant<int64_t, 16>());
  while (i + 1 < size && from[i] != found.best) ++i;
  return i;
}

// Calls write(row, from, found) for each row.
template <typename O, typename Write>
void ForRowExtremes(xla::ffi::ThreadPool& pool, const typename O::T* from, int64_t rows,
                    int64_t size, const Write& write) {
  constexpr int kMost = kStreamsOf<O>;
  if (rows == 1 || (rows < std::max<int64_t>(ThreadsOf(pool), kMost) && size >= 2 * kPerThread)) {
    for (int64_t row = 0; row < rows; ++row) {
      write(row, from + row * size, LongRowExtreme<O>(pool, from + row * size, size));
    }
    return;
  }
  const int64_t parts = std::min(rows, PartsOf(pool, rows * size));
  ParallelFor(pool, parts, [&](int64_t part) {
    InStreams<kMost>(rows * part / parts, rows * (part + 1) / parts,
                     [&](auto count, int64_t row, int64_t apart) {
                       Found<typename O::T> founds[decltype(count)::value];
                       PartExtremes<O, decltype(count)::value>(from + row * size, apart * size, 0,
                                                               size, false, founds);
                       for (int k = 0; k < count; ++k, row += apart) {
                         write(row, from + row * size, founds[k]);
                       }
                     });
  });
}

template <typename O>
struct ExtremeFold {
  using In = typename O::T;
  using Part = In;
  using Whole = In;
  static constexpr Part kFirst = O::kFirst;

  static Part Add(Part part, In x) { return O::BeyondOrNan(part, x); }
  // Several steps of whole vectors; returns how many columns these were.
  static int64_t AddVectors(Part* parts, const In* from, int64_t stride, int64_t count) {
    int64_t i = 0;
    if constexpr (O::kIsFloat && kVectorBytes == 32) {  // Else compilers do it well.
      using V = VectorOf<In>;
      constexpr int64_t kLanes = kVectorBytes / sizeof(In);
      const V nan = std::numeric_limits<In>::quiet_NaN() - V{};
      for (; i + kLanes <= count; i += kLanes) {
        V x[kAtOnce], part = Load<V>(parts + i);
#pragma GCC unroll 4
        for (int j = 0; j < kAtOnce; ++j) {
          x[j] = Load<V>(from + j * stride + i);
          part = O::Of(part, x[j]);
        }
        const auto unordered = Unordered(x[0], x[1]) | Unordered(x[2], x[3]);
        part = unordered != 0 ? nan : part;
        std::memcpy(parts + i, &part, sizeof(part));
      }
    }
    return i;
  }
  static Whole Join(Whole a, Whole b) { return O::BeyondOrNan(a, b); }
};

template <typename O>
void Extremes(xla::ffi::ThreadPool& pool, const void* from, void* to, int64_t outer, int64_t size,
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
  FoldColumns<ExtremeFold<O>>(pool, source, target, outer, size, inner);
}

template <typename O>
int64_t ShortRowPosition(const typename O::T* from, int64_t size) {
  typename O::T best = from[0];
  int64_t position = 0;
  for (int64_t i = 1; i < size; ++i) {
    const bool is_better = O::IsBetter(best, from[i]);
    best = is_better ? from[i] : best;
    position = is_better ? i : position;
  }
  return position;
}

// The positions of extremes of up to kSide neighbours.
template <typename O>
void SidePositions(const typename O::T* from, int32_t* to, int64_t size, int64_t stride,
                   int64_t count) {
  using T = typename O::T;
  // Of the width of the elements, where that is enough, as above.
  using Position = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  T best[kSide];
  Position positions[kSide];
  std::copy_n(from, count, best);
  std::fill_n(positions, count, Position(0));
  for (int64_t step = 1; step < size; ++step) {
    from += stride;
    for (int64_t i = 0; i < count; ++i) {
      const T x = from[i];
      const bool is_better = O::IsBetter(best[i], x);
      best[i] = is_better ? x : best[i];
      positions[i] = is_better ? static_cast<Position>(step) : positions[i];
    }
  }
  std::transform(positions, positions + count, to,
                 [](Position position) { return static_cast<int32_t>(position); });
}

template <typename O>
void Positions(xla::ffi::ThreadPool& pool, const void* from, int32_t* to, int64_t outer,
               int64_t size, int64_t inner) {
  using T = typename O::T;
  const T* source = static_cast<const T*>(from);
  if (inner == 1 && size <= kShortRow) {
    const int64_t parts = PartsOf(pool, outer * size);
    ParallelFor(pool, parts, [&](int64_t part) {
      InPieces(outer * part / parts, outer * (part + 1) / parts, [=](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          to[row] = static_cast<int32_t>(ShortRowPosition<O>(source + row * size, size));
        }
      });
    });
    return;
  }
  if constexpr (kKeepsPositions<T>) {
    const int64_t least = std::max<int64_t>(2, ThreadsOf(pool));
    if (inner == 1 && outer >= least) {
      const int64_t parts = std::min(outer, PartsOf(pool, outer * size));
      ForNeighbours(pool, outer, parts, [&](int64_t row) {
        to[row] = static_cast<int32_t>(RowPosition<O>(source + row * size, size));
      });
      return;
    }
  }
  if (inner == 1) {
    ForRowExtremes<O>(pool, source, outer, size,
                      [&](int64_t row, const T* from, const Found<T>& found) {
                        to[row] = static_cast<int32_t>(PositionOf<O>(from, size, found));
                      });
    return;
  }
  const int64_t sides = (inner + kSide - 1) / kSide, works = outer * sides;
  const int64_t parts = std::min(works, PartsOf(pool, outer * size * inner));
  ForNeighbours(pool, works, parts, [&](int64_t work) {
    const int64_t row = work / sides, side = work % sides * kSide;
    SidePositions<O>(source + row * size * inner + side, to + row * inner + side, size, inner,
                     std::min(kSide, inner - side));
  });
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_EXTREMES_H_
