// Sorting of signed integers by vectors: quicksort whose partitions are made a vector at a time,
// and a bitonic network in registers for what is short.
//
// Source: B. Bramas, A novel hybrid quicksort algorithm vectorized using AVX-512 on Intel Skylake,
// IJACSA 8 (2017); K. E. Batcher, Sorting networks and their applications, AFIPS 1968. Partitions
// are made in place, or without AVX-512 go from one array to another. Bounds of the elements are
// known of each, so that equal elements end the recursion.

#ifndef DOVETAIL_CPU_QUICKSORT_H_
#define DOVETAIL_CPU_QUICKSORT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "parallel.h"
#include "radix_sort.h"
#include "vectors.h"

#if defined(DOVETAIL_VECTORS)

namespace dovetail {

// Compares each lane with lane ^ X, and leaves the smaller in that of the smaller number.
template <typename T, int X, int kTopBit>
[[gnu::always_inline]] inline typename Vector<T>::Type Exchanged(typename Vector<T>::Type v) {
  using V = Vector<T>;
  return V::template Either<kTopBit>(v, V::template Swap<X>(v));
}

// Sorts the lanes of a bitonic vector.
template <typename T, int kDistance>
[[gnu::always_inline]] inline typename Vector<T>::Type LanesMerged(typename Vector<T>::Type v) {
  if constexpr (kDistance > 0) {
    return LanesMerged<T, kDistance / 2>(Exchanged<T, kDistance, kDistance>(v));
  } else {
    return v;
  }
}

// Sorts the lanes of a vector, in blocks of `kBlock` at first.
template <typename T, int kBlock = 2>
[[gnu::always_inline]] inline typename Vector<T>::Type LanesSorted(typename Vector<T>::Type v) {
  if constexpr (kBlock <= Vector<T>::kLanes) {
    v = LanesMerged<T, kBlock / 4>(Exchanged<T, kBlock - 1, kBlock / 2>(v));
    return LanesSorted<T, kBlock * 2>(v);
  } else {
    return v;
  }
}

template <typename T>
[[gnu::always_inline]] inline void Compare(typename Vector<T>::Type& low,
                                           typename Vector<T>::Type& high) {
  const auto a = low, b = high;
  low = Vector<T>::Min(a, b);
  high = Vector<T>::Max(a, b, low);
}

// Merges the even and the odd of `kCount` vectors, `kStep` apart, each lane for itself.
template <typename T, int kCount, int kStep = 1>
[[gnu::always_inline]] inline void MergeColumns(typename Vector<T>::Type* v) {
  if constexpr (2 * kStep < kCount) {
    MergeColumns<T, kCount, 2 * kStep>(v);
    MergeColumns<T, kCount, 2 * kStep>(v + kStep);
#pragma GCC unroll 16
    for (int i = kStep; i + kStep < kCount; i += 2 * kStep) Compare<T>(v[i], v[i + kStep]);
  } else {
    Compare<T>(v[0], v[kStep]);
  }
}

// Sorts each lane of `kCount` vectors.
template <typename T, int kCount>
[[gnu::always_inline]] inline void SortColumns(typename Vector<T>::Type* v) {
  if constexpr (kCount > 1) {
    SortColumns<T, kCount / 2>(v);
    SortColumns<T, kCount / 2>(v + kCount / 2);
    MergeColumns<T, kCount>(v);
  }
}

// Makes of sorted columns, half as many lanes wide as `kWide`, sorted ones of all lanes.
template <typename T, int kRows, int kWide = 2>
[[gnu::always_inline]] inline void JoinColumns(typename Vector<T>::Type* v) {
  using V = Vector<T>;
  if constexpr (kWide <= V::kLanes) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows / 2; ++i) {
      const auto a = v[i], b = V::template Swap<kWide - 1>(v[kRows - 1 - i]);
      v[i] = V::template Either<kWide / 2>(a, b);
      v[kRows - 1 - i] = V::template Swap<kWide - 1>(V::template Either<kWide / 2, true>(a, b));
    }
    if constexpr (kWide > 2) {
#pragma GCC unroll 32
      for (int i = 0; i < kRows; ++i) v[i] = LanesMerged<T, kWide / 4>(v[i]);
    }
#pragma GCC unroll 8
    for (int distance = kRows / 2; distance > 0; distance /= 2) {
#pragma GCC unroll 32
      for (int i = 0; i < kRows; ++i) {
        if ((i & distance) == 0) Compare<T>(v[i], v[i + distance]);
      }
    }
    JoinColumns<T, kRows, 2 * kWide>(v);
  }
}

