// Sums of squared or absolute differences of all pairs of rows of two matrices.
//
// XLA computes such a sum of what it broadcasts in a scalar loop along the rows. Here the lanes of
// vectors are rows of the second matrix, a few vectors of which are turned at a time, and tiles of
// the result stay in registers. Roots and exponentials of the sums are taken before they are
// written: a loop of XLA's takes longer to compile than all the rest.
//
// Squares of long rows are |x|^2 + |y|^2 - 2 x y, which is half of the arithmetic. Where less than
// a third of |x|^2 + |y|^2 is left, digits are lost, and differences are squared; each pair decides
// for itself, so that it has the same bits wherever it lies.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "exponentials.h"
#include "kernel.h"
#include "memory.h"
#include "parallel.h"
#include "roots.h"
#include "tiles.h"
#include "transposition.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// What is computed of a sum; `kExponential` of its product with a number, of float32 alone.
enum Function : int64_t { kSum, kRoot, kExponential };

constexpr int kRows = kManyRegisters ? 6 : 4;
constexpr int kVectors = kManyRegisters ? 4 : 2;
template <typename T>
constexpr int kColumns = kVectors * kLanes<T>;

// The least numbers of a row whose squares are found by products, and rows of the two matrices.
constexpr int64_t kLeastByProducts = 32, kLeastRowsByProducts = 64;
// How many pairs say whether products would do for nearly all.
constexpr int64_t kSamples = 256;
// Rows of the first matrix for which columns are turned once.
constexpr int64_t kRowsOfTask = 1000;
// Rows that are mirrored at once.
constexpr int64_t kMirrored = 8 * kRows;

// What is added up of two numbers.
enum class Term { kSquare, kSize, kProduct };

// Terms that are added up one by one; the sums are added up in pairs. Those of products, of either
// sign, are smaller.
template <Term kTerm>
constexpr int64_t kSummed = kTerm == Term::kProduct ? 64 : 32;

template <typename T>
using Vector __attribute__((vector_size(kVectorBytes))) = T;

// total[r][j] += sum over k of the terms of rows[r][k] and columns[k][j].
template <typename T, Term kTerm>
inline __attribute__((always_inline)) void AddTerms(const T* const* rows, int64_t size,
                                                    const T* columns,
                                                    Vector<T> (&total)[kRows][kVectors]) {
  for (int64_t k = 0; k < size; ++k, columns += kColumns<T>) {
    Vector<T> column[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(&column[v], columns + v * kLanes<T>, sizeof(column[v]));
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const T value = rows[r][k];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        if constexpr (kTerm == Term::kProduct) {
          total[r][v] += value * column[v];
          continue;
        }
        const Vector<T> difference = value - column[v];
        if constexpr (kTerm == Term::kSquare) {
          total[r][v] += difference * difference;
        } else {
          total[r][v] += difference < 0 ? -difference : difference;
        }
      }
    }
  }
}

// sums[r][j] (+)= sum over k of the terms of rows[r][k] and columns[k][j].
template <typename T, Term kTerm, bool kAdd = false>
DOVETAIL_WIDE void SumTerms(const T* const* rows, int64_t size, const T* columns, T* sums,
                            int64_t stride) {
  Vector<T> total[kRows][kVectors] = {};
  AddTerms<T, kTerm>(rows, size, columns, total);
  StoreTile(total, sums, stride, kAdd);
}

// The same for any size.
template <typename T, Term kTerm>
void SumInPairs(const T* const* rows, int64_t size, const T* columns, T* sums, int64_t stride) {
  if (size <= kSummed<kTerm>) return SumTerms<T, kTerm>(rows, size, columns, sums, stride);
  const int64_t half = size / 2;
  const T* others[kRows];
  for (int r = 0; r < kRows; ++r) others[r] = rows[r] + half;
  SumInPairs<T, kTerm>(rows, half, columns, sums, stride);
  columns += half * kColumns<T>;
  if (size - half <= kSummed<kTerm>) {
    return SumTerms<T, kTerm, true>(others, size - half, columns, sums, stride);
  }
  T rest[kRows * kColumns<T>];
  SumInPairs<T, kTerm>(others, size - half, columns, rest, kColumns<T>);
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kColumns<T>; ++j) sums[r * stride + j] += rest[r * kColumns<T> + j];
  }
}

template <typename T>
void Roots(T* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = std::sqrt(x[i]);
}

