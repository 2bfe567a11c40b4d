// Elementwise functions of small arrays in the memory of the host, which calls that need no program
// use. They flush denormal numbers to zero, as XLA's programs do.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dovetail {
namespace {

// Denormal operands and results are zeros in a scope.
class FlushDenormals {
 public:
#if defined(__x86_64__)
  FlushDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~FlushDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FlushDenormals() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(before_));
    __asm__ volatile("msr fpcr, %0" ::"r"(before_ | (uint64_t{1} << 24)));
  }
  ~FlushDenormals() { __asm__ volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  uint64_t before_;
#endif
};

// Operands, and by how many elements to go on in each: one, or none where it is one element.
using Function = void (*)(const void* const* operands, const ptrdiff_t* steps, void* result,
                          ptrdiff_t count);

// A number that was chosen: zero if it is denormal.
template <typename T>
T Flushed(T x) {
  return std::fabs(x) < std::numeric_limits<T>::min() ? std::copysign(T(0), x) : x;
}

template <typename In, typename Operation>
void Unary(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  using Out = decltype(Operation()(In()));
  FlushDenormals flush;
  const In* x = static_cast<const In*>(operands[0]);
  Out* out = static_cast<Out*>(result);
  if (steps[0] == 0) {
    std::fill_n(out, count, Operation()(*x));
  } else {
    for (ptrdiff_t i = 0; i < count; ++i) out[i] = Operation()(x[i]);
  }
}

template <typename In, typename Operation>
void Binary(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  using Out = decltype(Operation()(In(), In()));
  FlushDenormals flush;
  const In* x = static_cast<const In*>(operands[0]);
  const In* y = static_cast<const In*>(operands[1]);
  Out* out = static_cast<Out*>(result);
  if (steps[0] == 0) {
    const In fixed = *x;
    for (ptrdiff_t i = 0; i < count; ++i) out[i] = Operation()(fixed, y[i * steps[1]]);
  } else if (steps[1] == 0) {
    const In fixed = *y;
    for (ptrdiff_t i = 0; i < count; ++i) out[i] = Operation()(x[i], fixed);
  } else {
    for (ptrdiff_t i = 0; i < count; ++i) out[i] = Operation()(x[i], y[i]);
  }
}

// The second choice where the first operand is true.
template <typename In>
void Select(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  const bool* which = static_cast<const bool*>(operands[0]);
  const In* x = static_cast<const In*>(operands[1]);
  const In* y = static_cast<const In*>(operands[2]);
  In* out = static_cast<In*>(result);
  for (ptrdiff_t i = 0; i < count; ++i) {
    out[i] = which[i * steps[0]] ? y[i * steps[2]] : x[i * steps[1]];
  }
}

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
    T operator()(T x) const {             \
      return expression;                  \
    }                                     \
  }
DOVETAIL_UNARY(Absolute, std::fabs(x));
DOVETAIL_UNARY(Ceiling, std::ceil(x));
DOVETAIL_UNARY(Floor, std::floor(x));
DOVETAIL_UNARY(Negative, -x);
DOVETAIL_UNARY(Sign, x > 0 ? T(1) : x < 0 ? T(-1) : x);
DOVETAIL_UNARY(SquareRoot, std::sqrt(x));
// In float64, so that nearly all results are the nearest ones. Programs give back denormal
// arguments of functions that are the identity at zero.
#define DOVETAIL_AT_ZERO(x, expression) (x == 0 ? x : T(expression))
DOVETAIL_UNARY(Cosine, T(std::cos(double(x))));
DOVETAIL_UNARY(Exponential, T(std::exp(double(x))));
DOVETAIL_UNARY(Expm1, DOVETAIL_AT_ZERO(x, std::expm1(double(x))));
DOVETAIL_UNARY(Log1p, T(std::log1p(double(x))));
DOVETAIL_UNARY(Logarithm, T(std::log(double(x))));
DOVETAIL_UNARY(Logistic, T(1 / (1 + std::exp(-double(x)))));
DOVETAIL_UNARY(ReciprocalRoot, T(1 / std::sqrt(double(x))));
DOVETAIL_UNARY(Sine, DOVETAIL_AT_ZERO(x, std::sin(double(x))));
DOVETAIL_UNARY(Tangent, DOVETAIL_AT_ZERO(x, std::tan(double(x))));
DOVETAIL_UNARY(Tanh, DOVETAIL_AT_ZERO(x, std::tanh(double(x))));
#undef DOVETAIL_AT_ZERO
#undef DOVETAIL_UNARY

