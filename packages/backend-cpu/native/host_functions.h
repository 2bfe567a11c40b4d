// What functions of small arrays in the memory of the host have in common. They are called where a
// call needs no program, and flush denormal numbers to zero, as XLA's programs do.

#ifndef DOVETAIL_CPU_HOST_FUNCTIONS_H_
#define DOVETAIL_CPU_HOST_FUNCTIONS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "bits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dovetail {

// Denormal operands and results are zeros in a scope.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FlushDenormals() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    __asm__ volatile("msr fpcr, %0" ::"r"(before_ | (uint64_t{1} << 24)));
  }
  ~FlushDenormals() { __asm__ volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  uint64_t before_;
#endif
};

// Operands, what there is to know of them, and the result with its number of elements.
using HostFunction = void (*)(const void* const* operands, const ptrdiff_t* numbers, void* result,
                              ptrdiff_t count);

struct HostEntry {
  const char* primitive;
  const char* dtype;  // of the last operand
  HostFunction function;
  ptrdiff_t most;  // elements for which a program would take longer
};

// What an element takes decides how many there may be.
constexpr ptrdiff_t kMost = 65536, kMany = 32768, kSome = 4096, kFew = 256;

// Those of whole arrays, which get other numbers than steps: see `host_functions.py`.
const HostEntry* ArrayFunctions(size_t* count);

// A number that was chosen: zero if it is denormal.
inline float FlushedNumber(float x) {
  const float zero = std::copysign(0.0f, x);
  return std::fabs(x) < std::numeric_limits<float>::min() ? zero : x;
}
inline int32_t FlushedNumber(int32_t x) { return x; }

// NaN if one of them is, and -0 is less than 0.
template <bool kGreatest>
struct ExtremeOf {
  static float Start(float) {
    const float infinity = std::numeric_limits<float>::infinity();
    return kGreatest ? -infinity : infinity;
  }
  static int32_t Start(int32_t) {
    return kGreatest ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int32_t>::max();
  }
  static float Both(float a, float b) {
    const uint32_t x = As<uint32_t>(a), y = As<uint32_t>(b);
    const float same = As<float>(kGreatest ? x & y : x | y);
    const float other = ((kGreatest ? b > a : b < a) || b != b) ? b : a;
    return a == b ? same : other;
  }
  static int32_t Both(int32_t a, int32_t b) { return kGreatest == (b > a) ? b : a; }
  template <typename T>
  T operator()(T a, T b) const {
    return FlushedNumber(Both(a, b));
  }
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_HOST_FUNCTIONS_H_