#if defined(__AVX512F__)
constexpr bool kRootsFromEstimates = true;

void Roots(float* x, int64_t count) {
  for (int64_t i = 0; i < count; i += kColumns<float>) {
    __m512 value[kVectors];
    __mmask16 usual = 0xFFFF;
    for (int v = 0; v < kVectors; ++v) {
      value[v] = _mm512_loadu_ps(x + i + v * kLanes<float>);
      usual = _mm512_mask_cmp_ps_mask(usual, value[v], _mm512_set1_ps(0x1p-80f), _CMP_GE_OQ);
      usual = _mm512_mask_cmp_ps_mask(usual, value[v], _mm512_set1_ps(0x1p120f), _CMP_LE_OQ);
    }
    for (int v = 0; v < kVectors; ++v) {
      const __m512 root = usual == 0xFFFF ? RootFromEstimate(value[v]) : _mm512_sqrt_ps(value[v]);
      _mm512_storeu_ps(x + i + v * kLanes<float>, root);
    }
  }
}

void Roots(double* x, int64_t count) {
  for (int64_t i = 0; i < count; i += kColumns<double>) {
    __m512d value[kVectors];
    __mmask8 usual = 0xFF;
    for (int v = 0; v < kVectors; ++v) {
      value[v] = _mm512_loadu_pd(x + i + v * kLanes<double>);
      usual = _mm512_mask_cmp_pd_mask(usual, value[v], _mm512_set1_pd(0x1p-800), _CMP_GE_OQ);
      usual = _mm512_mask_cmp_pd_mask(usual, value[v], _mm512_set1_pd(0x1p1000), _CMP_LE_OQ);
    }
    for (int v = 0; v < kVectors; ++v) {
      const __m512d root = usual == 0xFF ? RootFromEstimate(value[v]) : _mm512_sqrt_pd(value[v]);
      _mm512_storeu_pd(x + i + v * kLanes<double>, root);
    }
  }
}
#else
constexpr bool kRootsFromEstimates = false;
#endif

template <typename T>
void Apply(int64_t function, T factor, T* sums, int64_t count) {
  if (function == kRoot) Roots(sums, count);
  if constexpr (std::is_same_v<T, float>) {
    if (function == kExponential) Exponentiate(factor, sums, count);
  }
}

// |row|^2, or NaN where sums and products of such might overflow.
template <typename T>
T SquareOf(const T* row, int64_t size) {
  constexpr int kLane = 16;
  double lanes[kLane] = {};
  int64_t k = 0;
  for (; k + kLane <= size; k += kLane) {
    for (int lane = 0; lane < kLane; ++lane) lanes[lane] += double{row[k + lane]} * row[k + lane];
  }
  for (; k < size; ++k) lanes[k % kLane] += double{row[k]} * row[k];
  for (int half = kLane / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0] < std::numeric_limits<T>::max() / 16 ? T(lanes[0])
                                                       : std::numeric_limits<T>::quiet_NaN();
}

// Whether so much is left of the squares of two rows that their products have said enough.
template <typename T, typename Number, typename Other>
inline __attribute__((always_inline)) auto IsEnough(const Number& left, const Other& squares) {
  // What is lost below the least numbers is small beside this.
  constexpr T kTiny = sizeof(T) == 4 ? T(0x1p-80) : T(0x1p-800);
  return squares <= 3 * left - kTiny;
}

// Squares of differences of a tile from products, or NaN where differences are to be squared; and
// their roots, if asked for. Returns whether any are NaN.
template <typename T, bool kRoots>
DOVETAIL_WIDE bool TileByProducts(const T* const* rows, int64_t size, const T* columns,
                                  const T* row_squares, const T* column_squares, T* to,
                                  int64_t stride) {
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  const int64_t last = std::min(size, kSummed<Term::kProduct>), before = size - last;
  T sums[kRows * kColumns<T>];
  if (before > 0) SumInPairs<T, Term::kProduct>(rows, before, columns, sums, kColumns<T>);
  const T* rest[kRows];
  for (int r = 0; r < kRows; ++r) rest[r] = rows[r] + before;
  Vector<T> total[kRows][kVectors] = {};
  AddTerms<T, Term::kProduct>(rest, last, columns + before * kColumns<T>, total);
  if (before > 0) AddTile(total, sums, kColumns<T>);
  Vector<T> squares[kVectors], all = {};
  std::memcpy(squares, column_squares, sizeof(squares));
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Vector<T> both = row_squares[r] + squares[v], found = both - 2 * total[r][v];
      total[r][v] = IsEnough<T>(found, both) ? found : kNan - Vector<T>{};
      all += total[r][v];
      if constexpr (kRoots) total[r][v] = RootFromEstimate(total[r][v]);
    }
  }
  StoreTile(total, to, stride, false);
  T sum = 0;
  for (int lane = 0; lane < kLanes<T>; ++lane) sum += all[lane];
  return std::isnan(sum);
}

