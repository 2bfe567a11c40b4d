// Logarithms, exponentials, hyperbolic functions and roots of float32, and some of float64, in
// vectors as wide as the processor has.
//
// A positive number is 2**n (1 + f) with 1 + f from sqrt(1/2) to sqrt(2), an exponential 2**n exp(r)
// with r up to log(2) / 2. What is added to f or r is small, so that its errors hardly matter, and
// what rounding takes from a leading sum is added again. Errors are below a unit in the last place;
// of `log1p`, `log2`, `tanh` and hyperbolic functions below 1.4, 1.1, 2.5 and 1.7, of `logistic` 2.2.
// `cbrt` is correct to 0.501, and `pow`, which is computed in float64, to 0.504.
//
// The polynomials were fitted by weighted least squares, computed with 60 digits, until the largest
// errors are equal (Lawson's algorithm).

#include "elementary.h"
#include "exponential.h"
#include "exponentials.h"
#include "hyperbolic_tables.h"
#include "logarithm_tables.h"
#include "wide_logarithm.h"

// Vectors are passed among functions that are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace dovetail {
namespace {

constexpr int32_t kRootOfHalf = 0x3f3504f3;
constexpr int64_t kWideNormal = 0x0010000000000000;
// From here on, x is taken for x + 1 and sqrt(x**2 + 1).
constexpr float kFar = 0x1p25f;
constexpr double kLog2OfE = 1.4426950408889634;

// In the square of the argument: (sinh(r) / r - 1) / r**2 and (cosh(r) - 1) / r**2 for r up to
// log(2) / 2.
constexpr float kBentSine[] = {0.16666666681798772f, 0.008333310751825695f,
                               0.00019891182439760473f};
constexpr float kBentCosine[] = {0.5000000013624701f, 0.04166646335606599f, 0.0013933823000283987f};

// With the least relative error of the whole: (log(1 + f) - f + f**2 / 2) / (16 f)**3 in 16 f for
// 1 + f from sqrt(1/2) to sqrt(2).
constexpr float kBentLogarithm[] = {
    0.33333331709694874f * 0x1p-12f, -0.25000821056214945f * 0x1p-16f,
    0.2000122666745984f * 0x1p-20f,  -0.1662335647938388f * 0x1p-24f,
    0.14201762467037407f * 0x1p-28f, -0.1316019505307752f * 0x1p-32f,
    0.12761550360138887f * 0x1p-36f, -0.07634429907300681f * 0x1p-40f};
// The same of (log(1 + f) - f) / f**2 and log2(1 + f) / f - 1 for f from -0.024 to 0.032.
constexpr float kNearLogarithm[] = {-0.5f, 0.33333483f, -0.250088f, 0.19603363f};
constexpr float kNearLogarithm2[] = {0.44269505f, -0.7213475f, 0.4809011f, -0.3608066f,
                                     0.28240377f};
// log2(1 + f) / f for f from -1/32 to 1/16.
constexpr double kNearWideLogarithm2[] = {
    1.4426950408898662, -0.7213475203050761,  0.4808983350100033, -0.3606742357293113,
    0.28856691552420216, -0.24027762654643617, 0.18812278117091807};
// log2((1 + t) / (1 - t)) / t in the square of t, for t up to (sqrt(2) - 1) / (sqrt(2) + 1); 2**f
// for f up to 1/2.
constexpr double kLogarithmOfQuotient[] = {2.885390081789987, 0.9617966734515485,
                                           0.5770835660048659, 0.41167376623771057,
                                           0.3407120415619086};
constexpr double kPowerOfTwo[] = {0.9999999999595618,   0.6931471805568324,
                                  0.24022651213498092,  0.055504109063258665,
                                  0.009618025613318034, 0.0013333478473685416,
                                  0.00015469729214118296, 1.5303700711365693e-05};
// For float64: (exp(r) - 1 - r) / r**2.
constexpr double kWideBentExponential[] = {
    0.5,                   0.16666666666666677,   0.04166666666666658,   0.008333333333322158,
    0.0013888888888942666, 0.0001984126988494614, 2.4801587198227347e-05, 2.755724529043978e-06,
    2.7557387036536817e-07, 2.5108687797196542e-08, 2.0878915151587626e-09};
// ((1 - e)**(-1/3) - 1) / e for e up to 0.104, and 4/3 of the bits of 1 as a number, less what
// makes the largest error smallest.
constexpr float kInverseCubeRoot[] = {0.33468697f, 0.22319104f};
constexpr float kRootStart = 1.4199065e9f;

// A polynomial of five coefficients and more. Its even and its odd part are side by side, so that
// fewer operations wait for each other; with AVX-512 that is not measured.
template <typename Vector, typename Number, int kCount>
DOVETAIL_INLINE Vector LongPolynomial(Vector x, const Number (&coefficients)[kCount]) {
#if defined(DOVETAIL_AVX512)
  return Polynomial(x, coefficients);
#else
  constexpr int kLast = kCount - 1;
  const Vector square = x * x;
  Vector parts[2];
#pragma GCC unroll 2
  for (int i = kLast; i > kLast - 2; --i) {
    parts[i % 2] = square * coefficients[i] + coefficients[i - 2];
  }
#pragma GCC unroll 16
  for (int i = kLast - 4; i >= 0; --i) parts[i % 2] = parts[i % 2] * square + coefficients[i];
  return parts[1] * x + parts[0];
#endif
}

struct HyperbolicSine {
  // Of n log(2) + r: sinh(n log(2)) cosh(r) + cosh(n log(2)) sinh(r).
  static DOVETAIL_INLINE Singles Of(Singles x) {
    constexpr float kShift = 0x1.8p23f, kLog2 = 0.693359375f, kLog2Low = -2.12194440e-4f;
    constexpr float kOverflow = 89.5f, kIdentity = 0x1p-13f;
    Singles size = As<Singles>(As<AllBits32>(x) & INT32_MAX);
    size = size > kOverflow ? kOverflow : size;
    const Singles shifted = size * 1.44269504f + kShift, count = shifted - kShift;
    const Singles rest = (size - count * kLog2) - count * kLog2Low, square = rest * rest;
    const Singles sine = rest + rest * square * Polynomial(square, kBentSine);
    const Singles cosine = square * Polynomial(square, kBentCosine);
    // A quarter of 2**n and 2**-n.
    const AllBits32 n = As<AllBits32>(shifted) << 23, least = (125 << 23) - n;
    const Singles rising = As<Singles>((125 << 23) + n);
    const Singles falling = As<Singles>(least > 0 ? least : 0);
    const Singles high = rising - falling;
    const Singles half = high + (high * cosine + (rising + falling) * sine);
    // A quarter of a small number may be subnormal.
    return size < kIdentity ? x : WithSignOf(half + half, x);
  }
};

// n of a positive number 2**n m with m from sqrt(1/2) to sqrt(2), with the bias of exponents.
DOVETAIL_INLINE AllBits32 ExponentOf(AllBits32 bits) {
  return (bits + (kOne - kRootOfHalf)) >> 23;
}

// f**3 (log(1 + f) - f + f**2 / 2) / f**3 - f**2 / 2 of 16 f.
DOVETAIL_INLINE Singles BendOfLogarithm(Singles f, Singles more) {
  const Singles square = f * f, tail = f * square * Polynomial(f, kBentLogarithm) + more;
  return tail - square * 0x1p-9f;
}

// n log(2) + log(1 + f) + low of n and 16 f, where low is small.
DOVETAIL_INLINE Singles SumOfLogarithms(Singles n, Singles f, Singles low) {
  const Singles leading = n * kLog2High, total = leading + f * 0.0625f;
  // What rounding took from the sum, whose first term is zero or the larger one.
  const Singles lost = f * 0.0625f - (total - leading);
  return total + (lost + BendOfLogarithm(f, n * kLog2Low + low));
}

// `result`, which is right of positive, normal and finite numbers, or the logarithm of others.
DOVETAIL_INLINE Singles LimitsOfLogarithm(Singles x, Singles result) {
  const AllBits32 bits = As<AllBits32>(x);
  if (__builtin_expect(AllBelow(bits - kNormal, kInfinity - kNormal), 1)) return result;
  const Singles other = bits == kInfinity ? x : Singles{} + NAN;
  const Singles limit = x == 0.0f ? Singles{} - INFINITY : other;
  return ((bits >= kNormal) & (bits < kInfinity)) ? result : limit;
}

#if defined(DOVETAIL_AVX512)
// A positive number is 2**n (1 + f) / r with r from a table.
struct Parts {
  Singles n, f;
  AllBits32 index;
};

DOVETAIL_INLINE Parts PartsOf(Singles x) {
  constexpr int32_t kStart = 0x3f400000;
  const AllBits32 bits = As<AllBits32>(x), n = (bits - kStart) >> 23, index = bits >> 18;
  const Singles mantissa = As<Singles>(bits - (n << 23));
  return {Converted(n), mantissa * LookedUp(kNearReciprocal, index) - 1.0f, index};
}
#endif

struct Logarithm {
  static DOVETAIL_INLINE Singles Of(Singles x) {
#if defined(DOVETAIL_AVX512)
    const auto [n, f, index] = PartsOf(x);
    const Singles low = n * kLog2Low + LookedUp(kLogarithmLow, index);
    const Singles rest = f + (f * f * Polynomial(f, kNearLogarithm) + low);
    return LimitsOfLogarithm(x, n * kLog2High + LookedUp(kLogarithmHigh, index) + rest);
#else
    const AllBits32 bits = As<AllBits32>(x), biased = ExponentOf(bits);
    const Singles f = As<Singles>(bits - ((biased - 4) << 23) + kOne) - 16.0f;
    return LimitsOfLogarithm(x, SumOfLogarithms(Converted(biased) - 127.0f, f, Singles{}));
#endif
  }
};

struct Logarithm2 {
  // Exact of powers of two: the product of 1 and f is exact.
  static DOVETAIL_INLINE Singles Of(Singles x) {
#if defined(DOVETAIL_AVX512)
    const auto [n, f, index] = PartsOf(x);
    const Singles low = LookedUp(kLogarithm2Low, index);
    const Singles rest = f + (f * Polynomial(f, kNearLogarithm2) + low);
    return LimitsOfLogarithm(x, n + LookedUp(kLogarithm2High, index) + rest);
#else
    constexpr float kScale = 1.44269504f, kRest = 0.44269504f;
    const AllBits32 bits = As<AllBits32>(x), biased = ExponentOf(bits);
    const Singles f = As<Singles>(bits - ((biased - 4) << 23) + kOne) - 16.0f;
    const Singles n = Converted(biased) - 127.0f, total = n + f * 0.0625f;
    const Singles lost = f * 0.0625f - (total - n);
    const Singles rest = f * (kRest / 16) + BendOfLogarithm(f, Singles{}) * kScale;
    return LimitsOfLogarithm(x, total + (lost + rest));
#endif
  }
};

// log(one + x) + more log(2) + low, where `one` is 1 or 0, and `low` is small against x.
//
// The sum is rounded; it only tells n. Both its terms are divided by 2**n.
DOVETAIL_INLINE Singles LogarithmOfSum(Singles one, Singles x, Singles more, Singles low) {
  const AllBits32 biased = ExponentOf(As<AllBits32>(one + x));
  // 16 / 2**n, because 1 / 2**128 is no normal float32.
  const Singles scale = As<Singles>((2 * 127 + 4 - biased) << 23);
  const Singles f = x * scale + (one * scale - 16.0f);
  return SumOfLogarithms(Converted(biased) - 127.0f + more, f, low * scale * 0.0625f);
}

struct LogarithmOfOneMore {
  static DOVETAIL_INLINE Singles Of(Singles x) {
    const Singles one = Singles{} + 1.0f, result = LogarithmOfSum(one, x, Singles{}, Singles{});
    return x == 0.0f ? x : LimitsOfLogarithm(x + 1.0f, result);
  }
};

// The logarithm of 1 + sum + low, or of 2 x where x is large.
DOVETAIL_INLINE Singles InverseHyperbolic(Singles x, Singles sum, Singles low) {
  const Singles one = Singles{} + 1.0f, none{};
  if (__builtin_expect(AllBelow(As<AllBits32>(x), As<int32_t>(kFar)), 1)) {
    return LogarithmOfSum(one, sum, none, low);
  }
  const AllBits32 far = x > kFar;
  const Singles result =
      LogarithmOfSum(far ? none : one, far ? x : sum, far ? one : none, far ? none : low);
  return x < INFINITY ? result : x;
}

struct Sum {
  Singles sum, low;
};

struct InverseHyperbolicSine {
  using Half = Sum;
  // log(1 + t) of t = x + x**2 / (1 + sqrt(1 + x**2)).
  static DOVETAIL_INLINE Sum First(Singles x) {
    const Singles size = Magnitude(x), square = size * size;
    const Singles rest = square * ReciprocalOf(1.0f + RootOf(1.0f + square)), sum = size + rest;
    return {sum, rest - (sum - size)};
  }
  static DOVETAIL_INLINE Singles Second(Singles x, Sum half) {
    const Singles result = InverseHyperbolic(Magnitude(x), half.sum, half.low);
    return x == 0.0f ? x : WithSignOf(result, x);
  }
};

struct InverseHyperbolicCosine {
  using Half = Sum;
  // log(1 + t) of t = z + sqrt(z**2 + 2 z) with z = x - 1.
  static DOVETAIL_INLINE Sum First(Singles x) {
    const Singles z = x - 1.0f, root = RootOf(z * z + (z + z)), sum = root + z;
    return {sum, z - (sum - root)};
  }
  static DOVETAIL_INLINE Singles Second(Singles x, Sum half) {
    const Singles result = InverseHyperbolic(x, half.sum, half.low);
    return x < 1.0f ? Singles{} + NAN : result;
  }
};

struct InverseHyperbolicTangent {
  // Half of log(1 + t) with t = 2 x / (1 - x).
  static DOVETAIL_INLINE Singles Of(Singles x) {
    const Singles size = Magnitude(x), twice = size + size;
    const Singles below = 1.0f - size, lost = (1.0f - below) - size;
    const Singles inverse = ReciprocalOf(below), t = twice * inverse;
    const Singles low = ((twice - t * below) - t * lost) * inverse;
    const Singles result = LogarithmOfSum(Singles{} + 1.0f, t, Singles{}, low) * 0.5f;
    const Singles inside = x == 0.0f ? x : WithSignOf(result, x);
    if (__builtin_expect(AllBelow(As<AllBits32>(size), kOne), 1)) return inside;
    const Singles limit = size == 1.0f ? x * INFINITY : Singles{} + NAN;
    return size < 1.0f ? inside : limit;
  }
};

// one (exp(x) - 1) with scale = 2**n one, where `one` is 1 or, so that nothing overflows, 1/2: the
// sum of scale - one and scale (rest + bend). What rounding takes from both is added to the rest.
template <typename Vector, typename Number, typename Integers>
DOVETAIL_INLINE Vector Rise(Vector scale, Number one, const Growth<Vector, Integers>& growth) {
  const Vector whole = scale - one, total = whole + scale * growth.rest;
  const Vector lost = scale * growth.rest - (total - whole);
  return total + (scale * growth.bend + (lost + ((scale - whole) - one)));
}

struct ExponentialLessOne {
  static DOVETAIL_INLINE Singles Of(Singles x) {
    constexpr float kLeast = 0x1p-26f, kMost = 87.0f;
    const AllBits32 above = As<AllBits32>(Magnitude(x)) - As<int32_t>(kLeast);
    if (__builtin_expect(AllBelow(above, As<int32_t>(kMost) - As<int32_t>(kLeast)), 1)) {
      const auto growth = GrowthOf<true>(x);
      return Rise(As<Singles>((growth.n + 127) << 23), 1.0f, growth);
    }
    const auto growth = GrowthOf<true>(AtLeast(AtMost(x, 89.0f), -20.0f));
    const Singles half = Rise(As<Singles>((growth.n + 126) << 23), 0.5f, growth);
    return Magnitude(x) < 0x1p-26f ? x : half + half;
  }
};

struct Logistic {
  static DOVETAIL_INLINE Singles Of(Singles x) {
    const auto [rest, bend, count, n] = GrowthOf(-AtMost(Magnitude(x), 88.0f));
    const AllBits32 bits = (n + 127) << 23;
    const Singles scale = As<Singles>(bits > 0 ? bits : 0), power = scale + scale * (rest + bend);
    return (x < 0.0f ? power : Singles{} + 1.0f) / (1.0f + power);
  }
};

struct HyperbolicTangent {
  static DOVETAIL_INLINE Singles Of(Singles x) {
#if defined(DOVETAIL_AVX512)
    constexpr float kFlat = kTangentCentres[31];  // From here on it is 1.
    constexpr int32_t kFirst = 123 << 2;          // The first interval ends above 1/16.
    const Singles size = (Singles)_mm512_min_ps(_mm512_set1_ps(kFlat), (__m512)Magnitude(x));
    const __m512i place = _mm512_srli_epi32((__m512i)size, 21);
    const auto index = (AllBits32)_mm512_max_epi32(
        _mm512_sub_epi32(place, _mm512_set1_epi32(kFirst)), _mm512_setzero_si512());
    const Singles t = size - LookedUp(kTangentCentres, index);
    Singles result = LookedUp(kTangents[6], index);
#pragma GCC unroll 6
    for (int i = 5; i >= 0; --i) result = result * t + LookedUp(kTangents[i], index);
    return x == 0.0f ? x : WithSignOf(result, x);
#else
    constexpr float kFlat = 9.1f, kIdentity = 0x1p-13f;  // From `kFlat` on it is 1.
    const Singles size = Magnitude(x);
    const Singles growth = ExponentialLessOne::Of(AtMost(size, kFlat) * 2.0f);
    return size < kIdentity ? x : WithSignOf(growth / (growth + 2.0f), x);
#endif
  }
};

struct HyperbolicCosine {
  // Half of exp(x) + 1 / exp(x).
  static DOVETAIL_INLINE Singles Of(Singles x) {
    const auto [rest, bend, count, n] = GrowthOf(AtMost(Magnitude(x), 89.5f));
    const Singles scale = As<Singles>((n + 125) << 23), quarter = scale + scale * (rest + bend);
    return quarter + quarter + 0.125f * ReciprocalOf(quarter);
  }
};

struct CubeRoot {
  // From bits divided by -3, z is about 1 / cbrt(x), within 4 percent: with e = 1 - x z**3 it is
  // z (1 - e)**(-1/3). Then y = x z**2, and with e = (x - y**3) z**3 the root is y (1 + e / 3 + 7/18
  // e**2), of which the cube of y is known exactly.
  static DOVETAIL_INLINE Singles OfNormal(Singles x) {
    const Singles counted = Converted(As<AllBits32>(x)) * (-1.0f / 3) + kRootStart;
    const Singles rough = As<Singles>(__builtin_convertvector(counted, AllBits32));
    const Singles above = 1.0f - x * rough * (rough * rough);
    const Singles z = rough + rough * above * Polynomial(above, kInverseCubeRoot);
    const Singles square = z * z, y = x * square, high = y * y, low = ProductLess(y, y, high);
    const Singles rest = (ProductLess(high, y, x) + low * y) * z * square;
    return y - y * rest * (1.0f / 3 - rest * (7.0f / 18));
  }

