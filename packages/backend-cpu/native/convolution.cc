// Convolutions of floats.

#include "convolution.h"
#include "kernel.h"

namespace dovetail {
namespace {

ffi::Error ConvolveFloats(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer w,
                         ffi::Result<ffi::AnyBuffer> y, ffi::Span<const int64_t> sizes) {
  return Convolve<float, double>(pool, x, w, y, sizes, {ffi::DataType::F32, ffi::DataType::F64});
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_convolve, dovetail::ConvolveFloats,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<xla::ffi::Span<const int64_t>>("sizes"));
#pragma GCC visibility pop
