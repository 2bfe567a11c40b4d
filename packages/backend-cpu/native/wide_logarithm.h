// Logarithms of float64 in vectors, of numbers whose kind is known.

#ifndef DOVETAIL_CPU_WIDE_LOGARITHM_H_
#define DOVETAIL_CPU_WIDE_LOGARITHM_H_

#include <cstdint>

#include "elementary.h"

// Vectors are passed among functions that are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace dovetail {

constexpr int64_t kWideRootOfHalf = 0x3fe6a09e667f3bcd;
// The bits of 2**52: with others in the mantissa, it is the float64 of that count.
constexpr int64_t kCounter = 0x4330000000000000;
// (log((1 + s) / (1 - s)) / s - 2) / s**2 in the square of s.
constexpr double kWideBentLogarithm[] = {0.666666666666667,   0.39999999999899505,
                                         0.28571428625975487, 0.2222221113479508,
                                         0.18182889125261723, 0.15331721600556042,
                                         0.14616449685043406};
constexpr double kWideLog2High = 6.93147180369123816490e-01;
constexpr double kWideLog2Low = 1.90821492927058770002e-10;

struct Split {
  Double n;
  Bits64 biased;
};

// n of a positive number 2**n m with m from sqrt(1/2) to sqrt(2), and with the bias of exponents.
DOVETAIL_INLINE Split WideExponentOf(Bits64 bits) {
  const Bits64 biased = (Bits64)((Naturals64)(bits + (kWideOne - kWideRootOfHalf)) >> 52);
  return {As<Double>(biased | kCounter) - (0x1p52 + 1023), biased};
}

// n log(2) + log(1 + f).
DOVETAIL_INLINE Double WideSumOfLogarithms(Double n, Double f) {
  const Double square = f * f, half = 0.5 * square, lost = ProductLess(f, f, square);
  const Double quotient = f / (f + 2.0), below = quotient * quotient;
  const Double tail = quotient * (half + below * Polynomial(below, kWideBentLogarithm));
  const Double leading = n * kWideLog2High, total = leading + f;
  const Double rest = (f - (total - leading)) - 0.5 * lost;
  return total + (rest - (half - (tail + n * kWideLog2Low)));
}

// log(x) of normal numbers above zero.
DOVETAIL_INLINE Double WideLogarithmOf(Double x) {
  const Bits64 bits = As<Bits64>(x);
  const auto [n, biased] = WideExponentOf(bits);
  return WideSumOfLogarithms(n, As<Double>(bits - (biased << 52) + kWideOne) - 1.0);
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_WIDE_LOGARITHM_H_
