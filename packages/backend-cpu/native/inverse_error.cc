// The inverse of the error function, of which normal random numbers are made.
//
// Sources: of float32, M. Giles, Approximating the erfinv function, GPU Computing Gems Jade Edition
// (2011); of float64, M. Wichura, Algorithm AS 241: The percentage points of the normal
// distribution, Applied Statistics 37 (1988).

#include "elementary.h"

// Vectors are passed among functions that are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace dovetail {
namespace {

constexpr double kLog2 = 0x1.62e42fefa39efp-1, kHalfRoot = 0x1.6a09e667f3bcdp-1;

// To single precision but for the tails.
struct InverseError {
  // (log(1 + f) - f + f**2 / 2) / f**3 from 1 / sqrt(2) to sqrt(2), by Chebyshev interpolation.
  static constexpr float kBentLogarithm[] = {0.333333307282f,  -0.250003064226f, 0.200010450942f,
                                             -0.166412814631f, 0.142144959239f,  -0.129981837637f,
                                             0.126223198492f,  -0.0790274377239f};
  static constexpr float kNear[] = {1.50140941f,      0.246640727f,    -0.00417768164f,
                                    -0.00125372503f,  0.00021858087f,  -4.39150654e-06f,
                                    -3.5233877e-06f,  3.43273939e-07f, 2.81022636e-08f};
  static constexpr float kFar[] = {2.83297682f,      1.00167406f,     0.00943887047f,
                                   -0.0076224613f,   0.00573950773f,  -0.00367342844f,
                                   0.00134934322f,   0.000100950558f, -0.000200214257f};

  // Of normal numbers.
  static DOVETAIL_INLINE Singles Logarithm(Singles x) {
    const AllBits32 bits = As<AllBits32>(x), exponent = (bits - 0x3f3504f3) >> 23;
    const Singles f = As<Singles>(bits - (exponent << 23)) - 1.0f;
    const Singles bent = f * f * (f * Polynomial(f, kBentLogarithm) - 0.5f);
    return f + (bent + Converted(exponent) * static_cast<float>(kLog2));
  }

