// Transforms of powers of two whose vectors hold neighbours, for vectors of 64 bytes.
//
// A row of a few vectors is a matrix with a number of columns that is that of the lanes: it is
// transformed along the columns, which vectors hold side by side, transposed in registers, and
// transformed along what were its rows. Several short rows share the second step.

#ifndef DOVETAIL_CPU_FFT_REGISTERS_H_
#define DOVETAIL_CPU_FFT_REGISTERS_H_

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>

#include "fft_lanes.h"
#include "fft_plan.h"
#include "fft_vectors.h"

namespace dovetail {

#if defined(__AVX512F__)
#define DOVETAIL_FFT_REGISTERS 1

// The longest row whose steps are of as many numbers as there are lanes, and of what remains.
constexpr int64_t kLongestInRegisters = 4096;

// Complex numbers for a transform, or with kInverse, whose real and imaginary parts change places,
// for the inverse one; and such a transform's results.
template <bool kInverse, typename T>
[[gnu::always_inline]] inline Complexes<T> LoadInput(const T* from) {
  const Complexes<T> x = LoadPairs<T>(from);
  if constexpr (kInverse) return {x.im, x.re};
  return x;
}
template <bool kInverse, typename T>
[[gnu::always_inline]] inline Complexes<T> Output(const Complexes<T>& x, T scale) {
  if constexpr (kInverse) return {x.im * scale, x.re * scale};
  return x;
}

// A transposition of as many complex vectors as each has lanes, in two halves, between which other
// arithmetic goes: of the units that compute, one alone moves lanes between vectors. The first half
// is of as many vectors, `step` apart, as 16 bytes have numbers.
template <typename T>
[[gnu::always_inline]] inline void GatherParts(Complexes<T>* x, int step) {
  using V = typename Lanes<T>::Type;
  const auto gather = [x, step](V Complexes<T>::*part) __attribute__((always_inline)) {
    const auto a = (__m512)(x[0].*part), b = (__m512)(x[step].*part);
    const __m512 low = UnpackedPairs<T, 0>(a, b), high = UnpackedPairs<T, 1>(a, b);
    if constexpr (sizeof(T) == 8) {
      x[0].*part = (V)low;
      x[step].*part = (V)high;
    } else {
      const auto c = (__m512)(x[2 * step].*part), d = (__m512)(x[3 * step].*part);
      const __m512 low_cd = UnpackedPairs<T, 0>(c, d), high_cd = UnpackedPairs<T, 1>(c, d);
      x[0].*part = (V)UnpackedPairs<double, 0>(low, low_cd);
      x[step].*part = (V)UnpackedPairs<double, 1>(low, low_cd);
      x[2 * step].*part = (V)UnpackedPairs<double, 0>(high, high_cd);
      x[3 * step].*part = (V)UnpackedPairs<double, 1>(high, high_cd);
    }
  };
  gather(&Complexes<T>::re);
  gather(&Complexes<T>::im);
}

// The second half: of x[0], x[step] and so on to to[0], to[to_step] and so on, four of each.
template <typename T>
[[gnu::always_inline]] inline void GatherLanes(const Complexes<T>* x, int step, Complexes<T>* to,
                                               int to_step) {
  using V = typename Lanes<T>::Type;
  const auto gather = [=](V Complexes<T>::*part) __attribute__((always_inline)) {
    const auto a = (__m512)(x[0].*part), b = (__m512)(x[step].*part);
    const auto c = (__m512)(x[2 * step].*part), d = (__m512)(x[3 * step].*part);
    const __m512 even_ab = EverySecondPart<0>(a, b), odd_ab = EverySecondPart<1>(a, b);
    const __m512 even_cd = EverySecondPart<0>(c, d), odd_cd = EverySecondPart<1>(c, d);
    to[0].*part = (V)EverySecondPart<0>(even_ab, even_cd);
    to[to_step].*part = (V)EverySecondPart<0>(odd_ab, odd_cd);
    to[2 * to_step].*part = (V)EverySecondPart<1>(even_ab, even_cd);
    to[3 * to_step].*part = (V)EverySecondPart<1>(odd_ab, odd_cd);
  };
  gather(&Complexes<T>::re);
  gather(&Complexes<T>::im);
}

// Transforms of as many numbers as there are lanes, of columns that vectors hold side by side,
// times roots[i] for the result i, and the first half of a transposition. load(i) gives number i.
// The lanes will have the results in the order of ResultsInTurn.
template <typename T, typename LoadAt>
[[gnu::always_inline]] inline void TransformToParts(const LoadAt& load, const Complexes<T>* roots,
                                                    Complexes<T>* x) {
  if constexpr (sizeof(T) == 4) {
    using B = Butterfly<16>;
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 16
      for (int j = i; j < 16; j += 4) x[j] = load(j);
      if (i == 0) B::Open<0>(x);
      if (i == 1) B::Open<1>(x);
      if (i == 2) B::Open<2>(x);
      if (i == 3) B::Open<3>(x);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      B::Close(x, i);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        if (i + j > 0) x[4 * i + j] = x[4 * i + j] * roots[i + 4 * j];
      }
      GatherParts<T>(x + 4 * i, 1);
    }
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) x[i] = load(i);
    Butterfly<8>::Apply(x);