// Sorts `kCount` vectors as one row of lanes.
template <typename T, int kCount>
[[gnu::always_inline]] inline void SortInRegisters(typename Vector<T>::Type* v) {
  using V = Vector<T>;
  if constexpr (kCount == 1) {
    v[0] = LanesSorted<T>(v[0]);
  } else if constexpr (kCount >= V::kLanes) {
    // Lanes are compared with those of other vectors for as long as can be, which moves none.
    SortColumns<T, kCount>(v);
    JoinColumns<T, kCount>(v);
    constexpr int kBlocks = kCount / V::kLanes;
    typename V::Type columns[kCount];
#pragma GCC unroll 4
    for (int block = 0; block < kBlocks; ++block) {
      V::Transpose(v + block * V::kLanes);
#pragma GCC unroll 16
      for (int i = 0; i < V::kLanes; ++i) columns[i * kBlocks + block] = v[block * V::kLanes + i];
    }
#pragma GCC unroll 32
    for (int i = 0; i < kCount; ++i) v[i] = columns[i];
  } else {
    constexpr int kHalf = kCount / 2;
    SortInRegisters<T, kHalf>(v);
    SortInRegisters<T, kHalf>(v + kHalf);
#pragma GCC unroll 32
    for (int i = 0; i < kHalf; ++i) {
      const auto low = v[i];
      const auto high = V::template Swap<V::kLanes - 1>(v[kCount - 1 - i]);
      v[i] = V::Min(low, high);
      v[kCount - 1 - i] = V::template Swap<V::kLanes - 1>(V::Max(low, high, v[i]));
    }
#pragma GCC unroll 32
    for (int distance = kHalf / 2; distance > 0; distance /= 2) {
#pragma GCC unroll 32
      for (int i = 0; i < kCount; ++i) {
        if (i & distance) continue;
        Compare<T>(v[i], v[i + distance]);
      }
    }
#pragma GCC unroll 32
    for (int i = 0; i < kCount; ++i) v[i] = LanesMerged<T, V::kLanes / 2>(v[i]);
  }
}

// With kFloats keys of floats become their bits, here and below.
template <typename T, int kCount, bool kFloats = false>
void SortFew(const T* from, T* to, int64_t size) {
  using V = Vector<T>;
  if constexpr (kCount > 1) {
    if (size <= V::kLanes * kCount / 2) return SortFew<T, kCount / 2, kFloats>(from, to, size);
  }
  typename V::Type v[kCount];
  // Half of the vectors are whole. What is missing in the others is the greatest number.
  constexpr int kWhole = kCount / 2;
  const auto lanes = [size](int i) {
    return static_cast<int>(std::clamp<int64_t>(size - i * V::kLanes, 0, V::kLanes));
  };
#pragma GCC unroll 32
  for (int i = 0; i < kWhole; ++i) v[i] = V::Load(from + i * V::kLanes);
#pragma GCC unroll 32
  for (int i = kWhole; i < kCount; ++i) {
    v[i] = V::LoadFirst(from + i * V::kLanes, lanes(i), std::numeric_limits<T>::max());
  }
  SortInRegisters<T, kCount>(v);
  if constexpr (kFloats) {
#pragma GCC unroll 32
    for (int i = 0; i < kCount; ++i) v[i] = V::FloatBits(v[i]);
  }
#pragma GCC unroll 32
  for (int i = 0; i < kWhole; ++i) V::Store(to + i * V::kLanes, v[i]);
  if constexpr (!V::kHasMasks && kWhole > 0) {
    // Processors may store parts of vectors slowly: whole ones of what ends with the last element.
    alignas(64) T sorted[kCount * V::kLanes];
#pragma GCC unroll 32
    for (int i = kWhole - 1; i < kCount; ++i) V::Store(sorted + i * V::kLanes, v[i]);
#pragma GCC unroll 32
    for (int i = kWhole; i < kCount; ++i) {
      const int64_t at = std::min<int64_t>(i * V::kLanes, size - V::kLanes);
      V::Store(to + at, V::Load(sorted + at));
    }
    return;
  }
#pragma GCC unroll 32
  for (int i = kWhole; i < kCount; ++i) V::StoreFirst(to + i * V::kLanes, lanes(i), v[i]);
}

// A part of an array, sorted from `from`, or in place, to `to`; the two do not overlap otherwise.
// With AVX-512 all are in place.
template <typename T>
struct Segment {
  T* from;
  T* to;
  bool in_place;  // The result belongs in `from`.
  int64_t size;
  T least;
  T greatest;
  int depth;

