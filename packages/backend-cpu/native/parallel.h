// Loops over the threads that XLA lends to a handler.

#ifndef DOVETAIL_CPU_PARALLEL_H_
#define DOVETAIL_CPU_PARALLEL_H_

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <utility>

#include "interrupts.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

// How many threads a kernel may use.
inline std::atomic<int64_t> most_threads{std::numeric_limits<int64_t>::max()};

// How many threads of the pool can run at once: a pool may have more than there are processors, or
// than are wanted.
inline int64_t ThreadsOf(const xla::ffi::ThreadPool& pool) {
  static const int64_t processors = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? int64_t{CPU_COUNT(&set)}
                                                        : std::numeric_limits<int64_t>::max();
  }();
  const int64_t most = std::min(processors, most_threads.load(std::memory_order_relaxed));
  return std::max<int64_t>(1, std::min(pool.num_threads(), most));
}

// How long a thread waits by looking again and again. To put it to sleep and to wake it takes both
// threads 0.02 to 0.05 ms on virtual machines, which is what a short kernel takes.
constexpr std::chrono::microseconds kLooking{100};

// Looks until `found()` is true, or for `kLooking`; returns what it was last.
template <typename Found>
bool LookFor(const Found& found) {
  const auto end = std::chrono::steady_clock::now() + kLooking;
  do {
    for (int look = 0; look < 32; ++look) {
      if (found()) return true;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    sched_yield();  // Perhaps to the one that is waited for.
  } while (std::chrono::steady_clock::now() < end);
  return found();
}

// Lets this thread run elsewhere if it runs on a processor. Linux may wake a thread on the processor of
// the one that wakes it, without a look for another; there it would compute while that one waits, and
// stay.
inline void Leave(int processor) {
  if (sched_getcpu() != processor) return;
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
  others = all;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(all), &all);
}

// Calls of a function with each number below a count, which threads divide among themselves.
//
// Each thread has a row of calls, the one that waits the first, and helps others when its own are done:
// so a thread finds in its cache what the same call has left there before, and one that comes late, or
// shares its processor, makes fewer calls.
//
// Threads that come too late find nothing to do, possibly after the waiting one has gone on: so all of
// them own this object together.
class alignas(64) SharedCalls {
 public:
  using Function = void (*)(const void* body, int64_t i);

  SharedCalls(int64_t threads, int64_t count, Function function, const void* body)
      : rows_(std::clamp<int64_t>(threads, 1, kMostRows)),
        count_(count),
        function_(function),
        body_(body) {}

  void Own() { state_.fetch_add(kOwner, std::memory_order_relaxed); }
  void Disown() {
    // Mostly nobody else owns it any more.
    if (state_.load() < 2 * kOwner || state_.fetch_sub(kOwner) < 2 * kOwner) delete this;
  }

  // Brings what a thread that comes to help will need, all at once.
  void Fetch() const {
    Fetch(this);
    Fetch(&row_[1]);
    Fetch(&state_);
  }

  // Makes calls on a thread that has come to help; returns how many.
  int64_t Help() {
    Leave(processor_);
    interrupts_before = interrupts_;
    return Make(1 + helpers_.fetch_add(1, std::memory_order_relaxed));
  }

  // Tells the thread that waits how many calls another one has made, which disowns.
  void TellAndDisown(int64_t made) {
    if (made == 0) return Disown();
    int64_t state = state_.load();
    while (!(state & kSleeps)) {
      if (state_.compare_exchange_weak(state, state + made - kOwner)) return;
    }
    if ((state_.fetch_add(made) + made) % kSleeps == count_) {
      std::lock_guard<std::mutex> lock(mutex_);
      all_finished_.notify_one();
    }
    Disown();
  }

