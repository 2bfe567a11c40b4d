// Circular functions of float32, and sines of float64, in vectors as wide as the processor has.
//
// Those of float32 are mostly computed in float64, by the formulas of lowerings/elementary.py, and
// are correct to 0.502 units in the last place; arguments of sines that are not large are reduced by
// two parts of pi. `atan` is computed in float32, with errors below 1.3 units. Sines of float64 are
// off by up to 0.7 units.

#include "elementary.h"

// Vectors are passed among functions that are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace dovetail {
namespace {

// Their product with an integer of up to 24 bits is exact, and the rest of pi.
constexpr double kPiHigh = 0x1.921fb54p1;
constexpr double kPiLow = 0x1.10b4611a62633p-29;
// pi / 2 in parts of 33 bits, whose products with integers of up to 20 bits are exact, and the rest.
constexpr double kHalfPi[] = {0x1.921fb544p0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};

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
constexpr double kMinusSineOfHalf[] = {-kSineOfHalf[0], -kSineOfHalf[1], -kSineOfHalf[2],
                                       -kSineOfHalf[3], -kSineOfHalf[4], -kSineOfHalf[5]};
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

// In the square of the argument: (atan(t) / t - 1) / t**2 for t up to 1.
constexpr float kBentArcTangent[] = {
    -0.33333152532577515f, 0.19993773102760315f, -0.14211055636405945f, 0.10666003823280334f,
    -0.07552211731672287f, 0.04321183264255524f, -0.01636790856719017f, 0.002920687198638916f};

// tan(r) / r is over / under in the square of r, up to pi / 4; atan(t) / t for t up to tan(pi / 8).
constexpr double kOverTangent[] = {1.0000000000221447, -0.11136156582523814, 0.0010751633710394273};
constexpr double kUnderTangent[] = {1.0, -0.44469489749328006, 0.015973442557006286};
constexpr double kNarrowArcTangent[] = {0.9999999999792839,  -0.33333332134279,
                                        0.19999886325607488, -0.1428164968235535,
                                        0.11041169222894724, -0.08459694716899754,
                                        0.04714114772573083};
#if defined(DOVETAIL_AVX512)
// Sixteen quotients and their angles; (atan(t) / t - 1) / t**2 in t**2, for t up to 1/29.
alignas(64) constexpr double kQuotients[16] = {
    0.0 / 15, 1.0 / 15, 2.0 / 15,  3.0 / 15,  4.0 / 15,  5.0 / 15,  6.0 / 15,  7.0 / 15,
    8.0 / 15, 9.0 / 15, 10.0 / 15, 11.0 / 15, 12.0 / 15, 13.0 / 15, 14.0 / 15, 15.0 / 15};
alignas(64) constexpr double kAngles[16] = {
    0.0,                0.06656816377582381, 0.13255153229667402, 0.19739555984988078,
    0.26060239174734096, 0.3217505543966422, 0.3805063771123649,  0.43662715981354133,
    0.4899573262537283, 0.5404195002705842,  0.5880026035475675,  0.6327488350021832,
    0.6747409422235527, 0.714090698612158,   0.7509290623979403,  0.7853981633974483};
constexpr double kSmallArcTangent[] = {-0.33333324644605283, 0.19976374224679833};
#endif

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
  static constexpr bool kIsIdentityAtZero = true;
  static DOVETAIL_INLINE Double Near(Single x) {
    const Double wide = Wide(x), shifted = wide * (1 / kPi) + kShifter;
    const Double count = shifted - kShifter;
    const Double rest = (wide - count * kPiHigh) - count * kPiLow;
    const Double value = rest * Polynomial(rest * rest, kSineOfHalf);
    return As<Double>(As<Bits64>(value) ^ (As<Bits64>(shifted) << 63));
  }
  static DOVETAIL_INLINE Single Small(Single x) { return IdentityAtZero(x, Near(x)); }
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
  static constexpr bool kIsIdentityAtZero = false;
  static DOVETAIL_INLINE Double Near(Single x) {
    const Double wide = Wide(x), shifted = wide * (1 / kPi) - 0.5 + kShifter;
    const Double count = (shifted - kShifter) + 0.5;
    const Double rest = (wide - count * kPiHigh) - count * kPiLow;
    // The sign is that of -r.
    const Double value = rest * Polynomial(rest * rest, kMinusSineOfHalf);
    return As<Double>(As<Bits64>(value) ^ (As<Bits64>(shifted) << 63));
  }
  static DOVETAIL_INLINE Single Small(Single x) { return Narrow(Near(x)); }
  static DOVETAIL_INLINE Single Large(Single x) { return Narrow(Sine::Wave(x, 1)); }
};

