// Transforms of rows whose length has factors besides two, for vectors of 64 bytes.
//
// Like a long row of a power of two (fft_registers.h), but that the first step is of a half or a
// quarter as many numbers as there are lanes, where no more divide the length: then vectors hold
// neighbours of two or four rows.

#ifndef DOVETAIL_CPU_FFT_GROUPS_H_
#define DOVETAIL_CPU_FFT_GROUPS_H_

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "fft_halves.h"
#include "fft_lanes.h"
#include "fft_plan.h"
#include "fft_registers.h"
#include "fft_vectors.h"

namespace dovetail {

#if defined(DOVETAIL_FFT_REGISTERS)

// How many rows of a length go together, with a part of the lanes each; 0 if none do.
template <typename T>
int RowsTogether(int64_t n) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  if ((n & (n - 1)) == 0 || n > kLongestInRegisters || !HasRadices(n)) return 0;
  for (int rows : {1, 2, 4}) {
    const int64_t height = kCount / rows;
    if (n % height == 0) return n / height >= height ? rows : 0;
  }
  return 0;
}

// A row in two steps, of `height` numbers and of `width`; between both roots for each block of as
// many columns, of which the last begins where it ends with the row.
template <typename T>
struct GroupsPlan {
  int64_t size;
  int rows;
  int64_t height, width;
  LanePlan<T> second;
  Memory<T> roots;

  explicit GroupsPlan(int64_t n)
      : size(n),
        rows(RowsTogether<T>(n)),
        height(Lanes<T>::kCount / rows),
        width(n / height),
        second(width),
        roots(2 * height * Blocks() * height) {
    const Roots<T> all(n);
    T* to = roots.get();
    for (int64_t block = 0; block < Blocks(); ++block) {
      const int64_t column = std::min(block * height, width - height);
      for (int64_t i = 0; i < height; ++i, to += 2 * height) {
        for (int64_t lane = 0; lane < height; ++lane) {
          const auto root = all.At((column + lane) * i);
          to[lane] = root.real();
          to[height + lane] = root.imag();
        }
      }
    }
  }
  int64_t Blocks() const { return (width + height - 1) / height; }
  int64_t bytes() const {
    return 2 * height * height * Blocks() * int64_t(sizeof(T)) + second.bytes() + 1024;
  }
};

// A part of the lanes from memory, the same for each row.
template <typename T, int kRows>
[[gnu::always_inline]] inline typename Lanes<T>::Type LoadForRows(const T* from) {
  using V = typename Lanes<T>::Type;
  if constexpr (kRows == 1) return Load<T>(from);
  if constexpr (kRows == 2) {
    return (V)_mm512_broadcast_f64x4(_mm256_loadu_pd(reinterpret_cast<const double*>(from)));
  }
  return (V)_mm512_broadcast_f32x4(_mm_loadu_ps(reinterpret_cast<const float*>(from)));
}

// Neighbours of one, two or four rows, of which the lanes have one after the other.
template <bool kInverse, int kRows, typename T>
[[gnu::always_inline]] inline Complexes<T> LoadRows(const T* const* rows, int64_t offset) {
  constexpr int kCount = Lanes<T>::kCount;
  using V = typename Lanes<T>::Type;
  V a, b;
  if constexpr (kRows == 4) {
    const auto quarter = [=](int r) __attribute__((always_inline)) {
      return _mm256_loadu_pd(reinterpret_cast<const double*>(rows[r] + offset));
    };
    a = (V)_mm512_insertf64x4(_mm512_castpd256_pd512(quarter(0)), quarter(1), 1);
    b = (V)_mm512_insertf64x4(_mm512_castpd256_pd512(quarter(2)), quarter(3), 1);
  } else {
    a = Load<T>(rows[0] + offset);
    b = Load<T>(kRows == 2 ? rows[1] + offset : rows[0] + offset + kCount);
  }
  const V re = Picked<T>(a, b, LaneMap<EverySecond<0>, kCount>());
  const V im = Picked<T>(a, b, LaneMap<EverySecond<1>, kCount>());
  if constexpr (kInverse) return {im, re};
  return {re, im};
}

