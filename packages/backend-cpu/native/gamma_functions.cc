// The logarithm of the gamma function and its derivative, in float64: errors of asymptotic series and
// of what is added to them, which cancel near zeros, are too small to be seen there.

#include "elementary.h"
#include "wide_logarithm.h"

namespace dovetail {
namespace {

// How far a number from zero on is from the nearest whole one.
DOVETAIL_INLINE Double FromWhole(Double x) { return x < 0x1p51 ? x - Nearest(x) : Double{}; }

// The derivative of the logarithm of the gamma function.
struct Digamma {
  // In the square of 1 / x, from 8 on: log(x) - 1 / (2 x) - digamma(x), divided by that square.
  // Source: DLMF 5.11.2.
  static constexpr double kTail[] = {1.0 / 12,  -1.0 / 120, 1.0 / 252,      -1.0 / 240,
                                     1.0 / 132, -691.0 / 32760, 1.0 / 12};
  // In the square of r: pi / tan(pi r) / r without what its poles at -1, 0 and 1 make of it, which
  // is -2 times zeta of even numbers, less 1.
  static constexpr double kCotangent[] = {
      -1.2898681336964528,      -0.16464646742227637,   -0.03468612396889828,
      -0.00815471239588868,     -0.0019891502556361705, -0.0004921731066160966,
      -0.00012249627011740966,  -3.056451881730374e-05, -7.63458652999968e-06,
      -1.9079240677455924e-06};

  static DOVETAIL_INLINE Single Of(Single x) {
    const Double wide = Wide(x), size = Magnitude(wide);
    // The sum of 1 / (x + k) for k from 0 to 7 as a quotient.
    Double over = Double{} + 1.0, under = size;
#pragma GCC unroll 8
    for (int k = 1; k < 8; ++k) {
      const Double next = size + double(k);
      over = over * next + under;
      under = under * next;
    }
    const Bits64 small = size < 8.0;
    const Double far = small ? size + 8.0 : size, inverse = 1.0 / far, square = inverse * inverse;
    const Double rest = 0.5 * inverse + square * Polynomial(square, kTail);
    const Double sum = small ? over / under : Double{};
    Double result = (WideLogarithmOf(far) - sum) - rest;
    if (!AllBelow(As<Bits32>(x), kInfinity)) {
      // digamma(-x) is digamma(x) + 1 / x + pi / tan(pi x).
      const Double r = FromWhole(size), s = r * r;
      const Double cotangent = (3.0 * s - 1.0) / (r * (s - 1.0)) + r * Polynomial(s, kCotangent);
      const Double reflected = result + (1.0 / size + cotangent);
      result = wide < 0.0 ? (r == 0.0 ? Double{} + NAN : reflected) : result;
      result = wide < INFINITY ? result : wide;
    }
    return x == 0.0f ? Single{} - INFINITY : Narrow(result);
  }
};

// The logarithm of the absolute value of the gamma function.
struct LogarithmOfGamma {
  // In the square of 1 / x, from 8 on: what Stirling's formula lacks, times x. Source: DLMF 5.11.1.
  static constexpr double kTail[] = {1.0 / 12,    -1.0 / 360, 1.0 / 1260,
                                     -1.0 / 1680, 1.0 / 1188, -691.0 / 360360};
  static constexpr double kHalfLogOfTwoPi = 0.9189385332046728;
  // lgamma(2 + z) / z for z from -1/2 to 1/2, and, in the square of r up to 1/2, sin(pi r) / (pi r).
  // By Chebyshev interpolation, computed with 60 digits: relative errors are below 1e-13.
  static constexpr double kNearTwo[] = {
      0.42278433509844865,     0.3224670334241219,     -0.06735230104594789,
      0.020580808424383427,    -0.007385551491347285,  0.0028905105477798577,
      -0.0011927428713188603,  0.000509664345964222,   -0.00022327966351536556,
      9.951609827275654e-05,   -4.420674109062643e-05, 2.0169787019584055e-05,
      -1.1453943505060186e-05, 5.3193215132047825e-06};
  static constexpr double kSine[] = {0.9999999999999496,   -1.6449340668284878,
                                     0.8117424240194722,   -0.19075179376007553,
                                     0.026147500242204993, -0.0023440357436859674,
                                     0.0001424411546151204};

  static DOVETAIL_INLINE Single Of(Single x) {
    const Double wide = Wide(x), size = Magnitude(wide);
    // From gamma(x) to gamma(x + 8).
    Double product = size;
#pragma GCC unroll 8
    for (int k = 1; k < 8; ++k) product = product * (size + double(k));
    const Bits64 small = size < 8.0, low = size < 1.5, near = (size >= 0.5) & (size < 2.5);
    const Double far = small ? size + 8.0 : size, inverse = 1.0 / far;
    const Double rest = kHalfLogOfTwoPi + inverse * Polynomial(inverse * inverse, kTail);
    const Double stirling = (far - 0.5) * WideLogarithmOf(far) - far + rest;
    // Zeros at 1 and 2 are kept.
    const Double z = size - (low ? Double{} + 1.0 : Double{} + 2.0);
    const Double series = z * Polynomial(z, kNearTwo);
    const Double next = small ? product : Double{} + 1.0;
    const Double steps = near ? (low ? size : Double{} + 1.0) : next;
    Double result = (near ? series : stirling) - WideLogarithmOf(steps);
    if (!AllBelow(As<Bits32>(x), kInfinity)) {
      // lgamma(-x) is log(pi / |x sin(pi x)|) - lgamma(x).
      const Double r = FromWhole(size), s = r * r;
      const Double sine = Magnitude(r * Polynomial(s, kSine));
      const Double reflected = -(WideLogarithmOf(size * sine) + result);
      result = wide < 0.0 ? (r == 0.0 ? Double{} + INFINITY : reflected) : result;
      result = size < INFINITY ? result : size;
    }
    return x == 0.0f ? Single{} + INFINITY : Narrow(result);
  }
};

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_UNARY(dovetail_digamma, float, dovetail::Unary<dovetail::Digamma>);
DOVETAIL_UNARY(dovetail_lgamma, float, dovetail::Unary<dovetail::LogarithmOfGamma>);
#pragma GCC visibility pop