struct Tangent {
  using Number = float;
  static constexpr bool kIsIdentityAtZero = true;
  static DOVETAIL_INLINE Double Near(Single x) {
    const Double wide = Wide(x), shifted = wide * (2 / kPi) + kShifter;
    const Double count = shifted - kShifter;
    const Double rest = (wide - count * (kPiHigh / 2)) - count * (kPiLow / 2);
    return Quotient(rest, As<Bits64>(shifted));
  }
  static DOVETAIL_INLINE Single Small(Single x) { return IdentityAtZero(x, Near(x)); }
  static DOVETAIL_INLINE Single Large(Single x) {
    const auto [rest, quadrant] = ReduceLarge(x);
    return IdentityAtZero(x, Quotient(rest * (kPi / 2), quadrant));
  }

 private:
  static DOVETAIL_INLINE Double Quotient(Double rest, Bits64 quadrant) {
    const Double square = rest * rest;
    const Double over = rest * Polynomial(square, kOverTangent);
    const Double under = Polynomial(square, kUnderTangent);
#if defined(DOVETAIL_AVX512)
    // One instruction both chooses and changes the sign.
    const __mmask8 odd = _mm512_test_epi64_mask((__m512i)quadrant, _mm512_set1_epi64(1));
    const Double first = (Double)_mm512_mask_sub_pd((__m512d)over, odd, _mm512_setzero_pd(),
                                                    (__m512d)under);
    const Double second = (Double)_mm512_mask_mov_pd((__m512d)under, odd, (__m512d)over);
    return first * Reciprocal(second);
#else
    const Bits64 even = (quadrant & 1) == 0;
    return (even ? over : -under) * Reciprocal(even ? under : over);
#endif
  }
};

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

struct ArcSine {
  static DOVETAIL_INLINE Single Of(Single x) {
    const Double wide = Wide(x);
    return IdentityAtZero(x, WithSignOf(ArcSineOf(Magnitude(wide)), wide));
  }
};

struct ArcCosine {
  static DOVETAIL_INLINE Single Of(Single x) {
    const Double wide = Wide(x);
    return Narrow(kPi / 2 - WithSignOf(ArcSineOf(Magnitude(wide)), wide));
  }
};

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

struct ArcTangent2 {
  // Of t above tan(pi / 8), pi / 4 plus that of (t - 1) / (t + 1).
  static DOVETAIL_INLINE Double Angle(Double y, Double x) {
    const Bits64 steep = y > x;
    const Double low = steep ? x : y, high = steep ? y : x;
    const Bits64 middle = low > high * 0.41421356237309503;
    const Double over = middle ? low - high : low, under = middle ? low + high : high;
    const Double t = over * Reciprocal(under);
    const Double bent = t * Polynomial(t * t, kNarrowArcTangent);
    const Double angle = middle ? kPi / 4 + bent : bent;
    return steep ? kPi / 2 - angle : angle;
  }

#if defined(DOVETAIL_AVX512)
  // Of a quotient near one of sixteen, whose angle a table has, plus that of a small quotient.
  static bool Plain(const float* y, const float* x, int64_t count, float* out) {
    // Of larger numbers the reciprocal is no normal float32; quotients may not be subnormal either.
    constexpr float kMost = 0x1p125f, kLeast = 0x1p-124f, kShift = 0x1.8p23f;
    alignas(64) float lows[kBlock], highs[kBlock];
    alignas(64) int32_t places[kBlock];
    __mmask16 steep[kBlock / kSingles], left[kBlock / kSingles];
    const int64_t size = count * kLanes;
    __m512i least = _mm512_set1_epi32(-1), largest = _mm512_setzero_si512();
    for (int64_t i = 0; i < size; i += kSingles) {
      FetchAhead(y + i, out + i);
      FetchAhead(x + i, out + i);
      const __m512i sign = _mm512_set1_epi32(INT32_MIN), width = _mm512_loadu_si512(x + i);
      const __m512i height = _mm512_andnot_si512(sign, _mm512_loadu_si512(y + i));
      const __m512i size_of_x = _mm512_andnot_si512(sign, width);
      const __m512i low = _mm512_min_epu32(height, size_of_x);
      const __m512i high = _mm512_max_epu32(height, size_of_x);
      steep[i / kSingles] = _mm512_cmpgt_epu32_mask(height, size_of_x);
      left[i / kSingles] = _mm512_movepi32_mask(width);
      const Singles ratio = As<Singles>(low) * (Singles)_mm512_rcp14_ps((__m512)high);
      least = _mm512_min_epu32(least, _mm512_min_epu32(low, (__m512i)ratio));
      largest = _mm512_max_epu32(largest, high);
      _mm512_store_si512(lows + i, low);
      _mm512_store_si512(highs + i, high);
      Store(ratio * 15.0f + kShift, places + i);
    }
    if (_mm512_reduce_max_epu32(largest) >= As<uint32_t>(kMost)) return false;
    if (_mm512_reduce_min_epu32(least) < As<uint32_t>(kLeast)) return false;
    for (int64_t i = 0; i < size; i += kLanes) {
      const Double low = Wide(Load<Single>(lows + i)), high = Wide(Load<Single>(highs + i));
      const __m512i index = _mm512_cvtepu32_epi64(Load<__m256i>(places + i));
      const Double near = WideLookedUp(kQuotients, index);
      const Double t = (low - near * high) * Reciprocal(high + near * low), square = t * t;
      const Double angle =
          WideLookedUp(kAngles, index) + (t + t * square * Polynomial(square, kSmallArcTangent));
      const int64_t both = i / kSingles, shift = i % kSingles;
      const __mmask8 is_steep = __mmask8(steep[both] >> shift);
      const __m512d turned =
          _mm512_mask_sub_pd((__m512d)angle, is_steep, _mm512_set1_pd(kPi / 2), (__m512d)angle);
      const __mmask8 is_left = __mmask8(left[both] >> shift);
      const __m512d whole = _mm512_mask_sub_pd(turned, is_left, _mm512_set1_pd(kPi), turned);
      const Bits32 sign = Load<Bits32>(y + i) & INT32_MIN;
      Store(As<Single>(As<Bits32>(Narrow((Double)whole)) | sign), out + i);
    }
    return true;
  }
#else
  static bool Plain(const float* y, const float* x, int64_t count, float* out) {
    Naturals32 largest{};
    Bits64 tiny{};
    for (int64_t i = 0; i < count; ++i) {
      const Single height = Load<Single>(y + i * kLanes), width = Load<Single>(x + i * kLanes);
      const Bits32 left = As<Bits32>(width) >> 31, sign = As<Bits32>(height) & INT32_MIN;
      largest = Larger(largest, Larger(FromNormal(height), FromNormal(width)));
      const Double angle = Angle(Absolute(height), Absolute(width));
      const Double whole = Widened(left) != 0 ? kPi - angle : angle;
      tiny |= whole < 0x1p-126;
      Store(As<Single>(As<Bits32>(Narrow(whole)) | sign), out + i * kLanes);
    }
    return AllBelow(As<Bits32>(largest), kInfinity - kNormal) && AllBelow(-tiny, int64_t{1});
  }
#endif

