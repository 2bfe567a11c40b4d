// Factorisations of batches of small real matrices, which LAPACK takes one by one, column-major and
// on one thread. Here they stay row-major, loops go along rows, and threads share the batch.
//
// Source: Golub, Van Loan, "Matrix Computations", 4th edition, 2013: algorithms 3.4.1 (LU with
// partial pivoting), 4.2.1 (Cholesky), 5.1.1 and 5.2.1 (Householder). Signs and scalings are
// LAPACK's.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "fft_vectors.h"
#include "kernel.h"
#include "memory.h"
#include "norm.h"
#include "parallel.h"
#include "products.h"
#include "triangular.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Multiplications for which another thread is worth its while.
constexpr int64_t kWorkPerThread = 1 << 20;
// The same inside one matrix.
constexpr int64_t kProductsOfThread = 1 << 23;

// Calls body(first, last) for parts of a batch.
template <typename Body>
void ForBatch(ffi::ThreadPool& pool, int64_t batch, int64_t work, const Body& body) {
  const int64_t worth = std::max<int64_t>(1, batch * std::max<int64_t>(1, work) / kWorkPerThread);
  const int64_t threads = ThreadsOf(pool);
  constexpr int64_t kMost = 1 << 10;  // Between parts an interrupt is noticed.
  const int64_t parts = std::max(threads == 1 ? 1 : std::min({4 * threads, batch, worth}),
                                 std::min(batch, worth / kMost));
  if (parts <= 1) return body(int64_t{0}, batch);
  ParallelFor(pool, parts,
              [&](int64_t part) { body(batch * part / parts, batch * (part + 1) / parts); });
}

// Writes the transpose of what is in the lower triangle of n rows, or the upper one, and in blocks
// on the diagonal perhaps more.
template <bool kLower, typename T>
void TransposeTriangle(int64_t n, const T* from, int64_t from_step, T* to, int64_t to_step) {
  constexpr int64_t kCount = Lanes<T>::kCount, kLine = 64 / sizeof(T);
  const auto block = [=](int64_t i, int64_t j) {
    if (std::max(i, j) + kCount > n) {
      for (int64_t row = i; row < std::min(n, i + kCount); ++row) {
        for (int64_t k = j; k < std::min(n, j + kCount); ++k) {
          to[k * to_step + row] = from[row * from_step + k];
        }
      }
      return;
    }
    typename Lanes<T>::Type rows[kCount];
#pragma GCC unroll 16
    for (int64_t k = 0; k < kCount; ++k) rows[k] = Load(from + (i + k) * from_step + j);
    Transpose<T>(rows);
#pragma GCC unroll 16
    for (int64_t k = 0; k < kCount; ++k) Store(to + (j + k) * to_step + i, rows[k]);
  };
  // All of a line is written before it leaves the nearest cache.
  for (int64_t line = 0; line < n; line += kLine) {
    const int64_t last = std::min(n, line + kLine);
    for (int64_t j = kLower ? 0 : line; j < (kLower ? last : n); j += kCount) {
      for (int64_t i = line; i < last; i += kCount) {
        if (kLower ? j <= i : j >= i) block(i, j);
      }
    }
  }
}

// Calls body(begin, columns) for parts of columns, on several threads where the products are worth
// it, and there is a pool.
template <typename T, typename Body>
void ForColumns(ffi::ThreadPool* pool, int64_t columns, int64_t products, const Body& body) {
  const int64_t panels = (columns + kTileColumns<T> - 1) / kTileColumns<T>;
  const int64_t worth = products / kProductsOfThread;
  const int64_t parts =
      pool == nullptr ? 1 : std::clamp<int64_t>(std::min(worth, ThreadsOf(*pool)), 1, panels);
  const auto part = [=](int64_t number) {
    const int64_t begin = panels * number / parts * kTileColumns<T>;
    body(begin, std::min(columns, panels * (number + 1) / parts * kTileColumns<T>) - begin);
  };
  if (parts == 1) return part(0);
  ParallelFor(*pool, parts, part);
}

// Rows of a root that are computed together, a multiple of a tile's columns.
constexpr int64_t kRowsOfRoot = 96;

