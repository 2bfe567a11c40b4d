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
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

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

// Lets this thread run elsewhere if it runs on a processor. Where both were busy, Linux wakes a thread
// on the processor of the one that wakes it, without a look for another; there it would compute while
// that one waits, and stay.
inline void Leave(int processor) {
  if (sched_getcpu() != processor) return;
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof(all), &all) != 0) return;
  others = all;
  CPU_CLR(processor, &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(all), &all);
}

// Threads of the pool that have done their part of a kernel, and look for one of the next.
//
// What such a thread takes it runs. In the child of a fork, which has no such threads, tasks may be
// given to one of the parent's; they are only not helped with.
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

  // Gives a task to a thread that looks for one; returns whether there was one.
  template <typename Work>
  bool Give(const Work& work) {
    if (!Any()) return false;
    auto task = std::make_unique<Task>(work);
    for (Place& place : places_) {
      Task* expected = &nothing_yet_;
      if (place.task.load(std::memory_order_relaxed) == expected &&
          place.task.compare_exchange_strong(expected, task.get())) {
        task.release();
        return true;
      }
    }
    return false;
  }

  // Runs what is given to this thread, until nothing has come for a while, or there are so many.
  void Look(int64_t most) {
    if (count_.fetch_add(1) < most) {
      for (Place& place : places_) {
        Task* nobody = nullptr;
        if (!place.task.compare_exchange_strong(nobody, &nothing_yet_)) continue;
        while (const Task* task = Next(place)) {
          (*task)();
          delete task;
          place.task.store(&nothing_yet_);
        }
        break;
      }
    }
    count_.fetch_sub(1);
  }

 private:
  using Task = std::function<void()>;
  struct alignas(64) Place {
    std::atomic<Task*> task{nullptr};  // Null where no thread looks.
  };

  // What has come to a place; null if nothing has, and the place is left.
  Task* Next(Place& place) {
    const auto has_come = [&] { return place.task.load() != &nothing_yet_; };
    Task* expected = &nothing_yet_;
    if (!LookFor(has_come) && place.task.compare_exchange_strong(expected, nullptr)) return nullptr;
    return place.task.load();
  }

  static int64_t Nanoseconds(std::chrono::nanoseconds time) { return time.count(); }
  static int64_t Now() {
    return Nanoseconds(std::chrono::steady_clock::now().time_since_epoch());
  }

  static constexpr std::chrono::milliseconds kPatience{1};

  std::atomic<int64_t> ended_{0}, called_{0};
  Task nothing_yet_;
  std::atomic<int64_t> count_{0};
  Place places_[32];
};

inline Lookouts lookouts;

// Lets threads of the pool look for work.
inline void CallLookouts(xla::ffi::ThreadPool& pool) {
  const int64_t most = ThreadsOf(pool) - 1;
  for (int64_t i = lookouts.Count(); i < most; ++i) {
    pool.Schedule([most] { lookouts.Look(most); });
  }
}

// Calls body(i) for each i below `count`, and returns when all calls have returned. give(work) gives
// to one of `helpers` threads what it has to call, or returns false.
//
// Each thread has a row of calls, the calling one the first, and helps others when its own are done: so
// a thread finds in its cache what the same call has left there before, and one that comes late, or
// shares its processor, makes fewer calls.
//
// The calling thread takes part, and waits only for calls that have begun: a pool whose threads are
// all busy, perhaps with waiting, cannot keep it forever. Tasks that come too late find nothing to
// do, possibly after this function has returned, so they share the ownership of what they look at.
//
// Throws in the calling thread, after all calls, what one of them has thrown; then some are left out.
template <typename Give, typename Body>
void Share(int64_t helpers, int64_t count, const Give& give, const Body& body) {
  struct alignas(64) Row {
    std::atomic<int64_t> next{0};
  };
  struct State {
    explicit State(int64_t threads) : rows(threads) {}
    std::vector<Row> rows;
    std::atomic<int64_t> helpers{0};
    std::atomic<int64_t> finished{0};
    std::exception_ptr failure;
    std::mutex mutex;
    std::condition_variable all_finished;
  };
  const int64_t threads = helpers + 1;
  auto state = std::make_shared<State>(threads);
  const Body* shared_body = &body;
  auto work = [state, threads, count, shared_body, began = interrupts_before](int64_t own) {
    interrupts_before = began;
    int64_t done = 0;
    std::exception_ptr failure;
    for (int64_t other = 0; other < threads; ++other) {
      const int64_t row = (own + other) % threads, first = count * row / threads;
      const int64_t size = count * (row + 1) / threads - first;
      for (int64_t i; (i = state->rows[row].next.fetch_add(1)) < size; ++done) {
        if (failure) continue;  // The others are counted.
        try {
          KeepCounting();
          EndIfInterrupted();
          (*shared_body)(first + i);
        } catch (...) {  // Beyond a thread of the pool it would end the process.
          failure = std::current_exception();
        }
      }
    }
    if (done == 0) return;
    std::lock_guard<std::mutex> lock(state->mutex);
    if (failure) state->failure = failure;
    if (state->finished.fetch_add(done) + done == count) state->all_finished.notify_one();
  };
  const auto elsewhere = [state, work, processor = sched_getcpu()] {
    Leave(processor);
    work(1 + state->helpers.fetch_add(1));
  };
  try {
    for (int64_t given = 0; given < helpers && give(elsewhere); ++given) {
    }
  } catch (const std::bad_alloc&) {  // Those that have been called must be waited for.
  }
  work(0);
  const auto finished = [&] { return state->finished.load(std::memory_order_acquire) == count; };
  LookFor(finished);
  std::unique_lock<std::mutex> lock(state->mutex);
  state->all_finished.wait(lock, finished);
  if (state->failure) std::rethrow_exception(state->failure);
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
  const auto give = [&](const auto& work) {
    if (lookouts.Give(work)) return true;
    pool.Schedule([work, helpers] {
      work();
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
  const auto give = [](const auto& work) { return lookouts.Give(work); };
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
