// The error function and its complement of float32, in vectors as wide as the processor has.
//
// With AVX-512, which looks 32 numbers up by one instruction, they are polynomials near a multiple
// of 1/8 up to 4. Errors of `erf` are below 1.2 units in the last place, of `erfc` 1.8.

#include "elementary.h"
#include "error_tables.h"

// Vectors are passed among functions that are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace dovetail {
namespace {

// Sizes up to here are in the tables.
constexpr float kInTables = 3.9375f;

// By Chebyshev interpolation, computed with 60 digits: erf(x) / x - 1 in x**2; exp(x**2) erfc(x) /
// (1 - u) in u = (x - 2) / (x + 2) for x from 0.5 to 9.35; (exp(r) - 1 - r) / r**2.
constexpr float kNear[] = {0.12837917f, -0.37612609f, 0.112828314f, -0.0267577327f,
                           0.00471908257f};
constexpr float kFar[] = {0.25539567682355147f,   -0.17179016774079775f,  0.06986795731253324f,
                          -0.009110702620983414f, -0.005376297438790958f, 0.001621469961096964f,
                          0.0007625553513301078f, -0.00021676869179135404f,
                          -0.00013460399949642135f, 2.1896677041797854e-05f};
constexpr float kBentExponential[] = {0.500000002385121f,    0.16666666693156343f,
                                      0.041666371295781254f, 0.008333300528261051f,
                                      0.0013943056064750444f, 0.00019901435710577845f};

// The constant of a polynomial and the rest of it.
struct Terms {
  Singles constant, rest;
};

// What a table has for a positive number below 4.
template <int kCount>
DOVETAIL_INLINE Terms FromTable(Singles size, const float (&table)[kCount][32]) {
  constexpr float kShift = 0x1.8p23f;
  const Singles shifted = size * 8.0f + kShift, rest = size - (shifted - kShift) * 0.125f;
  const AllBits32 index = As<AllBits32>(shifted);
  Singles result = LookedUp(table[kCount - 1], index);
#pragma GCC unroll 8
  for (int i = kCount - 2; i >= 1; --i) result = result * rest + LookedUp(table[i], index);
  return {LookedUp(table[0], index), result * rest};
}

struct Error {
  static DOVETAIL_INLINE Singles Of(Singles x) {
    constexpr float kFlat = 3.9f;  // From here on it is 1.
    const Singles size = Magnitude(x);
    const auto [constant, rest] = FromTable(size > kFlat ? Singles{} + kFlat : size, kErfTable);
    // Near zero the leading coefficient of the table is that of erf(x) - x.
    const Singles inside = (size < 0.0625f ? size : constant) + rest;
    return WithSignOf(size > kFlat ? Singles{} + 1.0f : inside, x);
  }
};

struct ErrorComplement {
  // exp(-a**2) times a smooth function of a = abs(x), reflected; near zero, 1 - erf(x).
  static DOVETAIL_INLINE Singles Any(Singles x) {
    constexpr float kShift = 0x1.8p23f, kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
    constexpr float kLimit = 9.3f;  // Beyond, the result is no normal number.
    const Singles size = Magnitude(x), a = AtMost(size, kLimit);
    const Singles total = a + 2.0f, quotient = 4.0f / total;
    // What rounding took from the quotient; the result changes 1.1 to 2.1 times as much.
    const Singles lost = (4.0f - quotient * total) - quotient * (a - (total - 2.0f));
    const Singles series = Polynomial(1.0f - quotient, kFar) * quotient;
    const Singles square = a * a, low = ProductLess(a, a, square);
    const Singles shifted = square * -1.44269504f + kShift, count = shifted - kShift;
    const Singles rest = -((count * kLog2High + square) + (count * kLog2Low + low));
    const Singles change =
        (rest + lost * 0.375f) + rest * rest * Polynomial(rest, kBentExponential);
    // Last comes the power of two, so that no step is subnormal.
    const Singles scale = As<Singles>((As<AllBits32>(shifted) + 127) << 23);
    const Singles far = (series + series * change) * scale;
    // erf(x) / x is little above 1: what is rounded is small.
    const Singles near = 0.5f + ((0.5f - x) - x * Polynomial(x * x, kNear));
    return size < 0.5f ? near : (x < 0.0f ? 2.0f - far : far);
  }

  static DOVETAIL_INLINE Singles Of(Singles x) {
#if defined(DOVETAIL_AVX512)
    const Singles size = Magnitude(x);
    if (__builtin_expect(AllBelow(As<AllBits32>(size), As<int32_t>(kInTables)), 1)) {
      const auto [constant, rest] = FromTable(size, kErfcTable);
      const Singles result = constant + rest;
      return x < 0.0f ? 2.0f - result : result;
    }
#endif
    return Any(x);
  }
};

// The complement of `scale` times a number.
ffi::Error Complement(ffi::ThreadPool pool, float scale, ffi::AnyBuffer x,
                      ffi::Result<ffi::AnyBuffer> out) {
  return OfEachFloat(pool, x, *out, [scale](const auto* from, int64_t count, auto* to) {
    for (int64_t i = 0; i < count * kSingles; i += kSingles) {
      StoreSingles(ErrorComplement::Of(LoadSingles(from + i) * scale), to + i);
    }
  });
}

const HostEntry kEntries[] = {
    {"erf", "float32", kSingly<Error>, kScarce},
    {"erfc", "float32", kSingly<ErrorComplement>, kScarce},
};

}  // namespace

const HostEntry* ErrorFunctions(size_t* count) {
  *count = sizeof(kEntries) / sizeof(kEntries[0]);
  return kEntries;
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_OF_FLOATS(dovetail_erf, dovetail::AtOnce<dovetail::Error>);
DOVETAIL_KERNEL(dovetail_erfc, dovetail::Complement,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Attr<float>("scale")
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>());
DOVETAIL_GATE(dovetail_erfc_gate, dovetail::ErrorComplement);
#pragma GCC visibility pop
