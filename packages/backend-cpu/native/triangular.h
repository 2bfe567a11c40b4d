// Solutions of triangular systems by rows: by tiles in registers, and for more rows by products.

#ifndef DOVETAIL_CPU_TRIANGULAR_H_
#define DOVETAIL_CPU_TRIANGULAR_H_

#include <algorithm>
#include <cstdint>

#include "fft_vectors.h"
#include "interrupts.h"
#include "products.h"
#include "vector_width.h"

namespace dovetail {

// to[j] -= factor * from[j].
template <typename T>
inline void Subtract(int64_t size, T factor, const T* __restrict from, T* __restrict to) {
  for (int64_t j = 0; j < size; ++j) to[j] -= factor * from[j];
}

// The sum of products, in as many parts as a vector has lanes.
template <typename T>
inline T Dot(int64_t size, const T* __restrict a, const T* __restrict b) {
  constexpr int kLanes = 64 / sizeof(T);
  T sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  T sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  for (; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

// Rows and vectors beside each other that are kept in registers.
constexpr int kTileRows = 4, kTileVectors = 2;
template <typename T>
constexpr int64_t kTileColumns = kTileVectors * Lanes<T>::kCount;

template <typename T, int kRows, int kVectors>
struct RowsOfTile {
  static constexpr int kCount = Lanes<T>::kCount;
  typename Lanes<T>::Type x[kRows][kVectors];

  RowsOfTile(const T* from, int64_t step) {
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) x[i][j] = Load(from + i * step + j * kCount);
    }
  }
  void StoreTo(T* to, int64_t step) const {
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < kVectors; ++j) Store(to + i * step + j * kCount, x[i][j]);
    }
  }
  // Subtracts the product of columns of a, whose element (i, k) is a[i * down + k * right], with
  // rows of b.
  void Subtract(int64_t size, const T* a, int64_t down, int64_t right, const T* b, int64_t step) {
    for (int64_t k = 0; k < size; ++k, a += right, b += step) {
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < kVectors; ++j) x[i][j] -= a[i * down] * Load(b + j * kCount);
      }
    }
  }
};

// Sums of the products of rows, as many as a vector has lanes, with b, subtracted from `to`.
template <typename T>
void SubtractProducts(int64_t rows, int64_t size, const T* a, int64_t down, const T* b, T* to) {
  using Vector = typename Lanes<T>::Type;
  constexpr int kLanes = Lanes<T>::kCount;
  const int64_t whole = size / kLanes * kLanes;
  if (rows == kLanes && whole > 0) {
    Vector sums[kLanes] = {};
    for (int64_t k = 0; k < whole; k += kLanes) {
      const Vector factor = Load(b + k);
#pragma GCC unroll 16
      for (int r = 0; r < kLanes; ++r) sums[r] += Load(a + r * down + k) * factor;
    }
    Transpose<T>(sums);
#pragma GCC unroll 4
    for (int width = kLanes / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
      for (int lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
    }
    Store(to, Load(to) - sums[0]);
  } else {
    for (int64_t r = 0; r < rows; ++r) to[r] -= Dot(whole, a + r * down, b);
  }
  for (int64_t k = whole; k < size; ++k) {
    for (int64_t r = 0; r < rows; ++r) to[r] -= a[r * down + k] * b[k];
  }
}

// Subtracts from `to` the products of columns with the elements of b.
template <typename T>
void SubtractColumns(int64_t columns, int64_t size, const T* a, int64_t right, const T* b, T* to) {
  int64_t k = 0;
  for (; k + 4 <= columns; k += 4) {
    const T* __restrict column = a + k * right;
    const T factors[4] = {b[k], b[k + 1], b[k + 2], b[k + 3]};
    for (int64_t j = 0; j < size; ++j) {
      to[j] -= factors[0] * column[j] + factors[1] * column[right + j] +
               factors[2] * column[2 * right + j] + factors[3] * column[3 * right + j];
    }
  }
  for (; k < columns; ++k) Subtract(size, b[k], a + k * right, to);
}

// Solves a x = b as below for one column, for as many rows as a vector has lanes. Lanes that have
// been solved for are stored, and then take no part, whatever is in the other triangle.
template <typename T, bool kLower>
void SolveBlock(const T* a, int64_t down, int64_t right, bool unit, T* b) {
  constexpr int kLanes = Lanes<T>::kCount;
  typename Lanes<T>::Type columns[kLanes], rest = Load(b);
#pragma GCC unroll 16
  for (int k = 0; k < kLanes; ++k) columns[k] = Load(a + k * (right == 1 ? down : right));
  if (right == 1) Transpose<T>(columns);
#pragma GCC unroll 16
  for (int step = 0; step < kLanes; ++step) {
    const int k = kLower ? step : kLanes - 1 - step;
    const T x = unit ? rest[k] : rest[k] / a[k * (down + right)];
    b[k] = x;
    rest -= columns[k] * x;
  }
}

// Solves a x = b as below for one column, by blocks on the diagonal. What is beside them goes along
// the rows or the columns, whichever lie in one piece: to a block before, or from it after, it is
// solved.
template <typename T>
void SolveVector(int64_t n, const T* a, int64_t down, int64_t right, bool lower, bool unit, T* b) {
  constexpr int64_t kBlock = kVectorBytes / sizeof(T);
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  for (int64_t step = 0; step < blocks; ++step) {
    const int64_t first = (lower ? step : blocks - 1 - step) * kBlock;
    const int64_t last = std::min(n, first + kBlock);
    const int64_t begin = lower ? 0 : last, solved = lower ? first : n - last;
    if (right == 1) {
      SubtractProducts(last - first, solved, a + first * down + begin, down, b + begin, b + first);
    }
    if (last - first == kBlock) {
      const T* corner = a + first * (down + right);
      lower ? SolveBlock<T, true>(corner, down, right, unit, b + first)
            : SolveBlock<T, false>(corner, down, right, unit, b + first);
    } else {
      for (int64_t i = first; i < last; ++i) {
        const int64_t k = lower ? i : last - 1 - (i - first);
        if (!unit) b[k] /= a[k * down + k * right];
        const T factor = b[k];
        for (int64_t j = lower ? k + 1 : first; j < (lower ? last : k); ++j) {
          b[j] -= a[j * down + k * right] * factor;
        }
      }
    }
    if (right != 1) {
      const int64_t next = lower ? last : 0, rest = lower ? n - last : first;
      SubtractColumns(last - first, rest, a + next * down + first * right, right, b + first,
                      b + next);
    }
  }
}

// Solves for kRows rows of vectors from row i, where those before it have been solved.
template <int kRows, int kVectors, typename T>
inline void SolveTile(int64_t i, const T* a, int64_t down, int64_t right, bool unit, T* b,
                      int64_t step) {
  RowsOfTile<T, kRows, kVectors> tile(b + i * step, step);
  a += i * down;
  tile.Subtract(i, a, down, right, b, step);
  a += i * right;
#pragma GCC unroll 4
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int j = 0; j < kVectors; ++j) {
#pragma GCC unroll 4
      for (int k = 0; k < row; ++k) tile.x[row][j] -= a[row * down + k * right] * tile.x[k][j];
      if (!unit) tile.x[row][j] /= a[row * (down + right)];
    }
  }
  tile.StoreTo(b + i * step, step);
}