  // Takes part in the calls, and returns when all have returned: it waits only for those that have
  // begun. Throws, after all calls, what one of them has thrown; then some are left out.
  void Finish() {
    state_.fetch_add(Make(0));
    const auto finished = [&] { return state_.load() % kSleeps == count_; };
    if (!LookFor(finished)) {
      std::unique_lock<std::mutex> lock(mutex_);
      state_.fetch_or(kSleeps);
      all_finished_.wait(lock, finished);
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct alignas(64) Row {
    std::atomic<int64_t> next{0};
  };
  static constexpr int64_t kMostRows = 8;
  // How many calls have returned is counted below; the owners from kOwner on.
  static constexpr int64_t kSleeps = int64_t{1} << 40, kOwner = kSleeps << 1;

  static void Fetch(const void* line) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#endif
  }

  int64_t Make(int64_t own) {
    int64_t made = 0;
    std::exception_ptr failure;
    // With a call for each, the thread that waits makes those of threads that do not come.
    const int64_t tried = own > 0 && count_ == rows_ ? 1 : rows_;
    for (int64_t other = 0; other < tried; ++other) {
      const int64_t row = (own + other) % rows_, first = count_ * row / rows_;
      const int64_t size = count_ * (row + 1) / rows_ - first;
      for (int64_t i; (i = row_[row].next.fetch_add(1)) < size; ++made) {
        if (failure) continue;  // The others are counted.
        try {
          KeepCounting();
          EndIfInterrupted();
          function_(body_, first + i);
        } catch (...) {  // Beyond a thread of the pool it would end the process.
          failure = std::current_exception();
        }
      }
    }
    if (failure) {
      std::lock_guard<std::mutex> lock(mutex_);
      failure_ = failure;
    }
    return made;
  }

  const int64_t rows_, count_;
  const Function function_;
  const void* const body_;
  const int processor_ = sched_getcpu();
  const uint32_t interrupts_ = interrupts_before;
  std::atomic<int64_t> helpers_{0};
  // What several threads write to is not side by side.
  Row row_[kMostRows];
  alignas(64) std::atomic<int64_t> state_{kOwner};
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable all_finished_;
};

// Has a thread of the pool run `task`. If it was woken on the processor of this one, it would not run
// for milliseconds, while others may be idle: so it may run first, and leave.
template <typename Task>
void Schedule(xla::ffi::ThreadPool& pool, Task task) {
  pool.Schedule(std::move(task));
  sched_yield();
}

// Threads of the pool that have done their part of a kernel, and look for one of the next.
//
// In the child of a fork, which has no such threads, calls may be given to one of the parent's; they
// are only not helped with.
class Lookouts {
 public:
  // Whether a thread looks now.
  bool Any() const { return Count() > 0; }
  int64_t Count() const { return count_.load(std::memory_order_relaxed); }

  // Whether a thread should come to look: none does, a kernel that may have had use for one has just
  // ended, and none has been called of late. One that sleeps needs some 0.05 ms to come; one that has
  // not come long after is busy.
  bool AreWanted() {
    if (Any()) return false;
    const int64_t now = Now();
    if (now - ended_.load(std::memory_order_relaxed) > Nanoseconds(kLooking)) return false;
    int64_t last = called_.load(std::memory_order_relaxed);
    return now - last > Nanoseconds(kPatience) && called_.compare_exchange_strong(last, now);
  }

  // Notes that what may have use for threads that look ends now.
  void NoteEnd() { ended_.store(Now(), std::memory_order_relaxed); }

  // Lets a thread that looks for work help; returns whether there was one.
  bool Give(SharedCalls* calls) {
    if (!Any()) return false;
    for (Place& place : places_) {
      SharedCalls* expected = &nothing_yet_;
      if (place.calls.load(std::memory_order_relaxed) != expected) continue;
      calls->Own();
      if (place.calls.compare_exchange_strong(expected, calls)) return true;
      calls->Disown();
    }
    return false;
  }