// A matrix whose rows are rows of the result, and the squares of rows of both, for products.
template <typename T>
struct Operands {
  const T* x;
  int64_t count, size;
  const T* row_squares = nullptr;
  const T* column_squares = nullptr;
};

// The results of a tile.
template <typename T, Term kTerm>
void ResultTile(const Operands<T>& given, int64_t row, const T* turned, T* to, int64_t stride,
                int64_t function, T factor) {
  const T* rows[kRows];  // The last row stands in for those beyond.
  for (int r = 0; r < kRows; ++r) {
    rows[r] = given.x + std::min(row + r, given.count - 1) * given.size;
  }
  const auto apply = [=](T* sums, int64_t stride) {
    for (int r = 0; r < kRows; ++r) Apply(function, factor, sums + r * stride, kColumns<T>);
  };
  if (given.row_squares == nullptr) {
    SumInPairs<T, kTerm>(rows, given.size, turned, to, stride);
    return apply(to, stride);
  }
  T squares[kRows];
  for (int r = 0; r < kRows; ++r) {
    squares[r] = given.row_squares[std::min(row + r, given.count - 1)];
  }
  const bool roots = kRootsFromEstimates && function == kRoot;
  const auto tile = roots ? TileByProducts<T, kRootsFromEstimates> : TileByProducts<T, false>;
  const bool any = tile(rows, given.size, turned, squares, given.column_squares, to, stride);
  if (!roots) apply(to, stride);
  if (!any) return;
  T differences[kRows * kColumns<T>];
  SumInPairs<T, kTerm>(rows, given.size, turned, differences, kColumns<T>);
  apply(differences, kColumns<T>);
  // Of a loop over numbers GCC 12 made vectors that lost some of them with AVX2.
  for (int r = 0; r < kRows; ++r, to += stride) {
    for (int j = 0; j < kColumns<T>; j += kLanes<T>) {
      Vector<T> result, other;
      std::memcpy(&result, to + j, sizeof(result));
      std::memcpy(&other, differences + r * kColumns<T> + j, sizeof(other));
      result = result == result ? result : other;
      std::memcpy(to + j, &result, sizeof(result));
    }
  }
}

// The results of some rows of x with up to kColumns rows of y, whose elements lie in `turned`.
template <typename T, Term kTerm>
void Rows(const Operands<T>& given, const T* turned, T* to, int64_t columns, int64_t stride,
          int64_t function, T factor) {
  T results[kRows * kColumns<T>];
  for (int64_t i = 0; i < given.count; i += kRows, to += kRows * stride) {
    if (columns == kColumns<T> && i + kRows <= given.count) {
      ResultTile<T, kTerm>(given, i, turned, to, stride, function, factor);
      continue;
    }
    ResultTile<T, kTerm>(given, i, turned, results, kColumns<T>, function, factor);
    for (int64_t r = 0; r < std::min<int64_t>(kRows, given.count - i); ++r) {
      std::memcpy(to + r * stride, results + r * kColumns<T>, columns * sizeof(T));
    }
  }
}

// Whether products do for all pairs that are looked at, from the rows' squares.
template <typename T>
bool ProductsDo(const T* x, const T* y, const T* x_squares, const T* y_squares, int64_t batch,
                int64_t rows, int64_t columns, int64_t size) {
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    const int64_t matrix = batch * sample / kSamples;
    const int64_t i = 31 * sample % rows, j = (37 * sample + columns / 2) % columns;
    if (i == j) continue;  // Perhaps the same row.
    const int64_t row = matrix * rows + i, column = matrix * columns + j;
    T products = 0;
    for (int64_t k = 0; k < size; ++k) products += x[row * size + k] * y[column * size + k];
    const T both = x_squares[row] + y_squares[column];
    if (!IsEnough<T>(both - 2 * products, both)) return false;
  }
  return true;
}