// The lanes that TransformShortColumnsOfRows leaves a row's results in, with both parts in turn.
template <int kCount, int kPart, int kRow>
struct ResultsOfRow {
  static constexpr int At(int i) {
    const int place = i / 2;
    return (place / kPart * 2 + kRow) * kPart + place % kPart + i % 2 * kCount;
  }
};
template <int kRows, typename T>
[[gnu::always_inline]] inline void StoreToRows(T* const* rows, int64_t offset, Complexes<T> x) {
  constexpr int kCount = Lanes<T>::kCount, kPart = 16 / sizeof(T);
  if constexpr (kRows == 1) {
    StoreResults<T>(rows[0] + offset, x);
  } else if constexpr (kRows == 2) {
    using First = LaneMap<ResultsOfRow<kCount, kPart, 0>, kCount>;
    using Second = LaneMap<ResultsOfRow<kCount, kPart, 1>, kCount>;
    Store(rows[0] + offset, Picked<T>(x.re, x.im, First()));
    Store(rows[1] + offset, Picked<T>(x.re, x.im, Second()));
  } else {
    const auto a = (__m512d)Picked<T>(x.re, x.im, LaneMap<InTurn<kCount, 0>, kCount>());
    const auto b = (__m512d)Picked<T>(x.re, x.im, LaneMap<InTurn<kCount, 1>, kCount>());
    const __m256d quarters[] = {_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1),
                                _mm512_castpd512_pd256(b), _mm512_extractf64x4_pd(b, 1)};
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) std::memcpy(rows[r] + offset, &quarters[r], sizeof(__m256d));
  }
}

// The first step: the lanes of middle[i] get the results of column i of each row.
template <typename T, int kRows, bool kInverse>
void TransformShortColumnsOfRows(const GroupsPlan<T>& plan, const T* const* rows,
                                 Complexes<T>* middle) {
  constexpr int kCount = Lanes<T>::kCount, kPart = 16 / sizeof(T), kHeight = kCount / kRows;
  const T* roots = plan.roots.get();
  const int64_t width = plan.width;
  for (int64_t block = 0; block < width; block += kHeight) {
    const int64_t column = std::min(block, width - kHeight);
    const auto load = [=](int i) __attribute__((always_inline)) {
      return LoadRows<kInverse, kRows, T>(rows, 2 * (i * width + column));
    };
    Complexes<T> x[kHeight];
    Complexes<T>* to = middle + column;
    if constexpr (kRows == 1) {
      TransformToParts<T>(load, reinterpret_cast<const Complexes<T>*>(roots), x);
#pragma GCC unroll 4
      for (int i = 0; i < kPart; ++i) GatherLanes<T>(x + i, kPart, to + i, kPart);
    } else {
#pragma GCC unroll 8
      for (int i = 0; i < kHeight; ++i) x[i] = load(i);
      Butterfly<kHeight>::Apply(x);
#pragma GCC unroll 8
      for (int i = 1; i < kHeight; ++i) {
        const T* factor = roots + 2 * i * kHeight;
        x[i] = x[i] * Complexes<T>{LoadForRows<T, kRows>(factor),
                                   LoadForRows<T, kRows>(factor + kHeight)};
      }
#pragma GCC unroll 4
      for (int i = 0; i < kHeight; i += kPart) GatherParts<T>(x + i, 1);
      if constexpr (kRows == 4) {
#pragma GCC unroll 8
        for (int i = 0; i < kHeight; ++i) to[i] = x[i];
      } else {
        using V = typename Lanes<T>::Type;
#pragma GCC unroll 4
        for (int i = 0; i < kPart; ++i) {
          const Complexes<T> a = x[i], b = x[i + kPart];
          const auto gathered = [](V c, V d, auto half) __attribute__((always_inline)) {
            return (V)EverySecondPart<decltype(half)::value>((__m512)c, (__m512)d);
          };
          constexpr std::integral_constant<int, 0> kEven;
          constexpr std::integral_constant<int, 1> kOdd;
          to[i] = {gathered(a.re, b.re, kEven), gathered(a.im, b.im, kEven)};
          to[i + kPart] = {gathered(a.re, b.re, kOdd), gathered(a.im, b.im, kOdd)};
        }
      }
    }
    roots += 2 * kHeight * kHeight;
  }
}

