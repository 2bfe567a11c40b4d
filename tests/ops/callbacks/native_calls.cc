// What tests/ops/callbacks/test_native_calls.py calls.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

using F32 = ffi::Buffer<ffi::F32>;
using F32Result = ffi::ResultBuffer<ffi::F32>;

static std::atomic<int32_t> calls{0};

// factor * x.
static ffi::Error Scale(F32 x, float factor, F32Result out) {
  ++calls;
  for (size_t i = 0; i < x.element_count(); ++i) out->typed_data()[i] = factor * x.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    test_scale, Scale, ffi::Ffi::Bind().Arg<F32>().Attr<float>("factor").Ret<F32>());

// x + y, where y has the shape of x, or 1 as its first dimension.
static ffi::Error Add(F32 x, F32 y, F32Result out) {
  ++calls;
  for (size_t i = 0; i < x.element_count(); ++i) {
    out->typed_data()[i] = x.typed_data()[i] + y.typed_data()[i % y.element_count()];
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(test_add, Add, ffi::Ffi::Bind().Arg<F32>().Arg<F32>().Ret<F32>());

// The memory of x, whatever it holds.
static ffi::Error Copy(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) {
  ++calls;
  std::memcpy(out->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    test_copy, Copy, ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());

// Adds 1 to what the result holds already; x is not read.
static ffi::Error Increment(F32 x, F32Result out) {
  for (size_t i = 0; i < out->element_count(); ++i) out->typed_data()[i] += 1;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(test_increment, Increment, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

// The least and the greatest element.
static ffi::Error Extremes(F32 x, F32Result least, F32Result greatest) {
  const auto [low, high] =
      std::minmax_element(x.typed_data(), x.typed_data() + x.element_count());
  *least->typed_data() = *low;
  *greatest->typed_data() = *high;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    test_extremes, Extremes, ffi::Ffi::Bind().Arg<F32>().Ret<F32>().Ret<F32>());

// Static arguments of every kind, as numbers.
static ffi::Error Attributes(bool flag, int64_t whole, double real, std::string_view text,
                             int8_t narrow, uint32_t natural, ffi::Span<const int64_t> wholes,
                             ffi::Span<const float> reals, ffi::Dictionary nested,
                             F32Result out) {
  float* to = out->typed_data();
  *to++ = flag;
  *to++ = whole;
  *to++ = real;
  *to++ = text.size();
  *to++ = narrow;
  *to++ = natural;
  *to++ = wholes.size() * 100 + wholes[wholes.size() - 1];
  *to++ = reals.size() * 100 + reals[reals.size() - 1];
  auto inner = nested.get<int64_t>("inner");
  if (inner.has_error()) return inner.error();
  *to++ = *inner;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(test_attributes, Attributes,
                              ffi::Ffi::Bind()
                                  .Attr<bool>("flag")
                                  .Attr<int64_t>("whole")
                                  .Attr<double>("real")
                                  .Attr<std::string_view>("text")
                                  .Attr<int8_t>("narrow")
                                  .Attr<uint32_t>("natural")
                                  .Attr<ffi::Span<const int64_t>>("wholes")
                                  .Attr<ffi::Span<const float>>("reals")
                                  .Attr<ffi::Dictionary>("nested")
                                  .Ret<F32>());

static ffi::Error Fail(F32 x, F32Result out) {
  return ffi::Error::InvalidArgument("the kernel does not like it");
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(test_fail, Fail, ffi::Ffi::Bind().Arg<F32>().Ret<F32>());

// How often the functions above were called.
static ffi::Error Calls(ffi::Token before, ffi::ResultBuffer<ffi::S32> out,
                        ffi::Result<ffi::Token> after) {
  *out->typed_data() = calls.load();
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    test_calls, Calls,
    ffi::Ffi::Bind().Arg<ffi::Token>().Ret<ffi::Buffer<ffi::S32>>().Ret<ffi::Token>());

extern "C" int32_t test_calls_so_far() { return calls.load(); }

// A number that is made when the program is made, and read when it runs.
struct Kept {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  int64_t number;
};
ffi::TypeId Kept::id = {};
ffi::TypeInfo Kept::info = ffi::MakeTypeInfo<Kept>();

static ffi::ErrorOr<std::unique_ptr<Kept>> Make(int64_t number) {
  return std::make_unique<Kept>(Kept{number});
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(test_make, Make,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("number"));

static ffi::Error Read(Kept* kept, F32Result out) {
  *out->typed_data() = kept->number;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    test_read, Read, ffi::Ffi::Bind().Ctx<ffi::State<Kept>>().Ret<F32>());

extern "C" void* test_kept_id() { return &Kept::id; }
extern "C" void* test_kept_info() { return &Kept::info; }

// A function of plain pointers.
extern "C" void test_untyped(void* out, const void** in) {
  *static_cast<float*>(out) = 2 * *static_cast<const float*>(in[0]);
}
