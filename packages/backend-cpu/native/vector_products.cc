// The products of a vector with the rows and the columns of a matrix, which is read once, some rows
// side by side.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernel.h"
#include "parallel.h"
#include "short_rows.h"
#include "streams.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Rows that are added up before they are added to the sums, one of each of so many parts where
// these are read side by side, and elements of them for which the sums stay in the nearest cache.
constexpr int kRows = kVectorBytes == 64 ? 8 : 4;
constexpr int64_t kColumns = 4096;

template <typename T>
void Columns(const T* x, const T* matrix, int64_t rows, int64_t stride, int64_t columns,
             T* __restrict sums) {
  std::fill(sums, sums + columns, T(0));
  constexpr bool kOfParts = kStreams > 1;
  const int64_t apart = kOfParts ? rows / kRows : 1;
  int64_t i = 0;
  for (; kOfParts ? i < apart : i + kRows <= rows; i += kOfParts ? 1 : kRows) {
    const T* __restrict from = matrix + i * stride;
    for (int64_t j = 0; j < columns; ++j) {
      T sum = x[i] * from[j];
#pragma GCC unroll 8
      for (int r = 1; r < kRows; ++r) sum += x[i + r * apart] * from[r * apart * stride + j];
      sums[j] += sum;
    }
  }
  if (kOfParts) i *= kRows;
  for (; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) sums[j] += x[i] * matrix[i * stride + j];
  }
}

template <ffi::DataType kType>
ffi::Error VectorProduct(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Buffer<kType> matrix,
                         ffi::Result<ffi::Buffer<kType>> out) {
  const int64_t rows = static_cast<int64_t>(x.element_count());
  const int64_t columns = static_cast<int64_t>(out->element_count());
  const int64_t threads = PartsOf(pool, rows * columns);
  const int64_t parts = std::max((columns + kColumns - 1) / kColumns,
                                 std::min(threads, (columns + 63) / 64));
  const auto part = [&](int64_t index) {
    const int64_t begin = columns * index / parts, end = columns * (index + 1) / parts;
    Columns(x.typed_data(), matrix.typed_data() + begin, rows, columns, end - begin,
            out->typed_data() + begin);
  };
  if (threads == 1) {
    for (int64_t index = 0; index < parts; ++index) part(index);
  } else {
    ParallelFor(pool, parts, part);
  }
  return ffi::Error::Success();
}

// Sums of products of `count` rows, each with the vector.
template <typename T, int kCount>
void DotsOf(const T* rows, int64_t columns, const T* x, T* sums) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  constexpr int kVectors = kCount > 1 ? 2 : 4;
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(T), kAtOnce = kVectors * kLanes;
  // Processors ask for fewer lines of a row by themselves than they can wait for.
  constexpr int64_t kAhead = 2048 / sizeof(T), kLine = 64 / sizeof(T);
  Vector total[kCount][kVectors] = {};
  int64_t j = 0;
  for (; j + kAtOnce <= columns; j += kAtOnce) {
    Vector factor[kVectors];
    std::memcpy(factor, x + j, sizeof(factor));
#pragma GCC unroll 4
    for (int r = 0; r < kCount; ++r) {
      const T* const from = rows + r * columns + j;
#pragma GCC unroll 4
      for (int64_t i = 0; i < kAtOnce; i += kLine) __builtin_prefetch(from + kAhead + i);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        Vector own;
        std::memcpy(&own, from + v * kLanes, sizeof(own));
        total[r][v] += own * factor[v];
      }
    }
  }
  for (int r = 0; r < kCount; ++r) {
    for (int v = 1; v < kVectors; ++v) total[r][0] += total[r][v];
    T lanes[kLanes];
    std::memcpy(lanes, &total[r][0], sizeof(lanes));
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    }
    for (int64_t i = j; i < columns; ++i) lanes[0] += rows[r * columns + i] * x[i];
    sums[r] = lanes[0];
  }
}

template <ffi::DataType kType>
ffi::Error MatrixVector(ffi::ThreadPool pool, ffi::Buffer<kType> matrix, ffi::Buffer<kType> x,
                        ffi::Result<ffi::Buffer<kType>> out) {
  using T = ffi::NativeType<kType>;
  const int64_t rows = static_cast<int64_t>(out->element_count());
  const int64_t columns = static_cast<int64_t>(x.element_count());
  if (columns >= 2 && columns <= kShort) {
    ForRanges(&pool, rows, [&](int64_t begin, int64_t end) {
      DotsOfShortRows<T>(matrix.typed_data() + begin * columns, columns, x.typed_data(),
                         out->typed_data() + begin, end - begin);
    });
    return ffi::Error::Success();
  }
  constexpr int kTogether = 4;
  // Groups of rows are the same for any number of threads.
  const int64_t groups = (rows + kTogether - 1) / kTogether;
  ForNeighbours(pool, groups, PartsOf(pool, rows * columns), [&](int64_t group) {
    const int64_t first = group * kTogether;
    const T* const from = matrix.typed_data() + first * columns;
    T* const to = out->typed_data() + first;
    if (first + kTogether <= rows) return DotsOf<T, kTogether>(from, columns, x.typed_data(), to);
    for (int64_t r = 0; r < rows - first; ++r) {
      DotsOf<T, 1>(from + r * columns, columns, x.typed_data(), to + r);
    }
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
#define DOVETAIL_FOR(SUFFIX, TYPE)                                                                \
  DOVETAIL_KERNEL(dovetail_vector_product_##SUFFIX, dovetail::VectorProduct<TYPE>,                \
                  xla::ffi::Ffi::Bind()                                                           \
                      .Ctx<xla::ffi::ThreadPool>()                                                \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                              \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                              \
                      .Ret<xla::ffi::Buffer<TYPE>>());                                            \
  DOVETAIL_KERNEL(dovetail_matrix_vector_##SUFFIX, dovetail::MatrixVector<TYPE>,                  \
                  xla::ffi::Ffi::Bind()                                                           \
                      .Ctx<xla::ffi::ThreadPool>()                                                \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                              \
                      .Arg<xla::ffi::Buffer<TYPE>>()                                              \
                      .Ret<xla::ffi::Buffer<TYPE>>())

DOVETAIL_FOR(f32, xla::ffi::F32);
DOVETAIL_FOR(f64, xla::ffi::F64);
#pragma GCC visibility pop