  static DOVETAIL_INLINE Singles Of(Singles x) {
    // So large that what is left of a difference is normal.
    constexpr int32_t kPlain = 0x20000000;
    const AllBits32 bits = As<AllBits32>(x) & INT32_MAX;
    const Singles size = As<Singles>(bits);
    if (__builtin_expect(AllBelow(bits - kPlain, kInfinity - kPlain), 1)) {
      return WithSignOf(OfNormal(size), x);
    }
    const Singles large = bits < kPlain ? size * 0x1p90f : size;
    const Singles all = bits < kNormal ? Converted(bits) * 0x1p-59f : large;
    const Singles root = OfNormal(all) * (bits < kPlain ? Singles{} + 0x1p-30f : Singles{} + 1.0f);
    return ((bits == 0) | (bits >= kInfinity)) ? x : WithSignOf(root, x);
  }
};

#if defined(DOVETAIL_AVX512)
struct ReciprocalRoot {
  // With an error of e, 1 / sqrt(1 - e) is 1 + e / 2 + 3 / 8 e**2 to 38 bits.
  static DOVETAIL_INLINE Singles Of(Singles x) {
    const Singles rough = (Singles)_mm512_rsqrt14_ps((__m512)x);
    const Singles error = -ProductLess(x * rough, rough, Singles{} + 1.0f);
    const Singles result = rough + rough * (error * (error * 0.375f + 0.5f));
    // Of zero and infinity there is no error.
    return error == error ? result : rough;
  }
};
#endif

DOVETAIL_INLINE Double WideLimitsOfLogarithm(Double x, Double result) {
  const Bits64 bits = As<Bits64>(x);
  if (__builtin_expect(AllBelow(bits - kWideNormal, kWideInfinity - kWideNormal), 1)) return result;
  const Double other = bits == kWideInfinity ? x : Double{} + NAN;
  const Double limit = x == 0.0 ? Double{} - INFINITY : other;
  return ((bits >= kWideNormal) & (bits < kWideInfinity)) ? result : limit;
}

struct WideLogarithm {
  static DOVETAIL_INLINE Double Of(Double x) {
    const Bits64 bits = As<Bits64>(x);
    const auto [n, biased] = WideExponentOf(bits);
    const Double f = As<Double>(bits - (biased << 52) + kWideOne) - 1.0;
    return WideLimitsOfLogarithm(x, WideSumOfLogarithms(n, f));
  }
};

struct WideLogarithmOfOneMore {
  // The sum is rounded; it only tells n. Both its terms are divided by 2**n.
  static DOVETAIL_INLINE Double Of(Double x) {
    const auto [n, biased] = WideExponentOf(As<Bits64>(x + 1.0));
    // 16 / 2**n, because 1 / 2**1024 is no normal number.
    const Double scale = As<Double>((2 * 1023 + 4 - biased) << 52);
    const Double result = WideSumOfLogarithms(n, (x * scale + (scale - 16.0)) * 0.0625);
    return x == 0.0 ? x : WideLimitsOfLogarithm(x + 1.0, result);
  }
};

// n is in the lowest bits.
template <bool kExact = false>
DOVETAIL_INLINE Growth<Double, Bits64> GrowthOf(Double x) {
  const Double shifted = x * kLog2OfE + kShifter, count = shifted - kShifter;
  const Double start = x - count * kWideLog2High, rest = start - count * kWideLog2Low;
  Double bend = rest * rest * LongPolynomial(rest, kWideBentExponential);
  if (kExact) bend += (start - rest) - count * kWideLog2Low;
  return {rest, bend, count, As<Bits64>(shifted)};
}

struct WideExponential {
  static DOVETAIL_INLINE Double Of(Double x) {
    constexpr double kLeast = -708.3964185322641, kMost = 709.782712893384;
    const auto [rest, bend, count, n] = GrowthOf(x);
    const Double result = As<Double>(As<Bits64>(1.0 + (rest + bend)) + (n << 52));
    if (__builtin_expect(AllBelow(As<Bits64>(Magnitude(x)), As<int64_t>(-kLeast)), 1)) {
      return result;
    }
    const Double high = x > kMost ? Double{} + INFINITY : x;
    return x < kLeast ? Double{} : (x <= kMost ? result : high);
  }
};

struct WideExponentialLessOne {
  static DOVETAIL_INLINE Double Of(Double x) {
    const Double high = x > 710.0 ? Double{} + 710.0 : x;
    const auto growth = GrowthOf<true>(high < -60.0 ? Double{} - 60.0 : high);
    const Double half = Rise(As<Double>((growth.n + 1022) << 52), 0.5, growth);
    return Magnitude(x) < 0x1p-54 ? x : half + half;
  }
};

struct WideHyperbolicTangent {
  // -t / (t + 1) with t half of exp(-2 x) - 1.
  static DOVETAIL_INLINE Double Of(Double x) {
    const Double size = Magnitude(x);
    const auto [rest, bend, count, n] = GrowthOf(-2.0 * (size > 25.0 ? Double{} + 25.0 : size));
    const Double scale = As<Double>((n + 1022) << 52);
    const Double half = scale * (rest + bend) + (scale - 0.5);
    return WithSignOf(Magnitude(half / (half + 1.0)), x);
  }
};

struct Power {
  // log2 of a positive number.
  static DOVETAIL_INLINE Double Logarithm(Double size) {
#if defined(DOVETAIL_AVX512)
    const __m512d m = _mm512_getmant_pd((__m512d)size, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
    const Double n = (Double)_mm512_getexp_pd((__m512d)size);
    const __m512i index = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);
    const Double f = (Double)m * WideLookedUp(kWideReciprocal, index) - 1.0;
    return f * Polynomial(f, kNearWideLogarithm2) + (n + WideLookedUp(kWideLogarithm2, index));
#else
    const Bits64 bits = As<Bits64>(size);
    const auto [n, biased] = WideExponentOf(bits);
    const Double m = As<Double>(bits - (biased << 52) + kWideOne);
    const Double quotient = (m - 1.0) * Reciprocal(m + 1.0);
    return n + quotient * Polynomial(quotient * quotient, kLogarithmOfQuotient);
#endif
  }

