// Eigenvalues and eigenvectors of small symmetric matrices, of which each lane of a vector has one.
//
// Source: Golub, Van Loan, "Matrix Computations", 4th edition, 2013: 8.3.1 (tridiagonalisation by
// Householder's reflections) and 8.3.5 (implicit shifts; here from the last row up, QL).

#ifndef DOVETAIL_CPU_EIGEN_LANES_H_
#define DOVETAIL_CPU_EIGEN_LANES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "fft_vectors.h"
#include "interrupts.h"
#include "tiles.h"
#include "transposition.h"

namespace dovetail {

template <typename T>
using LanesOf = typename Lanes<T>::Type;
template <typename T>
using LaneMask = typename Lanes<T>::Indices;  // -1 where something holds, else 0.

// Sums of squares below which they may have lost digits; their roots are below what the rounding
// of numbers near one is.
template <typename T>
constexpr T kLeastSquares = sizeof(T) == 4 ? T(1e-28) : T(1e-280);

template <typename T>
inline LanesOf<T> SquareRoots(LanesOf<T> x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    return (LanesOf<T>)_mm512_sqrt_ps((__m512)x);
  } else {
    return (LanesOf<T>)_mm512_sqrt_pd((__m512d)x);
  }
#else
  for (int lane = 0; lane < Lanes<T>::kCount; ++lane) x[lane] = std::sqrt(x[lane]);
  return x;
#endif
}

// The sizes of numbers.
template <typename T>
inline LanesOf<T> Sizes(LanesOf<T> x) {
  using Int = typename Lanes<T>::Int;
  return (LanesOf<T>)((LaneMask<T>)x & std::numeric_limits<Int>::max());
}

template <typename T>
inline bool AnyOf(LaneMask<T> mask) {
#if defined(__AVX512F__)
  return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#else
  for (int lane = 0; lane < Lanes<T>::kCount; ++lane) {
    if (mask[lane] != 0) return true;
  }
  return false;
#endif
}

// The power of two below a size, whose inverse is a normal number, too.
template <typename T>
inline LanesOf<T> PowersOf(LanesOf<T> sizes) {
  using Vector = LanesOf<T>;
  using Int = typename Lanes<T>::Int;
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = 1 / kLeast;
  constexpr Int kExponent = sizeof(T) == 4 ? Int(0x7f800000) : Int(0x7ff0000000000000);
  const Vector power = (Vector)((LaneMask<T>)sizes & kExponent);
  return power < kLeast ? Vector{} + kLeast : power > kMost ? Vector{} + kMost : power;
}
template <typename T>
inline T PowerOf(T size) {
  return PowersOf<T>(LanesOf<T>{} + size)[0];
}

