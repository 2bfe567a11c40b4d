// Long arrays of the host among the threads of XLA's pool. A call without a program has no pool: it
// gives parts to threads that look for work, and where calls follow each other, a program brings such
// threads.

#include <pthread.h>

#include <cstring>

#include "host_functions.h"
#include "kernel.h"
#include "parallel.h"

namespace dovetail {
namespace {

using Call = void (*)();

// What runs the program, and what makes the one before it, on any thread.
std::atomic<Call> bring{nullptr}, learn{nullptr};

static_assert(kDivided == kLeastInCompany);

constexpr ptrdiff_t kMostOperands = 3;

void* Learn(void*) {
  if (const Call function = learn.exchange(nullptr)) function();
  return nullptr;
}

// Brings threads that look for work.
void BringCompany() {
  if (const Call function = bring.load()) return function();
  if (learn.load() == nullptr) return;
  // Not on this thread, which may be the main thread, where signals would be handled meanwhile.
  pthread_t thread;
  if (pthread_create(&thread, nullptr, Learn, nullptr) == 0) pthread_detach(thread);
}

// Looks for work on another thread, so that the calls that follow are divided.
xla::ffi::Error Company(xla::ffi::ThreadPool pool, xla::ffi::Result<xla::ffi::AnyBuffer> out) {
  std::memset(out->untyped_data(), 0, out->size_bytes());
  CallLookouts(pool);
  return xla::ffi::Error::Success();
}

}  // namespace

void DivideInCompany(HostFunction function, const void* const* operands, const size_t* widths,
                     ptrdiff_t count_of_operands, const ptrdiff_t* steps, void* result,
                     size_t result_width, ptrdiff_t count) {
  if (most_threads.load(std::memory_order_relaxed) == 1) {
    return function(operands, steps, result, count);
  }
  if (lookouts.AreWanted()) BringCompany();
  const auto part = [&](int64_t begin, int64_t end) {
    const void* own[kMostOperands];
    for (ptrdiff_t k = 0; k < count_of_operands; ++k) {
      own[k] = static_cast<const char*>(operands[k]) + begin * steps[k] * widths[k];
    }
    function(own, steps, static_cast<char*>(result) + begin * result_width, end - begin);
  };
  Uninterrupted([&] { InCompany(count, part); });
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_company, dovetail::Company,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Ret<xla::ffi::AnyBuffer>());

// What runs the program of the kernel above from now on; none if it is null.
extern "C" void dovetail_bring_company(void (*call)()) { dovetail::bring = call; }

// What makes that program, called once it is wanted.
extern "C" void dovetail_learn_company(void (*call)()) { dovetail::learn = call; }
#pragma GCC visibility pop