template <typename T, int kRows, bool kInverse>
void TransformGroups(const GroupsPlan<T>& plan, const T* from, int64_t from_step, T* to,
                     int64_t to_step, int64_t rows, T scale) {
  using C = Complexes<T>;
  constexpr int kHeight = Lanes<T>::kCount / kRows;
  const int64_t width = plan.width;
  Memory<C> buffers(2 * width + 1);
  for (int64_t row = 0; row < rows; row += kRows) {
    const T* sources[kRows];
    T* targets[kRows];
    for (int r = 0; r < kRows; ++r) {  // The last row may be there more than once.
      const int64_t place = std::min(row + r, rows - 1);
      sources[r] = from + place * from_step;
      targets[r] = to + place * to_step;
    }
    C* first = buffers.get();
    C* second = first + width + 1;  // Not a power of two apart.
    TransformShortColumnsOfRows<T, kRows, kInverse>(plan, sources, first);
    const auto* step = plan.second.steps.data();
    for (; step->rest > 1; ++step) {
      MiddleStep(plan.second, *step, first, second);
      std::swap(first, second);
    }
    const auto load = [first](int64_t i) { return first[i]; };
    const auto store = [&targets, scale](int64_t i, const C& x) {
      StoreToRows<kRows, T>(targets, 2 * kHeight * i, Output<kInverse, T>(x, scale));
    };
    const auto* roots = plan.second.roots.data();
    switch (step->radix) {
      case 3: TransformStep<3, true, T>(*step, roots, load, store); break;
      case 4: TransformStep<4, true, T>(*step, roots, load, store); break;
      case 5: TransformStep<5, true, T>(*step, roots, load, store); break;
      case 8: TransformStep<8, true, T>(*step, roots, load, store); break;
      default:
        MiddleStep(plan.second, *step, first, second);
        for (int64_t i = 0; i < width; ++i) store(i, second[i]);
    }
  }
}

template <typename T>
std::shared_ptr<const GroupsPlan<T>> GroupsPlanOf(int64_t n) {
  static auto& kept = *new Kept<int64_t, GroupsPlan<T>>(kKeptBytes / 8);
  return kept.Get(n, [n] { return std::make_shared<GroupsPlan<T>>(n); });
}

// Whether there are rows enough that go together.
template <typename T>
bool GoInGroups(int64_t rows, int64_t n) {
  const int together = RowsTogether<T>(n);
  return together > 0 && rows >= together;
}

// Such rows, `from_step` and `to_step` numbers of T apart; `sign` is -1 for the inverse.
template <typename T>
void TransformInGroups(const Threads* threads, const T* from, int64_t from_step, T* to,
                       int64_t to_step, int64_t rows, int64_t n, T sign, T scale) {
  const auto plan = GroupsPlanOf<T>(n);
  const auto either = [&](auto together) {
    constexpr int kRows = decltype(together)::value;
    return sign < 0 ? TransformGroups<T, kRows, true> : TransformGroups<T, kRows, false>;
  };
  const auto transform = plan->rows == 1   ? either(std::integral_constant<int, 1>())
                         : plan->rows == 2 ? either(std::integral_constant<int, 2>())
                                           : either(std::integral_constant<int, 4>());
  const int64_t groups = (rows + plan->rows - 1) / plan->rows;
  ForPieces(threads, groups, n * plan->rows, [&](int64_t begin, int64_t end) {
    begin *= plan->rows;
    end = std::min(rows, end * plan->rows);
    transform(*plan, from + begin * from_step, from_step, to + begin * to_step, to_step,
              end - begin, scale);
  });
}

#endif  // DOVETAIL_FFT_REGISTERS

}  // namespace dovetail

#endif  // DOVETAIL_CPU_FFT_GROUPS_H_
