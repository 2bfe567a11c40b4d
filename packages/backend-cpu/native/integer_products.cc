// Convolutions and products of matrices of integers, which wrap around whatever their sign.

#include "convolution.h"
#include "kernel.h"

namespace dovetail {
namespace {

ffi::Error ConvolveIntegers(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer w,
                           ffi::Result<ffi::AnyBuffer> y, ffi::Span<const int64_t> sizes) {
  return Convolve<uint32_t, uint64_t, uint32_t, uint64_t>(
      pool, x, w, y, sizes,
      {ffi::DataType::S32, ffi::DataType::S64, ffi::DataType::U32,
                   ffi::DataType::U64});
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_convolve_integers, dovetail::ConvolveIntegers,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<xla::ffi::Span<const int64_t>>("sizes"));
#pragma GCC visibility pop
