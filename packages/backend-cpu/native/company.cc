// Long arrays of the host among the threads of XLA's pool. A call without a program has no pool: it
// gives parts to threads that look for work, and where there is much, or calls follow each other, a
// program brings such threads.

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

// The numbers of a function that is called once for each row: its address, that of its operands, and
// that of rows; then bytes from one row to the next, of operands and the result, and its own numbers.
enum Place { kAddress, kOperands, kRows, kRowBytes };

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

void CallCompany(ptrdiff_t work) {
  const bool is_much = work >= LeastDivided(2) && !lookouts.Any();
  if (is_much || lookouts.AreWanted()) BringCompany();
}

void DivideInCompany(ptrdiff_t count, const std::function<void(ptrdiff_t, ptrdiff_t)>& part) {
  const bool alone = count < kDivided || most_threads.load(std::memory_order_relaxed) == 1;
  if (!alone) CallCompany(count);
  Uninterrupted([&] { alone ? part(0, count) : InCompany(count, part); });
}

void DivideInCompany(HostFunction function, const void* const* operands, const size_t* widths,
                     ptrdiff_t count_of_operands, const ptrdiff_t* steps, void* result,
                     size_t result_width, ptrdiff_t count) {
  DivideInCompany(count, [&](ptrdiff_t begin, ptrdiff_t end) {
    const void* own[kMostOperands];
    for (ptrdiff_t k = 0; k < count_of_operands; ++k) {
      own[k] = static_cast<const char*>(operands[k]) + begin * steps[k] * widths[k];
    }
    function(own, steps, static_cast<char*>(result) + begin * result_width, end - begin);
  });
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_company, dovetail::Company,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Ret<xla::ffi::AnyBuffer>());

// Calls an elementwise function once for each row. A row belongs to the part with its first element.
extern "C" void dovetail_in_rows(const void* const* operands, const ptrdiff_t* numbers,
                                 void* result, ptrdiff_t count) {
  using namespace dovetail;
  const auto function = reinterpret_cast<HostFunction>(numbers[kAddress]);
  const ptrdiff_t operand_count = numbers[kOperands], columns = count / numbers[kRows];
  const ptrdiff_t* const row_bytes = numbers + kRowBytes;
  const ptrdiff_t* const own_numbers = row_bytes + operand_count + 1;
  const auto part = [&](ptrdiff_t begin, ptrdiff_t end) {
    const FlushDenormals flush;
    const ptrdiff_t last = (end + columns - 1) / columns;
    for (ptrdiff_t row = (begin + columns - 1) / columns; row < last; ++row) {
      const void* own[kMostOperands];
      for (ptrdiff_t k = 0; k < operand_count; ++k) {
        own[k] = static_cast<const char*>(operands[k]) + row * row_bytes[k];
      }
      function(own, own_numbers, static_cast<char*>(result) + row * row_bytes[operand_count],
               columns);
    }
  };
  // Long rows are divided by the function, which must be called by the thread that was.
  return columns < kDivided ? DivideInCompany(count, part) : part(0, count);
}

// What runs the program of the kernel above from now on; none if it is null.
extern "C" void dovetail_bring_company(void (*call)()) { dovetail::bring = call; }

// What makes that program, called once it is wanted.
extern "C" void dovetail_learn_company(void (*call)()) { dovetail::learn = call; }
#pragma GCC visibility pop
