// The exponential function of float32, in vectors as wide as the processor has.

#ifndef DOVETAIL_CPU_EXPONENTIAL_H_
#define DOVETAIL_CPU_EXPONENTIAL_H_

#include "elementary.h"

namespace dovetail {

constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
// (exp(r) - 1 - r) / r**2 for r up to log(2) / 2, with the least relative error of the whole.
constexpr float kBentExponential[] = {0.5000000044401722f,    0.16666666368835556f,
                                      0.04166635981342617f,   0.00833338957524565f,
                                      0.0013940720446679435f, 0.00019845884359109923f};

// exp(x) is 2**n (1 + rest + bend), where the sum of the latter is from -0.3 to 0.42. The bend is
// the smaller one, and the count is n, of which only the lowest 9 bits of `n` are.
template <typename Vector, typename Integers>
struct Growth {
  Vector rest, bend, count;
  Integers n;
};

// `kExact` adds to the bend what rounding took from the rest.
template <bool kExact = false>
DOVETAIL_INLINE Growth<Singles, AllBits32> GrowthOf(Singles x) {
  constexpr float kShift = 0x1.8p23f;
  const Singles shifted = x * 1.44269504f + kShift, count = shifted - kShift;
  const Singles start = x - count * kLog2High, rest = start - count * kLog2Low;
  Singles bend = rest * rest * Polynomial(rest, kBentExponential);
  if (kExact) bend += (start - rest) - count * kLog2Low;
  return {rest, bend, count, As<AllBits32>(shifted)};
}

DOVETAIL_INLINE Singles AtLeast(Singles x, float least) {
  return x < least ? Singles{} + least : x;
}

struct Exponential {
  static DOVETAIL_INLINE Singles Of(Singles x) {
#if defined(DOVETAIL_AVX512)
    // Beyond these bounds the result is infinite, or rounded to zero.
    // The second operand of these instructions is their result if there is a NaN.
    const __m512 below = _mm512_min_ps(_mm512_set1_ps(90.0f), (__m512)x);
    const auto growth = GrowthOf((Singles)_mm512_max_ps(_mm512_set1_ps(-105.0f), below));
    const Singles power = 1.0f + (growth.rest + growth.bend);
    return (Singles)_mm512_scalef_ps((__m512)power, (__m512)growth.count);
#else
    constexpr float kLeast = -87.3365402f, kMost = 88.7228394f;
    const auto [rest, bend, count, n] = GrowthOf(x);
    const Singles result = As<Singles>(As<AllBits32>(1.0f + (rest + bend)) + (n << 23));
    if (__builtin_expect(AllBelow(As<AllBits32>(Magnitude(x)), As<int32_t>(-kLeast)), 1)) {
      return result;
    }
    const Singles high = x > kMost ? Singles{} + INFINITY : x;
    return x < kLeast ? Singles{} : (x <= kMost ? result : high);
#endif
  }
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_EXPONENTIAL_H_