// Overwrites the upper triangle of up to kRowsOfRoot rows with its root; false if it is not
// positive definite. Rows go on to the end of a tile.
template <typename T>
bool RootOfRows(int64_t n, T* upper, int64_t stride) {
  constexpr int64_t kPanel = 4 * kTileRows, kColumns = kTileColumns<T>;
  // Subtracts the products of rows [first, last) from tiles of rows [top, bottom).
  const auto subtract = [=](int64_t first, int64_t last, int64_t top, int64_t bottom) {
    for (int64_t j = top / kColumns * kColumns; j < n; j += kColumns) {
      for (int64_t i = top; i < bottom && i < j + kColumns; i += kTileRows) {
        RowsOfTile<T, kTileRows, kTileVectors> tile(upper + i * stride + j, stride);
        tile.Subtract(last - first, upper + first * stride + i, 1, stride,
                      upper + first * stride + j, stride);
        tile.StoreTo(upper + i * stride + j, stride);
      }
    }
  };
  for (int64_t panel = 0; panel < n; panel += kPanel) {
    const int64_t bottom = std::min(n, panel + kPanel);
    if (panel > 0) subtract(0, panel, panel, bottom);
    for (int64_t top = panel; top < bottom; top += kTileRows) {
      if (top > panel) subtract(panel, top, top, top + 1);
      for (int64_t i = top; i < std::min(n, top + kTileRows); ++i) {
        T* row = upper + i * stride;
        for (int64_t k = top; k < i; ++k) {
          Subtract(n - i, upper[k * stride + i], upper + k * stride + i, row + i);
        }
        const T pivot = row[i];
        if (pivot <= 0) return false;  // NaN goes on, as in LAPACK.
        const T root = std::sqrt(pivot), inverse = 1 / root;
        for (int64_t j = i + 1; j < n; ++j) row[j] *= inverse;
        row[i] = root;
      }
    }
  }
  return true;
}

// The lower triangle of the root of a matrix, of which the lower triangle is read, or if asked for
// the mean of both; NaN if it is not positive definite. `upper` has n rows and those of a tile
// more, and `stride` is a multiple of a tile's columns. Large products are divided among the
// threads of `pool`, if there is one.
template <typename T>
void Cholesky(ffi::ThreadPool* pool, int64_t n, const T* from, bool averaged, T* to, T* upper,
              int64_t stride) {
  TransposeTriangle<true>(n, from, n, upper, stride);
  for (int64_t i = 0; i < n; ++i) {
    T* const row = upper + i * stride;
    if (averaged) {
      for (int64_t j = i; j < n; ++j) row[j] = (row[j] + from[i * n + j]) * T(0.5);
    }
    // What tiles reach beyond is computed and not used.
    std::fill(row + i / kRowsOfRoot * kRowsOfRoot, row + i, T(0));
    std::fill(row + n, row + stride, T(0));
  }
  std::fill_n(upper + n * stride, kTileRows * stride, T(0));
  bool failed = false;
  for (int64_t top = 0; top < n && !failed; top += kRowsOfRoot) {
    const int64_t rows = std::min(kRowsOfRoot, n - top), rest = n - top - rows;
    T *const corner = upper + top * (stride + 1), *const right = corner + rows;
    if (top > 0) {
      EndIfInterrupted();
      ForColumns<T>(pool, n - top, rows * (n - top) * top, [=](int64_t begin, int64_t columns) {
        const T* const above = upper + top;
        MultiplyMatrices<T>({above, above + begin, corner + begin, rows, columns, top, 1, stride,
                             stride, 1, stride, Into::kSubtract, begin + 1});
      });
    }
    failed = !RootOfRows(rows, corner, stride);
    if (failed || rest == 0) continue;
    ForColumns<T>(pool, rest, rows * rows * rest / 2, [=](int64_t begin, int64_t columns) {
      SolveTriangle(rows, columns, corner, int64_t{1}, stride, true, false, right + begin, stride);
    });
  }
  if (failed) {
    std::fill(to, to + n * n, std::numeric_limits<T>::quiet_NaN());
  } else {
    TransposeTriangle<false>(n, upper, stride, to, n);
  }
  for (int64_t i = 0; i < n; ++i) std::fill(to + i * n + i + 1, to + (i + 1) * n, T(0));
}

// The most rows of matrices of which each lane has one.
constexpr int64_t kMostInLanes = 16;

