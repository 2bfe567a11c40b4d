// Elementary functions of float32, and sines of float64, in vectors as wide as the processor has.
//
// Those of float32 are mostly computed in float64, by the formulas of lowerings/elementary.py, and
// are correct to 0.502 units in the last place; arguments of sines that are not large are reduced by
// two parts of pi. `atan` and `sinh` are computed in float32, with errors below 1.3 and 2 units.
// Sines of float64 are off by up to 0.7 units.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernel.h"
#include "parallel.h"
#include "vector_width.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

// Vectors are passed among functions that are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

#define DOVETAIL_INLINE inline __attribute__((always_inline))

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// How many float64 a register holds: of wider vectors GCC makes scalars.
constexpr int kLanes = kVectorBytes / 8;
typedef float Single __attribute__((vector_size(4 * kLanes)));
typedef int32_t Bits32 __attribute__((vector_size(4 * kLanes)));
typedef float Singles __attribute__((vector_size(8 * kLanes)));
typedef int32_t AllBits32 __attribute__((vector_size(8 * kLanes)));
typedef double Double __attribute__((vector_size(8 * kLanes)));
typedef int64_t Bits64 __attribute__((vector_size(8 * kLanes)));

// Adding this to an integer of less than 2**51 puts it in the lowest bits of a float64.
constexpr double kShifter = 0x1.8p52;
constexpr double kPi = 0x1.921fb54442d18p1;
// Their product with an integer of up to 24 bits is exact, and the rest of pi.
constexpr double kPiHigh = 0x1.921fb54p1;
constexpr double kPiLow = 0x1.10b4611a62633p-29;
// pi / 2 in parts of 33 bits, whose products with integers of up to 20 bits are exact, and the rest.
constexpr double kHalfPi[] = {0x1.921fb544p0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
// Elements that are looked at together.
constexpr int64_t kBlock = 512;

// 2 / pi in parts of 28 bits, whose products with a float32 are exact. Products of the first five
// can be 4 or more.
constexpr int kParts = 7, kLargeParts = 5;
constexpr double kTwoOverPi[kParts] = {0x1.45f306cp-1,  0x1.c9c882ap-29, 0x1.4fe13a8p-59,
                                       0x1.f47d4dp-86,  0x1.bb81b6cp-113, 0x1.4acc9ep-143,
                                       0x1.0e4107cp-170};

// In the square of the argument: sin(x) / x for x up to pi / 2; sin(pi / 2 r) / r and
// cos(pi / 2 r) for r up to 1/2; (asin(y) / y - 1) / y**2 for y up to 1/2.
constexpr double kSineOfHalf[] = {0.999999999982915,     -0.16666666616805645,
                                   0.008333330973832561,  -0.00019840861130709312,
                                   2.7525267280404423e-06, -2.388917218318869e-08};
constexpr double kSine[] = {1.5707963267881, -0.6459640961467954, 0.07969258272563062,
                            -0.004681266256726245, 0.00015820630355647733};
constexpr double kCosine[] = {0.9999999999524894, -1.2337005406331623, 0.2536692036551135,
                              -0.02086006950026408, 0.0009036280663802505};
constexpr double kArcSine[] = {0.16666667180260875,  0.07499948897518277,   0.04465997218005411,
                               0.030112525166671233, 0.024604713525054816,  0.0075094682258100565,
                               0.03464633536397867};

// In the square of the argument, for r up to pi / 4: (sin(r) / r - 1) / r**2, and
// (cos(r) - 1 + r**2 / 2) / r**4.
constexpr double kWideSine[] = {-0.16666666666666666,    0.008333333333333331,
                                -0.00019841269841265063, 2.7557319219336253e-06,
                                -2.5052106231407527e-08, 1.6058531450551412e-10,
                                -7.5866870129781e-13};
constexpr double kWideCosine[] = {0.041666666666666664,    -0.0013888888888887395,
                                  2.480158729876411e-05,   -2.7557317270867773e-07,
                                  2.08761460816374e-09,    -1.138261856047027e-11};

// In the square of the argument: (atan(t) / t - 1) / t**2 for t up to 1; (sinh(r) / r - 1) / r**2
// and (cosh(r) - 1) / r**2 for r up to log(2) / 2.
constexpr float kBentArcTangent[] = {
    -0.33333152532577515f, 0.19993773102760315f, -0.14211055636405945f, 0.10666003823280334f,
    -0.07552211731672287f, 0.04321183264255524f, -0.01636790856719017f, 0.002920687198638916f};
constexpr float kBentSine[] = {0.16666666681798772f, 0.008333310751825695f,
                               0.00019891182439760473f};
constexpr float kBentCosine[] = {0.5000000013624701f, 0.04166646335606599f, 0.0013933823000283987f};

template <typename To, typename From>
DOVETAIL_INLINE To As(From x) {
  static_assert(sizeof(To) == sizeof(From), "the bits of another type of the same size");
  To result;
  std::memcpy(&result, &x, sizeof(result));
  return result;
}

#if defined(DOVETAIL_AVX512)
// GCC converts the halves of vectors.
DOVETAIL_INLINE Double Wide(Single x) { return (Double)_mm512_cvtps_pd((__m256)x); }
// From 14 bits: with an error of e, 1 / (1 - e) is 1 + e + e**2 to 42 bits, and
// 1 / sqrt(1 - e) is 1 + e / 2 + 3 / 8 e**2 to 38.
DOVETAIL_INLINE Double Reciprocal(Double x) {
  const Double rough = (Double)_mm512_rcp14_pd((__m512d)x), rest = 1.0 - x * rough;
  return rough + rough * (rest + rest * rest);
}
DOVETAIL_INLINE Double Root(Double x) {
  const Double rough = (Double)_mm512_rsqrt14_pd((__m512d)(x + 1e-290)), root = x * rough;
  const Double rest = 1.0 - root * rough;
  return root + root * rest * (0.5 + 0.375 * rest);
}
#else
DOVETAIL_INLINE Double Reciprocal(Double x) { return 1.0 / x; }
DOVETAIL_INLINE Double Wide(Single x) { return __builtin_convertvector(x, Double); }
#if defined(DOVETAIL_AVX2)
DOVETAIL_INLINE Double Root(Double x) { return (Double)_mm256_sqrt_pd((__m256d)x); }
#else
DOVETAIL_INLINE Double Root(Double x) {
  for (int i = 0; i < kLanes; ++i) x[i] = std::sqrt(x[i]);
  return x;
}
#endif
#endif
DOVETAIL_INLINE Single Narrow(Double x) { return __builtin_convertvector(x, Single); }
DOVETAIL_INLINE Double Nearest(Double x) { return (x + kShifter) - kShifter; }

// A polynomial, constant coefficient first.
template <typename Vector, typename Number, int kCount>
DOVETAIL_INLINE Vector Polynomial(Vector x, const Number (&coefficients)[kCount]) {
  Vector result = x * coefficients[kCount - 1] + coefficients[kCount - 2];
#pragma GCC unroll 16
  for (int i = kCount - 3; i >= 0; --i) result = result * x + coefficients[i];
  return result;
}

// `x` itself where the processor flushes it to zero.
DOVETAIL_INLINE Single IdentityAtZero(Single x, Double result) {
  return x == 0.0f ? x : Narrow(result);
}

struct Reduced {
  Double rest;
  Bits64 quadrant;
};

// n and r, where n + r = 2 / pi x modulo 4, abs(r) <= 1/2, of any float32.
DOVETAIL_INLINE Reduced ReduceLarge(Single x) {
  const Double wide = Wide(x);
  Double parts[kParts];
#pragma GCC unroll 7
  for (int i = 0; i < kParts; ++i) {
    parts[i] = wide * kTwoOverPi[i];
    if (i < kLargeParts) parts[i] = parts[i] - Nearest(parts[i] * 0.25) * 4.0;
  }
  Double total = parts[0];
  for (int i = 1; i < kLargeParts; ++i) total = total + parts[i];
  const Double nearest = Nearest(total);
  Double rest = parts[0] - nearest;
  for (int i = 1; i < kParts; ++i) rest = rest + parts[i];
  return {rest, As<Bits64>(nearest + kShifter)};
}

struct Sine {
  using Number = float;
  static DOVETAIL_INLINE Single Small(Single x) {
    const Double wide = Wide(x), shifted = wide * (1 / kPi) + kShifter;
    const Double count = shifted - kShifter;
    const Double rest = (wide - count * kPiHigh) - count * kPiLow;
    const Double value = rest * Polynomial(rest * rest, kSineOfHalf);
    return IdentityAtZero(x, As<Double>(As<Bits64>(value) ^ (As<Bits64>(shifted) << 63)));
  }
  static DOVETAIL_INLINE Single Large(Single x) { return IdentityAtZero(x, Wave(x, 0)); }

  // The sine of x + quarters * pi / 2.
  static DOVETAIL_INLINE Double Wave(Single x, int64_t quarters) {
    const auto [rest, count] = ReduceLarge(x);
    const Double square = rest * rest;
    const Bits64 quadrant = count + quarters;
    const Double sine = rest * Polynomial(square, kSine), cosine = Polynomial(square, kCosine);
    const Double value = (quadrant & 1) == 0 ? sine : cosine;
    return As<Double>(As<Bits64>(value) ^ ((quadrant & 2) << 62));
  }
};

struct Cosine {
  using Number = float;
  // With n the integer nearest to x / pi - 1/2 and r = x - (n + 1/2) pi it is (-1)**(n + 1) sin(r).
  static DOVETAIL_INLINE Single Small(Single x) {
    const Double wide = Wide(x), shifted = wide * (1 / kPi) - 0.5 + kShifter;
    const Double count = (shifted - kShifter) + 0.5;
    const Double rest = (wide - count * kPiHigh) - count * kPiLow;
    const Double value = rest * Polynomial(rest * rest, kSineOfHalf);
    return Narrow(As<Double>(As<Bits64>(value) ^ (~As<Bits64>(shifted) << 63)));
  }
  static DOVETAIL_INLINE Single Large(Single x) { return Narrow(Sine::Wave(x, 1)); }
};

struct Tangent {
  using Number = float;
  static DOVETAIL_INLINE Single Small(Single x) {
    const Double wide = Wide(x), shifted = wide * (2 / kPi) + kShifter;
    const Double count = shifted - kShifter;
    const Double rest = (wide - count * (kPiHigh / 2)) - count * (kPiLow / 2);
    return Quotient(x, rest * (2 / kPi), As<Bits64>(shifted));
  }
  static DOVETAIL_INLINE Single Large(Single x) {
    const auto [rest, quadrant] = ReduceLarge(x);
    return Quotient(x, rest, quadrant);
  }

 private:
  static DOVETAIL_INLINE Single Quotient(Single x, Double rest, Bits64 quadrant) {
    const Double square = rest * rest;
    const Double sine = rest * Polynomial(square, kSine), cosine = Polynomial(square, kCosine);
    const Bits64 even = (quadrant & 1) == 0;
    return IdentityAtZero(x, (even ? sine : -cosine) * Reciprocal(even ? cosine : sine));
  }
};

DOVETAIL_INLINE Double WithSign(Double size, Single x) {
  return As<Double>(As<Bits64>(size) ^ (As<Bits64>(Wide(x)) & INT64_MIN));
}

// asin(y) of y >= 0; above 1/2 it is pi / 2 - 2 asin(sqrt((1 - y) / 2)).
DOVETAIL_INLINE Double ArcSineOf(Double y) {
  const Bits64 steep = y > 0.5;
  const Double square = steep ? 0.5 - 0.5 * y : y * y;
  const Double half = steep ? Root(square) : y;
  const Double angle = half + half * square * Polynomial(square, kArcSine);
  return steep ? kPi / 2 - (angle + angle) : angle;
}

// The sine, or the cosine, of float64.
template <bool kIsCosine>
struct WideSine {
  using Number = double;

  // n and r + low are reduced; sines are r + r**3 S, cosines 1 - r**2 / 2 + r**4 C, in an order in
  // which little is rounded.
  static DOVETAIL_INLINE Double Small(Double x) {
    const Double shifted = x * (2 / kPi) + kShifter, count = shifted - kShifter;
    const Double start = x - count * kHalfPi[0], second = count * kHalfPi[1];
    const Double sum = start - second;
    const Double lost = ((start - sum) - second) - count * kHalfPi[2];
    const Double rest = sum + lost, low = (sum - rest) + lost;
    const Double square = rest * rest, half = 0.5 * square, near = 1.0 - half;
    const Double bend = rest * square * Polynomial(square, kWideSine) + low * near;
    const Double rise = square * square * Polynomial(square, kWideCosine) - rest * low;
    const Bits64 quadrant = As<Bits64>(shifted) + (kIsCosine ? 1 : 0);
    const Bits64 even = (quadrant & 1) == 0;
    const Double value = (even ? rest : near) + (even ? bend : ((1.0 - near) - half) + rise);
    const Double result = As<Double>(As<Bits64>(value) ^ ((quadrant & 2) << 62));
    if (kIsCosine) return result;
    return x == 0.0 ? x : result;
  }

  static DOVETAIL_INLINE Double Large(Double x) {
    for (int i = 0; i < kLanes; ++i) x[i] = kIsCosine ? std::cos(x[i]) : std::sin(x[i]);
    return x;
  }
};

DOVETAIL_INLINE Double Absolute(Single x) { return Wide(As<Single>(As<Bits32>(x) & INT32_MAX)); }

struct ArcSine {
  static DOVETAIL_INLINE Single Of(Single x) {
    return IdentityAtZero(x, WithSign(ArcSineOf(Absolute(x)), x));
  }
};

struct ArcCosine {
  static DOVETAIL_INLINE Single Of(Single x) {
    return Narrow(kPi / 2 - WithSign(ArcSineOf(Absolute(x)), x));
  }
};

DOVETAIL_INLINE Singles WithSignOf(Singles size, Singles x) {
  return As<Singles>(As<AllBits32>(size) | (As<AllBits32>(x) & INT32_MIN));
}

struct ArcTangent {
  // Of a number above 1, the complement of the inverse tangent of its reciprocal.
  static DOVETAIL_INLINE Singles Of(Singles x) {
    constexpr float kQuarter = 1.57079637050628662109375f, kLow = -4.37113883e-8f;
    const Singles size = As<Singles>(As<AllBits32>(x) & INT32_MAX);
    const AllBits32 steep = size > 1.0f;
    const Singles t = steep ? -1.0f / size : size, square = t * t;
    const Singles bend = t * square * Polynomial(square, kBentArcTangent);
    const Singles angle = (steep ? kQuarter : 0.0f) + (t + (bend + (steep ? kLow : 0.0f)));
    return x == 0.0f ? x : WithSignOf(angle, x);
  }
};

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

// Writes body(x) for vectors of `size` elements.
template <typename Vector, typename Number, typename Body>
DOVETAIL_INLINE void ForVectors(const Number* x, int64_t size, Number* out, const Body& body) {
  constexpr int64_t kStep = sizeof(Vector) / sizeof(Number);
  Vector operand, result;
  int64_t i = 0;
  for (; i + kStep <= size; i += kStep) {
    std::memcpy(&operand, x + i, sizeof(operand));
    result = body(operand);
    std::memcpy(out + i, &result, sizeof(result));
  }
  if (i == size) return;
  const size_t rest = sizeof(Number) * (size - i);
  operand = Vector{};
  std::memcpy(&operand, x + i, rest);
  result = body(operand);
  std::memcpy(out + i, &result, rest);
}

// How functions whose arguments are reduced see a number.
template <typename Number>
struct Form;

template <>
struct Form<float> {
  using Vector = Single;
  using Bits = uint32_t;
  static constexpr auto kType = ffi::F32;
  // From here on, numbers count as large: 2**20.
  static constexpr Bits kLarge = 0x49800000;
};

template <>
struct Form<double> {
  using Vector = Double;
  using Bits = uint64_t;
  static constexpr auto kType = ffi::F64;
  static constexpr Bits kLarge = 0x4130000000000000;
};

// Functions whose arguments are reduced, by another formula where a block has large ones.
template <typename Function, typename Number = typename Function::Number>
void Periodic(const Number* x, int64_t size, Number* out) {
  using Vector = typename Form<Number>::Vector;
  using Bits = typename Form<Number>::Bits;
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const int64_t count = std::min(kBlock, size - begin);
    Bits largest = 0;
    for (int64_t i = begin; i < begin + count; ++i) {
      Bits bits;
      std::memcpy(&bits, x + i, sizeof(bits));
      largest = std::max<Bits>(largest, bits & (~Bits{0} >> 1));
    }
    if (largest < Form<Number>::kLarge) {
      ForVectors<Vector>(x + begin, count, out + begin,
                         [](Vector v) { return Function::Small(v); });
    } else {
      ForVectors<Vector>(x + begin, count, out + begin,
                         [](Vector v) { return Function::Large(v); });
    }
  }
}