  static DOVETAIL_INLINE Double Exponential(Double x) {
    const Double shifted = x + kShifter, rest = x - (shifted - kShifter);
    const Double power = Polynomial(rest, kPowerOfTwo);
    return As<Double>(As<Bits64>(power) + (As<Bits64>(shifted) << 52));
  }

  static DOVETAIL_INLINE Double Limited(Double x) {
    const Double high = x > 200.0 ? Double{} + 200.0 : x;
    return high < -200.0 ? Double{} - 200.0 : high;
  }

#if defined(DOVETAIL_AVX512)
  static bool Plain(const float* x, const float* y, int64_t count, float* out) {
    Double products[kBlock / kLanes];
    __m512i largest = _mm512_setzero_si512();
    __m512d extreme = _mm512_setzero_pd();
    for (int64_t i = 0; i < count; i += 2) {
      const float *base = x + i * kLanes, *exponent = y + i * kLanes;
      FetchAhead(base, out + i * kLanes);
      FetchAhead(exponent, out + i * kLanes);
      const AllBits32 first = Load<AllBits32>(base), second = Load<AllBits32>(exponent);
      largest = _mm512_max_epu32(largest, (__m512i)(first - kNormal));
      largest = _mm512_max_epu32(largest, (__m512i)((second & INT32_MAX) - kNormal));
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        const Double product = Logarithm(Wide(Load<Single>(base + k * kLanes))) *
                               Wide(Load<Single>(exponent + k * kLanes));
        extreme = _mm512_max_pd(extreme, (__m512d)Magnitude(product));
        products[i + k] = product;
      }
    }
    if (_mm512_reduce_max_epu32(largest) >= uint32_t{kInfinity - kNormal}) return false;
    if (!(_mm512_reduce_max_pd(extreme) < 126.0)) return false;
    for (int64_t i = 0; i < count; ++i) {
      Store(Narrow(Exponential(products[i])), out + i * kLanes);
    }
    return true;
  }
#else
  static bool Plain(const float* x, const float* y, int64_t count, float* out) {
    Double products[kBlock / kLanes];
    Naturals32 largest{};
    Bits64 extreme{};
    for (int64_t i = 0; i < count; ++i) {
      const Single base = Load<Single>(x + i * kLanes), exponent = Load<Single>(y + i * kLanes);
      const Naturals32 above = As<Naturals32>(As<Bits32>(base) - kNormal);
      largest = Larger(largest, Larger(above, FromNormal(exponent)));
      products[i] = Logarithm(Wide(base)) * Wide(exponent);
      extreme |= Magnitude(products[i]) >= 126.0;
    }
    if (!AllBelow(As<Bits32>(largest), kInfinity - kNormal)) return false;
    if (!AllBelow(-extreme, int64_t{1})) return false;
    for (int64_t i = 0; i < count; ++i) {
      Store(Narrow(Exponential(products[i])), out + i * kLanes);
    }
    return true;
  }
#endif

