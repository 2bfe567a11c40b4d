// QR and LU factorisations of real matrices by rows, most of whose work is products of matrices.
//
// Source: Golub, Van Loan, "Matrix Computations", 4th edition, 2013: 5.1.1 and 5.2.3 (Householder),
// 3.4.1 and 3.2.11 (LU with partial pivoting, by blocks). Signs, scalings and pivots are LAPACK's.
// A reflection is 1 - tau v v^T, a block of them 1 - V T V^T with an upper triangle T.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
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

// Columns whose reflections are found one after another, and of a block of reflections. Where they
// are known the last block may be larger: a few left over would take nearly as long as many.
constexpr int64_t kPanel = 16, kBlock = 48, kLastBlock = 64;
// Rows whose products are added up one by one, before they are added to those of others.
constexpr int64_t kRowsOfSum = 128;
// Multiplications for which another thread is worth its while.
constexpr int64_t kWorkPerThread = 1 << 22;
// Columns of a block of LU that one of several threads factors, and the product of the sizes from
// which there are blocks: also on one thread, where they gain nothing, for the same bits.
constexpr int64_t kLuBlock = 64, kLeastByBlocks = int64_t{1} << 24;

// Calls body(begin, size) for parts of columns, on several threads where the work is worth it.
template <typename Body>
void ForColumns(ffi::ThreadPool* pool, int64_t columns, int64_t work, const Body& body) {
  if (columns == 0) return;
  const int64_t panels = (columns + kPanel - 1) / kPanel, worth = work / kWorkPerThread;
  const int64_t parts =
      pool == nullptr ? 1 : std::clamp<int64_t>(std::min(worth, ThreadsOf(*pool)), 1, panels);
  const auto part = [&](int64_t number) {
    const int64_t begin = panels * number / parts * kPanel;
    body(begin, std::min(columns, panels * (number + 1) / parts * kPanel) - begin);
  };
  if (parts == 1) return part(0);
  ParallelFor(*pool, parts, part);
}

// Of rows of a panel, from `row` on, subtracts the products of element k with `factors`, if asked
// to; and adds to `sums` the products of element `next`. Vectors before kFirst are left alone.
template <typename T, bool kSubtracts, int kFirst>
DOVETAIL_WIDE void Pass(int64_t rows, T* row, int64_t k, const T* factors, int64_t next, T* sums) {
  using Vector = typename Lanes<T>::Type;
  constexpr int kCount = Lanes<T>::kCount, kVectors = kPanel / kCount;
  constexpr int kTogether = kVectors < 4 ? 4 : 2;
  Vector factor[kVectors];
#pragma GCC unroll 8
  for (int v = kFirst; v < kVectors; ++v) factor[v] = Load(factors + v * kCount);
  for (int64_t end; rows > 0; rows -= end) {
    end = std::min(rows, 2 * kRowsOfSum);
    Vector totals[kTogether][kVectors] = {};
    const auto add = [&](Vector* total) __attribute__((always_inline)) {
      T other = row[next];
      const T value = row[k];
      if (kSubtracts) other -= value * factors[next];
#pragma GCC unroll 8
      for (int v = kFirst; v < kVectors; ++v) {
        Vector x = Load(row + v * kCount);
        if (kSubtracts) {
          x -= value * factor[v];
          Store(row + v * kCount, x);
        }
        total[v] += other * x;
      }
      row += kPanel;
    };
    int64_t i = 0;
    for (; i + kTogether <= end; i += kTogether) {
#pragma GCC unroll 4
      for (int group = 0; group < kTogether; ++group) add(totals[group]);
    }
    for (; i < end; ++i) add(totals[0]);
#pragma GCC unroll 8
    for (int v = kFirst; v < kVectors; ++v) {
      Vector total = totals[0][v];
#pragma GCC unroll 4
      for (int group = 1; group < kTogether; ++group) total += totals[group][v];
      Store(sums + v * kCount, Load(sums + v * kCount) + total);
    }
  }
}