  static DOVETAIL_INLINE Single Any(Single y, Single x) {
    constexpr double kMost = 1e300, kLeast = 1e-300;
    const Double height = SizeOf(y), width = SizeOf(x);
    const Double low = width < kLeast ? Double{} + kLeast : width;
    const Double angle = Angle(height > kMost ? Double{} + kMost : height,
                               low > kMost ? Double{} + kMost : low);
    const Double whole = Widened(As<Bits32>(x)) < 0 ? kPi - angle : angle;
    return SignedSingle(whole, As<Bits32>(y) & INT32_MIN);
  }
};

#if defined(DOVETAIL_AVX512)
// Writes results for as many whole registers of arguments, and says whether they are right: whether
// no argument was large, nor one that the processor flushes to zero where that would be seen.
template <typename Function>
bool WriteNear(const float* x, int64_t count, float* out) {
  __m512i least = _mm512_set1_epi32(-1), largest = _mm512_setzero_si512();
  for (int64_t i = 0; i < count * kSingles; i += kSingles) {
    FetchAhead(x + i, out + i);
    const __m512i bits =
        _mm512_and_si512(_mm512_loadu_si512(x + i), _mm512_set1_epi32(INT32_MAX));
    largest = _mm512_max_epu32(largest, bits);
    if (Function::kIsIdentityAtZero) {
      // Zero becomes the largest number of all.
      least = _mm512_min_epu32(least, _mm512_sub_epi32(bits, _mm512_set1_epi32(1)));
    }
    Store(Narrow(Function::Near(Load<Single>(x + i))), out + i);
    Store(Narrow(Function::Near(Load<Single>(x + i + kLanes))), out + i + kLanes);
  }
  return _mm512_reduce_max_epu32(largest) < Form<float>::kLarge &&
         _mm512_reduce_min_epu32(least) >= uint32_t{kNormal} - 1;
}

template <typename Function>
bool WriteNear(const double* x, int64_t count, double* out) {
  __m512i largest = _mm512_setzero_si512();
  for (int64_t i = 0; i < count * kLanes; i += kLanes) {
    FetchAhead(x + i, out + i);
    const Double number = Load<Double>(x + i);
    largest = _mm512_max_epu64(largest, (__m512i)Magnitude(number));
    Store(Function::Small(number), out + i);
  }
  return _mm512_reduce_max_epu64(largest) < Form<double>::kLarge;
}
#endif