// As many matrices as a vector has lanes, one in each.
template <typename T>
void CholeskyInLanes(int64_t n, const T* from, bool averaged, T* to) {
  using Vector = typename Lanes<T>::Type;
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t size = n * n;
  Vector values[kMostInLanes * kMostInLanes];
  // The last block of a matrix overlaps the one before.
  const auto for_blocks = [=](const auto& body) {
    for (int64_t i = 0; i < size; i += kCount) body(std::min(i, size - kCount));
  };
  for_blocks([&](int64_t i) {
#pragma GCC unroll 16
    for (int64_t k = 0; k < kCount; ++k) values[i + k] = Load(from + k * size + i);
    Transpose<T>(values + i);
  });
  for (int64_t i = 0; i < n && averaged; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      values[i * n + j] = (values[i * n + j] + values[j * n + i]) * T(0.5);
    }
    values[i * (n + 1)] = (values[i * (n + 1)] + values[i * (n + 1)]) * T(0.5);
  }
  typename Lanes<T>::Indices failed{};
  for (int64_t i = 0; i < n; ++i) {
    Vector* pivots = values + i * n;
    Vector inverse{};
    for (int64_t j = i; j < n; ++j) {
      Vector* row = values + j * n;
      Vector sum = row[i];
      for (int64_t k = 0; k < i; ++k) sum -= pivots[k] * row[k];
      if (j == i) {
        failed |= sum <= 0;
        T numbers[kCount];
        Store(numbers, sum);
        for (int64_t lane = 0; lane < kCount; ++lane) numbers[lane] = std::sqrt(numbers[lane]);
        sum = Load(numbers);
        inverse = 1 / sum;
      } else {
        sum *= inverse;
      }
      row[i] = sum;
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      Vector& x = values[i * n + j];
      x = j > i ? Vector{} : failed ? Vector{} + std::numeric_limits<T>::quiet_NaN() : x;
    }
  }
  for_blocks([&](int64_t i) {
    Vector rows[kCount];
#pragma GCC unroll 16
    for (int64_t k = 0; k < kCount; ++k) rows[k] = values[i + k];
    Transpose<T>(rows);
#pragma GCC unroll 16
    for (int64_t k = 0; k < kCount; ++k) Store(to + k * size + i, rows[k]);
  });
}

template <ffi::DataType kType>
ffi::Error CholeskyOfAll(ffi::ThreadPool pool, ffi::Buffer<kType> x,
                         ffi::Result<ffi::Buffer<kType>> out, int64_t averaged) {
  using T = ffi::NativeType<kType>;
  constexpr int64_t kCount = Lanes<T>::kCount, kLine = 64 / sizeof(T);
  const int64_t n = x.dimensions().back();
  if (x.element_count() == 0) return ffi::Error::Success();
  const int64_t size = n * n, batch = static_cast<int64_t>(x.element_count()) / size;
  // Rows are not a power of two apart, where they would take each other's places in the caches.
  const int64_t lines = (n + 2 * kLine - 1) / kLine | 1;
  const int64_t stride = lines * kLine;
  const T* from = x.typed_data();
  T* to = out->typed_data();
  ForBatch(pool, batch, n * n * n / 6, [&](int64_t first, int64_t last) {
    int64_t b = first;
    if (n <= kMostInLanes && size >= kCount) {
      for (; b + kCount <= last; b += kCount) {
        CholeskyInLanes(n, from + b * size, averaged != 0, to + b * size);
      }
    }
    if (b == last) return;
    Memory<T> upper((n + kTileRows) * stride);
    ffi::ThreadPool* const threads = batch == 1 ? &pool : nullptr;
    for (; b < last; ++b) {
      Cholesky(threads, n, from + b * size, averaged != 0, to + b * size, upper.get(), stride);
    }
  });
  return ffi::Error::Success();
}

// Overwrites a matrix of m rows and n columns with its factors.
template <typename T>
void Lu(int64_t m, int64_t n, T* a, int32_t* pivots, int32_t* permutation) {
  for (int64_t i = 0; i < m; ++i) permutation[i] = static_cast<int32_t>(i);
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    int64_t largest = k;
    T size = -1;  // NaN is no pivot where there is a number.
    for (int64_t i = k; i < m; ++i) {
      const T other = std::abs(a[i * n + k]);
      if (other > size) size = other, largest = i;
    }
    pivots[k] = static_cast<int32_t>(largest);
    if (largest != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + largest * n);
      std::swap(permutation[k], permutation[largest]);
    }
    const T pivot = a[k * n + k];
    if (pivot == 0) continue;
    for (int64_t i = k + 1; i < m; ++i) {
      const T factor = a[i * n + k] /= pivot;
      Subtract(n - k - 1, factor, a + k * n + k + 1, a + i * n + k + 1);
    }
  }
}