  T* result() const { return in_place ? from : to; }
};

// The greatest element of the left part may be less than is said, the least of the right greater.
template <typename T>
struct Partitioned {
  int64_t left;
  T left_greatest;
  T right_least;
};

// Elements below the pivot first (with kEqual, those that equal it, too), then the others. The
// pivot is an element.
#if defined(DOVETAIL_AVX512)

// What is written takes the room of what was read, from both ends.
template <typename T, bool kEqual>
Partitioned<T> Partition(T* elements, T*, int64_t size, T pivot) {
  using V = Vector<T>;
  constexpr int kLanes = V::kLanes, kTogether = 8;
  constexpr int64_t kBlock = kTogether * kLanes;
  const T limit = kEqual ? pivot + 1 : pivot;
  const auto bound = V::Of(limit);
  // Three blocks aside make room. Of the rest, the side with less room is read from, one block
  // before its elements are written, so that nothing waits for the counts. Memory is asked for early
  // at both ends.
  typename V::Type kept[3 * kTogether];
#pragma GCC unroll 8
  for (int i = 0; i < kTogether; ++i) {
    kept[i] = V::Load(elements + i * kLanes);
    kept[kTogether + i] = V::Load(elements + kBlock + i * kLanes);
    kept[2 * kTogether + i] = V::Load(elements + size - kBlock + i * kLanes);
  }
  T* left = elements;
  int64_t between = size - kLanes;  // From there to the last vector that may be written to.
  const auto step = [&](typename V::Type v) {
    const auto mask = V::Less(v, bound);
    const int count = V::Count(mask);
    V::StoreParts(mask, count, v, left, left + between);
    left += count;
    between -= kLanes;
  };
  const T *next = elements + 2 * kBlock, *end = elements + size - kBlock;
  const auto take = [&](int64_t count) {
    const int64_t from_left = -int64_t{next - left <= 2 * kBlock};
    const T* const at = end - count + (from_left & (next - end + count));
    next += from_left & count;
    end -= ~from_left & count;
    return at;
  };
  constexpr int64_t kPiece = 1 << 20;
  if (end - next >= kBlock) {
    end -= kBlock;
    typename V::Type v[kTogether];
#pragma GCC unroll 8
    for (int i = 0; i < kTogether; ++i) v[i] = V::Load(end + i * kLanes);
    while (end - next >= kBlock) {
      EndIfInterrupted();
      for (int64_t blocks = std::min(end - next, kPiece) / kBlock; blocks > 0; --blocks) {
        const T* const from = take(kBlock);
        typename V::Type w[kTogether];
#pragma GCC unroll 8
        for (int i = 0; i < kTogether; ++i) {
          __builtin_prefetch(next + 2 * kBlock + i * kLanes);
          __builtin_prefetch(end - 3 * kBlock + i * kLanes);
        }
#pragma GCC unroll 8
        for (int i = 0; i < kTogether; ++i) w[i] = V::Load(from + i * kLanes);
#pragma GCC unroll 8
        for (int i = 0; i < kTogether; ++i) step(v[i]);
#pragma GCC unroll 8
        for (int i = 0; i < kTogether; ++i) v[i] = w[i];
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kTogether; ++i) step(v[i]);
  }
  while (end - next >= kLanes) step(V::Load(take(kLanes)));
  const auto few = static_cast<int>(end - next);
  const auto v = V::LoadFirst(next, few, limit);
  const typename V::Mask mask = V::Less(v, bound), others = V::First(few) & ~mask;
  const int count = V::Count(mask), rest = few - count;
  V::StoreParts(mask, others, v, left, left + between + kLanes - rest, rest);
  left += count;
  between -= few;
#pragma GCC unroll 8
  for (int i = 0; i < 3 * kTogether; ++i) step(kept[i]);
  return {left - elements, T(limit - 1), limit};
}

#else

template <typename T, bool kEqual>
Partitioned<T> Partition(const T* from, T* to, int64_t size, T pivot) {
  using V = Vector<T>;
  constexpr T kLowest = std::numeric_limits<T>::lowest(), kHighest = std::numeric_limits<T>::max();
  // With integers, not to be above the pivot is to be below the next.
  const auto bound = V::Of(kEqual ? pivot + 1 : pivot);
  auto left_greatest = V::Of(kLowest), right_least = V::Of(kHighest);
  int64_t left = 0, right = size, i = 0;
  const auto step = [&](typename V::Type v) {
    const auto mask = V::Less(v, bound);
    const int count = V::Count(mask);
    V::StoreParts(mask, count, v, to + left, to + right - V::kLanes);
    left += count;
    right -= V::kLanes - count;
    left_greatest = V::MaxWhere(mask, left_greatest, v);
    right_least = V::MinUnless(mask, right_least, v);
  };
  // The elements that fill no vector, first: of the others the last find just the room they need.
  i = size % V::kLanes;
  const auto v = V::Load(from), first = V::First(static_cast<int>(i));
  const auto mask = V::Less(v, bound) & first, others = mask | ~first;
  left = V::Count(mask);
  right -= i - left;
  V::StoreParts(mask, 0, v, to, to + size - V::kLanes);
  V::StoreParts(others, 0, v, to + left, to + size - V::kLanes);
  left_greatest = V::MaxWhere(mask, left_greatest, v);
  right_least = V::MinUnless(others, right_least, v);
  // Whole vectors are stored on both sides, so there must be room for one more than is read.
  for (int64_t end = 0; i + 9 * V::kLanes <= size;) {
    EndIfInterrupted();
    constexpr int64_t kPiece = 1 << 20;
    for (end = std::min(size, end + kPiece); i + 9 * V::kLanes <= end; i += 8 * V::kLanes) {
      typename V::Type v[8];
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) v[j] = V::Load(from + i + j * V::kLanes);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) step(v[j]);
    }
  }
  for (; i < size; i += V::kLanes) step(V::Load(from + i));
  T greatest[V::kLanes], least[V::kLanes];
  V::Store(greatest, left_greatest);
  V::Store(least, right_least);
  const T most = *std::max_element(greatest, greatest + V::kLanes);
  const T fewest = *std::min_element(least, least + V::kLanes);
  return {left, most, fewest};
}