#pragma GCC unroll 8
    for (int i = 1; i < 8; ++i) x[i] = x[i] * roots[i];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) GatherParts<T>(x + i, 1);
  }
}

// Stores the lanes of TransformToParts in the order of results.
template <int kCount, int kHalf>
struct ResultsInTurn {
  static constexpr int At(int i) {
    const int place = (i + kHalf * kCount) / 2;
    return (kCount == 16 ? place % 4 * 4 + place / 4 : place) + (i % 2) * kCount;
  }
};
template <typename T>
[[gnu::always_inline]] inline void StoreResults(T* to, Complexes<T> x) {
  constexpr int kCount = Lanes<T>::kCount;
  Store(to, Picked<T>(x.re, x.im, LaneMap<ResultsInTurn<kCount, 0>, kCount>()));
  Store(to + kCount, Picked<T>(x.re, x.im, LaneMap<ResultsInTurn<kCount, 1>, kCount>()));
}

// The second half of a transposition, and a transform of its vectors: store(i, x) gets result i.
template <typename T, typename StoreAt>
[[gnu::always_inline]] inline void TransformParts(const Complexes<T>* x, const StoreAt& store) {
  constexpr int kPart = 16 / sizeof(T), kCount = Lanes<T>::kCount;
  Complexes<T> y[kCount];
  if constexpr (sizeof(T) == 4) {
    using B = Butterfly<16>;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      GatherLanes<T>(x + i, kPart, y + i, kPart);
      if (i == 0) B::Open<0>(y);
      if (i == 1) B::Open<1>(y);
      if (i == 2) B::Open<2>(y);
      if (i == 3) B::Open<3>(y);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      B::Close(y, i);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) store(i + 4 * j, y[4 * i + j]);
    }
  } else {
#pragma GCC unroll 4
    for (int i = 0; i < kPart; ++i) GatherLanes<T>(x + i, kPart, y + i, kPart);
    Butterfly<8>::Apply(y);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) store(i, y[i]);
  }
}

// Powers of two that are rows of a quarter as many vectors as each has lanes, or more.
template <typename T>
constexpr bool FitsRegisters(int64_t n) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  return (n & (n - 1)) == 0 && n >= kCount * kCount / 4 && n <= kLongestInRegisters;
}

// A row of a power of two: roots between its steps, and the second one's plan where it is longer
// than there are lanes.
template <typename T>
struct RegistersPlan {
  static constexpr int64_t kCount = Lanes<T>::kCount;
  int64_t size;
  Memory<Complexes<T>> roots;
  std::unique_ptr<LanePlan<T>> rows;

  explicit RegistersPlan(int64_t n) : size(n), roots(std::max(kCount, n / kCount)) {
    const Roots<T> all(n);
    const int64_t width = std::max(kCount, n / kCount), height = n / width;
    for (int64_t column = 0; column < width; ++column) {
      for (int64_t i = 0; i < height; ++i) {
        const auto root = all.At(column * i);
        auto& to = roots.get()[column / kCount * height + i];
        to.re[column % kCount] = root.real();
        to.im[column % kCount] = root.imag();
      }
    }
    if (width > kCount) rows = std::make_unique<LanePlan<T>>(width);
  }
  int64_t bytes() const {
    return size * int64_t(sizeof(std::complex<T>)) + 1024 + (rows ? rows->bytes() : 0);
  }
};

// Stores complex numbers of neighbouring lanes to two or four rows.
template <typename T, int kRows>
[[gnu::always_inline]] inline void StoreRows(T* to, int64_t step, Complexes<T> x) {
  static_assert(kRows == 2 || kRows == 4);
  constexpr int kCount = Lanes<T>::kCount;
  const auto first = Picked<T>(x.re, x.im, LaneMap<InTurn<kCount, 0>, kCount>());
  const auto second = Picked<T>(x.re, x.im, LaneMap<InTurn<kCount, 1>, kCount>());
  if constexpr (kRows == 2) {
    Store<T>(to, first);
    Store<T>(to + step, second);
  } else {
    const auto a = (__m512d)first, b = (__m512d)second;
    const __m256d quarters[] = {_mm512_castpd512_pd256(a), _mm512_extractf64x4_pd(a, 1),
                                _mm512_castpd512_pd256(b), _mm512_extractf64x4_pd(b, 1)};
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) std::memcpy(to + r * step, &quarters[r], sizeof(__m256d));
  }
}

