// Interrupts (Ctrl-C) end the kernels that they find running.

#ifndef DOVETAIL_CPU_INTERRUPTS_H_
#define DOVETAIL_CPU_INTERRUPTS_H_

#include <atomic>
#include <cstdint>

namespace dovetail {

// Thrown on any thread of a kernel that is to end.
struct Interrupted {};

// How many interrupts there have been, of those that end kernels.
extern std::atomic<uint32_t> interrupts;

// How many there had been when the program began that this thread works for.
extern thread_local uint32_t interrupts_before;

// How many there had been when the first kernel of a run of a program began.
uint32_t InterruptsBefore(int64_t run);

// What takes long calls this every few microseconds to milliseconds, holding no lock. Throws
// Interrupted.
inline void EndIfInterrupted() {
  if (__builtin_expect(interrupts.load(std::memory_order_relaxed) != interrupts_before, 0)) {
    throw Interrupted();
  }
}

// Python may have replaced the handler that counts interrupts: asks it for leave to put it back.
// Costs as much as a look at the clock, so it is called more seldom.
void KeepCounting();

}  // namespace dovetail

#endif  // DOVETAIL_CPU_INTERRUPTS_H_