// The same for the vectors from that of `next` on, the first of which is kFirst or later.
template <typename T, bool kSubtracts, int kFirst = 0>
void PassFrom(int64_t rows, T* row, int64_t k, const T* factors, int64_t next, T* sums) {
  constexpr int kCount = Lanes<T>::kCount;
  if constexpr (kFirst + 1 < kPanel / kCount) {
    if (next >= (kFirst + 1) * kCount) {
      return PassFrom<T, kSubtracts, kFirst + 1>(rows, row, k, factors, next, sums);
    }
  }
  Pass<T, kSubtracts, kFirst>(rows, row, k, factors, next, sums);
}

// Overwrites `count` columns of a panel with R and the reflections below it. One pass over the rows
// subtracts what one reflection takes from them, and adds up what the next one needs.
template <typename T>
void FactorPanel(int64_t rows, int64_t count, T* panel, T* taus) {
  // Sums of squares beyond which they may have lost digits.
  constexpr T kLeast = sizeof(T) == 4 ? T(1e-28) : T(1e-280);
  constexpr T kMost = sizeof(T) == 4 ? T(1e30) : T(1e280);
  alignas(64) T sums[kPanel] = {}, factors[kPanel] = {}, inverses[kPanel];
  std::fill_n(inverses, kPanel, T(1));
  PassFrom<T, false>(rows - 1, panel + kPanel, 0, factors, 0, sums);
  for (int64_t k = 0; k < count; ++k) {
    T* const head = panel + k * (kPanel + 1) - k;
    T* const tail = head + kPanel;
    const int64_t below = rows - k - 1;
    const T alpha = head[k];
    const T square = alpha * alpha + sums[k];
    T scale = 0, beta = alpha;
    if (sums[k] > kLeast && square < kMost) {
      beta = -std::copysign(std::sqrt(square), alpha);
      scale = alpha - beta;
      inverses[k] = 1 / scale;
    } else if (const T rest = Norm(below, tail + k, kPanel); rest != 0) {
      const T pair[2] = {alpha, rest};
      beta = -std::copysign(Norm(2, pair, 1), alpha);
      scale = alpha - beta;
      for (int64_t i = 0; i < below; ++i) tail[i * kPanel + k] /= scale;
      std::fill_n(sums, kPanel, T(0));
      PassFrom<T, false>(below, tail, k, factors, k, sums);
    }
    const T tau = scale == 0 ? T(0) : -scale / beta, inverse = inverses[k];
    taus[k] = tau;
    for (int64_t j = 0; j < kPanel; ++j) {
      const T product = j > k ? tau * (head[j] + inverse * sums[j]) : T(0);
      head[j] -= product;
      factors[j] = product * inverse;
      sums[j] = 0;
    }
    head[k] = beta;
    if (k + 1 == count || below == 0) continue;
    T none[kPanel] = {};
    PassFrom<T, true>(1, tail, k, factors, k + 1, none);
    PassFrom<T, true>(below - 1, tail + kPanel, k, factors, k + 1, sums);
  }
  for (int64_t i = 1; i < count; ++i) {
    for (int64_t j = 0; j < i; ++j) panel[i * kPanel + j] *= inverses[j];
  }
  for (int64_t i = count; i < rows; ++i) {
    for (int64_t j = 0; j < kPanel; ++j) panel[i * kPanel + j] *= inverses[j];
  }
}

// Reflections of a block, of which the first has its 1 in the first row.
template <typename T>
struct Reflections {
  const T* v;  // Rows, with ones on the diagonal, and zeros above it.
  int64_t rows, count, stride;
};

// V^T c for `columns` columns of c, which has the rows of V.
template <typename T>
void MultiplyTransposed(const Reflections<T>& by, const T* c, int64_t columns, int64_t stride,
                        T* to, int64_t to_stride) {
  for (int64_t i = 0; i < by.rows; i += kRowsOfSum) {
    MultiplyMatrices<T>({by.v + i * by.stride, c + i * stride, to, by.count, columns,
                         std::min(kRowsOfSum, by.rows - i), 1, by.stride, stride, 1, to_stride,
                         i > 0 ? Into::kAdd : Into::kNothing});
  }
}