  // With the special cases of IEEE 754.
  static DOVETAIL_INLINE Single Any(Single x, Single y) {
    const Double size = SizeOf(x), exponent = SizeOf(y), one = Double{} + 1.0;
    const Double finite = size < INFINITY ? Logarithm(size) : Double{} + 1e300;
    const Double logarithm = size == 0.0 ? Double{} - 1e300 : finite;
    const Bits64 negative = Widened(As<Bits32>(y)) < 0;
    const Double power = Exponential(Limited(logarithm * (negative ? -exponent : exponent)));
    const Bits64 large = exponent >= 0x1p52;
    const Bits64 integer = large | (Nearest(exponent) == exponent);
    const Double half = exponent * 0.5;
    const Bits64 odd = integer & ~large & (Nearest(half) != half);
    const Bits32 below = As<Bits32>(x) & INT32_MIN;
    const Single result =
        SignedSingle(power, below & Narrowed(odd));
    const Bits64 left = Widened(below) < 0;
    const Bits64 real = integer | ~left | (size == 0.0) | (size == INFINITY);
    const Bits64 number = (size == size) & (exponent == exponent) & real;
    const Bits64 unit = (exponent == 0.0) | ((size == one) & (~left | (exponent == INFINITY)));
    const Single known = Narrowed(number) ? result : Single{} + NAN;
    return Narrowed(unit) ? Single{} + 1.0f : known;
  }
};

