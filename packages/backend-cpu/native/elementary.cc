// Circular functions of float32, and sines of float64, in vectors as wide as the processor has.
//
// Those of float32 are mostly computed in float64, by the formulas of lowerings/elementary.py, and
// are correct to 0.502 units in the last place; arguments of sines that are not large are reduced
// by two parts of pi. With AVX-512 most are computed in float32, to the same bound: what is rounded
// is small or known exactly, as tables hold numbers whose functions are nearly float32. `atan` is
// computed in float32, with errors below 1.3 units. Sines of float64 are off by up to 0.7 units.

#include "elementary.h"

#if defined(DOVETAIL_AVX512)
#include "circular_tables.h"
#endif

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

#if defined(DOVETAIL_AVX512)
// A number whose digits beyond those of a float32 are a float32, too.
struct Pair {
  Singles high, low;
};

// c - a * b and a * b + c, rounded once.
DOVETAIL_INLINE Singles LessProduct(Singles c, Singles a, Singles b) {
  return (Singles)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

DOVETAIL_INLINE Singles ProductMore(Singles a, Singles b, Singles c) {
  return (Singles)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}

// A number as the sum of t + rest and one of 32 parts of a half turn, from the table.
struct Turn {
  Singles t, rest;
  AllBits32 part;  // Its number in the lowest bits, and above them how often half a turn was taken.
};

// Of x + parts * pi / 32, for x up to 2**16.
template <int kParts>
DOVETAIL_INLINE Turn TurnOf(Singles x) {
  constexpr float kShift = 0x1.8p23f + kParts;
  const Singles shifted = x * 10.1859163578813014f + kShift, count = shifted - kShift;
  const auto part = As<AllBits32>(shifted);
  const Singles second = Singles{} + kPart[1];
  // These differences are exact, and so is what rounding takes from the next one: the product is
  // rounded first, as where numbers cancel, what is left of them has few bits.
  const Singles near = LessProduct(x, count, Singles{} + kPart[0]);
  const Singles start = near - LookedUp(kBesideParts, part);
  const Singles t = start - (Singles)_mm512_mul_round_ps(
                                (__m512)count, (__m512)second,
                                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const Singles lost = LessProduct(start - t, count, second);
  return {t, lost - count * kPart[2], part};
}

// The sine of x + parts * pi / 32.
template <int kParts>
DOVETAIL_INLINE Singles SineOfTurn(Singles x) {
  const auto [t, rest, part] = TurnOf<kParts>(x);
  const Singles sine = LookedUp(kSinesOfParts, part), cosine = LookedUp(kCosinesOfParts, part);
  // sin(a + t) is sin(a) + t (cos(a) - sin(a) t / 2) and smaller terms. What rounding takes from
  // that is added to them.
  const Singles half = -0.5f * t, square = t * t;
  const Singles slope = ProductMore(sine, half, cosine), high = ProductMore(t, slope, sine);
  const Singles fall = slope - cosine, lost = ProductLess(t, slope, high - sine);
  const Singles more =
      cosine * Polynomial(square, kBentSmallSine) + fall * (-2 * kBentSmallCosine);
  const Singles low = t * (square * more + ProductLess(sine, half, fall)) + lost;
  const Singles whole = high + (rest * slope + low);
  return As<Singles>(As<AllBits32>(whole) ^ ((part << 26) & INT32_MIN));
}
#endif

struct Sine {
  using Number = float;
  static DOVETAIL_INLINE Double Near(Single x) {
    const Double wide = Wide(x), shifted = wide * (1 / kPi) + kShifter;
    const Double count = shifted - kShifter;
    const Double rest = (wide - count * kPiHigh) - count * kPiLow;
    const Double value = rest * Polynomial(rest * rest, kSineOfHalf);
    return As<Double>(As<Bits64>(value) ^ (As<Bits64>(shifted) << 63));
  }
#if defined(DOVETAIL_AVX512)
  static DOVETAIL_INLINE Singles Near(Singles x) {
    return x == 0.0f ? x : SineOfTurn<0>(x);
  }
#endif
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
  static DOVETAIL_INLINE Double Near(Single x) {
    const Double wide = Wide(x), shifted = wide * (1 / kPi) - 0.5 + kShifter;
    const Double count = (shifted - kShifter) + 0.5;
    const Double rest = (wide - count * kPiHigh) - count * kPiLow;
    // The sign is that of -r.
    const Double value = rest * Polynomial(rest * rest, kMinusSineOfHalf);
    return As<Double>(As<Bits64>(value) ^ (As<Bits64>(shifted) << 63));
  }
#if defined(DOVETAIL_AVX512)
  static DOVETAIL_INLINE Singles Near(Singles x) { return SineOfTurn<16>(x); }
#endif
  static DOVETAIL_INLINE Single Small(Single x) { return Narrow(Near(x)); }
  static DOVETAIL_INLINE Single Large(Single x) { return Narrow(Sine::Wave(x, 1)); }
};

struct Tangent {
  using Number = float;
  static DOVETAIL_INLINE Double Near(Single x) {
    const Double wide = Wide(x), shifted = wide * (2 / kPi) + kShifter;
    const Double count = shifted - kShifter;
    const Double rest = (wide - count * (kPiHigh / 2)) - count * (kPiLow / 2);
    return Quotient(rest, As<Bits64>(shifted));
  }
#if defined(DOVETAIL_AVX512)
  static DOVETAIL_INLINE Singles Near(Singles x) {
    // (sin(a) + cos(a) tan(t)) / (cos(a) - sin(a) tan(t)), both sums of two float32.
    const auto [t, rest, part] = TurnOf<0>(x);
    const Singles sine = LookedUp(kSinesOfParts, part), cosine = LookedUp(kCosinesOfParts, part);
    const Singles square = t * t;
    const Singles more = rest + square * (t * Polynomial(square, kBentSmallTangent) + rest);
    const Singles over = ProductMore(t, cosine, sine);
    const Singles over_low = more * cosine + ProductLess(t, cosine, over - sine);
    const Singles under = LessProduct(cosine, t, sine);
    const Singles under_low = ProductLess(t, sine, cosine - under) + more * sine;
    const Singles divisor = under - under_low, one = Singles{} + 1.0f;
    const auto rough = (Singles)_mm512_rcp14_ps((__m512)divisor);
    const Singles inverse = rough - rough * ProductLess(divisor, rough, one);
    const Singles quotient = over * rough;
    const Singles lost = under_low * quotient + (over_low - ProductLess(quotient, under, over));
    return x == 0.0f ? x : ProductMore(lost, inverse, quotient);
  }
#endif
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

#if defined(DOVETAIL_AVX512)
// The interval of a table, from zero on, in the lowest bits; `first` is the number of the first.
DOVETAIL_INLINE AllBits32 IntervalOf(Singles x, Singles first) {
  return (AllBits32)_mm512_fmadd_round_ps((__m512)x, _mm512_set1_ps(kIntervalsOfOne),
                                          (__m512)(first + 0x1.8p23f),
                                          _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

// A function, by a table, of x + rest. The products of the slopes are known exactly, so that
// float32 suffices.
DOVETAIL_INLINE Pair OfTable(const float (&centres)[32], const float (&rows)[6][32],
                             AllBits32 index, Singles x, Singles rest) {
  const Singles start = LookedUp(rows[0], index), slope = LookedUp(rows[1], index);
  const Singles t = x - LookedUp(centres, index), u = t + rest;
  const Singles high = ProductMore(t, slope, start);
  Singles bend = LookedUp(rows[5], index);
#pragma GCC unroll 3
  for (int i = 4; i >= 2; --i) bend = bend * u + LookedUp(rows[i], index);
  const Singles lost = ProductLess(t, slope, high - start);
  return {high, u * u * bend + (rest * slope + lost)};
}

DOVETAIL_INLINE Singles WithSign(Singles size, __m512i x) {
  constexpr int kOrAnd = 0xf8;
  return (Singles)_mm512_ternarylogic_epi32((__m512i)size, x, _mm512_set1_epi32(INT32_MIN),
                                            kOrAnd);
}

struct ArcSine {
  using Vector = Singles;
  // Of a number from 1/2 on that of the root of (1 - x) / 2, to some ten digits.
  static DOVETAIL_INLINE Singles Of(Singles x) {
    const Singles size = Magnitude(x), square = 0.5f - 0.5f * size, one = Singles{} + 1.0f;
    const __mmask16 steep = _mm512_cmp_ps_mask((__m512)size, _mm512_set1_ps(0.5f), _CMP_GE_OQ);
    const auto rough = (Singles)_mm512_rsqrt14_ps((__m512)(square + 1e-37f));
    const auto root =
        (Singles)_mm512_mask_mul_ps((__m512)size, steep, (__m512)square, (__m512)rough);
    const Singles above = LessProduct(square, root, root), error = LessProduct(one, root, rough);
    const Singles half = rough * (error * 0.375f + 0.5f);
    const auto rest = (Singles)_mm512_maskz_fmadd_ps(steep, (__m512)above, (__m512)half,
                                                     _mm512_set1_ps(kBeyond));
    const auto first = (Singles)_mm512_maskz_mov_ps(steep, _mm512_set1_ps(16.0f));
    const Pair angle =
        OfTable(kArcSineCentres, kArcSines, IntervalOf(root, first), root, rest);
    return x == 0.0f ? x : WithSign(angle.high + angle.low, (__m512i)x);
  }
};
#else
struct ArcSine {
  using Vector = Single;
  static DOVETAIL_INLINE Single Of(Single x) {
    const Double wide = Wide(x);
    return IdentityAtZero(x, WithSignOf(ArcSineOf(Magnitude(wide)), wide));
  }
};
#endif

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
  // By a table of angles, to some ten digits.
  static bool Plain(const float* y, const float* x, int64_t count, float* out) {
    // Of larger numbers the reciprocal is no normal float32, and of smaller ones what a product
    // lacks.
    constexpr float kMost = 0x1p125f, kLeast = 0x1p-80f;
    constexpr float kQuarter = 1.57079637050628662109375f, kLost = -2.78275341e-8f;
    const int64_t size = count * kLanes;
    const Singles one = Singles{} + 1.0f, none{};
    __m512i least = _mm512_set1_epi32(-1), largest = _mm512_setzero_si512();
    for (int64_t i = 0; i < size; i += kSingles) {
      FetchAhead(y + i, out + i);
      FetchAhead(x + i, out + i);
      const __m512i sign = _mm512_set1_epi32(INT32_MIN);
      const __m512i height = _mm512_loadu_si512(y + i), width = _mm512_loadu_si512(x + i);
      const __m512i up = _mm512_andnot_si512(sign, height);
      const __m512i aside = _mm512_andnot_si512(sign, width);
      const __m512i low = _mm512_min_epu32(up, aside), high = _mm512_max_epu32(up, aside);
      const __mmask16 steep = _mm512_cmpgt_epu32_mask(up, aside);
      const __mmask16 left = _mm512_movepi32_mask(width);
      const Singles rough = (Singles)_mm512_rcp14_ps((__m512)high), ratio = (Singles)low * rough;
      least = _mm512_min_epu32(least, _mm512_min_epu32(low, (__m512i)ratio));
      largest = _mm512_max_epu32(largest, high);
      const Singles above = LessProduct((Singles)low, ratio, (Singles)high);
      const Singles error = LessProduct(one, (Singles)high, rough);
      const Singles rest = above * (error * rough + rough);
      const Pair angle =
          OfTable(kArcTangentCentres, kArcTangents, IntervalOf(ratio, none), ratio, rest);
      // From zero, pi / 2 or pi, up or down.
      const __m512 half = _mm512_set1_ps(kQuarter), straight = _mm512_set1_ps(2 * kQuarter);
      const auto base =
          (Singles)_mm512_mask_mov_ps(_mm512_maskz_mov_ps(left, straight), steep, half);
      const __mmask16 down = steep ^ left;
      const auto turn = [&](Singles part) DOVETAIL_LAMBDA {
        return (Singles)_mm512_mask_xor_epi32((__m512i)part, down, (__m512i)part, sign);
      };
      const Singles added = turn(angle.high), whole = base + added;
      const Singles lost = added - (whole - base) + (base * kLost + turn(angle.low));
      _mm512_storeu_ps(out + i, (__m512)WithSign(whole + lost, height));
    }
    return _mm512_reduce_max_epu32(largest) < As<uint32_t>(kMost) &&
           _mm512_reduce_min_epu32(least) >= As<uint32_t>(kLeast);
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
// no argument was large.
template <typename Function>
bool WriteNear(const float* x, int64_t count, float* out) {
  constexpr int kLargestSize = 0xb;
  __m512 largest = _mm512_setzero_ps();
  for (int64_t i = 0; i < count * kSingles; i += kSingles) {
    FetchAhead(x + i, out + i);
    const Singles number = Load<Singles>(x + i);
    largest = _mm512_range_ps(largest, (__m512)number, kLargestSize);
    Store(Function::Near(number), out + i);
  }
  return _mm512_reduce_max_ps(largest) < 0x1p16f;
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
    {"asin", "float32", OnHost<float, OfVectors<ArcSine, ArcSine::Vector, float>>, kQuick},
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
DOVETAIL_UNARY(dovetail_asin, float, dovetail::Unary<dovetail::ArcSine, dovetail::ArcSine::Vector>);
DOVETAIL_OF_FLOATS(dovetail_atan, dovetail::AtOnce<dovetail::ArcTangent>);
DOVETAIL_BINARY(dovetail_atan2, dovetail::Binary<dovetail::ArcTangent2>);
DOVETAIL_UNARY(dovetail_cos, float, dovetail::Reducing<dovetail::Cosine>);
DOVETAIL_UNARY(dovetail_cos_f64, double, dovetail::Reducing<dovetail::WideSine<true>>);
DOVETAIL_UNARY(dovetail_sin, float, dovetail::Reducing<dovetail::Sine>);
DOVETAIL_UNARY(dovetail_sin_f64, double, dovetail::Reducing<dovetail::WideSine<false>>);
DOVETAIL_UNARY(dovetail_tan, float, dovetail::Reducing<dovetail::Tangent>);
#pragma GCC visibility pop