// -T^T of reflections, a lower triangle whose rows are as far apart as theirs: more rows of it, if
// those before `first` are known.
template <typename T>
void ExtendTriangle(const Reflections<T>& of, int64_t first, const T* taus, T* to) {
  T products[kPanel * kLastBlock];
  for (int64_t last; first < of.count; first = last) {
    last = std::min(first + kPanel, of.count);
    const T* v = of.v + first * of.stride;  // What is above is zero.
    MultiplyTransposed<T>({v + first, of.rows - first, last - first, of.stride}, v, last, of.stride,
                          products, last);
    for (int64_t k = first; k < last; ++k) {
      T* row = to + k * of.stride;
      std::fill_n(row, of.stride, T(0));
      for (int64_t i = 0; i < k; ++i) {
        const T factor = -taus[k] * products[(k - first) * last + i];
        for (int64_t j = 0; j <= i; ++j) row[j] += factor * to[i * of.stride + j];
      }
      row[k] = -taus[k];
    }
  }
}

// Multiplies columns of c with the product of reflections, from the left, or with its transpose.
// Of c the first `units` columns are those of an identity, and rows from `filled` on are zeros.
template <typename T>
void Reflect(ffi::ThreadPool* pool, const Reflections<T>& by, const T* triangle, bool transposed,
             T* c, int64_t columns, int64_t stride, int64_t units = 0,
             int64_t filled = std::numeric_limits<int64_t>::max()) {
  if (filled <= 0) return;
  const int64_t count = by.count;
  const Reflections<T> first{by.v, std::min(by.rows, filled), count, by.stride};
  ForColumns(pool, columns, by.rows * columns * count, [&](int64_t begin, int64_t size) {
    const int64_t known = std::clamp<int64_t>(units - begin, 0, size);
    Memory<T> memory(2 * count * size);
    T *products = memory.get(), *factors = products + count * size, *to = c + begin;
    if (known < size) {
      MultiplyTransposed(first, to + known, size - known, stride, products + known, size);
    }
    for (int64_t i = 0; i < count && known > 0; ++i) {
      for (int64_t j = 0; j < known; ++j) {
        products[i * size + j] = by.v[(begin + j) * by.stride + i];
      }
    }
    MultiplyMatrices<T>({triangle, products, factors, count, size, count,
                         transposed ? by.stride : 1, transposed ? 1 : by.stride, size, 1, size});
    MultiplyMatrices<T>({by.v, factors, to, by.rows, size, count, by.stride, 1, size, 1, stride,
                         Into::kAdd});
  });
}

// Copies up to kPanel columns.
template <typename T>
void CopyColumns(int64_t rows, int64_t columns, const T* from, int64_t from_step, T* to,
                 int64_t to_step) {
  for (int64_t i = 0; i < rows; ++i, from += from_step, to += to_step) {
    if (columns == kPanel) {  // No call.
      std::memcpy(to, from, kPanel * sizeof(T));
    } else {
      std::copy_n(from, columns, to);
    }
  }
}

// Copies reflections that are below the diagonal of a matrix.
template <typename T>
void CopyReflections(int64_t rows, int64_t count, const T* from, int64_t from_step, T* to,
                     int64_t to_step) {
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(from + i * from_step, i, to + i * to_step);
    to[i * to_step + i] = 1;
    std::fill_n(to + i * to_step + i + 1, count - i - 1, T(0));
  }
  for (int64_t j = 0; j < count; j += kPanel) {
    CopyColumns(rows - count, std::min(kPanel, count - j), from + count * from_step + j, from_step,
                to + count * to_step + j, to_step);
  }
}

// Overwrites a matrix of m rows and n columns with R, and the reflections below it.
template <typename T>
void Factor(ffi::ThreadPool* pool, int64_t m, int64_t n, T* a, T* taus) {
  const int64_t least = std::min(m, n);
  const int64_t most = std::min(kBlock, least);
  Memory<T> panel(m * kPanel), reflections(m * most), triangle(most * most);
  for (int64_t j = 0; j < least; j += kBlock) {
    const int64_t size = std::min(kBlock, least - j);
    T* const block = a + j * (n + 1);
    for (int64_t k = 0; k < size; k += kPanel) {
      EndIfInterrupted();
      const int64_t rows = m - j - k, count = std::min(kPanel, size - k);
      T* const at = block + k * (n + 1);
      if (count < kPanel) std::fill_n(panel.get(), rows * kPanel, T(0));
      CopyColumns(rows, count, at, n, panel.get(), kPanel);
      FactorPanel(rows, count, panel.get(), taus + j + k);
      CopyColumns(rows, count, panel.get(), kPanel, at, n);
      T* const v = reflections.get() + k * (size + 1);
      for (int64_t i = 0; i < k; ++i) std::fill_n(v - (i + 1) * size, count, T(0));
      CopyReflections(rows, count, panel.get(), kPanel, v, size);
      if (j + k + count == n) return;
      const Reflections<T> found{reflections.get(), m - j, k + count, size};
      ExtendTriangle(found, k, taus + j, triangle.get());
      Reflect(pool, {v, rows, count, size}, triangle.get() + k * (size + 1), true, at + count,
              size - k - count, n);
    }
    Reflect(pool, {reflections.get(), m - j, size, size}, triangle.get(), true, block + size,
            n - j - size, n);
  }
}