template <ffi::DataType kType>
ffi::Error LuOfAll(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Result<ffi::Buffer<kType>> out,
                   ffi::Result<ffi::Buffer<ffi::S32>> pivots,
                   ffi::Result<ffi::Buffer<ffi::S32>> permutation) {
  using T = ffi::NativeType<kType>;
  if (x.element_count() == 0) return ffi::Error::Success();
  const auto shape = x.dimensions();
  const int64_t m = shape[shape.size() - 2], n = shape.back(), least = std::min(m, n);
  const int64_t batch = static_cast<int64_t>(x.element_count()) / (m * n);
  const T* from = x.typed_data();
  T* to = out->typed_data();
  int32_t* rows = pivots->typed_data();
  int32_t* order = permutation->typed_data();
  ForBatch(pool, batch, m * n * least / 3, [&](int64_t first, int64_t last) {
    if (from != to) std::copy(from + first * m * n, from + last * m * n, to + first * m * n);
    for (int64_t b = first; b < last; ++b) {
      Lu(m, n, to + b * m * n, rows + b * least, order + b * m);
    }
  });
  return ffi::Error::Success();
}

// Pivots of LAPACK, which are numbered from 1, numbered from 0, and the permutation that they make.
ffi::Error PivotsOfAll(ffi::Buffer<ffi::S32> from, ffi::Result<ffi::Buffer<ffi::S32>> pivots,
                       ffi::Result<ffi::Buffer<ffi::S32>> permutation) {
  if (permutation->element_count() == 0) return ffi::Error::Success();
  const int64_t m = permutation->dimensions().back(), count = from.dimensions().back();
  const int64_t batch = static_cast<int64_t>(permutation->element_count()) / m;
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t* rows = from.typed_data() + b * count;
    int32_t* order = permutation->typed_data() + b * m;
    for (int64_t i = 0; i < m; ++i) order[i] = static_cast<int32_t>(i);
    for (int64_t k = 0; k < count; ++k) {
      const int32_t row = rows[k] - 1;
      pivots->typed_data()[b * count + k] = row;
      std::swap(order[k], order[row]);
    }
  }
  return ffi::Error::Success();
}

// rows -= factor * v (v^T rows): v has the elements 1, and `stride` apart those at `tail`. The rows
// lie one below the other, `stride` apart, from that of the 1.
template <typename T>
void Reflect(int64_t size, const T* tail, int64_t stride, T factor, T* rows, int64_t columns,
             T* sums) {
  std::copy(rows, rows + columns, sums);
  for (int64_t i = 1; i < size; ++i) {
    Subtract(columns, -tail[(i - 1) * stride], rows + i * stride, sums);
  }
  for (int64_t j = 0; j < columns; ++j) sums[j] *= factor;
  for (int64_t j = 0; j < columns; ++j) rows[j] -= sums[j];
  for (int64_t i = 1; i < size; ++i) {
    Subtract(columns, tail[(i - 1) * stride], sums, rows + i * stride);
  }
}

// Overwrites a matrix with the factor R, and the reflections below it.
template <typename T>
void Qr(int64_t m, int64_t n, T* a, T* taus, T* sums) {
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    T* head = a + k * n + k;
    const T alpha = *head, rest = Norm(m - k - 1, head + n, n);
    if (rest == 0) {
      taus[k] = 0;
      continue;
    }
    const T pair[2] = {alpha, rest};
    const T beta = -std::copysign(Norm(2, pair, 1), alpha);
    const T scale = alpha - beta;
    taus[k] = -scale / beta;
    for (int64_t i = 1; i < m - k; ++i) head[i * n] /= scale;
    if (k + 1 < n) Reflect(m - k, head + n, n, taus[k], head + 1, n - k - 1, sums);
    *head = beta;
  }
}

template <ffi::DataType kType>
ffi::Error QrOfAll(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Result<ffi::Buffer<kType>> out,
                   ffi::Result<ffi::Buffer<kType>> taus) {
  using T = ffi::NativeType<kType>;
  if (x.element_count() == 0) return ffi::Error::Success();
  const auto shape = x.dimensions();
  const int64_t m = shape[shape.size() - 2], n = shape.back(), least = std::min(m, n);
  const int64_t batch = static_cast<int64_t>(x.element_count()) / (m * n);
  const T* from = x.typed_data();
  T* to = out->typed_data();
  T* factors = taus->typed_data();
  ForBatch(pool, batch, m * n * least, [&](int64_t first, int64_t last) {
    std::vector<T> sums(n);
    if (from != to) std::copy(from + first * m * n, from + last * m * n, to + first * m * n);
    for (int64_t b = first; b < last; ++b) {
      Qr(m, n, to + b * m * n, factors + b * least, sums.data());
    }
  });
  return ffi::Error::Success();
}

