// Sums of squared or absolute differences of all pairs of rows of two matrices.
//
// XLA computes such a sum of what it broadcasts in a scalar loop along the rows. Here the lanes of
// vectors are rows of the second matrix, a few vectors of which are turned at a time, and tiles of
// the result stay in registers. Roots and exponentials of the sums are taken before they are
// written: a loop of XLA's takes longer to compile than all the rest.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "exponentials.h"
#include "kernel.h"
#include "parallel.h"
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

// Differences that are added up one by one; the sums are added up in pairs.
constexpr int64_t kSummed = 32;
// Rows of the first matrix for which columns are turned once.
constexpr int64_t kRowsOfTask = 1000;
// Rows that are mirrored at once.
constexpr int64_t kMirrored = 8 * kRows;

// sums[r][j] (+)= sum over k of the differences of rows[r][k] and columns[k][j].
template <typename T, bool kSquared, bool kAdd = false>
DOVETAIL_WIDE void Differences(const T* const* rows, int64_t size, const T* columns, T* sums,
                               int64_t stride) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  Vector total[kRows][kVectors] = {};
  for (int64_t k = 0; k < size; ++k, columns += kColumns<T>) {
    Vector column[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(&column[v], columns + v * kLanes<T>, sizeof(Vector));
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const T value = rows[r][k];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Vector difference = value - column[v];
        if constexpr (kSquared) {
          total[r][v] += difference * difference;
        } else {
          total[r][v] += difference < 0 ? -difference : difference;
        }
      }
    }
  }
  StoreTile(total, sums, stride, kAdd);
}

// The same for any size.
template <typename T, bool kSquared>
void SumInPairs(const T* const* rows, int64_t size, const T* columns, T* sums, int64_t stride) {
  if (size <= kSummed) return Differences<T, kSquared>(rows, size, columns, sums, stride);
  const int64_t half = size / 2;
  const T* others[kRows];
  for (int r = 0; r < kRows; ++r) others[r] = rows[r] + half;
  SumInPairs<T, kSquared>(rows, half, columns, sums, stride);
  columns += half * kColumns<T>;
  if (size - half <= kSummed) {
    return Differences<T, kSquared, true>(others, size - half, columns, sums, stride);
  }
  T rest[kRows * kColumns<T>];
  SumInPairs<T, kSquared>(others, size - half, columns, rest, kColumns<T>);
  for (int r = 0; r < kRows; ++r) {
    for (int j = 0; j < kColumns<T>; ++j) sums[r * stride + j] += rest[r * kColumns<T> + j];
  }
}

template <typename T>
void Roots(T* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = std::sqrt(x[i]);
}

#if defined(__AVX512F__)
// The instruction for roots takes longer than an estimate and what a square leaves of the value,
// which gives 0.6 units in the last place, in float64 after a step that doubles the digits.
__m512 RootFromEstimate(__m512 value) {
  const __m512 inverse = _mm512_rsqrt14_ps(value);
  const __m512 half = _mm512_mul_ps(inverse, _mm512_set1_ps(0.5f));
  const __m512 root = _mm512_mul_ps(value, inverse);
  return _mm512_fmadd_ps(_mm512_fnmadd_ps(root, root, value), half, root);
}

__m512d RootFromEstimate(__m512d value) {
  const __m512d inverse = _mm512_rsqrt14_pd(value), one_half = _mm512_set1_pd(0.5);
  __m512d half = _mm512_mul_pd(inverse, one_half), root = _mm512_mul_pd(value, inverse);
  const __m512d rest = _mm512_fnmadd_pd(root, half, one_half);
  root = _mm512_fmadd_pd(root, rest, root), half = _mm512_fmadd_pd(half, rest, half);
  return _mm512_fmadd_pd(_mm512_fnmadd_pd(root, root, value), half, root);
}

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
#endif

template <typename T>
void Apply(int64_t function, T factor, T* sums, int64_t count) {
  if (function == kRoot) Roots(sums, count);
  if constexpr (std::is_same_v<T, float>) {
    if (function == kExponential) Exponentiate(factor, sums, count);
  }
}

// The results of some rows of x with up to kColumns rows of y, whose elements lie in `turned`.
template <typename T, bool kSquared>
void Rows(const T* x, int64_t count, int64_t size, const T* turned, T* to, int64_t columns,
          int64_t stride, int64_t function, T factor) {
  T sums[kRows * kColumns<T>];
  for (int64_t i = 0; i < count; i += kRows) {
    const T* rows[kRows];  // The last row stands in for those beyond.
    for (int r = 0; r < kRows; ++r) rows[r] = x + std::min(i + r, count - 1) * size;
    if (columns == kColumns<T> && i + kRows <= count) {
      SumInPairs<T, kSquared>(rows, size, turned, to + i * stride, stride);
      for (int r = 0; r < kRows; ++r) {
        Apply(function, factor, to + (i + r) * stride, kColumns<T>);
      }
      continue;
    }
    SumInPairs<T, kSquared>(rows, size, turned, sums, kColumns<T>);
    Apply(function, factor, sums, kRows * kColumns<T>);
    for (int64_t r = 0; r < std::min<int64_t>(kRows, count - i); ++r) {
      std::memcpy(to + (i + r) * stride, sums + r * kColumns<T>, columns * sizeof(T));
    }
  }
}

template <typename T>
void DistancesOf(ffi::ThreadPool& pool, const T* x, const T* y, T* to, int64_t batch, int64_t rows,
                 int64_t columns, int64_t size, bool squared, int64_t function, double factor) {
  const int64_t across = (columns + kColumns<T> - 1) / kColumns<T>;
  const int64_t down = (rows + kRowsOfTask - 1) / kRowsOfTask;
  const int64_t tasks = batch * across * down;
  // Of the pairs of rows of one matrix half is computed.
  const bool mirrored = x == y && rows == columns;
  const auto task = [&](int64_t index) {
    index = tasks - 1 - index;  // The long ones first, if they are not as long.
    const int64_t matrix = index / (across * down);
    const int64_t column = index / down % across * kColumns<T>;
    const int64_t row = index % down * kRowsOfTask;
    const int64_t count = std::min<int64_t>(kColumns<T>, columns - column);
    const int64_t end = std::min({rows, row + kRowsOfTask, mirrored ? column + count : rows});
    if (row >= end) return;
    std::vector<T> turned(size * kColumns<T>);
    const T* from = y + (matrix * columns + column) * size;
    Transpose(from, size, count, size, turned.data(), kColumns<T>);
    const auto body = squared ? Rows<T, true> : Rows<T, false>;
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
      body(x + (matrix * rows + i) * size, next - i, size, turned.data(), block, count, columns,
           function, T(factor));
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