// Calls body(reflections, -T^T, their number) for blocks of the reflections below the diagonal of a
// matrix, from the first or from the last.
template <typename T, typename Body>
void ForBlocks(int64_t m, int64_t n, int64_t count, const T* a, const T* taus, bool forward,
               const Body& body) {
  const int64_t most = std::min(kLastBlock, count);
  const int64_t blocks = 1 + (std::max<int64_t>(0, count - kLastBlock) + kBlock - 1) / kBlock;
  Memory<T> reflections(m * most), triangle(most * most);
  for (int64_t step = 0; step < blocks; ++step) {
    EndIfInterrupted();
    const int64_t block = forward ? step : blocks - 1 - step, j = block * kBlock;
    const int64_t size = block + 1 < blocks ? kBlock : count - j;
    CopyReflections(m - j, size, a + j * (n + 1), n, reflections.get(), size);
    const Reflections<T> found{reflections.get(), m - j, size, size};
    ExtendTriangle(found, 0, taus + j, triangle.get());
    body(found, triangle.get(), j);
  }
}

// Overwrites `count` reflections with the first columns of their product.
template <typename T>
void Product(ffi::ThreadPool* pool, int64_t m, int64_t n, int64_t count, T* a, const T* taus) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = count; j < n; ++j) a[i * n + j] = i == j ? T(1) : T(0);
  }
  ForBlocks(m, n, count, a, taus, false,
            [&](const Reflections<T>& by, const T* triangle, int64_t first) {
              for (int64_t i = 0; i < m; ++i) {
                std::fill_n(a + i * n + first, by.count, T(0));
                const int64_t j = i - first;
                if (j >= 0 && j < by.count) a[i * n + i] = 1;
              }
              Reflect(pool, by, triangle, false, a + first * (n + 1), n - first, n,
                      by.count);
            });
}

// Overwrites up to kPanel columns with their factors; `pivots` are rows of the panel. One pass over
// the rows eliminates a column and looks for the next pivot.
template <typename T>
DOVETAIL_WIDE void FactorPanel(int64_t rows, int64_t count, T* panel, int32_t* pivots) {
  using Vector = typename Lanes<T>::Type;
  constexpr int kCount = Lanes<T>::kCount, kVectors = kPanel / kCount;
  const auto size_of = [=](int64_t i, int64_t k) { return std::abs(panel[i * kPanel + k]); };
  int64_t largest = 0;
  T size = -1;  // NaN is no pivot where there is a number.
  for (int64_t i = 0; i < rows; ++i) {
    const T other = size_of(i, 0);
    if (other > size) size = other, largest = i;
  }
  for (int64_t k = 0; k < std::min(rows, count); ++k) {
    T* const head = panel + k * kPanel;
    pivots[k] = static_cast<int32_t>(largest);
    if (largest != k) std::swap_ranges(head, head + kPanel, panel + largest * kPanel);
    const T pivot = head[k];
    const int64_t next = std::min(k + 1, kPanel - 1);
    largest = k + 1;
    size = -1;
    if (pivot == 0) {
      for (int64_t i = k + 1; i < rows; ++i) {
        const T other = size_of(i, next);
        if (other > size) size = other, largest = i;
      }
      continue;
    }
    alignas(64) T factors[kPanel] = {};
    std::copy(head + k + 1, head + kPanel, factors + k + 1);
    Vector factor[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) factor[v] = Load(factors + v * kCount);
    const bool tiny = std::abs(pivot) < std::numeric_limits<T>::min();
    const T inverse = tiny ? T(1) : 1 / pivot;
    for (int64_t i = k + 1; i < rows; ++i) {
      T* const row = panel + i * kPanel;
      const T value = tiny ? row[k] / pivot : row[k] * inverse;
      const T other = std::abs(row[next] - value * factors[next]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        Store(row + v * kCount, Load(row + v * kCount) - value * factor[v]);
      }
      row[k] = value;
      if (other > size) size = other, largest = i;
    }
  }
}