// Overwrites reflections with the first columns of their product.
template <typename T>
void Product(int64_t m, int64_t n, int64_t count, T* a, const T* taus, T* sums) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = count; j < n; ++j) a[i * n + j] = i == j ? T(1) : T(0);
  }
  for (int64_t k = count - 1; k >= 0; --k) {
    T* head = a + k * n + k;
    const T factor = taus[k];
    if (k + 1 < n) Reflect(m - k, head + n, n, factor, head + 1, n - k - 1, sums);
    for (int64_t i = 1; i < m - k; ++i) head[i * n] *= -factor;
    *head = 1 - factor;
    for (int64_t i = 1; i <= k; ++i) head[-i * n] = 0;
  }
}

template <ffi::DataType kType>
ffi::Error ProductOfAll(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Buffer<kType> taus,
                        ffi::Result<ffi::Buffer<kType>> out) {
  using T = ffi::NativeType<kType>;
  if (x.element_count() == 0) return ffi::Error::Success();
  const auto shape = x.dimensions();
  const int64_t m = shape[shape.size() - 2], n = shape.back();
  const int64_t count = taus.dimensions().back();
  const int64_t batch = static_cast<int64_t>(x.element_count()) / (m * n);
  const T* from = x.typed_data();
  const T* factors = taus.typed_data();
  T* to = out->typed_data();
  ForBatch(pool, batch, m * n * count, [&](int64_t first, int64_t last) {
    std::vector<T> sums(n);
    if (from != to) std::copy(from + first * m * n, from + last * m * n, to + first * m * n);
    for (int64_t b = first; b < last; ++b) {
      Product(m, n, count, to + b * m * n, factors + b * count, sums.data());
    }
  });
  return ffi::Error::Success();
}

// Rows of zeros above a column's first other number are left out by as many at once; columns for
// which that is worth a look.
constexpr int64_t kRowsOfStart = 64, kLeastSkipping = 64;

// Solves a x = b for a lower triangle with ones on its diagonal. Where columns begin with zeros so do
// solutions: columns that begin alike are solved for together, from there on. In what order a column
// is added up depends on its own zeros alone, and not on those beside it.
template <typename T>
void SolvePastZeros(int64_t n, int64_t columns, const T* a, int64_t down, int64_t right, T* b,
                    int64_t step) {
  std::vector<int32_t> first(columns, static_cast<int32_t>(n));
  int64_t latest = n;
  for (int64_t i = 0; i < n && latest == n;) {
    for (const int64_t end = std::min(n, i + kRowsOfStart); i < end; ++i) {
      const T* row = b + i * step;
      for (int64_t j = 0; j < columns; ++j) {
        first[j] = std::min(first[j], row[j] != 0 ? static_cast<int32_t>(i) : first[j]);
      }
    }
    latest = *std::max_element(first.begin(), first.end());
  }
  if (latest < kRowsOfStart) {
    return SolveTriangle(n, columns, a, down, right, true, true, b, step);
  }
  Memory<T> memory(n * columns);
  std::vector<int64_t> chosen;
  for (int64_t top = 0; top < n; top += kRowsOfStart) {
    chosen.clear();
    for (int64_t j = 0; j < columns; ++j) {
      if (first[j] >= top && first[j] < std::min(n, top + kRowsOfStart)) chosen.push_back(j);
    }
    if (chosen.empty()) continue;
    const int64_t rows = n - top, count = static_cast<int64_t>(chosen.size());
    T *const from = b + top * step, *const own = memory.get();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < count; ++j) own[i * count + j] = from[i * step + chosen[j]];
    }
    SolveTriangle(rows, count, a + top * (down + right), down, right, true, true, own, count);
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < count; ++j) from[i * step + chosen[j]] = own[i * count + j];
    }
  }
}

