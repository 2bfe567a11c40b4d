// Elementary functions of float32 in float64, so that nearly all results are the nearest ones, in
// steps that compilers turn into vectors: what is chosen from has been computed. Polynomials are
// truncated series of Taylor's.

#ifndef DOVETAIL_CPU_HOST_ELEMENTARY_H_
#define DOVETAIL_CPU_HOST_ELEMENTARY_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "host_functions.h"

namespace dovetail {

// Added to a number below 2^51, it leaves the nearest integer in the lowest bits.
constexpr double kShift = 0x1.8p52;

// 2^n (1 + r + ... + r^8 / 8!) with x = n log 2 + r: the rest is below 2e-10.
inline double ExponentialOf(double x) {
  x = x < -160 ? -160 : x > 160 ? 160 : x;
  const double shifted = x * 0x1.71547652b82fep0 + kShift;
  const double n = shifted - kShift;
  const double r = (x - n * 0x1.62e42fefap-1) - n * 0x1.cf79abc9e3b3ap-40;
  double sum = 1 + r * (1. / 8);
  sum = 1 + r * (1. / 7) * sum;
  sum = 1 + r * (1. / 6) * sum;
  sum = 1 + r * (1. / 5) * sum;
  sum = 1 + r * (1. / 4) * sum;
  sum = 1 + r * (1. / 3) * sum;
  sum = 1 + r * (1. / 2) * sum;
  sum = 1 + r * sum;
  return sum * As<double>((As<uint64_t>(shifted) + 1023) << 52);
}

// e log 2 + 2 (s + s^3 / 3 + ... + s^13 / 13) with x = 2^e (1 + s) / (1 - s).
inline double LogarithmOf(double x) {
  const uint64_t bits = As<uint64_t>(x);
  const double mantissa = As<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  const double exponent = As<double>((bits >> 52) | 0x4330000000000000) - (0x1p52 + 1023);
  const bool large = mantissa > 0x1.6a09e667f3bcdp0;
  const double half = 0.5 * mantissa, next = exponent + 1;
  const double m = large ? half : mantissa, e = large ? next : exponent;
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 1. / 11 + s2 * (1. / 13);
  sum = 1. / 9 + s2 * sum;
  sum = 1. / 7 + s2 * sum;
  sum = 1. / 5 + s2 * sum;
  sum = 1. / 3 + s2 * sum;
  const double result = e * 0x1.62e42fefa39efp-1 + 2 * (s + s * s2 * sum);
  const double infinity = std::numeric_limits<double>::infinity();
  const double above = x < infinity ? result : x;
  const double zero = x == 0 ? -infinity : std::numeric_limits<double>::quiet_NaN();
  return x > 0 ? above : zero;
}

// Programs give back denormal arguments of functions that are the identity at zero.
inline float AtZero(float x, double result) {
  const float rounded = float(result);
  return x == 0 ? x : rounded;
}

struct ReciprocalRoot {
  float operator()(float x) const { return 1 / std::sqrt(x); }
};
struct Log1p {
  float operator()(float value) const {
    const double x = value, near = x * (1 - x * (0.5 - x * (1. / 3)));
    const double far = LogarithmOf(1 + x);
    return float(std::fabs(x) < 1e-4 ? near : far);
  }
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_HOST_ELEMENTARY_H_