// Exchanges rows as pivots say.
template <typename T>
void ExchangeRows(int64_t count, const int32_t* pivots, T* a, int64_t columns, int64_t stride) {
  for (int64_t k = 0; k < count && columns > 0; ++k) {
    if (pivots[k] != k) {
      T* const row = a + k * stride;
      std::swap_ranges(row, row + columns, a + pivots[k] * stride);
    }
  }
}

// Eliminates the first `count` columns of a matrix, which have been factored, from `size` others.
template <typename T>
void EliminateFrom(int64_t rows, int64_t count, const T* a, int64_t stride, const int32_t* pivots,
                   T* to, int64_t size, int64_t to_stride) {
  ExchangeRows(count, pivots, to, size, to_stride);
  SolveTriangle(count, size, a, stride, int64_t{1}, true, true, to, to_stride);
  if (rows == count) return;
  MultiplyMatrices<T>({a + count * stride, to, to + count * to_stride, rows - count, size, count,
                       stride, 1, to_stride, 1, to_stride, Into::kSubtract});
}

// The same from those behind them, on several threads where there is a pool.
template <typename T>
void Eliminate(ffi::ThreadPool* pool, int64_t rows, int64_t count, const T* a, int64_t stride,
               const int32_t* pivots, T* to, int64_t columns) {
  ForColumns(pool, columns, rows * columns * count, [&](int64_t begin, int64_t size) {
    EliminateFrom(rows, count, a, stride, pivots, to + begin, size, stride);
  });
}

// Overwrites columns of a matrix with their factors, on this thread. `panel` is for kPanel columns.
template <typename T>
void FactorLu(int64_t rows, int64_t columns, T* a, int64_t stride, int32_t* pivots, T* panel) {
  if (columns <= kPanel) {
    EndIfInterrupted();
    if (columns < kPanel) std::fill_n(panel, rows * kPanel, T(0));
    CopyColumns(rows, columns, a, stride, panel, kPanel);
    FactorPanel(rows, columns, panel, pivots);
    return CopyColumns(rows, columns, panel, kPanel, a, stride);
  }
  const int64_t left = (columns / 2 + kPanel - 1) / kPanel * kPanel, right = columns - left;
  FactorLu(rows, left, a, stride, pivots, panel);
  EliminateFrom(rows, left, a, stride, pivots, a + left, right, stride);
  FactorLu(rows - left, right, a + left * (stride + 1), stride, pivots + left, panel);
  ExchangeRows(right, pivots + left, a + left * stride, left, stride);
  for (int64_t k = left; k < columns; ++k) pivots[k] += static_cast<int32_t>(left);
}

// LU of one matrix by several threads, of which none is waited for before it has come. Each takes the
// first block of columns for which something can be done: from which known blocks can be eliminated,
// or which can be factored. So one is factored while others are eliminated from what is behind it.
// Each block has memory of its own: threads would fetch lines that two of them share from each
// other, row by row.
template <typename T>
class LuByBlocks {
 public:
  LuByBlocks(int64_t rows, int64_t columns, const T* from, T* to, int32_t* pivots)
      : rows_(rows),
        columns_(columns),
        least_(std::min(rows, columns)),
        stride_(kLuBlock + 64 / sizeof(T)),  // Not a power of two.
        factored_(PartsOfAtMost(least_, kLuBlock)),
        from_(from),
        to_(to),
        pivots_(pivots),
        blocks_(factored_ + PartsOfAtMost(columns - least_, kLuBlock)),
        unfinished_(blocks_.size()),
        memory_(int64_t(blocks_.size()) * rows * stride_) {}

