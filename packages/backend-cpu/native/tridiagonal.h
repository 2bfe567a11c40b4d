// Symmetric matrices made tridiagonal by Householder's reflections, and what takes them back.
//
// Source: Golub, Van Loan, "Matrix Computations", 4th edition, 2013: 8.3.1 and 5.1.7. What a
// reflection subtracts from the matrix is subtracted in the same pass over it that multiplies it
// with the next one, so that the matrix is read and written once for each.

#ifndef DOVETAIL_CPU_TRIDIAGONAL_H_
#define DOVETAIL_CPU_TRIDIAGONAL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fft_vectors.h"
#include "interrupts.h"
#include "memory.h"
#include "norm.h"
#include "products.h"
#include "tiles.h"

namespace dovetail {

// Reflections that are applied at once.
constexpr int64_t kReflectionsOfBlock = 48;

// Rows whose ends are squares on the diagonal, all of which is kept; of other elements only those
// above the diagonal are. Rows have a multiple of a vector's lanes, and so many rows are there.
template <typename T>
struct Tridiagonalization {
  static constexpr int64_t kCount = Lanes<T>::kCount;
  static constexpr int kRows = kManyRegisters && kCount >= 4 ? 4 : 2;
  using Vector = typename Lanes<T>::Type;

  int64_t n, stride;
  T* a;
  T* diagonal;
  T* beside;
  T* reflections;  // Rows, which begin with zeros from that of the first one of a block on.
  T* taus;
  T *w, *y;  // Memory for a row each.
  const T* v = nullptr;  // The last reflection; v w^T + w v^T has not been subtracted yet.

  int64_t Padded() const { return (n + kCount - 1) / kCount * kCount; }

  DOVETAIL_WIDE void Run() {
    const int64_t padded = Padded();
    std::fill_n(w, padded, T(0));
    std::fill_n(y, padded, T(0));
    v = w;
    for (int64_t k = 0; k < n; ++k) {
      T* const row = a + k * stride;
      const int64_t at = k / kCount * kCount;
      if (k > 0) {
        const T own = w[k], other = v[k];
        for (int64_t j = at; j < padded; j += kCount) {
          Store(row + j, Load(row + j) - own * Load(v + j) - other * Load(w + j));
        }
      }
      diagonal[k] = row[k];
      taus[k] = 0;
      if (k + 1 == n) break;
      T* const x = reflections + k * stride;
      const int64_t block = k / kReflectionsOfBlock * kReflectionsOfBlock;
      std::fill(x + block / kCount * kCount, x + k + 1, T(0));
      std::copy(row + k + 1, row + padded, x + k + 1);
      const T tau = taus[k] = Reflection(k + 1, x, beside + k);
      if (k + 2 == n) continue;
      if ((k & 31) == 0) EndIfInterrupted();
      const int64_t next = (k + 1) / kCount * kCount;
      std::fill(y + next, y + padded, T(0));
      for (int64_t i = next; i < padded; i += kCount) Square(k + 1, i, padded, x);
      // w = tau (a x - tau / 2 (x^T a x) x).
      v = x;
      Vector dots{};
      for (int64_t j = next; j < padded; j += kCount) dots += Load(x + j) * Load(y + j);
      T dot = 0;
      for (int64_t lane = 0; lane < kCount; ++lane) dot += dots[lane];
      const T factor = T(-0.5) * tau * dot;
      for (int64_t j = next; j < padded; j += kCount) {
        Store(w + j, tau * (Load(y + j) + factor * Load(x + j)));
      }
      std::fill(w + next, w + k + 1, T(0));
    }
  }

 private:
  // Makes x from the place `first` on a reflection that leaves of it beta; returns tau.
  DOVETAIL_WIDE T Reflection(int64_t first, T* x, T* beta) const {
    constexpr T kLeast = sizeof(T) == 4 ? T(1e-28) : T(1e-280);
    const int64_t padded = Padded();
    const T alpha = x[first];
    x[first] = 0;
    Vector sums[2] = {};
    const int64_t begin = first / kCount * kCount;
    for (int64_t j = begin; j < padded; j += kCount) {
      sums[j / kCount & 1] += Load(x + j) * Load(x + j);
    }
    sums[0] += sums[1];
    T rest = 0;
    for (int64_t lane = 0; lane < kCount; ++lane) rest += sums[0][lane];
    x[first] = 1;
    T root = std::sqrt(alpha * alpha + rest);
    if (rest < kLeast) {  // It may have lost digits.
      const T pair[2] = {alpha, Norm(padded - first - 1, x + first + 1, 1)};
      if (pair[1] == 0) {
        *beta = alpha;
        return 0;
      }
      root = Norm(2, pair, 1);
    }
    *beta = -std::copysign(root, alpha);
    const T scale = alpha - *beta;
    if (rest < kLeast) {
      for (int64_t j = first + 1; j < n; ++j) x[j] /= scale;
    } else {
      const T inverse = 1 / scale;
      for (int64_t j = begin; j < padded; j += kCount) Store(x + j, inverse * Load(x + j));
      x[first] = 1;
    }
    return -scale / *beta;
  }

