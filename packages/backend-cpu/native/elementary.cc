// Elementary functions of float32, in vectors as wide as the processor has them.
//
// Most are computed in float64, by the formulas of lowerings/elementary.py, and are correct to 0.502
// units in the last place; arguments of sines that are not large are reduced by two parts of pi.
// `atan` and `sinh` are computed in float32, with errors below 1 and 2 units.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

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
// A float32 below this is reduced by two parts of pi: the bits of 2**20.
constexpr uint32_t kLarge = 0x49800000;
// Elements that are looked at together.
constexpr int64_t kBlock = 512;

// 2 / pi in parts of 28 bits, whose products with a float32 are exact. Products of the first five
// can be 4 or more.
constexpr int kParts = 7, kLargeParts = 5;
constexpr double kTwoOverPi[kParts] = {0x1.45f306cp-1,  0x1.c9c882ap-29, 0x1.4fe13a8p-59,
                                       0x1.f47d4dp-86,  0x1.bb81b6cp-113, 0x1.4acc9ep-143,
                                       0x1.0e4107cp-170};

// In the square of the argument: sin(x) / x for x up to pi / 2; sin(pi / 2 r) / r and
// cos(pi / 2 r) for r up to 1/2; atan(t) / t for t up to 1.
constexpr double kSineOfHalf[] = {0.999999999982915,     -0.16666666616805645,
                                   0.008333330973832561,  -0.00019840861130709312,
                                   2.7525267280404423e-06, -2.388917218318869e-08};
constexpr double kSine[] = {1.5707963267881, -0.6459640961467954, 0.07969258272563062,
                            -0.004681266256726245, 0.00015820630355647733};
constexpr double kCosine[] = {0.9999999999524894, -1.2337005406331623, 0.2536692036551135,
                              -0.02086006950026408, 0.0009036280663802505};
constexpr double kArcTangent[] = {
    0.9999999999293037,   -0.3333333129088999,   0.19999901102171555,  -0.14283813255743194,
    0.11091922963683302,  -0.08974171958363882,  0.07228278345377252,  -0.05395668057137172,
    0.033826218952786875, -0.015828322749149415, 0.00473248419342192, -0.0006633954571104787};

// In the square of the argument: (atan(t) / t - 1) / t**2 for t up to 1; (sinh(r) / r - 1) / r**2 and
// (cosh(r) - 1) / r**2 for r up to log(2) / 2.
constexpr float kBentArcTangent[] = {
    -0.33333152532577515f, 0.19993773102760315f, -0.14211055636405945f, 0.10666003823280334f,
    -0.07552211731672287f, 0.04321183264255524f, -0.01636790856719017f, 0.002920687198638916f};
constexpr float kBentSine[] = {0.16666666681798772f, 0.008333310751825695f, 0.00019891182439760473f};
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

// NaN where `x` is.
DOVETAIL_INLINE Double AtMost(Double x, Double limit) { return x > limit ? limit : x; }
DOVETAIL_INLINE Double AtLeast(Double x, Double limit) { return x < limit ? limit : x; }
DOVETAIL_INLINE Double WithSign(Double size, Single x) {
  return As<Double>(As<Bits64>(size) ^ (As<Bits64>(Wide(x)) & INT64_MIN));
}

// The angle of the point (sqrt(1 - y**2), y) with y >= 0.
DOVETAIL_INLINE Double ArcSineOf(Double y) {
  const Double rise = y * y, run = (1.0 - y) * (y + 1.0);
  const Double square = AtMost(rise, run) * Reciprocal(AtLeast(run, rise));
  const Double angle = Root(square) * Polynomial(square, kArcTangent);
  return rise > run ? kPi / 2 - angle : angle;
}

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
    constexpr float kOverflow = 89.5f;
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
    return WithSignOf(half + half, x);
  }
};

// Writes body(x) for vectors of `size` elements.
template <typename Vector, typename Body>
DOVETAIL_INLINE void ForVectors(const float* x, int64_t size, float* out, const Body& body) {
  constexpr int64_t kLanes = sizeof(Vector) / sizeof(float);
  Vector operand, result;
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    std::memcpy(&operand, x + i, sizeof(operand));
    result = body(operand);
    std::memcpy(out + i, &result, sizeof(result));
  }
  if (i == size) return;
  const size_t rest = sizeof(float) * (size - i);
  operand = Vector{};
  std::memcpy(&operand, x + i, rest);
  result = body(operand);
  std::memcpy(out + i, &result, rest);
}

// Functions whose arguments are reduced, by another formula where a block has large ones.
template <typename Function>
void Periodic(const float* x, int64_t size, float* out) {
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const int64_t count = std::min(kBlock, size - begin);
    uint32_t largest = 0;
    for (int64_t i = begin; i < begin + count; ++i) {
      uint32_t bits;
      std::memcpy(&bits, x + i, sizeof(bits));
      largest = std::max(largest, bits & 0x7FFFFFFF);
    }
    if (largest < kLarge) {
      ForVectors<Single>(x + begin, count, out + begin, [](Single v) { return Function::Small(v); });
    } else {
      ForVectors<Single>(x + begin, count, out + begin, [](Single v) { return Function::Large(v); });
    }
  }
}

using Operand = ffi::Buffer<ffi::F32>;

template <typename Function>
ffi::Error Reducing(ffi::ThreadPool pool, Operand x, ffi::Result<Operand> out) {
  const float* from = x.typed_data();
  float* to = out->typed_data();
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    Periodic<Function>(from + begin, end - begin, to + begin);
  });
  return ffi::Error::Success();
}

template <typename Function, typename Vector = Single>
ffi::Error Unary(ffi::ThreadPool pool, Operand x, ffi::Result<Operand> out) {
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
#define DOVETAIL_UNARY(name, ...)                                       \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(name, (__VA_ARGS__),                              \
                                xla::ffi::Ffi::Bind()                       \
                                    .Ctx<xla::ffi::ThreadPool>()            \
                                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>() \
                                    .Ret<xla::ffi::Buffer<xla::ffi::F32>>())
DOVETAIL_UNARY(dovetail_acos, dovetail::Unary<dovetail::ArcCosine>);
DOVETAIL_UNARY(dovetail_asin, dovetail::Unary<dovetail::ArcSine>);
DOVETAIL_UNARY(dovetail_atan, dovetail::Unary<dovetail::ArcTangent, dovetail::Singles>);
DOVETAIL_UNARY(dovetail_cos, dovetail::Reducing<dovetail::Cosine>);
DOVETAIL_UNARY(dovetail_sin, dovetail::Reducing<dovetail::Sine>);
DOVETAIL_UNARY(dovetail_sinh, dovetail::Unary<dovetail::HyperbolicSine, dovetail::Singles>);
DOVETAIL_UNARY(dovetail_tan, dovetail::Reducing<dovetail::Tangent>);
#pragma GCC visibility pop