template <typename T>
void DistancesOf(ffi::ThreadPool& pool, const T* x, const T* y, T* to, int64_t batch, int64_t rows,
                 int64_t columns, int64_t size, bool squared, int64_t function, double factor) {
  const int64_t across = (columns + kColumns<T> - 1) / kColumns<T>;
  const int64_t down = (rows + kRowsOfTask - 1) / kRowsOfTask;
  const int64_t tasks = batch * across * down;
  // Of the pairs of rows of one matrix half is computed.
  const bool mirrored = x == y && rows == columns;
  const bool by_products = squared && size >= kLeastByProducts &&
                           std::min(rows, columns) >= kLeastRowsByProducts;
  const OwnMemory<T, 1> squares(by_products ? batch * (rows + columns) : 0);
  const T *x_squares = nullptr, *y_squares = squares.get() + batch * rows;
  if (by_products) {
    const auto square = [=](const T* from, int64_t count, T* to) {
      for (int64_t i = 0; i < count; ++i) to[i] = SquareOf(from + i * size, size);
    };
    square(x, batch * rows, squares.get());
    square(y, batch * columns, squares.get() + batch * rows);
    if (ProductsDo(x, y, squares.get(), y_squares, batch, rows, columns, size)) {
      x_squares = squares.get();
    }
  }
  const auto task = [&](int64_t index) {
    index = tasks - 1 - index;  // The long ones first, if they are not as long.
    const int64_t matrix = index / (across * down);
    const int64_t column = index / down % across * kColumns<T>;
    const int64_t row = index % down * kRowsOfTask;
    const int64_t count = std::min<int64_t>(kColumns<T>, columns - column);
    const int64_t end = std::min({rows, row + kRowsOfTask, mirrored ? column + count : rows});
    if (row >= end) return;
    const OwnMemory<T> turned(size * kColumns<T>);
    if (count < kColumns<T>) std::fill_n(turned.get(), size * kColumns<T>, T(0));
    const T* from = y + (matrix * columns + column) * size;
    Transpose(from, size, count, size, turned.get(), kColumns<T>);
    T column_squares[kColumns<T>] = {};
    if (x_squares != nullptr) {
      std::copy_n(y_squares + matrix * columns + column, count, column_squares);
    }
    const auto body = squared ? Rows<T, Term::kSquare> : Rows<T, Term::kSize>;
    T* const out = to + matrix * rows * columns;
    const int64_t step = mirrored ? kMirrored : kRowsOfTask;
    for (int64_t i = row, next; i < end; i = next) {
      next = std::min(end, i + step);
      // What is mirrored is written down the rows, whose lines are asked for while it is computed.
      const int64_t above = mirrored ? std::max<int64_t>(0, std::min(next, column) - i) : 0;
      T* const mirror = out + column * columns + i;
      for (int64_t j = 0; j < (above > 0 ? count : 0); ++j) {
        for (int64_t k = 0; k < above; k += 64 / sizeof(T)) {
          __builtin_prefetch(mirror + j * columns + k, 1);
        }
      }
      T* const block = out + i * columns + column;
      const int64_t at = matrix * rows + i;
      const T* const row_squares = x_squares == nullptr ? nullptr : x_squares + at;
      body({x + at * size, next - i, size, row_squares, column_squares}, turned.get(), block, count,
           columns, function, T(factor));
      if (above > 0) TransposeInSquares(block, columns, above, count, mirror, columns);
    }
  };
  if (PartsOf(pool, batch * rows * columns * size / 4) == 1) {
    for (int64_t index = 0; index < tasks; ++index) task(index);
  } else {
    ParallelFor(pool, tasks, task);
  }
}

// x is of shape (batch, rows, size), y of (batch, columns, size).
ffi::Error Distances(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer y,
                     ffi::Result<ffi::AnyBuffer> out, int64_t squared, int64_t function,
                     double factor) {
  const auto shape = x.dimensions();
  const auto compute = [&](auto zero) {
    using T = decltype(zero);
    DistancesOf(pool, static_cast<const T*>(x.untyped_data()),
                static_cast<const T*>(y.untyped_data()), static_cast<T*>(out->untyped_data()),
                shape[0], shape[1], y.dimensions()[1], shape[2], squared != 0, function, factor);
  };
  if (x.element_type() == ffi::DataType::F32) {
    compute(0.0f);
  } else {
    compute(0.0);
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_distances, dovetail::Distances,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("squared")
                    .Attr<int64_t>("function")
                    .Attr<double>("factor"));
#pragma GCC visibility pop