#endif

// The median of a number of elements from all over the segment.
template <typename T, int kVectors>
T MedianOf(const T* from, int64_t size) {
  constexpr int kSamples = kVectors * Vector<T>::kLanes;
  T samples[kSamples];
  for (int i = 0; i < kSamples; ++i) samples[i] = from[(2 * i + 1) * size / (2 * kSamples)];
  SortFew<T, kVectors>(samples, samples, kSamples);
  return samples[kSamples / 2];
}

template <typename T>
T PivotOf(const T* from, int64_t size) {
  return size < 4096 ? MedianOf<T, 1>(from, size) : MedianOf<T, 4>(from, size);
}

// Splits a segment; what remains to be sorted is given to `add`.
template <typename T, bool kFloats = false, typename Add>
void Split(const Segment<T>& whole, T pivot, const Add& add) {
  if (whole.size > kPerThread) KeepCounting();
  // Elements that equal the least are done once they stand in front.
  const bool equal = pivot == whole.least;
  const Partitioned<T> parts =
      equal ? Partition<T, true>(whole.from, whole.to, whole.size, pivot)
            : Partition<T, false>(whole.from, whole.to, whole.size, pivot);
  const auto part = [&](int64_t begin, int64_t end, T least, T greatest) {
    Segment<T> segment{whole.from + begin, whole.to + begin, whole.in_place,  end - begin,
                       least,              greatest,         whole.depth - 1};
    if constexpr (!Vector<T>::kHasMasks) {
      std::swap(segment.from, segment.to);
      segment.in_place = !segment.in_place;
    }
    if (least == greatest) {
      std::fill_n(segment.result(), segment.size, kFloats ? FloatBits(least) : least);
    } else {
      add(segment);
    }
  };
  if (parts.left > 0) part(0, parts.left, whole.least, parts.left_greatest);
  if (parts.left < whole.size) part(parts.left, whole.size, parts.right_least, whole.greatest);
}

template <typename T, bool kFloats = false>
void SortSegment(const Segment<T>& segment) {
  constexpr int kFew = Vector<T>::kInRegisters;
  if (segment.size <= kFew * Vector<T>::kLanes) {
    return SortFew<T, kFew, kFloats>(segment.from, segment.result(), segment.size);
  }
  if (segment.depth == 0) {  // Pivots were bad again and again.
    if (!segment.in_place) std::copy(segment.from, segment.from + segment.size, segment.to);
    T* const spare = segment.in_place ? segment.to : segment.from;
    SortByDigits<T>(nullptr, segment.result(), spare, segment.size);
    return kFloats ? ToFloatBits(segment.result(), segment.size) : void();
  }
  Split<T, kFloats>(segment, PivotOf(segment.from, segment.size),
                    [](const Segment<T>& part) { SortSegment<T, kFloats>(part); });
}