  // Subtracts v w^T + w v^T from the rows of a square on the diagonal, and adds to y what they, and
  // the columns below it, contribute to the product with x. Rows before `first` are not needed.
  DOVETAIL_WIDE void Square(int64_t first, int64_t top, int64_t padded, const T* x) const {
    Vector sums[kCount] = {};
#pragma GCC unroll 1
    for (int64_t i = 0; i < kCount; i += kRows) {
      if (top + i + kRows > first) Rows(top + i, top, padded, x, sums + i);
    }
    Transpose<T>(sums);
#pragma GCC unroll 4
    for (int64_t width = kCount / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
      for (int64_t lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
    }
    Store(y + top, Load(y + top) + sums[0]);
  }

  inline __attribute__((always_inline)) void Rows(int64_t i, int64_t top, int64_t padded,
                                                  const T* x, Vector* sums) const {
    T* const row = a + i * stride;
    Vector vs[kRows], ws[kRows], xs[kRows], totals[kRows];
    const Vector v0 = Load(v + top), w0 = Load(w + top), x0 = Load(x + top);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      vs[r] = v[i + r] - Vector{}, ws[r] = w[i + r] - Vector{}, xs[r] = x[i + r] - Vector{};
      T* const at = row + r * stride + top;
      const Vector own = Load(at) - vs[r] * w0 - ws[r] * v0;
      Store(at, own);
      totals[r] = own * x0;
    }
    for (int64_t j = top + kCount; j < padded; j += kCount) {
      const Vector vj = Load(v + j), wj = Load(w + j), xj = Load(x + j);
      Vector total = Load(y + j);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        T* const at = row + r * stride + j;
        const Vector own = Load(at) - vs[r] * wj - ws[r] * vj;
        Store(at, own);
        totals[r] += own * xj;
        total += own * xs[r];
      }
      Store(y + j, total);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r] = totals[r];
  }
};

// Multiplies columns of z, of n rows, with the product of the reflections from the left.
template <typename T>
void ReflectBack(int64_t n, const T* reflections, int64_t stride, const T* taus, T* z,
                 int64_t columns, int64_t z_stride) {
  constexpr int64_t kBlock = kReflectionsOfBlock;
  if (n < 3) return;
  const int64_t count = n - 2;
  Memory<T> memory(2 * kBlock * (kBlock + columns));
  T *const products = memory.get(), *const factors = products + kBlock * columns;
  T *const gram = factors + kBlock * columns, *const triangle = gram + kBlock * kBlock;
  for (int64_t first = (count - 1) / kBlock * kBlock; first >= 0; first -= kBlock) {
    EndIfInterrupted();
    const int64_t size = std::min(kBlock, count - first), rows = n - first - 1;
    const T* const v = reflections + first * stride + first + 1;
    T* const to = z + (first + 1) * z_stride;
    // -T^T of 1 - V^T T V.
    MultiplyMatrices<T>({v, v, gram, size, size, rows, stride, 1, 1, stride, kBlock});
    for (int64_t k = 0; k < size; ++k) {
      T* const row = triangle + k * kBlock;
      std::fill_n(row, size, T(0));
      for (int64_t i = 0; i < k; ++i) {
        const T factor = -taus[first + k] * gram[k * kBlock + i];
        for (int64_t j = 0; j <= i; ++j) row[j] += factor * triangle[i * kBlock + j];
      }
      row[k] = -taus[first + k];
    }
    MultiplyMatrices<T>({v, to, products, size, columns, rows, stride, 1, z_stride, 1, columns});
    MultiplyMatrices<T>(
        {triangle, products, factors, size, columns, size, 1, kBlock, columns, 1, columns});
    MultiplyMatrices<T>({v, factors, to, rows, columns, size, 1, stride, columns, 1, z_stride,
                         Into::kAdd});
  }
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_TRIDIAGONAL_H_