// log(exp(x) + exp(y)), where y of all is `fixed` if there is no other. Exponentials and logarithms
// are two loops, so that the processor works on several vectors at once.
void LogarithmsOfExponentials(const float* x, const float* y, float fixed, int64_t size,
                              float* out) {
  const Singles one = Singles{} + 1.0f, none{};
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const int64_t count = std::min(kBlock, size - begin);
    const int64_t vectors = (count + kSingles - 1) / kSingles;
    float first[kBlock], second[kBlock], powers[kBlock], results[kBlock];
    const float *a = x + begin, *b = y == nullptr ? second : y + begin;
    float* to = out + begin;
    if (y == nullptr) std::fill(second, second + vectors * kSingles, fixed);
    if (count % kSingles != 0) {
      std::fill(std::copy(a, a + count, first), first + vectors * kSingles, 0.0f);
      if (y != nullptr) {
        std::fill(std::copy(b, b + count, second), second + vectors * kSingles, 0.0f);
      }
      a = first, b = second, to = results;
    }
    for (int64_t i = 0; i < vectors * kSingles; i += kSingles) {
      const Singles u = Load<Singles>(a + i), v = Load<Singles>(b + i);
      Store(Exponential::Of(-Magnitude(u == v ? none : u - v)), powers + i);
    }
    for (int64_t i = 0; i < vectors * kSingles; i += kSingles) {
      const Singles u = Load<Singles>(a + i), v = Load<Singles>(b + i);
      const Singles growth = LogarithmOfSum(one, Load<Singles>(powers + i), none, none);
      Store((u >= v ? u : v) + growth, to + i);
    }
    if (to == results) std::copy(results, results + count, out + begin);
  }
}

