// Kronecker products: a matrix with a copy of another one, times an element, for each element.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "interrupts.h"
#include "kernel.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// out[i, k, j, l] = x[i, j] * y[k, l]. Both factors of a row are written out first, so that the
// loop of products is as long as the row.
template <typename T>
void Products(ffi::ThreadPool& pool, const T* x, const T* y, T* out, int64_t rows, int64_t each,
              int64_t columns, int64_t width) {
  const int64_t size = columns * width;
  std::vector<T> repeated(each * size);
  for (int64_t k = 0; k < each; ++k) {
    for (int64_t j = 0; j < columns; ++j) {
      std::copy_n(y + k * width, width, repeated.begin() + k * size + j * width);
    }
  }
  const int64_t parts = std::min(rows, PartsOf(pool, rows * each * size));
  ParallelFor(pool, parts, [&](int64_t part) {
    std::vector<T> spread(size);
    for (int64_t i = rows * part / parts; i < rows * (part + 1) / parts; ++i) {
      EndIfInterrupted();
      for (int64_t j = 0; j < columns; ++j) {
        std::fill_n(spread.begin() + j * width, width, x[i * columns + j]);
      }
      for (int64_t k = 0; k < each; ++k) {
        const T* const factors = repeated.data() + k * size;
        const T* const others = spread.data();
        T* const __restrict to = out + (i * each + k) * size;
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