  // What each thread does until nothing is left for it.
  void Work() {
    Memory<T> panel(rows_ * kPanel);
    const int64_t number = come_.fetch_add(1);
    for (bool is_patient = true;;) {
      const Task task = Next(number, is_patient);
      if (task.is_none) return;
      if (task.block < 0) {  // Others do what the rest needs.
        is_patient = LookFor([&] { return changes_.load() != task.changes; });
        continue;
      }
      is_patient = true;
      try {
        for (int64_t step = task.begin; step < task.end; ++step) {
          EndIfInterrupted();
          Do(task.block, step, panel.get());
        }
      } catch (...) {
        is_over_ = true;
        ++changes_;
        throw;
      }
      NoteDone(task);
    }
  }

 private:
  // The first steps eliminate the blocks before, then a block is factored unless it is beyond the
  // last row, and at last the result is written.
  struct Task {
    int64_t block, begin, end, changes;
    bool is_none;
  };
  struct Block {
    int64_t done = 0;
    bool is_taken = false;
  };

  int64_t First(int64_t block) const {
    return block <= factored_ ? std::min(block * kLuBlock, least_)
                              : std::min(least_ + (block - factored_) * kLuBlock, columns_);
  }
  int64_t Steps(int64_t block) const { return std::min(block + 1, factored_) + 1; }
  T* At(int64_t block, int64_t row) const {
    return memory_.get() + (block * rows_ + row) * stride_;
  }

  // A block stays with one of the threads that have come, whose caches have it.
  Task Next(int64_t number, bool is_patient) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (is_over_ || unfinished_ == 0) return {-1, 0, 0, 0, true};
    const int64_t come = come_;
    for (int64_t j = 0; j < int64_t(blocks_.size()); ++j) {
      Block& block = blocks_[j];
      if (block.is_taken || (is_patient && j % come != number)) continue;
      int64_t end = std::min(known_, j);
      if (block.done == j && j < factored_) end = j + 1;
      if (block.done == Steps(j) - 1 && known_ == factored_) end = Steps(j);
      if (block.done >= end) continue;
      block.is_taken = true;
      return {j, block.done, end, 0, false};
    }
    return {-1, 0, 0, changes_.load(), false};
  }

  void Do(int64_t block, int64_t step, T* panel) {
    const int64_t first = First(block), size = First(block + 1) - first;
    if (step == 0) {
      for (int64_t i = 0; i < rows_; ++i) {
        std::copy_n(from_ + i * columns_ + first, size, At(block, i));
      }
    }
    if (step == Steps(block) - 1) return Write(block, first, size);
    const int64_t row = First(step), rows = rows_ - row;
    if (step == block) {
      return FactorLu(rows, size, At(block, row), stride_, pivots_ + row, panel);
    }
    EliminateFrom(rows, First(step + 1) - row, At(step, row), stride_, pivots_ + row,
                  At(block, row), size, stride_);
  }

  // With rows in the order that later blocks have given them.
  void Write(int64_t block, int64_t first, int64_t size) {
    std::vector<int32_t> order(rows_);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t later = block + 1; later < factored_; ++later) {
      const int64_t begin = First(later);
      for (int64_t k = begin; k < First(later + 1); ++k) {
        std::swap(order[k], order[begin + pivots_[k]]);
      }
    }
    for (int64_t i = 0; i < rows_; ++i) {
      std::copy_n(At(block, order[i]), size, to_ + i * columns_ + first);
    }
  }

  void NoteDone(const Task& task) {
    std::lock_guard<std::mutex> lock(mutex_);
    const int64_t j = task.block;
    blocks_[j] = {task.end, false};
    if (task.end == j + 1 && j < factored_) known_ = task.end;
    if (task.end == Steps(j)) --unfinished_;
    ++changes_;
  }

  const int64_t rows_, columns_, least_, stride_, factored_;
  const T* const from_;
  T* const to_;
  int32_t* const pivots_;  // Of each block from its first row on.
  std::mutex mutex_;
  std::vector<Block> blocks_;
  int64_t unfinished_, known_ = 0;
  std::atomic<int64_t> come_{0}, changes_{0};
  std::atomic<bool> is_over_{false};
  const OwnMemory<T, 4> memory_;
};