// Rotates rows of `width` vectors, from the row `last` on up to the row `first`, each with the one
// after it.
template <typename T, int kTogether>
DOVETAIL_WIDE inline void RotateColumns(int64_t first, int64_t last, const LanesOf<T>* cosines,
                                        const LanesOf<T>* sines, LanesOf<T>* rows, int64_t width) {
  LanesOf<T> below[kTogether];
#pragma GCC unroll 8
  for (int r = 0; r < kTogether; ++r) below[r] = rows[last * width + r];
  for (int64_t i = last - 1; i >= first; --i) {
    const LanesOf<T> c = cosines[i], s = sines[i];
    LanesOf<T>* const row = rows + i * width;
#pragma GCC unroll 8
    for (int r = 0; r < kTogether; ++r) {
      const LanesOf<T> above = row[r];
      row[width + r] = s * above + c * below[r];
      below[r] = c * above - s * below[r];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kTogether; ++r) rows[first * width + r] = below[r];
}

template <typename T>
void RotateRows(int64_t first, int64_t last, const LanesOf<T>* cosines, const LanesOf<T>* sines,
                LanesOf<T>* rows, int64_t width) {
  int64_t r = 0;
  for (; r + 8 <= width; r += 8) {
    RotateColumns<T, 8>(first, last, cosines, sines, rows + r, width);
  }
  for (; r + 2 <= width; r += 2) {
    RotateColumns<T, 2>(first, last, cosines, sines, rows + r, width);
  }
  if (r < width) RotateColumns<T, 1>(first, last, cosines, sines, rows + r, width);
}

// The rotation [c s; -s c] of which [c s; -s c] [a b; b d] [c -s; s c] is diagonal, with the larger
// size first, with the signs of LAPACK's `laev2`; b is not zero. Returns the diagonal.
template <typename T>
std::pair<T, T> RotationOfTwo(T a, T b, T d, T* c, T* s) {
  const T sum = a + d, difference = a - d, twice = 2 * b;
  const T root = std::sqrt(difference * difference + twice * twice);
  const T larger = std::abs(a) > std::abs(d) ? a : d, smaller = std::abs(a) > std::abs(d) ? d : a;
  T first = T(0.5) * (sum < 0 ? sum - root : sum + root), second = -first;
  if (sum != 0) second = (larger / first) * smaller - (b / first) * b;
  const T edge = difference >= 0 ? difference + root : difference - root;
  const bool steep = std::abs(edge) > std::abs(twice);
  const T ratio = steep ? -twice / edge : -edge / twice, length = std::sqrt(1 + ratio * ratio);
  *c = (steep ? ratio : 1) / length, *s = (steep ? 1 : ratio) / length;
  if ((sum >= 0) == (difference >= 0)) {
    const T before = *c;
    *c = -*s, *s = before;
  }
  return {first, second};
}

// Makes tridiagonal matrices diagonal, with sizes of about one: `d` are their diagonals, `e` what
// is beside, with one vector more. Row i of `rows` becomes, from that of the vector e_i, or of its
// image under what the result is to be multiplied with, that of an eigenvector. `turned` are lanes
// whose matrices are given from the last row up. `turns` is memory for 2 n vectors. Returns the
// lanes that do not converge.
//
// Rotations, and the order of what they make zero, are those of LAPACK's `steqr`, which begins at
// the end where the number on the diagonal is less: so vectors have the signs of LAPACK.
template <typename T>
DOVETAIL_WIDE LaneMask<T> QlInLanes(int64_t n, LanesOf<T>* d, LanesOf<T>* e, LanesOf<T>* rows,
                                    int64_t width, LaneMask<T> turned, LanesOf<T>* turns) {
  using Vector = LanesOf<T>;
  using Mask = LaneMask<T>;
  using Int = typename Lanes<T>::Int;
  constexpr T kEpsilon = std::numeric_limits<T>::epsilon() / 2;
  constexpr int64_t kMostSweeps = 30;
  LanesOf<T>*cosines = turns, *sines = turns + n;
  const Mask whole = Mask{} + Int(n);
  for (int64_t sweep = 0;; ++sweep) {
    // In each lane the first part that is not diagonal: from row `first` to row `last`.
    Mask first = whole, last = whole - 1, end = whole - 1;
    for (int64_t i = n - 2; i >= 0; --i) {
      const Vector product = kEpsilon * kEpsilon * Sizes<T>(d[i]) * Sizes<T>(d[i + 1]);
      const Mask small = e[i] * e[i] <= product + kLeastSquares<T>;
      const Mask here = Mask{} + Int(i);
      e[i] = small ? Vector{} : e[i];
      end = small ? here : end;
      first = small ? first : here;
      last = small ? last : end;
    }
    const Mask busy = first < whole;
    if (!AnyOf<T>(busy) || sweep == kMostSweeps * n) return busy;
    int64_t top = n, bottom = 0;
    T edges[4][Lanes<T>::kCount] = {};
    for (int lane = 0; lane < Lanes<T>::kCount; ++lane) {
      const int64_t from = first[lane], to = last[lane];
      edges[2][lane] = 1;
      if (from == n) continue;
      top = std::min(top, from), bottom = std::max(bottom, to);
      edges[0][lane] = d[from][lane], edges[1][lane] = d[from + 1][lane];
      edges[2][lane] = e[from][lane], edges[3][lane] = d[to][lane];
    }
    const Vector beside = Load(edges[2]), ratio = (Load(edges[1]) - Load(edges[0])) / (2 * beside);
    const Vector hypotenuse = SquareRoots<T>(ratio * ratio + 1);
    Vector g = Load(edges[3]) - Load(edges[0]) +
               beside / (ratio + (ratio < 0 ? -hypotenuse : hypotenuse));
    Vector c = Vector{} + 1, s = c, p{};
    const Mask long_part = last > first + 1;
    for (int64_t i = bottom - 1; i >= top; --i) {
      const Mask here = Mask{} + Int(i);
      const Mask active = long_part & (here >= first) & (here < last);
      const Vector f = s * e[i], b = c * e[i];
      const Vector square = f * f + g * g;
      // Nothing to rotate: the matrix falls into parts here.
      const Mask none = square < kLeastSquares<T>;
      const Vector size = SquareRoots<T>(none ? Vector{} + 1 : square);
      const Vector root = g < 0 ? -size : size, inverse = 1 / root;
      e[i + 1] = (active & (here + 1 < last)) ? (none ? Vector{} : root) : e[i + 1];
      Vector sine = none ? Vector{} : f * inverse;
      Vector cosine = none ? Vector{} + 1 : g * inverse;
      const Vector excess = T(0.5) * (1 - cosine * cosine - sine * sine);
      sine += sine * excess, cosine += cosine * excess;
      s = active ? sine : s;
      c = active ? cosine : c;
      cosines[i] = active ? cosine : Vector{} + 1;
      sines[i] = active ? sine : Vector{};
      const Vector before = d[i + 1] - p;
      const Vector twisted = (d[i] - before) * sine + 2 * cosine * b;
      const Vector moved = sine * twisted;
      d[i + 1] = active ? before + moved : d[i + 1];
      p = active ? moved : p;
      g = active ? cosine * twisted - b : g;
    }
    for (int lane = 0; lane < Lanes<T>::kCount; ++lane) {
      const int64_t at = first[lane];
      if (at == n) continue;
      if (long_part[lane] != 0) {
        d[at][lane] -= p[lane], e[at][lane] = g[lane];
        continue;
      }
      const bool is_turned = turned[lane] != 0;
      const int64_t one = is_turned ? at + 1 : at, other = is_turned ? at : at + 1;
      T cosine, sine;
      const auto [larger, smaller] =
          RotationOfTwo<T>(d[one][lane], e[at][lane], d[other][lane], &cosine, &sine);
      d[one][lane] = larger, d[other][lane] = smaller, e[at][lane] = 0;
      cosines[at][lane] = cosine, sines[at][lane] = is_turned ? sine : -sine;
    }
    RotateRows<T>(top, bottom, cosines, sines, rows, width);
  }
}

// Makes symmetric matrices of which the upper triangle is read tridiagonal: row k from the place
// k + 1 on becomes a reflection 1 - tau v v^T, whose v begins with 1. `memory` is for 2 n vectors.
template <typename T>
DOVETAIL_WIDE void TridiagonalizeInLanes(int64_t n, LanesOf<T>* a, LanesOf<T>* d, LanesOf<T>* e,
                                         LanesOf<T>* taus, LanesOf<T>* memory) {
  using Vector = LanesOf<T>;
  constexpr int64_t kRows = 4;
  Vector* const w = memory;
  for (int64_t k = 0; k < n; ++k) {
    Vector* const v = a + k * n;
    d[k] = v[k];
    e[k] = taus[k] = Vector{};
    if (k + 1 == n) break;
    Vector sums[kRows] = {};
    for (int64_t j = k + 2; j < n; ++j) sums[j % kRows] += v[j] * v[j];
    const Vector rest = (sums[0] + sums[1]) + (sums[2] + sums[3]), alpha = v[k + 1];
    const auto small = rest < kLeastSquares<T>;
    const Vector root = SquareRoots<T>(alpha * alpha + rest);
    const Vector beta = small ? alpha : alpha > 0 ? -root : root;
    const Vector inverse = small ? Vector{} : 1 / (alpha - beta);
    const Vector tau = small ? Vector{} : (beta - alpha) / beta;
    e[k] = beta, taus[k] = tau;
    v[k + 1] = Vector{} + 1;
    for (int64_t j = k + 2; j < n; ++j) v[j] *= inverse;
    // The product of the rest with v: of an element above the diagonal come two terms.
    std::fill(w + k + 1, w + n, Vector{});
    int64_t i = k + 1;
    for (; i + kRows <= n; i += kRows) {
      const Vector* const row = a + i * n;
      const Vector factors[kRows] = {v[i], v[i + 1], v[i + 2], v[i + 3]};
      Vector totals[kRows];
#pragma GCC unroll 4
      for (int64_t r = 0; r < kRows; ++r) {
        totals[r] = w[i + r];
#pragma GCC unroll 4
        for (int64_t c = 0; c < kRows; ++c) {
          const int64_t upper = r < c ? r * n + c : c * n + r;
          totals[r] += row[i + upper] * factors[c];
        }
      }
      for (int64_t j = i + kRows; j < n; ++j) {
        const Vector other = v[j];
        Vector total = w[j];
#pragma GCC unroll 4
        for (int64_t r = 0; r < kRows; ++r) {
          const Vector x = row[r * n + j];
          totals[r] += x * other;
          total += x * factors[r];
        }
        w[j] = total;
      }
#pragma GCC unroll 4
      for (int64_t r = 0; r < kRows; ++r) w[i + r] = totals[r];
    }
    for (; i < n; ++i) {
      Vector total = w[i] + a[i * n + i] * v[i];
      for (int64_t j = i + 1; j < n; ++j) {
        total += a[i * n + j] * v[j];
        w[j] += a[i * n + j] * v[i];
      }
      w[i] = total;
    }
    Vector dots[kRows] = {};
    for (int64_t j = k + 1; j < n; ++j) dots[j % kRows] += (w[j] *= tau) * v[j];
    const Vector factor = T(-0.5) * tau * ((dots[0] + dots[1]) + (dots[2] + dots[3]));
    for (int64_t j = k + 1; j < n; ++j) w[j] += factor * v[j];
    for (i = k + 1; i + kRows <= n; i += kRows) {
      Vector* const row = a + i * n;
      const Vector vs[kRows] = {v[i], v[i + 1], v[i + 2], v[i + 3]};
      const Vector ws[kRows] = {w[i], w[i + 1], w[i + 2], w[i + 3]};
      for (int64_t j = i; j < n; ++j) {
        const Vector other = v[j], factor_of_v = w[j];
#pragma GCC unroll 4
        for (int64_t r = 0; r < kRows; ++r) row[r * n + j] -= vs[r] * factor_of_v + ws[r] * other;
      }
    }
    for (; i < n; ++i) {
      for (int64_t j = i; j < n; ++j) a[i * n + j] -= v[i] * w[j] + w[i] * v[j];
    }
  }
}

// The transpose of the product of these reflections.
template <typename T>
DOVETAIL_WIDE void ProductInLanes(int64_t n, const LanesOf<T>* a, const LanesOf<T>* taus,
                                  LanesOf<T>* q) {
  using Vector = LanesOf<T>;
  constexpr int64_t kRows = 4;
  std::fill(q, q + n * n, Vector{});
  for (int64_t i = 0; i < n; ++i) q[i * (n + 1)] += 1;
  for (int64_t k = n - 3; k >= 0; --k) {
    const Vector* const v = a + k * n;
    const auto reflect = [&](Vector* row, auto rows) __attribute__((always_inline)) {
      constexpr int64_t kTogether = decltype(rows)::value;
      Vector dots[kTogether] = {};
      for (int64_t j = k + 1; j < n; ++j) {
#pragma GCC unroll 4
        for (int64_t r = 0; r < kTogether; ++r) dots[r] += row[r * n + j] * v[j];
      }
#pragma GCC unroll 4
      for (int64_t r = 0; r < kTogether; ++r) dots[r] *= taus[k];
      for (int64_t j = k + 1; j < n; ++j) {
#pragma GCC unroll 4
        for (int64_t r = 0; r < kTogether; ++r) row[r * n + j] -= dots[r] * v[j];
      }
    };
    int64_t i = k + 1;
    for (; i + kRows <= n; i += kRows) reflect(q + i * n, std::integral_constant<int64_t, kRows>());
    for (; i < n; ++i) reflect(q + i * n, std::integral_constant<int64_t, 1>());
  }
}

// Numbers of consecutive matrices of `size` elements, one matrix in each lane, and zeros in lanes
// beyond `count`.
template <typename T>
void LoadLanes(int64_t size, int64_t count, const T* from, LanesOf<T>* to) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  for (int64_t i = 0; i < size; i += kCount) {
    LanesOf<T> rows[kCount] = {};
    const int64_t here = std::min(kCount, size - i);
    for (int64_t k = 0; k < count; ++k) rows[k] = Load(from + k * size + i, here);
    Transpose<T>(rows);
    std::copy_n(rows, here, to + i);
  }
}