// Functions whose arguments are reduced, by another formula where a block has large ones.
template <typename Function, typename Number = typename Function::Number>
void Periodic(const Number* x, int64_t size, Number* out) {
  using Vector = typename Form<Number>::Vector;
  using Bits = typename Form<Number>::Bits;
  constexpr int64_t kStep = sizeof(Vector) / sizeof(Number);
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const int64_t count = std::min(kBlock, size - begin);
#if defined(DOVETAIL_AVX512)
    constexpr int64_t kTogether = kVectorBytes / sizeof(Number);
    const int64_t whole = count / kTogether * kTogether;
    bool right = WriteNear<Function>(x + begin, whole / kTogether, out + begin);
    if (whole < count) {
      Number last[kTogether] = {};
      std::copy(x + begin + whole, x + begin + count, last);
      right &= WriteNear<Function>(last, 1, last);
      std::copy(last, last + (count - whole), out + begin + whole);
    }
    if (__builtin_expect(right, 1)) continue;
#endif
    Bits largest = 0;
    for (int64_t i = begin; i < begin + count; ++i) {
      Bits bits;
      std::memcpy(&bits, x + i, sizeof(bits));
      largest = std::max<Bits>(largest, bits & (~Bits{0} >> 1));
    }
    const auto small = [](const Number* from, int64_t vectors, Number* to) {
      for (int64_t i = 0; i < vectors * kStep; i += kStep) {
        Store(Function::Small(Load<Vector>(from + i)), to + i);
      }
    };
    const auto large = [](const Number* from, int64_t vectors, Number* to) {
      for (int64_t i = 0; i < vectors * kStep; i += kStep) {
        Store(Function::Large(Load<Vector>(from + i)), to + i);
      }
    };
    if (largest < Form<Number>::kLarge) {
      ForWholeVectors<Vector>(x + begin, count, out + begin, small);
    } else {
      ForWholeVectors<Vector>(x + begin, count, out + begin, large);
    }
  }
}

template <typename Function, typename Number = typename Function::Number>
ffi::Error Reducing(ffi::ThreadPool pool, Operand<Number> x, ffi::Result<Operand<Number>> out) {
  const Number* from = x.typed_data();
  Number* to = out->typed_data();
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    Periodic<Function>(from + begin, end - begin, to + begin);
  });
  return ffi::Error::Success();
}

template <typename Function, typename Number = typename Function::Number>
constexpr HostFunction kReducing = OnHost<Number, Periodic<Function, Number>>;

const HostEntry kEntries[] = {
    {"acos", "float32", OnHost<float, OfVectors<ArcCosine, Single, float>>, kQuick},
    {"asin", "float32", OnHost<float, OfVectors<ArcSine, Single, float>>, kQuick},
    {"atan", "float32", kSingly<ArcTangent>, kSeveral},
    {"atan2", "float32", PairsOnHost<ArcTangent2>, kQuick},
    {"cos", "float32", kReducing<Cosine>, kQuick},
    {"cos", "float64", kReducing<WideSine<true>>, kQuick},
    {"sin", "float32", kReducing<Sine>, kQuick},
    {"sin", "float64", kReducing<WideSine<false>>, kQuick},
    {"tan", "float32", kReducing<Tangent>, kQuick},
};

}  // namespace

const HostEntry* CircularFunctions(size_t* count) {
  *count = sizeof(kEntries) / sizeof(kEntries[0]);
  return kEntries;
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_UNARY(dovetail_acos, float, dovetail::Unary<dovetail::ArcCosine>);
DOVETAIL_UNARY(dovetail_asin, float, dovetail::Unary<dovetail::ArcSine>);
DOVETAIL_OF_FLOATS(dovetail_atan, dovetail::AtOnce<dovetail::ArcTangent>);
DOVETAIL_BINARY(dovetail_atan2, dovetail::Binary<dovetail::ArcTangent2>);
DOVETAIL_UNARY(dovetail_cos, float, dovetail::Reducing<dovetail::Cosine>);
DOVETAIL_UNARY(dovetail_cos_f64, double, dovetail::Reducing<dovetail::WideSine<true>>);
DOVETAIL_UNARY(dovetail_sin, float, dovetail::Reducing<dovetail::Sine>);
DOVETAIL_UNARY(dovetail_sin_f64, double, dovetail::Reducing<dovetail::WideSine<false>>);
DOVETAIL_UNARY(dovetail_tan, float, dovetail::Reducing<dovetail::Tangent>);
#pragma GCC visibility pop