// A NaN is the result, whichever operand it is, and -0 is less than 0.
template <bool kGreatest>
struct Extreme {
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_integral_v<T>) {
      return kGreatest == (x > y) ? x : y;
    } else {
      if (x != x) return x;
      if (y != y) return y;
      if (x == y) return std::signbit(x) == kGreatest ? Flushed(y) : Flushed(x);
      return Flushed(kGreatest == (x > y) ? x : y);
    }
  }
};

struct NegativeInteger {
  template <typename T>
  T operator()(T x) const {
    return T(-std::make_unsigned_t<T>(x));
  }
};

struct AbsoluteInteger {
  template <typename T>
  T operator()(T x) const {
    return x < 0 ? NegativeInteger()(x) : x;
  }
};

struct Not {
  bool operator()(bool x) const { return !x; }
  int32_t operator()(int32_t x) const { return ~x; }
};

struct Entry {
  const char* primitive;
  const char* dtype;  // of all operands, but for the one that chooses
  Function function;
  ptrdiff_t most;  // elements for which a program would take longer
};

// What an element takes decides how many there may be.
constexpr ptrdiff_t kMany = 4096, kFew = 256;

#define DOVETAIL_FOR_NUMBERS(T, dtype)                                                    \
  {"add", dtype, Binary<T, Add>, kMany}, {"sub", dtype, Binary<T, Subtract>, kMany},      \
      {"mul", dtype, Binary<T, Multiply>, kMany}, {"max", dtype, Binary<T, Extreme<true>>, kMany}, \
      {"min", dtype, Binary<T, Extreme<false>>, kMany}, {"eq", dtype, Binary<T, Equal>, kMany},  \
      {"ne", dtype, Binary<T, NotEqual>, kMany}, {"lt", dtype, Binary<T, Less>, kMany},   \
      {"le", dtype, Binary<T, LessOrEqual>, kMany}, {"gt", dtype, Binary<T, Greater>, kMany}, \
      {"ge", dtype, Binary<T, GreaterOrEqual>, kMany}, {"sign", dtype, Unary<T, Sign>, kMany}, \
      {"select_n", dtype, Select<T>, kMany}

#define DOVETAIL_FOR_BITS(T, dtype)                                               \
  {"and", dtype, Binary<T, And>, kMany}, {"or", dtype, Binary<T, Or>, kMany},     \
      {"xor", dtype, Binary<T, Xor>, kMany}, {"not", dtype, Unary<T, Not>, kMany}

const Entry kEntries[] = {
    DOVETAIL_FOR_NUMBERS(float, "float32"),
    DOVETAIL_FOR_NUMBERS(int32_t, "int32"),
    DOVETAIL_FOR_BITS(int32_t, "int32"),
    DOVETAIL_FOR_BITS(bool, "bool"),
    {"eq", "bool", Binary<bool, Equal>, kMany},
    {"ne", "bool", Binary<bool, NotEqual>, kMany},
    {"select_n", "bool", Select<bool>, kMany},
    {"abs", "int32", Unary<int32_t, AbsoluteInteger>, kMany},
    {"neg", "int32", Unary<int32_t, NegativeInteger>, kMany},
    {"abs", "float32", Unary<float, Absolute>, kMany},
    {"ceil", "float32", Unary<float, Ceiling>, kMany},
    {"div", "float32", Binary<float, Divide>, kMany},
    {"floor", "float32", Unary<float, Floor>, kMany},
    {"neg", "float32", Unary<float, Negative>, kMany},
    {"rsqrt", "float32", Unary<float, ReciprocalRoot>, kMany},
    {"sqrt", "float32", Unary<float, SquareRoot>, kMany},
    {"cos", "float32", Unary<float, Cosine>, kFew},
    {"exp", "float32", Unary<float, Exponential>, kFew},
    {"expm1", "float32", Unary<float, Expm1>, kFew},
    {"log", "float32", Unary<float, Logarithm>, kFew},
    {"log1p", "float32", Unary<float, Log1p>, kFew},
    {"logistic", "float32", Unary<float, Logistic>, kFew},
    {"sin", "float32", Unary<float, Sine>, kFew},
    {"tan", "float32", Unary<float, Tangent>, kFew},
    {"tanh", "float32", Unary<float, Tanh>, kFew},
};
#undef DOVETAIL_FOR_NUMBERS
#undef DOVETAIL_FOR_BITS

}  // namespace
}  // namespace dovetail

#pragma GCC visibility push(default)
extern "C" const void* dovetail_host_functions(size_t* count) {
  *count = sizeof(dovetail::kEntries) / sizeof(dovetail::kEntries[0]);
  return dovetail::kEntries;
}
#pragma GCC visibility pop