template <typename T>
void StoreLanes(int64_t size, int64_t count, const LanesOf<T>* from, T* to) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  for (int64_t i = 0; i < size; i += kCount) {
    LanesOf<T> rows[kCount] = {};
    const int64_t here = std::min(kCount, size - i);
    std::copy_n(from + i, here, rows);
    Transpose<T>(rows);
    for (int64_t k = 0; k < count; ++k) Store(to + k * size + i, rows[k], here);
  }
}

// The memory for EigenInLanes, in elements.
template <typename T>
int64_t MemoryInLanes(int64_t n) {
  return (2 * n * n + 8 * n) * Lanes<T>::kCount + n * n;
}

// Eigenvalues in their order, and as columns the eigenvectors, of `count` symmetric matrices, at
// most one for each lane, of which the lower triangle is used. Matrices that are not finite, and
// those of which the values do not converge, have NaN.
template <typename T>
void EigenInLanes(int64_t n, int64_t count, const T* from, T* vectors, T* values, T* memory) {
  using Vector = LanesOf<T>;
  auto* const a = reinterpret_cast<Vector*>(memory);
  Vector *const q = a + n * n, *const d = q + n * n, *const e = d + n, *const taus = e + n;
  Vector* const rest = taus + n;
  T* const ordered = reinterpret_cast<T*>(rest + 5 * n);
  LoadLanes(n * n, count, from, a);
  LaneMask<T> failed{};
  Vector largest{};
  for (int64_t i = 0; i < n * n; ++i) {
    failed |= a[i] - a[i] != 0;
    const Vector size = Sizes<T>(a[i]);
    largest = size > largest ? size : largest;
  }
  const Vector power = PowersOf<T>(largest);  // Divided by it, numbers are about one.
  const Vector inverse = 1 / power;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) a[i * n + j] = failed ? Vector{} : a[j * n + i] * inverse;
  }
  TridiagonalizeInLanes<T>(n, a, d, e, taus, rest);
  ProductInLanes<T>(n, a, taus, q);
  const LaneMask<T> turned = Sizes<T>(d[n - 1]) < Sizes<T>(d[0]);
  const auto exchange = [=](Vector* one, Vector* other) {
    const Vector before = *one;
    *one = turned ? *other : before;
    *other = turned ? before : *other;
  };
  for (int64_t i = 0; i < n / 2; ++i) {
    exchange(d + i, d + n - 1 - i);
    for (int64_t j = 0; j < n; ++j) exchange(q + i * n + j, q + (n - 1 - i) * n + j);
  }
  for (int64_t i = 0; i < (n - 1) / 2; ++i) exchange(e + i, e + n - 2 - i);
  failed |= QlInLanes<T>(n, d, e, q, n, turned, rest);
  const Vector nothing = Vector{} + std::numeric_limits<T>::quiet_NaN();
  for (int64_t i = 0; i < n; ++i) d[i] = failed ? nothing : d[i] * power;
  T* const rows = reinterpret_cast<T*>(a);  // Not needed any more.
  T* const found = reinterpret_cast<T*>(rest);
  StoreLanes(n * n, count, q, rows);
  StoreLanes(n, count, d, found);
  auto* const order = reinterpret_cast<int32_t*>(rest + 2 * n);
  for (int64_t b = 0; b < count; ++b) {
    const T* const own = found + b * n;
    for (int64_t i = 0; i < n; ++i) order[i] = static_cast<int32_t>(i);
    if (failed[b] == 0) {
      std::sort(order, order + n, [=](int32_t i, int32_t j) { return own[i] < own[j]; });
    }
    for (int64_t i = 0; i < n; ++i) {
      values[b * n + i] = own[order[i]];
      std::copy_n(rows + (b * n + order[i]) * n, n, ordered + i * n);
    }
    T* const to = vectors + b * n * n;
    if (failed[b] != 0) {
      std::fill_n(to, n * n, std::numeric_limits<T>::quiet_NaN());
    } else {
      TransposeInSquares(ordered, n, n, n, to, n);
    }
  }
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_EIGEN_LANES_H_