  // Runs what is given to this thread, until nothing has come for a while, or there are so many.
  void Look(int64_t most) {
    if (count_.fetch_add(1) < most) {
      for (Place& place : places_) {
        SharedCalls* nobody = nullptr;
        if (!place.calls.compare_exchange_strong(nobody, &nothing_yet_)) continue;
        while (SharedCalls* const calls = Next(place)) {
          calls->Fetch();
          const int64_t made = calls->Help();
          // The thread that is told may have more at once.
          place.calls.store(&nothing_yet_);
          calls->TellAndDisown(made);
        }
        break;
      }
    }
    count_.fetch_sub(1);
  }

 private:
  struct alignas(64) Place {
    std::atomic<SharedCalls*> calls{nullptr};  // Null where no thread looks.
  };

  // What has come to a place; null if nothing has, and the place is left.
  SharedCalls* Next(Place& place) {
    const auto have_come = [&] { return place.calls.load() != &nothing_yet_; };
    SharedCalls* expected = &nothing_yet_;
    if (!LookFor(have_come) && place.calls.compare_exchange_strong(expected, nullptr)) return nullptr;
    return place.calls.load();
  }

  static int64_t Nanoseconds(std::chrono::nanoseconds time) { return time.count(); }
  static int64_t Now() {
    return Nanoseconds(std::chrono::steady_clock::now().time_since_epoch());
  }

  static constexpr std::chrono::milliseconds kPatience{1};

