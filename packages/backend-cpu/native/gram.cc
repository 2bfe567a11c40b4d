// The product of a matrix with its transpose, of which one half is computed and mirrored.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "kernel.h"
#include "parallel.h"
#include "products.h"
#include "transposition.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Columns [first, first + count) of the result, from the first row to the last of these columns.
//
// Element (i, k) of the matrix, over whose k is summed, is x[i * row + k * step].
template <typename T>
void Columns(const T* x, int64_t row, int64_t step, int64_t size, int64_t summed, int64_t first,
             int64_t count, T* out) {
  // Columns that are less than a panel come first, where they are short.
  const int64_t rest = count % kProductColumns<T>;
  for (const auto& [begin, columns] : {std::pair(first, rest), {first + rest, count - rest}}) {
    if (columns == 0) continue;
    MultiplyMatrices<T>({x, x + begin * row, out + begin, begin + columns, columns, summed, row,
                         step, step, row, size, Into::kNothing, begin + 1});
  }
  constexpr int64_t kSide = 32;
  for (int64_t j = first; j < first + count; j += kSide) {
    const int64_t columns = std::min(kSide, first + count - j);
    for (int64_t i = 0; i < j; i += kSide) {
      Transpose(out + i * size + j, size, std::min(kSide, j - i), columns, out + j * size + i,
                size);
    }
    for (int64_t i = j; i < j + columns; ++i) {
      for (int64_t k = i + 1; k < j + columns; ++k) out[k * size + i] = out[i * size + k];
    }
  }
}

// Of x^T x if the sum is over rows, else of x x^T.
template <ffi::DataType kType>
ffi::Error Gram(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Result<ffi::Buffer<kType>> out,
                int64_t over_rows) {
  using T = ffi::NativeType<kType>;
  const auto shape = x.dimensions();
  const int64_t size = shape[over_rows ? 1 : 0], summed = shape[over_rows ? 0 : 1];
  constexpr int64_t kColumns = kProductColumns<T>;
  const int64_t panels = std::max<int64_t>(1, size / kColumns), rest = size % kColumns;
  const int64_t row = over_rows ? 1 : summed, step = over_rows ? size : 1;
  // As much of a triangle for each thread.
  const int64_t parts = std::min(panels, ThreadsOf(pool));
  const auto begin = [=](int64_t part) {
    const int64_t whole = std::llround(panels * std::sqrt(1.0 * part / parts));
    return part == 0 ? 0 : part == parts ? size : rest + whole * kColumns;
  };
  ParallelFor(pool, parts, [&](int64_t part) {
    const int64_t first = begin(part), count = begin(part + 1) - first;
    if (count == 0) return;
    Columns(x.typed_data(), row, step, size, summed, first, count, out->typed_data());
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
#define DOVETAIL_FOR(SUFFIX, TYPE)                                               \
  DOVETAIL_KERNEL(dovetail_gram_##SUFFIX, dovetail::Gram<TYPE>,                  \
                  xla::ffi::Ffi::Bind()                                          \
                      .Ctx<xla::ffi::ThreadPool>()                               \
                      .Arg<xla::ffi::Buffer<TYPE>>()                             \
                      .Ret<xla::ffi::Buffer<TYPE>>()                             \
                      .Attr<int64_t>("over_rows"))

DOVETAIL_FOR(f32, xla::ffi::F32);
DOVETAIL_FOR(f64, xla::ffi::F64);
#pragma GCC visibility pop