ffi::Error OfExponentials(ffi::ThreadPool pool, bool is_fixed, float fixed, Operand<float> x,
                          Operand<float> y, ffi::Result<Operand<float>> out) {
  const float *first = x.typed_data(), *second = y.typed_data();
  float* to = out->typed_data();
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    LogarithmsOfExponentials(first + begin, is_fixed ? nullptr : second + begin, fixed,
                             end - begin, to + begin);
  });
  return ffi::Error::Success();
}

struct PowerOfTwo {
  static DOVETAIL_INLINE Single Of(Single x) {
    const Single power = Narrow(Power::Exponential(Power::Limited(Wide(x))));
    return x == x ? power : x;
  }
};

template <typename Function>
constexpr HostFunction kInHalves = OnHost<float, OfSingles<InHalves<Function>>>;
template <typename Function>
constexpr HostFunction kDoubly = OnHost<double, OfVectors<Function, Double, double>>;

#if defined(DOVETAIL_AVX512)
constexpr ptrdiff_t kQuickTangents = kQuick;
#else
constexpr ptrdiff_t kQuickTangents = kFew;
#endif

const HostEntry kEntries[] = {
    {"acosh", "float32", kInHalves<InverseHyperbolicCosine>, kQuick},
    {"asinh", "float32", kInHalves<InverseHyperbolicSine>, kQuick},
    {"atanh", "float32", kSingly<InverseHyperbolicTangent>, kQuick},
    {"cbrt", "float32", kSingly<CubeRoot>, kQuick},
    {"cosh", "float32", kSingly<HyperbolicCosine>, kQuick},
    {"exp", "float32", kSingly<Exponential>, kSeveral},
    {"exp", "float64", kDoubly<WideExponential>, kQuick},
    {"exp2", "float32", OnHost<float, OfVectors<PowerOfTwo, Single, float>>, kFew},
    {"expm1", "float32", kSingly<ExponentialLessOne>, kSeveral},
    {"expm1", "float64", kDoubly<WideExponentialLessOne>, kQuick},
    {"log", "float32", kSingly<Logarithm>, kSeveral},
    {"log", "float64", kDoubly<WideLogarithm>, kQuick},
    {"log1p", "float32", kSingly<LogarithmOfOneMore>, kSeveral},
    {"log1p", "float64", kDoubly<WideLogarithmOfOneMore>, kQuick},
    {"log2", "float32", kSingly<Logarithm2>, kSeveral},
    {"logistic", "float32", kSingly<Logistic>, kSeveral},
    {"pow", "float32", PairsOnHost<Power>, kQuick},
#if defined(DOVETAIL_AVX512)
    {"rsqrt", "float32", kSingly<ReciprocalRoot>, kQuick},
#endif
    {"sinh", "float32", kSingly<HyperbolicSine>, kQuick},
    {"tanh", "float32", kSingly<HyperbolicTangent>, kQuickTangents},
    {"tanh", "float64", kDoubly<WideHyperbolicTangent>, kQuick},
};

}  // namespace