// Writes the factors of a matrix of m rows and n columns.
template <typename T>
void FactorLu(ffi::ThreadPool* pool, int64_t m, int64_t n, const T* from, T* to, int32_t* pivots) {
  const int64_t least = std::min(m, n);
  if (m * n * least >= kLeastByBlocks) {
    LuByBlocks<T> blocks(m, n, from, to, pivots);
    const auto work = [&](int64_t) { blocks.Work(); };
    if (pool == nullptr) {
      work(0);
    } else {
      ParallelFor(*pool, std::min(ThreadsOf(*pool), PartsOfAtMost(n, 2 * kLuBlock)), work);
    }
    for (int64_t k = 0; k < least; ++k) pivots[k] += static_cast<int32_t>(k / kLuBlock * kLuBlock);
    return;
  }
  if (from != to) std::copy_n(from, m * n, to);
  Memory<T> panel(m * kPanel);
  FactorLu(m, least, to, n, pivots, panel.get());
  if (n > m) Eliminate(pool, m, m, to, n, pivots, to + m, n - m);
}

// Calls body(pool, number) for each of a batch, which has the pool where threads do not share the
// batch.
template <typename Body>
void ForBatch(ffi::ThreadPool& pool, int64_t batch, int64_t work, const Body& body) {
  const int64_t threads = ThreadsOf(pool);
  if (batch < 2 * threads) {
    for (int64_t b = 0; b < batch; ++b) body(&pool, b);
    return;
  }
  const int64_t worth = std::max<int64_t>(1, batch * work / kWorkPerThread);
  const int64_t parts = std::min({batch, worth, std::max<int64_t>(4 * threads, worth / 1024)});
  ParallelFor(pool, parts, [&](int64_t part) {
    for (int64_t b = batch * part / parts; b < batch * (part + 1) / parts; ++b) body(nullptr, b);
  });
}

template <ffi::DataType kType>
ffi::Error FactorAll(ffi::ThreadPool pool, ffi::Buffer<kType> x,
                     ffi::Result<ffi::Buffer<kType>> out, ffi::Result<ffi::Buffer<kType>> taus) {
  using T = ffi::NativeType<kType>;
  if (x.element_count() == 0) return ffi::Error::Success();
  const auto shape = x.dimensions();
  const int64_t m = shape[shape.size() - 2], n = shape.back(), least = std::min(m, n);
  const T* from = x.typed_data();
  T* to = out->typed_data();
  T* factors = taus->typed_data();
  ForBatch(pool, static_cast<int64_t>(x.element_count()) / (m * n), m * n * least,
           [&](ffi::ThreadPool* threads, int64_t b) {
             if (from != to) std::copy_n(from + b * m * n, m * n, to + b * m * n);
             Factor(threads, m, n, to + b * m * n, factors + b * least);
           });
  return ffi::Error::Success();
}

template <ffi::DataType kType>
ffi::Error ProductOfAll(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Buffer<kType> taus,
                        ffi::Result<ffi::Buffer<kType>> out) {
  using T = ffi::NativeType<kType>;
  if (x.element_count() == 0) return ffi::Error::Success();
  const auto shape = x.dimensions();
  const int64_t m = shape[shape.size() - 2], n = shape.back();
  const int64_t count = taus.dimensions().back();
  const T* from = x.typed_data();
  const T* factors = taus.typed_data();
  T* to = out->typed_data();
  ForBatch(pool, static_cast<int64_t>(x.element_count()) / (m * n), m * n * count,
           [&](ffi::ThreadPool* threads, int64_t b) {
             if (from != to) std::copy_n(from + b * m * n, m * n, to + b * m * n);
             Product(threads, m, n, count, to + b * m * n, factors + b * count);
           });
  return ffi::Error::Success();
}

template <ffi::DataType kType>
ffi::Error LuOfAll(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Result<ffi::Buffer<kType>> out,
                   ffi::Result<ffi::Buffer<ffi::S32>> pivots,
                   ffi::Result<ffi::Buffer<ffi::S32>> permutation) {
  using T = ffi::NativeType<kType>;
  if (x.element_count() == 0) return ffi::Error::Success();
  const auto shape = x.dimensions();
  const int64_t m = shape[shape.size() - 2], n = shape.back(), least = std::min(m, n);
  const T* from = x.typed_data();
  T* to = out->typed_data();
  ForBatch(pool, static_cast<int64_t>(x.element_count()) / (m * n), m * n * least / 2,
           [&](ffi::ThreadPool* threads, int64_t b) {
             int32_t* const rows = pivots->typed_data() + b * least;
             int32_t* const order = permutation->typed_data() + b * m;
             FactorLu(threads, m, n, from + b * m * n, to + b * m * n, rows);
             for (int64_t i = 0; i < m; ++i) order[i] = static_cast<int32_t>(i);
             for (int64_t k = 0; k < least; ++k) std::swap(order[k], order[rows[k]]);
           });
  return ffi::Error::Success();
}

