// Loops over the threads that XLA lends to a handler.

#ifndef DOVETAIL_CPU_PARALLEL_H_
#define DOVETAIL_CPU_PARALLEL_H_

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>

#include "xla/ffi/api/ffi.h"

namespace dovetail {

// How many threads of the pool can run at once: a pool may have more than there are processors.
inline int64_t ThreadsOf(const xla::ffi::ThreadPool& pool) {
  static const int64_t processors = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? int64_t{CPU_COUNT(&set)}
                                                        : std::numeric_limits<int64_t>::max();
  }();
  return std::max<int64_t>(1, std::min(pool.num_threads(), processors));
}

// Calls body(i) for each i below `count`, and returns when all calls have returned.
//
// The calling thread takes part, and waits only for calls that have begun: a pool whose threads are
// all busy, perhaps with waiting, cannot keep it forever. Tasks that come too late find nothing to
// do, possibly after this function has returned, so they share the ownership of what they look at.
//
// Throws std::bad_alloc in the calling thread, after all calls, if one of them has thrown it.
template <typename Body>
void ParallelFor(xla::ffi::ThreadPool& pool, int64_t count, const Body& body) {
  const int64_t helpers = count > 1 ? std::min(ThreadsOf(pool), count) - 1 : 0;
  if (helpers <= 0) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  struct State {
    std::atomic<int64_t> next{0};
    int64_t finished = 0;
    bool out_of_memory = false;
    std::mutex mutex;
    std::condition_variable all_finished;
  };
  auto state = std::make_shared<State>();
  const Body* shared_body = &body;
  auto work = [state, count, shared_body] {
    int64_t done = 0;
    bool failed = false;
    for (int64_t i; (i = state->next.fetch_add(1)) < count; ++done) {
      try {
        (*shared_body)(i);
      } catch (const std::bad_alloc&) {  // Beyond a thread of the pool it would end the process.
        failed = true;
      }
    }
    if (done == 0) return;
    std::lock_guard<std::mutex> lock(state->mutex);
    state->finished += done;
    state->out_of_memory |= failed;
    if (state->finished == count) state->all_finished.notify_one();
  };
  try {
    for (int64_t i = 0; i < helpers; ++i) pool.Schedule(decltype(work)(work));
  } catch (const std::bad_alloc&) {  // Those that have been called must be waited for.
  }
  work();
  std::unique_lock<std::mutex> lock(state->mutex);
  state->all_finished.wait(lock, [&] { return state->finished == count; });
  if (state->out_of_memory) throw std::bad_alloc();
}

// Elements for which another thread is worth its while.
constexpr int64_t kPerThread = 1 << 15;

// The number of equal parts into which `size` elements are divided among threads.
inline int64_t PartsOf(const xla::ffi::ThreadPool& pool, int64_t size) {
  return std::max<int64_t>(1, std::min(ThreadsOf(pool), size / kPerThread));
}

// Calls body(begin, end) for parts of `size` elements, on one thread if `pool` is null.
template <typename Body>
void ForRanges(xla::ffi::ThreadPool* pool, int64_t size, const Body& body) {
  const int64_t parts = pool == nullptr ? 1 : PartsOf(*pool, size);
  if (parts == 1) return body(int64_t{0}, size);
  ParallelFor(*pool, parts,
              [&](int64_t part) { body(size * part / parts, size * (part + 1) / parts); });
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_PARALLEL_H_