template <int kVectors, typename T>
void SolveColumns(int64_t n, const T* a, int64_t down, int64_t right, bool unit, T* b,
                  int64_t step) {
  int64_t i = 0;
  for (; i + kTileRows <= n; i += kTileRows) {
    SolveTile<kTileRows, kVectors>(i, a, down, right, unit, b, step);
  }
  for (; i < n; ++i) SolveTile<1, kVectors>(i, a, down, right, unit, b, step);
}

// Rows of a triangle that are solved for by tiles alone.
constexpr int64_t kMostByTiles = 64;

// Solves as below for up to kMostByTiles rows.
template <typename T>
void SolveByTiles(int64_t n, int64_t columns, const T* a, int64_t down, int64_t right, bool lower,
                  bool unit, T* b, int64_t step) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  if (!lower) {  // From the last row and column on it is.
    a += (n - 1) * (down + right);
    b += (n - 1) * step;
    down = -down, right = -right, step = -step;
  }
  for (; columns >= 2 * kCount; columns -= 2 * kCount, b += 2 * kCount) {
    SolveColumns<2>(n, a, down, right, unit, b, step);
  }
  if (columns >= kCount) {
    SolveColumns<1>(n, a, down, right, unit, b, step);
    columns -= kCount, b += kCount;
  }
  if (columns == 0) return;
  constexpr int64_t kFew = 12;  // Rows that tiles are not worth copies of.
  if (n <= kFew) {
    for (int64_t i = 0; i < n; ++i) {
      T* row = b + i * step;
      for (int64_t k = 0; k < i; ++k) {
        Subtract(columns, a[i * down + k * right], b + k * step, row);
      }
      const T pivot = a[i * (down + right)];
      for (int64_t j = 0; j < columns && !unit; ++j) row[j] /= pivot;
    }
    return;
  }
  alignas(64) T rest[kMostByTiles * kCount];  // With zeros beside the last columns.
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(b + i * step, columns, rest + i * kCount);
    std::fill_n(rest + i * kCount + columns, kCount - columns, T(0));
  }
  SolveColumns<1>(n, a, down, right, unit, rest, kCount);
  for (int64_t i = 0; i < n; ++i) std::copy_n(rest + i * kCount, columns, b + i * step);
}

// Solves a x = b for a triangular matrix a whose element (i, j) is a[i * down + j * right], from
// the first row if it is lower, else from the last. b has `columns` columns, rows `step` apart, and
// is overwritten. What is solved for first is eliminated from the other half by a product.
template <typename T>
void SolveTriangle(int64_t n, int64_t columns, const T* a, int64_t down, int64_t right, bool lower,
                   bool unit, T* b, int64_t step) {
  if (columns == 1 && step == 1) return SolveVector(n, a, down, right, lower, unit, b);
  if (n <= kMostByTiles) return SolveByTiles(n, columns, a, down, right, lower, unit, b, step);
  EndIfInterrupted();
  const int64_t half = (n / 2 + 15) / 16 * 16, size = n - half;
  const T* const corner = a + half * (down + right);
  T* const others = b + half * step;
  if (lower) {
    SolveTriangle(half, columns, a, down, right, true, unit, b, step);
    MultiplyMatrices<T>({a + half * down, b, others, size, columns, half, down, right, step, 1,
                         step, Into::kSubtract});
    return SolveTriangle(size, columns, corner, down, right, true, unit, others, step);
  }
  SolveTriangle(size, columns, corner, down, right, false, unit, others, step);
  MultiplyMatrices<T>({a + half * right, others, b, half, columns, size, down, right, step, 1, step,
                       Into::kSubtract});
  SolveTriangle(half, columns, a, down, right, false, unit, b, step);
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_TRIANGULAR_H_
