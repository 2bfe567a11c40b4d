// Kronecker products: a matrix with a copy of another one, times an element, for each element.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "interrupts.h"
#include "kernel.h"
#include "parallel.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// to[j, l] = x[j] * y[l], of at least a vector of y. The last vector may begin before the end of the
// one before.
template <typename T>
void Row(const T* x, int64_t columns, const T* y, int64_t width, T* to) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  constexpr int64_t kLanes = kVectorBytes / sizeof(T);
  for (int64_t j = 0; j < columns; ++j, to += width) {
    const auto multiply = [=](int64_t l) __attribute__((always_inline)) {
      Vector factor;
      std::memcpy(&factor, y + l, sizeof(Vector));
      factor *= x[j];
      std::memcpy(to + l, &factor, sizeof(Vector));
    };
    for (int64_t l = 0; l + kLanes <= width; l += kLanes) multiply(l);
    if (width % kLanes > 0) multiply(width - kLanes);
  }
}

// out[i, k, j, l] = x[i, j] * y[k, l]. Where rows of y are shorter than a vector, both factors of a
// row are written out first, so that the loop of products is as long as the row.
template <typename T>
void Products(ffi::ThreadPool& pool, const T* x, const T* y, T* out, int64_t rows, int64_t each,
              int64_t columns, int64_t width) {
  const int64_t size = columns * width;
  const bool is_short = width < kVectorBytes / int64_t{sizeof(T)};
  std::vector<T> repeated(is_short ? each * size : 0);
  for (int64_t k = 0; is_short && k < each; ++k) {
    for (int64_t j = 0; j < columns; ++j) {
      std::copy_n(y + k * width, width, repeated.begin() + k * size + j * width);
    }
  }
  const int64_t parts = std::min(rows, PartsOf(pool, rows * each * size));
  ParallelFor(pool, parts, [&](int64_t part) {
    std::vector<T> spread(is_short ? size : 0);
    for (int64_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i) {
      EndIfInterrupted();
      for (int64_t j = 0; is_short && j < columns; ++j) {
        std::fill_n(spread.begin() + j * width, width, x[i * columns + j]);
      }
      for (int64_t k = 0; k < each; ++k) {
        T* const __restrict to = out + (i * each + k) * size;
        if (!is_short) {
          Row(x + i * columns, columns, y + k * width, width, to);
          continue;
        }
        const T* const factors = repeated.data() + k * size;
        const T* const others = spread.data();
        for (int64_t l = 0; l < size; ++l) to[l] = others[l] * factors[l];
      }
    }
  });
}

ffi::Error Kronecker(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer y,
                     ffi::Result<ffi::AnyBuffer> out) {
  const auto multiply = [&](auto zero) {
    using T = decltype(zero);
    Products(pool, static_cast<const T*>(x.untyped_data()),
             static_cast<const T*>(y.untyped_data()), static_cast<T*>(out->untyped_data()),
             x.dimensions()[0], y.dimensions()[0], x.dimensions()[1], y.dimensions()[1]);
    return ffi::Error::Success();
  };
  switch (x.element_type()) {
    case ffi::F32:
      return multiply(float());
    case ffi::F64:
      return multiply(double());
    case ffi::S32:
    case ffi::U32:
      return multiply(uint32_t());
    case ffi::S64:
    case ffi::U64:
      return multiply(uint64_t());
    default:
      return ffi::Error::InvalidArgument("a Kronecker product of another dtype");
  }
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_kronecker, dovetail::Kronecker,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>());
#pragma GCC visibility pop