  std::atomic<int64_t> ended_{0}, called_{0};
  SharedCalls nothing_yet_{1, 0, nullptr, nullptr};
  std::atomic<int64_t> count_{0};
  Place places_[32];
};

inline Lookouts lookouts;

// Lets threads of the pool look for work.
inline void CallLookouts(xla::ffi::ThreadPool& pool) {
  const int64_t most = ThreadsOf(pool) - 1;
  for (int64_t i = lookouts.Count(); i < most; ++i) {
    Schedule(pool, [most, processor = sched_getcpu()] {
      Leave(processor);
      lookouts.Look(most);
    });
  }
}

// Calls body(i) for each i below `count`, and returns when all calls have returned, or one has thrown.
// give(calls) lets one of `helpers` threads help, or returns false.
template <typename Give, typename Body>
void Share(int64_t helpers, int64_t count, const Give& give, const Body& body) {
  const auto call = [](const void* own, int64_t i) { (*static_cast<const Body*>(own))(i); };
  auto* const calls = new SharedCalls(helpers + 1, count, call, &body);
  const auto disown = [](SharedCalls* own) { own->Disown(); };
  const std::unique_ptr<SharedCalls, decltype(disown)> owned(calls, disown);
  try {
    for (int64_t given = 0; given < helpers && give(calls); ++given) {
    }
  } catch (const std::bad_alloc&) {  // Those that have been called must be waited for.
  }
  calls->Finish();
}

// The same with the threads that XLA lends.
template <typename Body>
void ParallelFor(xla::ffi::ThreadPool& pool, int64_t count, const Body& body) {
  const int64_t helpers = count > 1 ? std::min(ThreadsOf(pool), count) - 1 : 0;
  if (helpers <= 0) {
    for (int64_t i = 0; i < count; ++i) {
      KeepCounting();
      EndIfInterrupted();
      body(i);
    }
    return lookouts.NoteEnd();
  }
  const auto give = [&](SharedCalls* calls) {
    if (lookouts.Give(calls)) return true;
    calls->Own();
    Schedule(pool, [calls, helpers] {
      calls->TellAndDisown(calls->Help());
      lookouts.Look(helpers);
    });
    return true;
  };
  Share(helpers, count, give, body);
  lookouts.NoteEnd();
}

// Elements for which one more thread is worth its while, where there are many.
constexpr int64_t kPerThread = 1 << 15;

// The number of parts into which the work of `threads` is divided, so that they can help each other.
inline int64_t FinerParts(int64_t threads, int64_t size) {
  constexpr int64_t kMost = 4;
  return threads * std::clamp<int64_t>(size / (threads * kPerThread), 1, kMost);
}

// The fewest elements that are divided. Two threads gain half of the time at most, and to wake one,
// and to fetch what the other core has in its cache, takes as long as some 2**18 elements do.
inline int64_t LeastDivided(int64_t threads) {
  return threads <= 2 ? 1 << 19 : threads <= 4 ? 1 << 18 : 2 * kPerThread;
}

// The fewest if a thread looks for work already.
constexpr int64_t kLeastInCompany = 1 << 16;

// The number of equal parts into which `size` elements are divided among threads. Where kernels with
// fewer elements than are divided follow each other, one of them wakes a thread, which helps the next.
inline int64_t PartsOf(const xla::ffi::ThreadPool& pool, int64_t size) {
  const int64_t threads = ThreadsOf(pool);
  if (threads == 1 || size < kLeastInCompany) return 1;
  if (size < LeastDivided(threads) && !lookouts.Any() && !lookouts.AreWanted()) return 1;
  return std::max<int64_t>(1, std::min(threads, size / kPerThread));
}

// Calls body(begin, end) on this thread for elements from `begin` to `end`, a million at once, so
// that an interrupt is noticed.
template <typename Body>
void InPieces(int64_t begin, int64_t end, const Body& body) {
  constexpr int64_t kPiece = 1 << 20;
  for (; end - begin > kPiece; begin += kPiece) {
    body(begin, begin + kPiece);
    KeepCounting();
    EndIfInterrupted();
  }
  body(begin, end);
}

// Calls body(begin, end) for parts of `size` elements on this thread, and as soon as others look for
// work, on these: a thread that has been called comes while the first parts are computed.
template <typename Body>
void InCompany(int64_t size, const Body& body) {
  const auto give = [](SharedCalls* calls) { return lookouts.Give(calls); };
  for (int64_t begin = 0; begin < size;) {
    const int64_t rest = size - begin;
    const int64_t parts =
        rest < kLeastInCompany ? 1 : std::min(lookouts.Count() + 1, rest / kPerThread);
    const int64_t end = parts > 1 || rest < 2 * kPerThread ? size : begin + kPerThread;
    if (parts == 1) {
      body(begin, end);
    } else {
      const int64_t pieces = FinerParts(parts, rest);
      Share(parts - 1, pieces, give, [&](int64_t piece) {
        body(begin + rest * piece / pieces, begin + rest * (piece + 1) / pieces);
      });
    }
    begin = end;
  }
  lookouts.NoteEnd();
}

// Calls body(begin, end) for parts of `size` elements, on one thread if `pool` is null.
template <typename Body>
void ForRanges(xla::ffi::ThreadPool* pool, int64_t size, const Body& body) {
  const int64_t threads = pool == nullptr ? 1 : PartsOf(*pool, size);
  if (threads > 1) {
    const int64_t parts = FinerParts(threads, size);
    ParallelFor(*pool, parts, [&](int64_t part) {
      InPieces(size * part / parts, size * (part + 1) / parts, body);
    });
  } else if (pool == nullptr || size < kLeastInCompany || ThreadsOf(*pool) == 1) {
    InPieces(0, size, body);
  } else {
    if (lookouts.AreWanted()) CallLookouts(*pool);
    InCompany(size, body);
  }
}

// Calls body(i) for each i below `count`, of which each of `parts` parts has neighbours.
template <typename Body>
void ForNeighbours(xla::ffi::ThreadPool& pool, int64_t count, int64_t parts, const Body& body) {
  ParallelFor(pool, parts, [&](int64_t part) {
    const int64_t end = count * (part + 1) / parts;
    for (int64_t i = count * part / parts; i < end;) {
      EndIfInterrupted();
      constexpr int64_t kFew = 64;  // They may take no longer than to look.
      for (const int64_t stop = std::min(end, i + kFew); i < stop; ++i) body(i);
    }
  });
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_PARALLEL_H_