template <ffi::DataType kType>
ffi::Error SolveAll(ffi::ThreadPool pool, ffi::Buffer<kType> a, ffi::Buffer<kType> b,
                    ffi::Result<ffi::Buffer<kType>> out, int64_t lower, int64_t transposed,
                    int64_t unit) {
  using T = ffi::NativeType<kType>;
  if (b.element_count() == 0) return ffi::Error::Success();
  const auto shape = b.dimensions();
  const int64_t n = shape[shape.size() - 2], columns = shape.back();
  const int64_t batch = static_cast<int64_t>(b.element_count()) / (n * columns);
  const T* matrix = a.typed_data();
  const T* from = b.typed_data();
  T* to = out->typed_data();
  const int64_t size = n * columns;
  // Solves for `count` columns from `begin` on.
  const auto solve = [=](int64_t b, int64_t begin, int64_t count) {
    const int64_t first = b * size + begin;
    const int64_t pieces = from == to ? 0 : count == columns ? 1 : n;
    for (int64_t i = 0; i < pieces; ++i) {
      const int64_t at = first + i * columns;
      std::copy_n(from + at, pieces == 1 ? size : count, to + at);
    }
    const bool is_lower = (lower != 0) != (transposed != 0);
    const int64_t down = transposed ? 1 : n, right = transposed ? n : 1;
    const T* const triangle = matrix + b * n * n;
    if (unit != 0 && is_lower && columns >= kLeastSkipping && n > kRowsOfStart) {
      return SolvePastZeros(n, count, triangle, down, right, to + first, columns);
    }
    SolveTriangle(n, count, triangle, down, right, is_lower, unit != 0, to + first, columns);
  };
  if (batch < 2 * ThreadsOf(pool) && n * size / 2 >= 2 * kProductsOfThread) {
    for (int64_t b = 0; b < batch; ++b) {
      ForColumns<T>(&pool, columns, n * size / 2,
                    [=](int64_t begin, int64_t count) { solve(b, begin, count); });
    }
    return ffi::Error::Success();
  }
  ForBatch(pool, batch, n * size / 2, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) solve(b, 0, columns);
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
#define DOVETAIL_FOR(SUFFIX, TYPE)                                                              \
  DOVETAIL_KERNEL(dovetail_cholesky_##SUFFIX, dovetail::CholeskyOfAll<TYPE>,                    \
                  xla::ffi::Ffi::Bind()                                                         \
                      .Ctx<xla::ffi::ThreadPool>()                                              \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                            \
                      .Ret<xla::ffi::Buffer<TYPE>>()                                            \
                      .Attr<int64_t>("averaged"));                                              \
  DOVETAIL_KERNEL(dovetail_lu_##SUFFIX, dovetail::LuOfAll<TYPE>,                                \
                  xla::ffi::Ffi::Bind()                                                         \
                      .Ctx<xla::ffi::ThreadPool>()                                              \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                            \
                      .Ret<xla::ffi::Buffer<TYPE>>()                                            \
                      .Ret<xla::ffi::Buffer<xla::ffi::S32>>()                                   \
                      .Ret<xla::ffi::Buffer<xla::ffi::S32>>());                                 \
  DOVETAIL_KERNEL(dovetail_qr_##SUFFIX, dovetail::QrOfAll<TYPE>,                                \
                  xla::ffi::Ffi::Bind()                                                         \
                      .Ctx<xla::ffi::ThreadPool>()                                              \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                            \
                      .Ret<xla::ffi::Buffer<TYPE>>()                                            \
                      .Ret<xla::ffi::Buffer<TYPE>>());                                          \
  DOVETAIL_KERNEL(dovetail_reflections_##SUFFIX, dovetail::ProductOfAll<TYPE>,                  \
                  xla::ffi::Ffi::Bind()                                                         \
                      .Ctx<xla::ffi::ThreadPool>()                                              \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                            \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                            \
                      .Ret<xla::ffi::Buffer<TYPE>>());                                          \
  DOVETAIL_KERNEL(dovetail_triangular_solve_##SUFFIX, dovetail::SolveAll<TYPE>,                 \
                  xla::ffi::Ffi::Bind()                                                         \
                      .Ctx<xla::ffi::ThreadPool>()                                              \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                            \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                            \
                      .Ret<xla::ffi::Buffer<TYPE>>()                                            \
                      .Attr<int64_t>("lower")                                                   \
                      .Attr<int64_t>("transposed")                                              \
                      .Attr<int64_t>("unit"))

DOVETAIL_KERNEL(dovetail_pivots, dovetail::PivotsOfAll,
                xla::ffi::Ffi::Bind()
                    .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
                    .Ret<xla::ffi::Buffer<xla::ffi::S32>>()
                    .Ret<xla::ffi::Buffer<xla::ffi::S32>>());
DOVETAIL_FOR(f32, xla::ffi::F32);
DOVETAIL_FOR(f64, xla::ffi::F64);
#pragma GCC visibility pop
