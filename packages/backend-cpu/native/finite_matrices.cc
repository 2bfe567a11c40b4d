// Matrices as LAPACK's iterations may see them: without NaN and infinities, and if asked for,
// divided by the power of two of their largest number. XLA would compile a reduction and several
// loops for it, which takes longer than it runs.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Copies the real numbers of matrices, zeros for those of a matrix with one that is not finite.
template <typename T>
void Prepare(const T* from, T* to, T* powers, int32_t* broken, int64_t batch, int64_t size,
             bool scaled) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits kSize = static_cast<Bits>(-1) >> 1;
  constexpr Bits kInfinity = sizeof(T) == 4 ? Bits(0x7f800000) : Bits(0x7ff0000000000000);
  for (int64_t i = 0; i < batch; ++i, from += size, to += size) {
    Bits largest = 0;  // The bits of sizes are in the order of the sizes.
    for (int64_t j = 0; j < size; ++j) {
      Bits bits;
      std::memcpy(&bits, from + j, sizeof(T));
      largest = std::max(largest, Bits(bits & kSize));
    }
    broken[i] = largest >= kInfinity;
    powers[i] = 1;
    if (broken[i]) {
      std::fill(to, to + size, T(0));
      continue;
    }
    const Bits exponent = largest & kInfinity;
    if (scaled && exponent != 0) std::memcpy(&powers[i], &exponent, sizeof(T));
    const T power = powers[i];
    for (int64_t j = 0; j < size; ++j) to[j] = from[j] / power;
  }
}

ffi::Error FiniteMatrices(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                          ffi::Result<ffi::AnyBuffer> powers,
                          ffi::Result<ffi::Buffer<ffi::S32>> broken, bool scaled) {
  const int64_t batch = static_cast<int64_t>(broken->element_count());
  if (batch == 0) return ffi::Error::Success();
  const bool wide = powers->element_type() == ffi::DataType::F64;
  const int64_t size = static_cast<int64_t>(x.size_bytes()) / (wide ? 8 : 4) / batch;
  const auto prepare = [&](auto* power) {
    using T = std::remove_pointer_t<decltype(power)>;
    Prepare(static_cast<const T*>(x.untyped_data()), static_cast<T*>(out->untyped_data()), power,
            broken->typed_data(), batch, size, scaled);
  };
  if (wide) {
    prepare(static_cast<double*>(powers->untyped_data()));
  } else {
    prepare(static_cast<float*>(powers->untyped_data()));
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
XLA_FFI_DEFINE_HANDLER_SYMBOL(dovetail_finite_matrices, dovetail::FiniteMatrices,
                              xla::ffi::Ffi::Bind()
                                  .Arg<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Ret<xla::ffi::Buffer<xla::ffi::S32>>()
                                  .Attr<bool>("scaled"));
#pragma GCC visibility pop