  static DOVETAIL_INLINE Singles Of(Singles x) {
    const Singles size = Magnitude(x);
    // Published streams have its rounding, which the choice keeps: no product is added to exactly.
    const Singles square = size <= 1.0f ? size * size : Singles{};
    const Singles w = -Logarithm(1.0f - square);
    const Singles near = x * Polynomial(w - 2.5f, kNear);
    // There is no NaN among them, of which the logarithm would be a number.
    if (__builtin_expect(AllBelow(As<AllBits32>(size), As<int32_t>(0.996f)), 1)) return near;
    const Singles far = x * Polynomial(RootOf(w) - 3.0f, kFar);
    const Singles inside = w < 5.0f ? near : far;
    const Singles end = size == 1.0f ? x * INFINITY : Singles{} + NAN;
    return size < 1.0f ? inside : end;
  }
};

// To 6 units in the last place.
struct WideInverseError {
  static constexpr double kMiddle[] = {3.3871328727963666080e0, 1.3314166789178437745e+2,
                                       1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                       4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                       3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double kUnderMiddle[] = {1.0,
                                            4.2313330701600911252e+1,
                                            6.8718700749205790830e+2,
                                            5.3941960214247511077e+3,
                                            2.1213794301586595867e+4,
                                            3.9307895800092710610e+4,
                                            2.8729085735721942674e+4,
                                            5.2264952788528545610e+3};
  static constexpr double kTail[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                     5.76949722146069140550e0,  3.64784832476320460504e0,
                                     1.27045825245236838258e0,  2.41780725177450611770e-1,
                                     2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kUnderTail[] = {1.0,
                                          2.05319162663775882187e0,
                                          1.67638483018380384940e0,
                                          6.89767334985100004550e-1,
                                          1.48103976427480074590e-1,
                                          1.51986665636164571966e-2,
                                          5.47593808499534494600e-4,
                                          1.05075007164441684324e-9};
  static constexpr double kEnd[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                    1.78482653991729133580e0,  2.96560571828504891230e-1,
                                    2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                    2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kUnderEnd[] = {1.0,
                                         5.99832206555887937690e-1,
                                         1.36929880922735805310e-1,
                                         1.48753612908506148525e-2,
                                         7.86869131145613259100e-4,
                                         1.84631831751005468180e-5,
                                         1.42151175831644588870e-7,
                                         2.04426310338993978564e-15};
  // atanh(s) / s in s**2.
  static constexpr double kSeries[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9, 1.0 / 11,
                                       1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21};
  static constexpr double kInMiddle = 0.85;

  // Of normal numbers.
  static DOVETAIL_INLINE Double Logarithm(Double x) {
    // Its lowest bits become an exponent that is counted from -1024 on.
    constexpr double kCounter = 0x1p52, kStart = 1024;
    constexpr int64_t kBits = int64_t{1024} << 52;
    const Bits64 shifted = As<Bits64>(x) - (As<int64_t>(kHalfRoot) - kBits), count = shifted >> 52;
    const Double exponent = As<Double>(count | As<int64_t>(kCounter)) - (kCounter + kStart);
    const Double f = As<Double>(As<Bits64>(x) - (count << 52) + kBits) - 1.0;
    const Double s = f / (2.0 + f);
    return exponent * kLog2 + 2.0 * s * Polynomial(s * s, kSeries);
  }

  static DOVETAIL_INLINE Double Middle(Double x) {
    const Double half = 0.5 * x, r = 0.180625 - half * half;
    return (kHalfRoot * half) * Polynomial(r, kMiddle) / Polynomial(r, kUnderMiddle);
  }

  // Of sizes that are not in the middle.
  static DOVETAIL_INLINE Double Outside(Double x) {
    const Double rest = 1.0 - Magnitude(x);
    Double root = -Logarithm(0.5 * rest);
    for (int i = 0; i < kLanes; ++i) root[i] = std::sqrt(root[i]);
    const Double r = root - 1.6;
    Double size = Polynomial(r, kTail) / Polynomial(r, kUnderTail);
    if (__builtin_expect(!AllBelow(As<Bits64>(root), As<int64_t>(5.0)), 0)) {
      const Double e = root - 5.0, end = Polynomial(e, kEnd) / Polynomial(e, kUnderEnd);
      size = root > 5.0 ? end : size;
      size = rest > 0.0 ? size : (rest == 0.0 ? Double{} + INFINITY : Double{} + NAN);
    }
    return WithSignOf(kHalfRoot * size, x);
  }

  // As of vectors one in two has a lane outside, these are computed together.
  static void Apply(const double* x, int64_t count, double* out) {
    double outside[kBlock];
    int32_t places[kBlock];
    const int64_t size = count * kLanes;
    for (int64_t begin = 0; begin < size; begin += kBlock) {
      const int64_t some = std::min(kBlock, size - begin);
      int64_t found = 0;
      for (int64_t i = 0; i < some; ++i) {
        outside[found] = x[begin + i];
        places[found] = static_cast<int32_t>(i);
        found += std::fabs(x[begin + i]) > kInMiddle ? 1 : 0;
      }
      for (int64_t i = 0; i < some; i += kLanes) {
        Store(Middle(Load<Double>(x + begin + i)), out + begin + i);
      }
      for (int64_t i = 0; i < found; i += kLanes) {
        const Double ends = Outside(Load<Double>(outside + i));
        for (int64_t lane = 0; lane < std::min<int64_t>(kLanes, found - i); ++lane) {
          out[begin + places[i + lane]] = ends[lane];
        }
      }
    }
  }
};

ffi::Error Doubles(ffi::ThreadPool pool, Operand<double> x, ffi::Result<Operand<double>> out) {
  const double* from = x.typed_data();
  double* to = out->typed_data();
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    ForWholeVectors<Double>(from + begin, end - begin, to + begin, WideInverseError::Apply);
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_OF_FLOATS(dovetail_erf_inv_fast, dovetail::AtOnce<dovetail::InverseError>);
DOVETAIL_UNARY(dovetail_erf_inv_fast_f64, double, dovetail::Doubles);
#pragma GCC visibility pop
