// What stands around the four real products that a product of complex matrices is made of: XLA takes
// longer to compile these loops than to multiply.

#include <cstdint>

#include "kernel.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

template <typename T>
void Split(ffi::ThreadPool& pool, const void* pairs, void* real, void* imaginary, int64_t size) {
  const auto* x = static_cast<const T*>(pairs);
  auto *re = static_cast<T*>(real), *im = static_cast<T*>(imaginary);
  ForRanges(&pool, size, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      re[i] = x[2 * i];
      im[i] = x[2 * i + 1];
    }
  });
}

ffi::Error ComplexParts(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> re,
                        ffi::Result<ffi::AnyBuffer> im) {
  const auto split = re->element_type() == ffi::DataType::F32 ? Split<float> : Split<double>;
  split(pool, x.untyped_data(), re->untyped_data(), im->untyped_data(),
        static_cast<int64_t>(x.element_count()));
  return ffi::Error::Success();
}

// (a + bi) (c + di), from ac, bd, ad and bc.
template <typename T>
void Join(ffi::ThreadPool& pool, const void* ac, const void* bd, const void* ad, const void* bc,
          void* pairs, int64_t size) {
  const auto *a = static_cast<const T*>(ac), *b = static_cast<const T*>(bd);
  const auto *c = static_cast<const T*>(ad), *d = static_cast<const T*>(bc);
  auto* y = static_cast<T*>(pairs);
  ForRanges(&pool, size, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      y[2 * i] = a[i] - b[i];
      y[2 * i + 1] = c[i] + d[i];
    }
  });
}

ffi::Error ComplexFromProducts(ffi::ThreadPool pool, ffi::AnyBuffer ac, ffi::AnyBuffer bd,
                               ffi::AnyBuffer ad, ffi::AnyBuffer bc,
                               ffi::Result<ffi::AnyBuffer> y) {
  const auto join = ac.element_type() == ffi::DataType::F32 ? Join<float> : Join<double>;
  join(pool, ac.untyped_data(), bd.untyped_data(), ad.untyped_data(), bc.untyped_data(),
       y->untyped_data(), static_cast<int64_t>(y->element_count()));
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_complex_parts, dovetail::ComplexParts,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>());
DOVETAIL_KERNEL(dovetail_complex_from_products, dovetail::ComplexFromProducts,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>());
#pragma GCC visibility pop
