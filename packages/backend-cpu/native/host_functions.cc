// Elementwise functions of small arrays in the memory of the host. Their numbers are steps: by how
// many elements to go on in each operand, which is none where it is one element.

#include "host_functions.h"

#include <algorithm>
#include <vector>

#include "host_elementary.h"
#include "roots.h"
#include "vector_width.h"
#include "vectors.h"

namespace dovetail {
namespace {

// Loops are over blocks of constant size, so that they become vectors.
constexpr ptrdiff_t kBlock = 64;

template <typename T>
void FetchBlockAhead(T* block) {
  constexpr ptrdiff_t kLine = 64 / sizeof(T);
  for (ptrdiff_t at = 0; at < kBlock; at += kLine) FetchAhead(block + at);
}

template <typename In, typename Out, typename Operation>
void UnaryPart(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  FlushDenormals flush;
  const In* x = static_cast<const In*>(operands[0]);
  Out* __restrict out = static_cast<Out*>(result);
  if (steps[0] == 0) return void(std::fill_n(out, count, Operation()(*x)));
  for (; count >= kBlock; count -= kBlock, x += kBlock, out += kBlock) {
    FetchBlockAhead(x);
    FetchBlockAhead(out);
    for (ptrdiff_t i = 0; i < kBlock; ++i) out[i] = Operation()(x[i]);
  }
  for (ptrdiff_t i = 0; i < count; ++i) out[i] = Operation()(x[i]);
}

template <typename In, typename Operation, typename Out = decltype(Operation()(In()))>
constexpr HostFunction Unary = Divided<UnaryPart<In, Out, Operation>, Out, In>;

// Calls body(step) with a constant in place of a step, so that loops become vectors.
template <typename Body>
void WithStep(ptrdiff_t step, const Body& body) {
  if (step == 0) {
    body(std::integral_constant<ptrdiff_t, 0>());
  } else {
    body(std::integral_constant<ptrdiff_t, 1>());
  }
}

template <ptrdiff_t kFirst, ptrdiff_t kSecond, typename In, typename Out, typename Operation>
void OfPairs(const In* x, const In* y, Out* __restrict out, ptrdiff_t count) {
  for (; count >= kBlock; count -= kBlock, out += kBlock) {
    if (kFirst != 0) FetchBlockAhead(x);
    if (kSecond != 0) FetchBlockAhead(y);
    FetchBlockAhead(out);
    for (ptrdiff_t i = 0; i < kBlock; ++i) out[i] = Operation()(x[i * kFirst], y[i * kSecond]);
    x += kBlock * kFirst, y += kBlock * kSecond;
  }
  for (ptrdiff_t i = 0; i < count; ++i) out[i] = Operation()(x[i * kFirst], y[i * kSecond]);
}

template <typename In, typename Out, typename Operation>
void BinaryPart(const void* const* operands, const ptrdiff_t* steps, void* result,
                ptrdiff_t count) {
  FlushDenormals flush;
  const In* x = static_cast<const In*>(operands[0]);
  const In* y = static_cast<const In*>(operands[1]);
  WithStep(steps[0], [=](auto first) {
    WithStep(steps[1], [=](auto second) {
      OfPairs<first, second, In, Out, Operation>(x, y, static_cast<Out*>(result), count);
    });
  });
}

template <typename In, typename Operation, typename Out = decltype(Operation()(In(), In()))>
constexpr HostFunction Binary = Divided<BinaryPart<In, Out, Operation>, Out, In, In>;

// `operation` of three operands.
template <typename A, typename B, typename C, typename Out, typename Operation>
void Ternary(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count,
             const Operation& operation) {
  const A* x = static_cast<const A*>(operands[0]);
  const B* y = static_cast<const B*>(operands[1]);
  const C* z = static_cast<const C*>(operands[2]);
  Out* __restrict out = static_cast<Out*>(result);
  WithStep(steps[0], [=](auto first) {
    WithStep(steps[1], [=](auto second) {
      WithStep(steps[2], [=](auto third) {
        for (ptrdiff_t i = 0; i < count; ++i) {
          out[i] = operation(x[i * first], y[i * second], z[i * third]);
        }
      });
    });
  });
}

// The second choice where the first operand is true.
template <typename In>
void SelectPart(const void* const* operands, const ptrdiff_t* steps, void* result,
                ptrdiff_t count) {
  Ternary<uint8_t, In, In, In>(operands, steps, result, count,
                               [](uint8_t which, In x, In y) { return which ? y : x; });
}

template <typename In>
constexpr HostFunction Select = Divided<SelectPart<In>, In, uint8_t, In, In>;

// Integers wrap around.
#define DOVETAIL_ARITHMETIC(Name, operation)                        \
  struct Name {                                                     \
    template <typename T>                                           \
    T operator()(T x, T y) const {                                  \
      if constexpr (std::is_integral_v<T>) {                        \
        using Whole = std::make_unsigned_t<T>;                      \
        return T(Whole(uint64_t(Whole(x)) operation uint64_t(Whole(y)))); \
      } else {                                                      \
        return x operation y;                                       \
      }                                                             \
    }                                                               \
  }
DOVETAIL_ARITHMETIC(Add, +);
DOVETAIL_ARITHMETIC(Subtract, -);
DOVETAIL_ARITHMETIC(Multiply, *);
#undef DOVETAIL_ARITHMETIC

#define DOVETAIL_BINARY(Name, expression)        \
  struct Name {                                  \
    template <typename T>                        \
    auto operator()(T x, T y) const -> decltype(expression) { \
      return expression;                         \
    }                                            \
  }
DOVETAIL_BINARY(Divide, x / y);
DOVETAIL_BINARY(Equal, x == y);
DOVETAIL_BINARY(NotEqual, x != y);
DOVETAIL_BINARY(Less, x < y);
DOVETAIL_BINARY(LessOrEqual, x <= y);
DOVETAIL_BINARY(Greater, x > y);
DOVETAIL_BINARY(GreaterOrEqual, x >= y);
DOVETAIL_BINARY(And, T(x & y));
DOVETAIL_BINARY(Or, T(x | y));
DOVETAIL_BINARY(Xor, T(x ^ y));
#undef DOVETAIL_BINARY

#define DOVETAIL_UNARY(Name, expression)  \
  struct Name {                           \
    template <typename T>                 \
    auto operator()(T x) const -> decltype(expression) { \
      return expression;                  \
    }                                     \
  }
DOVETAIL_UNARY(Absolute, std::fabs(x));
DOVETAIL_UNARY(Ceiling, std::ceil(x));
DOVETAIL_UNARY(Floor, std::floor(x));
DOVETAIL_UNARY(Negative, -x);
DOVETAIL_UNARY(Sign, x > 0 ? T(1) : x < 0 ? T(-1) : x);
DOVETAIL_UNARY(SquareRoot, std::sqrt(x));
DOVETAIL_UNARY(Square, x * x);
DOVETAIL_UNARY(OneMinusSquare, 1 - x * x);
DOVETAIL_UNARY(ArcCosine, T(std::acos(double(x))));
DOVETAIL_UNARY(ArcSine, T(std::asin(double(x))));
DOVETAIL_UNARY(ArcTangent, T(std::atan(double(x))));
DOVETAIL_UNARY(HyperbolicCosine, T(std::cosh(double(x))));
DOVETAIL_UNARY(HyperbolicSine, T(std::sinh(double(x))));
DOVETAIL_UNARY(InverseOfCosh, T(std::acosh(double(x))));
DOVETAIL_UNARY(InverseOfSinh, T(std::asinh(double(x))));
DOVETAIL_UNARY(InverseOfTanh, T(std::atanh(double(x))));
DOVETAIL_UNARY(CubeRoot, T(std::cbrt(double(x))));
DOVETAIL_UNARY(PowerOfTwo, T(std::exp2(double(x))));
DOVETAIL_UNARY(LogarithmToTwo, T(std::log2(double(x))));
DOVETAIL_UNARY(Erf, T(std::erf(double(x))));
DOVETAIL_UNARY(Erfc, T(std::erfc(double(x))));
DOVETAIL_UNARY(IsFinite, std::fabs(x) <= std::numeric_limits<T>::max());
#undef DOVETAIL_UNARY

// The second of three operands, between the others.
template <typename T>
void ClampPart(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  FlushDenormals flush;
  Ternary<T, T, T, T>(operands, steps, result, count, [](T low, T x, T high) {
    return ExtremeOf<false>()(high, ExtremeOf<true>()(low, x));
  });
}

template <typename T>
constexpr HostFunction Clamp = Divided<ClampPart<T>, T, T, T, T>;

struct NegativeInteger {
  template <typename T>
  T operator()(T x) const {
    return T(-std::make_unsigned_t<T>(x));
  }
};

struct SquareInteger {
  template <typename T>
  T operator()(T x) const {
    return Multiply()(x, x);
  }
};

// By zero it is -1, the greatest unsigned integer.
struct DivideIntegers {
  template <typename T>
  T operator()(T x, T y) const {
    if (y == 0) return T(-1);
    if (std::is_signed_v<T> && y == T(-1)) return T(-std::make_unsigned_t<T>(x));
    return x / y;
  }
  // Float64 has these numbers, and a quotient that is none is further from the next than rounding
  // takes it. So compilers make vectors.
  int32_t operator()(int32_t x, int32_t y) const {
    const bool is_unit = y == -1;
    const int32_t found = int32_t(double(x) / double(((y == 0) | is_unit) ? 1 : y));
    return y == 0 ? -1 : is_unit ? int32_t(-uint32_t(x)) : found;
  }
};

struct RemainderOfIntegers {
  template <typename T>
  T operator()(T x, T y) const {
    if (y == 0) return x;
    return std::is_signed_v<T> && y == T(-1) ? 0 : x % y;
  }
  int32_t operator()(int32_t x, int32_t y) const {
    const int32_t quotient = DivideIntegers()(x, y);
    return y == 0 ? x : int32_t(uint32_t(x) - uint32_t(quotient) * uint32_t(y));
  }
};

struct ArcTangent2 {
  template <typename T>
  T operator()(T x, T y) const {
    return T(std::atan2(double(x), double(y)));
  }
};

// What is shifted by more than there are bits has none left.
struct ShiftLeft {
  template <typename T>
  T operator()(T x, T y) const {
    using Whole = std::make_unsigned_t<T>;
    return Whole(y) < sizeof(T) * 8 ? T(Whole(x) << y) : T(0);
  }
};

struct ShiftRightLogical {
  template <typename T>
  T operator()(T x, T y) const {
    using Whole = std::make_unsigned_t<T>;
    return Whole(y) < sizeof(T) * 8 ? T(Whole(x) >> y) : T(0);
  }
};

struct ShiftRightArithmetic {
  template <typename T>
  T operator()(T x, T y) const {
    using Whole = std::make_unsigned_t<T>;
    return T(std::make_signed_t<T>(x) >> std::min<Whole>(Whole(y), sizeof(T) * 8 - 1));
  }
};

// The inverse of the error function, to single precision but for the tails.
//
// Source: M. Giles, Approximating the erfinv function, GPU Computing Gems Jade Edition (2011).
struct InverseErf {
  float operator()(float x) const {
    const float w = -Log1p()(-x * x);
    const float near = w - 2.5f, far = std::sqrt(w) - 3;
    float p = 2.81022636e-08f;
    for (const float c : {3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 0.00021858087f,
                          -0.00125372503f, -0.00417768164f, 0.246640727f, 1.50140941f}) {
      p = c + p * near;
    }
    float q = -0.000200214257f;
    for (const float c : {0.000100950558f, 0.00134934322f, -0.00367342844f, 0.00573950773f,
                          -0.0076224613f, 0.00943887047f, 1.00167406f, 2.83297682f}) {
      q = c + q * far;
    }
    const float found = (w < 5 ? p : q) * x;
    return std::fabs(x) == 1 ? x * std::numeric_limits<float>::infinity() : found;
  }
};

#define DOVETAIL_DOUBLE(Name, expression) \
  struct Name {                           \
    double operator()(double x) const { return expression; } \
  }
DOVETAIL_DOUBLE(Logistic64, 1 / (1 + std::exp(-x)));
DOVETAIL_DOUBLE(ReciprocalRoot64, 1 / std::sqrt(x));
DOVETAIL_DOUBLE(Tangent64, std::tan(x));
#undef DOVETAIL_DOUBLE

struct Power64 {
  double operator()(double x, double y) const { return std::pow(x, y); }
};

struct AbsoluteInteger {
  template <typename T>
  T operator()(T x) const {
    return x < 0 ? NegativeInteger()(x) : x;
  }
};

struct Copy {
  template <typename T>
  T operator()(T x) const {
    return FlushedNumber(x);
  }
};

// Of truths as bytes: compilers make no vectors of truths.
struct NotTrue {
  uint8_t operator()(uint8_t x) const { return x ^ 1; }
};

struct Not {
  template <typename T>
  T operator()(T x) const {
    return ~x;
  }
};

#define DOVETAIL_FOR_NUMBERS(T, dtype)                                                    \
  {"add", dtype, Binary<T, Add>, kMany}, {"add_any", dtype, Binary<T, Add>, kMany}, {"sub", dtype, Binary<T, Subtract>, kMany},      \
      {"mul", dtype, Binary<T, Multiply>, kMany}, {"max", dtype, Binary<T, ExtremeOf<true>>, kMany}, \
      {"min", dtype, Binary<T, ExtremeOf<false>>, kMany}, {"eq", dtype, Binary<T, Equal>, kMany},  \
      {"ne", dtype, Binary<T, NotEqual>, kMany}, {"lt", dtype, Binary<T, Less>, kMany},   \
      {"le", dtype, Binary<T, LessOrEqual>, kMany}, {"gt", dtype, Binary<T, Greater>, kMany}, \
      {"ge", dtype, Binary<T, GreaterOrEqual>, kMany}, {"sign", dtype, Unary<T, Sign>, kMany}, \
      {"select_n", dtype, Select<T>, kMany}, {"copy", dtype, Unary<T, Copy>, kMany}

#define DOVETAIL_FOR_BITS(T, dtype)                                               \
  {"and", dtype, Binary<T, And>, kMany}, {"or", dtype, Binary<T, Or>, kMany},     \
      {"xor", dtype, Binary<T, Xor>, kMany}

#define DOVETAIL_FOR_INTEGERS(T, dtype)                                                     \
  DOVETAIL_FOR_NUMBERS(T, dtype), DOVETAIL_FOR_BITS(T, dtype),                              \
      {"div", dtype, Binary<T, DivideIntegers>, kSome},                                     \
      {"rem", dtype, Binary<T, RemainderOfIntegers>, kSome},                                \
      {"shift_left", dtype, Binary<T, ShiftLeft>, kMany},                                   \
      {"shift_right_logical", dtype, Binary<T, ShiftRightLogical>, kMany},                  \
      {"shift_right_arithmetic", dtype, Binary<T, ShiftRightArithmetic>, kMany},            \
      {"square", dtype, Unary<T, SquareInteger>, kMany},                                    \
      {"not", dtype, Unary<T, Not>, kMany}, {"clamp", dtype, Clamp<T>, kMany}
#define DOVETAIL_FOR_SIGNED(T, dtype) \
  {"abs", dtype, Unary<T, AbsoluteInteger>, kMany}, {"neg", dtype, Unary<T, NegativeInteger>, kMany}
#define DOVETAIL_FOR_FLOATS(T, dtype)                                                        \
  DOVETAIL_FOR_NUMBERS(T, dtype), {"abs", dtype, Unary<T, Absolute>, kMany},                 \
      {"ceil", dtype, Unary<T, Ceiling>, kMany}, {"div", dtype, Binary<T, Divide>, kMany},   \
      {"floor", dtype, Unary<T, Floor>, kMany}, {"neg", dtype, Unary<T, Negative>, kMany},   \
      {"sqrt", dtype, Unary<T, SquareRoot>, kMany}, {"clamp", dtype, Clamp<T>, kMany},       \
      {"is_finite", dtype, Unary<T, IsFinite>, kMany},                                       \
      {"one_minus_square", dtype, Unary<T, OneMinusSquare>, kMany},                          \
      {"square", dtype, Unary<T, Square>, kMany}

template <typename T>
struct Complex {
  T real, imaginary;
  Complex operator+(Complex other) const {
    return {real + other.real, imaginary + other.imaginary};
  }
  Complex operator-(Complex other) const {
    return {real - other.real, imaginary - other.imaginary};
  }
  Complex operator*(Complex other) const {
    return {real * other.real - imaginary * other.imaginary,
            real * other.imaginary + imaginary * other.real};
  }
};

#define DOVETAIL_FOR_COMPLEX(T, dtype)                                                       \
  {"add", dtype, Binary<Complex<T>, Add>, kMany},                                            \
      {"add_any", dtype, Binary<Complex<T>, Add>, kMany},                                    \
      {"mul", dtype, Binary<Complex<T>, Multiply>, kMany},                                   \
      {"sub", dtype, Binary<Complex<T>, Subtract>, kMany}

#if defined(DOVETAIL_AVX512)
// Absolute values, infinite if a part is; squares of other numbers than these are computed in float64.
constexpr float kLeastSquared = 0x1p-60f, kMostSquared = 0x1p60f;

__m512 OtherAbsolutes(__m512 x, __m512 y) {
  constexpr int kLanes = 16;
  alignas(64) float real[kLanes], imaginary[kLanes], found[kLanes];
  _mm512_store_ps(real, x);
  _mm512_store_ps(imaginary, y);
  for (int i = 0; i < kLanes; ++i) {
    const double a = real[i], b = imaginary[i], infinity = std::numeric_limits<double>::infinity();
    const bool is_infinite = (std::fabs(a) == infinity) | (std::fabs(b) == infinity);
    found[i] = float(is_infinite ? infinity : std::sqrt(a * a + b * b));
  }
  return _mm512_load_ps(found);
}

// The first eight numbers are in one vector, the others in the next.
inline __m512 Absolutes(__m512 first, __m512 second) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  const __m512 x = _mm512_permutex2var_ps(first, even, second);
  const __m512 y = _mm512_permutex2var_ps(first, odd, second);
  constexpr int kGreaterOfAbsolutes = 0b1011;
  const __m512 greater = _mm512_range_ps(x, y, kGreaterOfAbsolutes);
  const __m512 square = _mm512_fmadd_ps(x, x, _mm512_mul_ps(y, y));
  const __m512 found = RootFromEstimate(square);
  const __mmask16 usual =
      _mm512_cmp_ps_mask(greater, _mm512_set1_ps(kLeastSquared), _CMP_GE_OQ) &
      _mm512_cmp_ps_mask(greater, _mm512_set1_ps(kMostSquared), _CMP_LE_OQ);
  if (usual == 0xffff) return found;
  return _mm512_mask_mov_ps(OtherAbsolutes(x, y), usual, found);
}

void AbsolutePart(const void* const* operands, const ptrdiff_t* steps, void* result,
                  ptrdiff_t count) {
  FlushDenormals flush;
  constexpr ptrdiff_t kLanes = 16;
  const float* x = static_cast<const float*>(operands[0]);
  float* out = static_cast<float*>(result);
  const auto some = [&](ptrdiff_t size) {
    const auto mask = uint32_t((uint64_t{1} << (2 * size)) - 1);
    const __m512 first = _mm512_maskz_loadu_ps(__mmask16(mask), x);
    const __m512 second = _mm512_maskz_loadu_ps(__mmask16(mask >> kLanes), x + kLanes);
    _mm512_mask_storeu_ps(out, __mmask16((1u << size) - 1), Absolutes(first, second));
  };
  if (steps[0] == 0) {
    if (count != 0) some(1), std::fill_n(out, count, *out);
    return;
  }
  for (; count >= kLanes; count -= kLanes, x += 2 * kLanes, out += kLanes) {
    constexpr ptrdiff_t kAhead = 512;
    __builtin_prefetch(x + kAhead), __builtin_prefetch(x + kAhead + kLanes);
    __builtin_prefetch(out + kAhead, 1);
    some(kLanes);
  }
  some(count);
}
#endif

const HostEntry kEntries[] = {
#if defined(DOVETAIL_AVX512)
    {"abs", "complex64", Divided<AbsolutePart, float, Complex<float>>, kMany},
#endif
    DOVETAIL_FOR_COMPLEX(float, "complex64"),
    DOVETAIL_FOR_COMPLEX(double, "complex128"),
    DOVETAIL_FOR_FLOATS(float, "float32"),
    DOVETAIL_FOR_FLOATS(double, "float64"),
    DOVETAIL_FOR_INTEGERS(int32_t, "int32"),
    DOVETAIL_FOR_INTEGERS(int64_t, "int64"),
    DOVETAIL_FOR_INTEGERS(uint32_t, "uint32"),
    DOVETAIL_FOR_SIGNED(int32_t, "int32"),
    DOVETAIL_FOR_SIGNED(int64_t, "int64"),
    DOVETAIL_FOR_BITS(bool, "bool"),
    {"not", "bool", Unary<uint8_t, NotTrue>, kMany},
    {"eq", "bool", Binary<bool, Equal>, kMany},
    {"ne", "bool", Binary<bool, NotEqual>, kMany},
    {"select_n", "bool", Select<bool>, kMany},
    {"copy", "bool", Unary<bool, Copy>, kMany},
#if !defined(DOVETAIL_AVX512)
    {"rsqrt", "float32", Unary<float, ReciprocalRoot>, kSome},
#endif
    {"erf_inv_fast", "float32", Unary<float, InverseErf>, kSome},
    {"acos", "float64", Unary<double, ArcCosine>, kScarce},
    {"acosh", "float64", Unary<double, InverseOfCosh>, kScarce},
    {"asin", "float64", Unary<double, ArcSine>, kScarce},
    {"asinh", "float64", Unary<double, InverseOfSinh>, kScarce},
    {"atan", "float64", Unary<double, ArcTangent>, kScarce},
    {"atan2", "float64", Binary<double, ArcTangent2>, kScarce},
    {"atanh", "float64", Unary<double, InverseOfTanh>, kScarce},
    {"cbrt", "float64", Unary<double, CubeRoot>, kScarce},
    {"cosh", "float64", Unary<double, HyperbolicCosine>, kScarce},
    {"erf", "float64", Unary<double, Erf>, kRare},
    {"erfc", "float64", Unary<double, Erfc>, kRare},
    {"exp2", "float64", Unary<double, PowerOfTwo>, kRare},
    {"log2", "float64", Unary<double, LogarithmToTwo>, kScarce},
    {"logistic", "float64", Unary<double, Logistic64>, kScarce},
    {"pow", "float64", Binary<double, Power64>, kScarce},
    {"rsqrt", "float64", Unary<double, ReciprocalRoot64>, kSome},
    {"sinh", "float64", Unary<double, HyperbolicSine>, kScarce},
    {"tan", "float64", Unary<double, Tangent64>, kScarce},
};
#undef DOVETAIL_FOR_COMPLEX
#undef DOVETAIL_FOR_FLOATS
#undef DOVETAIL_FOR_INTEGERS
#undef DOVETAIL_FOR_SIGNED
#undef DOVETAIL_FOR_NUMBERS
#undef DOVETAIL_FOR_BITS

}  // namespace
}  // namespace dovetail

#pragma GCC visibility push(default)
extern "C" const void* dovetail_host_functions(size_t* count) {
  static const std::vector<dovetail::HostEntry> all = [] {
    std::vector<dovetail::HostEntry> entries(std::begin(dovetail::kEntries),
                                             std::end(dovetail::kEntries));
    for (const auto functions :
         {dovetail::ArrayFunctions, dovetail::CircularFunctions, dovetail::ErrorFunctions,
          dovetail::ExponentialFunctions, dovetail::FourierFunctions, dovetail::MoveFunctions,
          dovetail::NarrowFunctions, dovetail::PositionFunctions, dovetail::RandomFunctions,
          dovetail::RemainderFunctions, dovetail::SearchFunctions, dovetail::SortFunctions}) {
      size_t more;
      const dovetail::HostEntry* others = functions(&more);
      entries.insert(entries.end(), others, others + more);
    }
    return entries;
  }();
  *count = all.size();
  return all.data();
}
#pragma GCC visibility pop