// Rows of kSize vectors, as many at once as make as many vectors as there are lanes.
template <typename T, int kSize, bool kInverse>
void TransformShortRows(const RegistersPlan<T>& plan, const T* from, int64_t from_step, T* to,
                        int64_t to_step, int64_t rows, T scale) {
  using C = Complexes<T>;
  constexpr int kCount = Lanes<T>::kCount, kRows = kCount / kSize, kPart = 16 / sizeof(T);
  constexpr int64_t kNumbers = 2 * kSize * kCount;
  const C* roots = plan.roots.get();
  const auto group = [roots, scale](const T* source, int64_t source_step, T* target,
                                    int64_t target_step) __attribute__((always_inline)) {
    C x[kCount];
    if constexpr (kRows == 1) {
      TransformToParts<T>([=](int i) { return LoadInput<kInverse, T>(source + 2 * i * kCount); },
                          roots, x);
      TransformParts<T>(x, [=](int i, const C& y) {
        StoreResults<T>(target + 2 * i * kCount, Output<kInverse, T>(y, scale));
      });
    } else {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const T* row = source + r * source_step;
        C* y = x + r * kSize;
#pragma GCC unroll 16
        for (int i = 0; i < kSize; ++i) y[i] = LoadInput<kInverse, T>(row + 2 * i * kCount);
        Butterfly<kSize>::Apply(y);
#pragma GCC unroll 16
        for (int i = 1; i < kSize; ++i) y[i] = y[i] * roots[i];
#pragma GCC unroll 4
        for (int i = 0; i < kSize; i += kPart) GatherParts<T>(y + i, 1);
      }
      TransformParts<T>(x, [=](int i, const C& y) {
        StoreRows<T, kRows>(target + 2 * i * kSize, target_step, Output<kInverse, T>(y, scale));
      });
    }
  };
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) {
    group(from + row * from_step, from_step, to + row * to_step, to_step);
  }
  if (row == rows) return;
  T rest[kRows * kNumbers] = {};
  for (int r = 0; r < kRows && row + r < rows; ++r) {
    std::memcpy(rest + r * kNumbers, from + (row + r) * from_step, kNumbers * sizeof(T));
  }
  group(rest, kNumbers, rest, kNumbers);
  for (int r = 0; r < kRows && row + r < rows; ++r) {
    std::memcpy(to + (row + r) * to_step, rest + r * kNumbers, kNumbers * sizeof(T));
  }
}

// The first step of a longer row: of columns as long as there are lanes, of which `width` are side
// by side. The lanes of middle[i] get the results of column i, in the order of ResultsInTurn.
template <typename T, bool kInverse>
void TransformShortColumns(const Complexes<T>* roots, const T* from, Complexes<T>* middle,
                           int64_t width) {
  constexpr int kCount = Lanes<T>::kCount, kPart = 16 / sizeof(T);
  for (int64_t column = 0; column < width; column += kCount, roots += kCount) {
    Complexes<T> x[kCount];
    TransformToParts<T>(
        [=](int i) { return LoadInput<kInverse, T>(from + 2 * (i * width + column)); }, roots, x);
#pragma GCC unroll 4
    for (int i = 0; i < kPart; ++i) GatherLanes<T>(x + i, kPart, middle + column + i, kPart);
  }
}

template <typename T, bool kInverse>
void TransformLongRows(const RegistersPlan<T>& plan, const T* from, int64_t from_step, T* to,
                       int64_t to_step, int64_t rows, T scale) {
  using C = Complexes<T>;
  constexpr int kCount = Lanes<T>::kCount;
  const int64_t width = plan.size / kCount;
  Memory<C> buffers(3 * width + 2);
  C* middle = buffers.get();
  C* first = middle + width + 1;  // Not a power of two apart.
  const bool ahead = rows > 1;  // Nothing is harmed by asking for what is behind the last.
  for (int64_t row = 0; row < rows; ++row, from += from_step, to += to_step) {
    TransformShortColumns<T, kInverse>(plan.roots.get(), from, middle, width);
    TransformLanes(
        *plan.rows, first, first + width + 1, [=](int64_t i) { return middle[i]; },
        [=](int64_t i, const C& x) {
          if (ahead) {
            Prefetch(from + from_step + 2 * i * kCount, 2 * kCount);
            PrefetchToWrite(to + to_step + 2 * i * kCount, 2 * kCount);
          }
          StoreResults<T>(to + 2 * i * kCount, Output<kInverse, T>(x, scale));
        });
  }
}

// Rows for which FitsRegisters, `from_step` and `to_step` numbers of T apart.
template <typename T, bool kInverse>
void TransformInRegisters(const RegistersPlan<T>& plan, const T* from, int64_t from_step, T* to,
                          int64_t to_step, int64_t rows, T scale) {
  constexpr int kCount = Lanes<T>::kCount;
  const auto transform =
      plan.size > kCount * kCount       ? TransformLongRows<T, kInverse>
      : plan.size == kCount * kCount    ? TransformShortRows<T, kCount, kInverse>
      : plan.size == kCount * kCount / 2 ? TransformShortRows<T, kCount / 2, kInverse>
                                        : TransformShortRows<T, kCount / 4, kInverse>;
  transform(plan, from, from_step, to, to_step, rows, scale);
}

#endif  // DOVETAIL_FFT_REGISTERS

}  // namespace dovetail

#endif  // DOVETAIL_CPU_FFT_REGISTERS_H_
