// Counts interrupts, by a handler of the signal that stands before Python's.
//
// Python's own handler only notes the signal for the main thread, which may be waiting for a kernel.
// Any call of `signal.signal` replaces the handler here. So it counts only while nothing has changed
// since Python allowed it, which it does if interrupts raise KeyboardInterrupt.

#include "interrupts.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <array>

namespace dovetail {

std::atomic<uint32_t> interrupts{0};
thread_local uint32_t interrupts_before = 0;

namespace {

using Ask = void (*)();

// What was there before, which is called after counting.
struct sigaction before;
std::atomic<bool> has_counted{false};
std::atomic<Ask> ask{nullptr};
std::atomic<int64_t> looked_at{0};

void Count(int number, siginfo_t* info, void* context) {
  interrupts.fetch_add(1, std::memory_order_relaxed);
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(number, info, context);
  } else {
    before.sa_handler(number);
  }
}

bool Counts(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == Count;
}

bool CallsNothing(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 &&
         (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

// Whether two actions call the same function. Another library's may call the one here: it is left
// in its place.
bool Agree(const struct sigaction& a, const struct sigaction& b) {
  if ((a.sa_flags & SA_SIGINFO) != (b.sa_flags & SA_SIGINFO)) return false;
  return (a.sa_flags & SA_SIGINFO) != 0 ? a.sa_sigaction == b.sa_sigaction
                                        : a.sa_handler == b.sa_handler;
}

void* Asked(void*) {
  if (const Ask function = ask.load()) function();
  return nullptr;
}

}  // namespace

uint32_t InterruptsBefore(int64_t run) {
  // A run that another one pushes out counts anew: so an interrupt between its kernels is missed.
  static std::array<std::atomic<uint64_t>, 64> runs{};
  const uint32_t low = static_cast<uint32_t>(run);
  const uint32_t now = interrupts.load(std::memory_order_relaxed);
  auto& known = runs[low % runs.size()];  // Runs of a program have successive numbers.
  const uint64_t last = known.load(std::memory_order_relaxed);
  if (last >> 32 == low) return static_cast<uint32_t>(last);
  known.store(uint64_t{low} << 32 | now, std::memory_order_relaxed);
  return now;
}

void KeepCounting() {
  constexpr int64_t kEvery = 50'000'000;  // nanoseconds
  timespec time;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  const int64_t now = time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
  int64_t last = looked_at.load(std::memory_order_relaxed);
  if (now - last < kEvery || !looked_at.compare_exchange_strong(last, now)) return;
  struct sigaction current;
  if (ask.load() == nullptr || sigaction(SIGINT, nullptr, &current) != 0) return;
  if (Counts(current) || CallsNothing(current)) return;
  if (has_counted.load() && !Agree(current, before)) return;
  // Not on this thread: whoever holds Python's lock must never have to wait for a kernel that
  // waits for the lock.
  pthread_t thread;
  if (pthread_create(&thread, nullptr, Asked, nullptr) == 0) pthread_detach(thread);
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
// Whether to count interrupts from now on, until the handler of the signal is changed: Python knows
// that they raise KeyboardInterrupt.
extern "C" void dovetail_count_interrupts(int wanted) {
  struct sigaction current;
  if (sigaction(SIGINT, nullptr, &current) != 0) return;
  if (!wanted) {
    if (dovetail::Counts(current)) sigaction(SIGINT, &dovetail::before, nullptr);
    return;
  }
  if (dovetail::Counts(current) || dovetail::CallsNothing(current)) return;
  if (!dovetail::has_counted.load()) {
    dovetail::before = current;
    dovetail::has_counted = true;
  } else if (!dovetail::Agree(current, dovetail::before)) {
    return;
  }
  current.sa_flags |= SA_SIGINFO;
  current.sa_sigaction = dovetail::Count;
  sigaction(SIGINT, &current, nullptr);
}

// What asks Python whether to call the function above; none from now on if it is null.
extern "C" void dovetail_ask_python(void (*ask)()) { dovetail::ask = ask; }
#pragma GCC visibility pop
