// Kernels as XLA calls them: what they throw becomes an error.

#ifndef DOVETAIL_CPU_KERNEL_H_
#define DOVETAIL_CPU_KERNEL_H_

#include <new>
#include <utility>

#include "interrupts.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

// Calls body(), which may end by what kernels throw, for a kernel that begins. `failed` makes the
// result of a code and a text.
template <typename Body, typename Failed>
auto RunKernel(xla::ffi::RunId run, const Body& body, const Failed& failed) -> decltype(body()) {
  interrupts_before = InterruptsBefore(run.run_id);
  KeepCounting();
  try {
    EndIfInterrupted();
    return body();
  } catch (const std::bad_alloc&) {
    return failed(XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "out of memory in a native kernel");
  } catch (const Interrupted&) {
    return failed(XLA_FFI_Error_Code_CANCELLED,
                  "a native kernel was interrupted by Ctrl-C, so its result is lost");
  }
}

template <typename Function, Function kFunction>
struct KernelOf;

template <typename... Args, xla::ffi::Error (*kFunction)(Args...)>
struct KernelOf<xla::ffi::Error (*)(Args...), kFunction> {
  static xla::ffi::Error Run(Args... args, xla::ffi::RunId run) {
    return RunKernel(
        run, [&] { return kFunction(std::move(args)...); },
        [](XLA_FFI_Error_Code code, const char* text) { return xla::ffi::Error(code, text); });
  }
};

template <auto kFunction>
struct Kernel : KernelOf<decltype(kFunction), kFunction> {};

}  // namespace dovetail

// A kernel that XLA finds by its name.
#define DOVETAIL_KERNEL(name, function, ...)                           \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, dovetail::Kernel<function>::Run, \
                                (__VA_ARGS__).Ctx<xla::ffi::RunId>())

#endif  // DOVETAIL_CPU_KERNEL_H_
