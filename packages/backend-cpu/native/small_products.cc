// Products of many small matrices, for each of which XLA would call a general one.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernel.h"
#include "parallel.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// kWidth neighbouring columns of a product, four rows at a time.
template <typename T, int kWidth>
void MultiplyColumns(const T* x, const T* w, T* y, int64_t rows, int64_t summed, int64_t columns) {
  typedef T V __attribute__((vector_size(kWidth * sizeof(T))));
  const auto several = [&](auto number) {
    constexpr int kRows = decltype(number)::value;
    V sums[kRows] = {};
    for (int64_t p = 0; p < summed; ++p) {
      V right;
      std::memcpy(&right, w + p * columns, sizeof(V));
      for (int r = 0; r < kRows; ++r) sums[r] += x[r * summed + p] * right;
    }
    for (int r = 0; r < kRows; ++r) std::memcpy(y + r * columns, &sums[r], sizeof(V));
    x += kRows * summed;
    y += kRows * columns;
  };
  int64_t left = rows;
  for (; left >= 4; left -= 4) several(std::integral_constant<int, 4>());
  for (; left > 0; --left) several(std::integral_constant<int, 1>());
}

// Where columns are no multiple of a width, the last ones are computed together with others again.
template <typename T, int kWidth = kVectorBytes / sizeof(T)>
void Multiply(const T* x, const T* w, T* y, int64_t rows, int64_t summed, int64_t columns,
              int64_t begin = 0) {
  if constexpr (kWidth > 1) {
    if (columns < kWidth || columns - begin <= kWidth / 2) {
      return Multiply<T, kWidth / 2>(x, w, y, rows, summed, columns, begin);
    }
  }
  for (; begin + kWidth <= columns; begin += kWidth) {
    MultiplyColumns<T, kWidth>(x, w + begin, y + begin, rows, summed, columns);
  }
  if (begin == columns) return;
  begin = columns - begin > kWidth / 2 ? columns - kWidth : begin;
  Multiply<T, kWidth>(x, w, y, rows, summed, columns, begin);
}

template <ffi::DataType kType>
ffi::Error SmallProducts(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Buffer<kType> w,
                         ffi::Result<ffi::Buffer<kType>> y) {
  using T = ffi::NativeType<kType>;
  const auto dims = x.dimensions();
  const int64_t rows = dims[dims.size() - 2], summed = dims.back();
  const int64_t columns = w.dimensions().back();
  const int64_t count = static_cast<int64_t>(y->element_count()) / (rows * columns);
  const T *a = x.typed_data(), *b = w.typed_data();
  T* out = y->typed_data();
  const int64_t parts = PartsOf(pool, count * rows * columns * summed / 8);
  ForNeighbours(pool, count, parts, [=](int64_t i) {
    Multiply(a + i * rows * summed, b + i * summed * columns, out + i * rows * columns, rows,
             summed, columns);
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
#define DOVETAIL_SMALL_PRODUCTS(suffix, type)                                            \
  DOVETAIL_KERNEL(dovetail_small_products_##suffix,                                      \
                  dovetail::SmallProducts<xla::ffi::DataType::type>,                     \
                  xla::ffi::Ffi::Bind()                                                  \
                      .Ctx<xla::ffi::ThreadPool>()                                       \
                      .Arg<xla::ffi::Buffer<xla::ffi::DataType::type>>()                 \
                      .Arg<xla::ffi::Buffer<xla::ffi::DataType::type>>()                 \
                      .Ret<xla::ffi::Buffer<xla::ffi::DataType::type>>())
DOVETAIL_SMALL_PRODUCTS(f32, F32);
DOVETAIL_SMALL_PRODUCTS(f64, F64);
#pragma GCC visibility pop