// Products of all reflections, or their transposes, with the columns of other matrices, of which
// the last rows may be left out if they are zeros.
template <ffi::DataType kType>
ffi::Error ReflectAll(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Buffer<kType> taus,
                      ffi::Buffer<kType> c, ffi::Result<ffi::Buffer<kType>> out,
                      int64_t transposed) {
  using T = ffi::NativeType<kType>;
  if (c.element_count() == 0 || x.element_count() == 0) return ffi::Error::Success();
  const auto shape = x.dimensions();
  const int64_t m = shape[shape.size() - 2], n = shape.back();
  const int64_t count = taus.dimensions().back(), columns = c.dimensions().back();
  const int64_t given = c.dimensions()[shape.size() - 2] * columns;
  const T *from = c.typed_data(), *reflections = x.typed_data(), *factors = taus.typed_data();
  T* to = out->typed_data();
  ForBatch(pool, static_cast<int64_t>(x.element_count()) / (m * n), m * columns * count,
           [&](ffi::ThreadPool* threads, int64_t b) {
             T* const result = to + b * m * columns;
             if (from != to) std::copy_n(from + b * given, given, result);
             std::fill(result + given, result + m * columns, T(0));
             int64_t filled = given / columns;
             ForBlocks(m, n, count, reflections + b * m * n, factors + b * count, transposed != 0,
                       [&](const Reflections<T>& by, const T* triangle, int64_t first) {
                         Reflect(threads, by, triangle, transposed != 0, result + first * columns,
                                 columns, columns, 0, filled - first);
                         if (filled > first) filled = m;
                       });
           });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
#define DOVETAIL_FOR(SUFFIX, TYPE)                                           \
  DOVETAIL_KERNEL(dovetail_large_lu_##SUFFIX, dovetail::LuOfAll<TYPE>,       \
                  xla::ffi::Ffi::Bind()                                      \
                      .Ctx<xla::ffi::ThreadPool>()                           \
                      .Arg<xla::ffi::Buffer<TYPE>>()                         \
                      .Ret<xla::ffi::Buffer<TYPE>>()                         \
                      .Ret<xla::ffi::Buffer<xla::ffi::S32>>()                \
                      .Ret<xla::ffi::Buffer<xla::ffi::S32>>());              \
  DOVETAIL_KERNEL(dovetail_large_qr_##SUFFIX, dovetail::FactorAll<TYPE>,     \
                  xla::ffi::Ffi::Bind()                                      \
                      .Ctx<xla::ffi::ThreadPool>()                           \
                      .Arg<xla::ffi::Buffer<TYPE>>()                         \
                      .Ret<xla::ffi::Buffer<TYPE>>()                         \
                      .Ret<xla::ffi::Buffer<TYPE>>());                       \
  DOVETAIL_KERNEL(dovetail_large_reflections_##SUFFIX,                       \
                  dovetail::ProductOfAll<TYPE>,                              \
                  xla::ffi::Ffi::Bind()                                      \
                      .Ctx<xla::ffi::ThreadPool>()                           \
                      .Arg<xla::ffi::Buffer<TYPE>>()                         \
                      .Arg<xla::ffi::Buffer<TYPE>>()                         \
                      .Ret<xla::ffi::Buffer<TYPE>>());                       \
  DOVETAIL_KERNEL(dovetail_reflect_##SUFFIX, dovetail::ReflectAll<TYPE>,     \
                  xla::ffi::Ffi::Bind()                                      \
                      .Ctx<xla::ffi::ThreadPool>()                           \
                      .Arg<xla::ffi::Buffer<TYPE>>()                         \
                      .Arg<xla::ffi::Buffer<TYPE>>()                         \
                      .Arg<xla::ffi::Buffer<TYPE>>()                         \
                      .Ret<xla::ffi::Buffer<TYPE>>()                         \
                      .Attr<int64_t>("transposed"))

DOVETAIL_FOR(f32, xla::ffi::F32);
DOVETAIL_FOR(f64, xla::ffi::F64);
#pragma GCC visibility pop