// How often a segment may be split before pivots count as bad.
inline int DepthFor(int64_t size) {
  int depth = 4;
  for (int64_t left = size; left > 1; left /= 2) depth += 2;
  return depth;
}

template <typename T>
Segment<T> WholeSegment(T* elements, T* spare, int64_t size) {
  return {elements,
          spare,
          true,
          size,
          std::numeric_limits<T>::lowest(),
          std::numeric_limits<T>::max(),
          DepthFor(size)};
}

// Sorts integers in place. `spare` has as many elements; `pool` may be null.
template <typename T, bool kFloats = false>
void SortIntegers(xla::ffi::ThreadPool* pool, T* elements, T* spare, int64_t size) {
  if (size <= Vector<T>::kInRegisters * Vector<T>::kLanes) {
    return SortFew<T, Vector<T>::kInRegisters, kFloats>(elements, elements, size);
  }
  std::vector<Segment<T>> segments{WholeSegment(elements, spare, size)};
  if (pool != nullptr) {
    // Each round of partitions is made by all threads, and leaves about twice as many segments.
    const int64_t wanted = 4 * PartsOf(*pool, kStepsOfSort * size);
    while (static_cast<int64_t>(segments.size()) < wanted && wanted > 4) {
      std::vector<Segment<T>> next;
      next.reserve(2 * segments.size());
      std::mutex mutex;
      int64_t longest = 0;
      for (const auto& segment : segments) longest = std::max(longest, segment.size);
      ParallelFor(*pool, segments.size(), [&](int64_t i) {
        const auto add = [&](const Segment<T>& part) {
          std::lock_guard<std::mutex> lock(mutex);
          next.push_back(part);
        };
        if (2 * segments[i].size < longest || segments[i].depth == 0) return add(segments[i]);
        Split<T, kFloats>(segments[i], PivotOf(segments[i].from, segments[i].size), add);
      });
      if (next.size() <= segments.size() / 2 || longest < kPerThread) {
        segments.swap(next);
        break;
      }
      segments.swap(next);
    }
    return ParallelFor(*pool, segments.size(),
                       [&](int64_t i) { SortSegment<T, kFloats>(segments[i]); });
  }
  SortSegment<T, kFloats>(segments[0]);
}

// A pivot between the elements whose places in sorted order are from `first` to `last`, and most of
// the others.
//
// Source: R. W. Floyd and R. L. Rivest, "Expected time bounds for selection", CACM 18 (1975).
template <typename T>
T PivotBeside(const T* from, int64_t size, int64_t first, int64_t last) {
  constexpr int64_t kMany = 1 << 15, kSamples = 1024;
  if (size < kMany) return PivotOf(from, size);
  // Where elements are expected among the samples, and twice how far they may be from there.
  const auto place_of = [size](int64_t i) {
    return static_cast<double>(kSamples) * static_cast<double>(i) / static_cast<double>(size);
  };
  const auto error_of = [](double place) {
    return 2 + 2 * std::sqrt(place * (1 - place / kSamples));
  };
  const double above = place_of(last) + error_of(place_of(last));
  const double below = place_of(first) - error_of(place_of(first));
  const double wanted = std::min(above, kSamples - below);
  if (wanted > 0.75 * kSamples) return PivotOf(from, size);
  T samples[kSamples], spare[kSamples];
  for (int64_t i = 0; i < kSamples; ++i) samples[i] = from[(2 * i + 1) * size / (2 * kSamples)];
  SortIntegers<T>(nullptr, samples, spare, kSamples);
  return samples[static_cast<int64_t>(wanted == above ? above : below)];
}

// Splits a segment again and again, and sorts those of its parts that have places in `wanted(begin,
// end)`, from the first to after the last that is wanted, of places in the whole. Elements of other
// parts may end up in either array.
template <typename T, typename Wanted>
void SortWantedParts(const Segment<T>& segment, const T* whole, const Wanted& wanted) {
  const int64_t begin = segment.result() - whole;
  const std::pair<int64_t, int64_t> places = wanted(begin, begin + segment.size);
  if (places.first >= places.second) return;
  if (segment.size <= Vector<T>::kInRegisters * Vector<T>::kLanes || segment.depth == 0) {
    return SortSegment(segment);
  }
  const T pivot =
      PivotBeside(segment.from, segment.size, places.first - begin, places.second - begin);
  Split(segment, pivot, [&](const Segment<T>& part) { SortWantedParts(part, whole, wanted); });
}

}  // namespace dovetail

#endif  // DOVETAIL_VECTORS

#endif  // DOVETAIL_CPU_QUICKSORT_H_
