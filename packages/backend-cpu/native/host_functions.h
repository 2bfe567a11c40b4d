// What functions of small arrays in the memory of the host have in common. They are called where a
// call needs no program, and flush denormal numbers to zero, as XLA's programs do.

#ifndef DOVETAIL_CPU_HOST_FUNCTIONS_H_
#define DOVETAIL_CPU_HOST_FUNCTIONS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

#include "bits.h"
#include "interrupts.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dovetail {

// Denormal operands and results are zeros in a scope. Within another such scope it costs nothing: to
// write the register takes as long as to add up some tens of numbers.
class FlushDenormals {
 public:
  FlushDenormals() : before_(Read()) {
    if ((before_ & kFlush) != kFlush) Write(before_ | kFlush);
  }
  ~FlushDenormals() {
    if ((before_ & kFlush) != kFlush) Write(before_);
  }

 private:
#if defined(__x86_64__)
  using Register = unsigned;
  static constexpr Register kFlush = 0x8040;
  static Register Read() { return _mm_getcsr(); }
  static void Write(Register value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register kFlush = Register{1} << 24;
  static Register Read() {
    Register value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void Write(Register value) { __asm__ volatile("msr fpcr, %0" ::"r"(value)); }
#else
  using Register = unsigned;
  static constexpr Register kFlush = 0;
  static Register Read() { return 0; }
  static void Write(Register) {}
#endif

  const Register before_;
};

// Operands, what there is to know of them, and the result with its number of elements.
using HostFunction = void (*)(const void* const* operands, const ptrdiff_t* numbers, void* result,
                              ptrdiff_t count);

// The fewest elements of which a thread that looks for work takes some.
constexpr ptrdiff_t kDivided = 1 << 16;

// Has threads look for work, if none does, and there is so much or there has been some of late. This
// thread must be the one that was called.
void CallCompany(ptrdiff_t work);

// Calls part(begin, end) for parts of `count` elements, of which threads that look for work take some
// (company.cc).
void DivideInCompany(ptrdiff_t count, const std::function<void(ptrdiff_t, ptrdiff_t)>& part);

// Calls an elementwise function for parts of arrays whose elements have so many bytes.
void DivideInCompany(HostFunction function, const void* const* operands, const size_t* widths,
                     ptrdiff_t count_of_operands, const ptrdiff_t* steps, void* result,
                     size_t result_width, ptrdiff_t count);

// An elementwise function that divides long arrays.
template <HostFunction kFunction, typename Out, typename... In>
void Divided(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  if (count < kDivided) return kFunction(operands, steps, result, count);
  static constexpr size_t kWidths[] = {sizeof(In)...};
  DivideInCompany(kFunction, operands, kWidths, sizeof...(In), steps, result, sizeof(Out), count);
}

struct HostEntry {
  const char* primitive;
  const char* dtype;  // of the last operand
  HostFunction function;
  ptrdiff_t most;  // elements for which a program would take longer
};

// What an element takes decides how many there may be.
constexpr ptrdiff_t kMost = 65536, kMany = 32768, kSeveral = 16384, kSome = 4096, kFew = 1024,
                    kScarce = 256, kRare = 64;

// Other elementwise ones, as kernels compute them.
const HostEntry* CircularFunctions(size_t* count);
const HostEntry* ErrorFunctions(size_t* count);
const HostEntry* ExponentialFunctions(size_t* count);
const HostEntry* NarrowFunctions(size_t* count);
const HostEntry* RemainderFunctions(size_t* count);

// Those of whole arrays, which get other numbers than steps: see `host_functions.py`. The dtype "*"
// stands for any.
const HostEntry* ArrayFunctions(size_t* count);
const HostEntry* FourierFunctions(size_t* count);
const HostEntry* MoveFunctions(size_t* count);
const HostEntry* PositionFunctions(size_t* count);
const HostEntry* RandomFunctions(size_t* count);
const HostEntry* SearchFunctions(size_t* count);
const HostEntry* SortFunctions(size_t* count);

// Runs a part of a kernel that may be interrupted, until it is not.
template <typename Body>
void Uninterrupted(const Body& body) {
  const uint32_t before = interrupts_before;
  for (bool done = false; !done;) {
    interrupts_before = interrupts.load(std::memory_order_relaxed);
    try {
      body();
      done = true;
    } catch (const Interrupted&) {
    }
  }
  interrupts_before = before;
}

// A number that was chosen: zero if it is denormal.
template <typename T>
inline T FlushedNumber(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    const T zero = std::copysign(T(0), x);
    return std::fabs(x) < std::numeric_limits<T>::min() ? zero : x;
  } else {
    return x;
  }
}

// NaN if one of them is, and -0 is less than 0.
template <bool kGreatest>
struct ExtremeOf {
  template <typename T>
  static T Start(T) {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) {
      return kGreatest ? -Limits::infinity() : Limits::infinity();
    } else {
      return kGreatest ? Limits::min() : Limits::max();
    }
  }
  template <typename T>
  static T Both(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
      const Bits x = As<Bits>(a), y = As<Bits>(b);
      const T same = As<T>(Bits(kGreatest ? x & y : x | y));
      const T other = ((kGreatest ? b > a : b < a) || b != b) ? b : a;
      return a == b ? same : other;
    } else {
      return kGreatest == (b > a) ? b : a;
    }
  }
  template <typename T>
  T operator()(T a, T b) const {
    return FlushedNumber(Both(a, b));
  }
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_HOST_FUNCTIONS_H_