void Exponentiate(float factor, float* x, int64_t count) {
  for (int64_t i = 0; i < count; i += kSingles) {
    Store(Exponential::Of(factor * Load<Singles>(x + i)), x + i);
  }
}

void ExponentiatePanel(int64_t rows, float* x, float* largest, float* sums, float* factors) {
  constexpr int64_t kPanel = 2 * kSingles;
  constexpr int kTogether = 4;
  for (int64_t lane = 0; lane < kPanel; lane += kSingles) {
    float* const at = x + lane;
    const Singles before = Load<Singles>(largest + lane);
    Singles most[kTogether], sum[kTogether] = {};
    for (Singles& one : most) one = before;
    int64_t k = 0;
    for (; k + kTogether <= rows; k += kTogether) {
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i) {
        const Singles own = Load<Singles>(at + (k + i) * kPanel);
        most[i] = own > most[i] ? own : most[i];
      }
    }
    for (; k < rows; ++k) {
      const Singles own = Load<Singles>(at + k * kPanel);
      most[0] = own > most[0] ? own : most[0];
    }
    for (int i = 1; i < kTogether; ++i) most[0] = most[i] > most[0] ? most[i] : most[0];
    const Singles shift = most[0];
    for (k = 0; k + kTogether <= rows; k += kTogether) {
#pragma GCC unroll 4
      for (int i = 0; i < kTogether; ++i) {
        const Singles power = Exponential::Of(Load<Singles>(at + (k + i) * kPanel) - shift);
        Store(power, at + (k + i) * kPanel);
        sum[i] += power;
      }
    }
    for (; k < rows; ++k) {
      const Singles power = Exponential::Of(Load<Singles>(at + k * kPanel) - shift);
      Store(power, at + k * kPanel);
      sum[0] += power;
    }
    const Singles factor = Exponential::Of(before - shift);
    Store(shift, largest + lane);
    Store(factor, factors + lane);
    const Singles added = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    Store(Load<Singles>(sums + lane) * factor + added, sums + lane);
  }
}