template <typename Number>
using Operand = ffi::Buffer<Form<Number>::kType>;

template <typename Function, typename Number = typename Function::Number>
ffi::Error Reducing(ffi::ThreadPool pool, Operand<Number> x, ffi::Result<Operand<Number>> out) {
  const Number* from = x.typed_data();
  Number* to = out->typed_data();
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    Periodic<Function>(from + begin, end - begin, to + begin);
  });
  return ffi::Error::Success();
}

template <typename Function, typename Vector = Single>
ffi::Error Unary(ffi::ThreadPool pool, Operand<float> x, ffi::Result<Operand<float>> out) {
  const float* from = x.typed_data();
  float* to = out->typed_data();
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    ForVectors<Vector>(from + begin, end - begin, to + begin,
                       [](Vector v) { return Function::Of(v); });
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
#define DOVETAIL_UNARY(name, number, ...)                             \
  DOVETAIL_KERNEL(name, (__VA_ARGS__),                                \
                  xla::ffi::Ffi::Bind()                               \
                      .Ctx<xla::ffi::ThreadPool>()                    \
                      .Arg<dovetail::Operand<number>>()               \
                      .Ret<dovetail::Operand<number>>())
DOVETAIL_UNARY(dovetail_acos, float, dovetail::Unary<dovetail::ArcCosine>);
DOVETAIL_UNARY(dovetail_asin, float, dovetail::Unary<dovetail::ArcSine>);
DOVETAIL_UNARY(dovetail_atan, float, dovetail::Unary<dovetail::ArcTangent, dovetail::Singles>);
DOVETAIL_UNARY(dovetail_cos, float, dovetail::Reducing<dovetail::Cosine>);
DOVETAIL_UNARY(dovetail_cos_f64, double, dovetail::Reducing<dovetail::WideSine<true>>);
DOVETAIL_UNARY(dovetail_sin, float, dovetail::Reducing<dovetail::Sine>);
DOVETAIL_UNARY(dovetail_sin_f64, double, dovetail::Reducing<dovetail::WideSine<false>>);
DOVETAIL_UNARY(dovetail_sinh, float, dovetail::Unary<dovetail::HyperbolicSine, dovetail::Singles>);
DOVETAIL_UNARY(dovetail_tan, float, dovetail::Reducing<dovetail::Tangent>);
#pragma GCC visibility pop
