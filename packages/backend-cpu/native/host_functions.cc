// Elementwise functions of small arrays in the memory of the host. Their numbers are steps: by how
// many elements to go on in each operand, which is none where it is one element.

#include "host_functions.h"

#include <algorithm>
#include <vector>

#include "host_elementary.h"

namespace dovetail {
namespace {

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

// Calls body(step) with a constant in place of a step, so that loops become vectors.
template <typename Body>
void WithStep(ptrdiff_t step, const Body& body) {
  if (step == 0) {
    body(std::integral_constant<ptrdiff_t, 0>());
  } else {
    body(std::integral_constant<ptrdiff_t, 1>());
  }
}

template <typename In, typename Operation>
void Binary(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  using Out = decltype(Operation()(In(), In()));
  FlushDenormals flush;
  const In* x = static_cast<const In*>(operands[0]);
  const In* y = static_cast<const In*>(operands[1]);
  Out* __restrict out = static_cast<Out*>(result);
  WithStep(steps[0], [=](auto first) {
    WithStep(steps[1], [=](auto second) {
      for (ptrdiff_t i = 0; i < count; ++i) out[i] = Operation()(x[i * first], y[i * second]);
    });
  });
}

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
void Select(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  Ternary<uint8_t, In, In, In>(operands, steps, result, count,
                               [](uint8_t which, In x, In y) { return which ? y : x; });
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
DOVETAIL_UNARY(IsFinite, std::fabs(x) <= std::numeric_limits<T>::max());
#undef DOVETAIL_UNARY

// The second of three operands, between the others.
template <typename T>
void Clamp(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  FlushDenormals flush;
  Ternary<T, T, T, T>(operands, steps, result, count, [](T low, T x, T high) {
    return ExtremeOf<false>()(high, ExtremeOf<true>()(low, x));
  });
}

struct NegativeInteger {
  template <typename T>
  T operator()(T x) const {
    return T(-std::make_unsigned_t<T>(x));
  }
};

struct SquareInteger {
  int32_t operator()(int32_t x) const { return Multiply()(x, x); }
};

// In float64, so that nearly all results are the nearest ones.
struct Power {
  float operator()(float x, float y) const { return float(std::pow(double(x), double(y))); }
};

struct AbsoluteInteger {
  template <typename T>
  T operator()(T x) const {
    return x < 0 ? NegativeInteger()(x) : x;
  }
};

struct Copy {
  float operator()(float x) const { return FlushedNumber(x); }
  template <typename T>
  T operator()(T x) const {
    return x;
  }
};

struct Not {
  bool operator()(bool x) const { return !x; }
  int32_t operator()(int32_t x) const { return ~x; }
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
      {"xor", dtype, Binary<T, Xor>, kMany}, {"not", dtype, Unary<T, Not>, kMany}

const HostEntry kEntries[] = {
    DOVETAIL_FOR_NUMBERS(float, "float32"),
    DOVETAIL_FOR_NUMBERS(int32_t, "int32"),
    DOVETAIL_FOR_BITS(int32_t, "int32"),
    DOVETAIL_FOR_BITS(bool, "bool"),
    {"eq", "bool", Binary<bool, Equal>, kMany},
    {"ne", "bool", Binary<bool, NotEqual>, kMany},
    {"select_n", "bool", Select<bool>, kMany},
    {"copy", "bool", Unary<bool, Copy>, kMany},
    {"abs", "int32", Unary<int32_t, AbsoluteInteger>, kMany},
    {"neg", "int32", Unary<int32_t, NegativeInteger>, kMany},
    {"abs", "float32", Unary<float, Absolute>, kMany},
    {"ceil", "float32", Unary<float, Ceiling>, kMany},
    {"div", "float32", Binary<float, Divide>, kMany},
    {"floor", "float32", Unary<float, Floor>, kMany},
    {"neg", "float32", Unary<float, Negative>, kMany},
    {"rsqrt", "float32", Unary<float, ReciprocalRoot>, kMany},
    {"sqrt", "float32", Unary<float, SquareRoot>, kMany},
    {"clamp", "float32", Clamp<float>, kMany},
    {"clamp", "int32", Clamp<int32_t>, kMany},
    {"is_finite", "float32", Unary<float, IsFinite>, kMany},
    {"one_minus_square", "float32", Unary<float, OneMinusSquare>, kMany},
    {"pow", "float32", Binary<float, Power>, kFew},
    {"square", "float32", Unary<float, Square>, kMany},
    {"square", "int32", Unary<int32_t, SquareInteger>, kMany},
    {"cos", "float32", OnCircle<CosineOfCircle>, kSome},
    {"exp", "float32", Unary<float, Exponential>, kSome},
    {"expm1", "float32", Unary<float, Expm1>, kSome},
    {"log", "float32", Unary<float, Logarithm>, kSome},
    {"log1p", "float32", Unary<float, Log1p>, kSome},
    {"logistic", "float32", Unary<float, Logistic>, kSome},
    {"sin", "float32", OnCircle<SineOfCircle>, kSome},
    {"tan", "float32", OnCircle<TangentOfCircle>, kSome},
    {"tanh", "float32", Unary<float, Tanh>, kSome},
};
#undef DOVETAIL_FOR_NUMBERS
#undef DOVETAIL_FOR_BITS

}  // namespace
}  // namespace dovetail

#pragma GCC visibility push(default)
extern "C" const void* dovetail_host_functions(size_t* count) {
  static const std::vector<dovetail::HostEntry> all = [] {
    std::vector<dovetail::HostEntry> entries(std::begin(dovetail::kEntries),
                                             std::end(dovetail::kEntries));
    size_t more;
    const dovetail::HostEntry* others = dovetail::ArrayFunctions(&more);
    entries.insert(entries.end(), others, others + more);
    return entries;
  }();
  *count = all.size();
  return all.data();
}
#pragma GCC visibility pop