const HostEntry* ExponentialFunctions(size_t* count) {
  *count = sizeof(kEntries) / sizeof(kEntries[0]);
  return kEntries;
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_OF_FLOATS(dovetail_acosh, dovetail::InHalves<dovetail::InverseHyperbolicCosine>);
DOVETAIL_OF_FLOATS(dovetail_asinh, dovetail::InHalves<dovetail::InverseHyperbolicSine>);
DOVETAIL_OF_FLOATS(dovetail_atanh, dovetail::AtOnce<dovetail::InverseHyperbolicTangent>);
DOVETAIL_OF_FLOATS(dovetail_cbrt, dovetail::AtOnce<dovetail::CubeRoot>);
DOVETAIL_OF_FLOATS(dovetail_cosh, dovetail::AtOnce<dovetail::HyperbolicCosine>);
DOVETAIL_OF_FLOATS(dovetail_exp, dovetail::AtOnce<dovetail::Exponential>);
DOVETAIL_UNARY(dovetail_exp_f64, double,
               dovetail::Unary<dovetail::WideExponential, dovetail::Double, double>);
DOVETAIL_OF_FLOATS(dovetail_expm1, dovetail::AtOnce<dovetail::ExponentialLessOne>);
DOVETAIL_UNARY(dovetail_expm1_f64, double,
               dovetail::Unary<dovetail::WideExponentialLessOne, dovetail::Double, double>);
DOVETAIL_OF_FLOATS(dovetail_log, dovetail::AtOnce<dovetail::Logarithm>);
DOVETAIL_OF_FLOATS(dovetail_log1p, dovetail::AtOnce<dovetail::LogarithmOfOneMore>);
DOVETAIL_UNARY(dovetail_log1p_f64, double,
               dovetail::Unary<dovetail::WideLogarithmOfOneMore, dovetail::Double, double>);
DOVETAIL_OF_FLOATS(dovetail_log2, dovetail::AtOnce<dovetail::Logarithm2>);
DOVETAIL_UNARY(dovetail_log_f64, double,
               dovetail::Unary<dovetail::WideLogarithm, dovetail::Double, double>);
DOVETAIL_OF_FLOATS(dovetail_logistic, dovetail::AtOnce<dovetail::Logistic>);
DOVETAIL_KERNEL(dovetail_logaddexp, dovetail::OfExponentials,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Attr<bool>("is_fixed")
                    .Attr<float>("fixed")
                    .Arg<dovetail::Operand<float>>()
                    .Arg<dovetail::Operand<float>>()
                    .Ret<dovetail::Operand<float>>());
DOVETAIL_GATE(dovetail_logistic_gate, dovetail::Logistic);
DOVETAIL_BINARY(dovetail_pow, dovetail::Binary<dovetail::Power>);
DOVETAIL_OF_FLOATS(dovetail_sinh, dovetail::AtOnce<dovetail::HyperbolicSine>);
DOVETAIL_OF_FLOATS(dovetail_tanh, dovetail::AtOnce<dovetail::HyperbolicTangent>);
DOVETAIL_UNARY(dovetail_tanh_f64, double,
               dovetail::Unary<dovetail::WideHyperbolicTangent, dovetail::Double, double>);
#pragma GCC visibility pop
