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
