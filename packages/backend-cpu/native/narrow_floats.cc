// Conversions of floats of 16 bits, and arithmetic with them.

#include "narrow_floats.h"

#include <algorithm>
#include <cstdint>

#include "elementary.h"

namespace dovetail {
namespace {

// Converts whole vectors, the last of them filled up.
template <typename From, typename To>
void ConvertFloats(const From* from, int64_t size, To* to) {
  constexpr int64_t kStep = sizeof(Singles) / sizeof(float);
  int64_t i = 0;
  for (; i + kStep <= size; i += kStep) StoreSingles(LoadSingles(from + i), to + i);
  if (i == size) return;
  From last[kStep] = {};
  To converted[kStep];
  std::copy_n(from + i, size - i, last);
  StoreSingles(LoadSingles(last), converted);
  std::copy_n(converted, size - i, to + i);
}

// One of two numbers: NaN if one of them is, and -0 is less than 0.
template <bool kGreatest>
struct Extreme {
  static DOVETAIL_INLINE Singles Of(Singles x, Singles y) {
    const AllBits32 a = As<AllBits32>(x), b = As<AllBits32>(y);
    const Singles same = As<Singles>(kGreatest ? a & b : a | b);
    const Singles other = ((kGreatest ? x > y : x < y) | (x != x)) ? x : y;
    return ((a | b) & INT32_MAX) == 0 ? same : other;
  }
};

#define DOVETAIL_STEP(Name, operation)                          \
  struct Name {                                                 \
    static DOVETAIL_INLINE Singles Of(Singles x, Singles y) {   \
      return x operation y;                                     \
    }                                                           \
  }
DOVETAIL_STEP(Sum, +);
DOVETAIL_STEP(Difference, -);
DOVETAIL_STEP(Product, *);
DOVETAIL_STEP(Quotient, /);
#undef DOVETAIL_STEP

template <typename Number, typename Operation>
void OfTwo(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  FlushDenormals flush;
  const auto* x = static_cast<const Number*>(operands[0]);
  const auto* y = static_cast<const Number*>(operands[1]);
  auto* out = static_cast<Number*>(result);
  Number filled[2][kSingles] = {};
  if (steps[0] == 0) std::fill_n(filled[0], kSingles, *x);
  if (steps[1] == 0) std::fill_n(filled[1], kSingles, *y);
  const auto at = [&](int k, const Number* from, ptrdiff_t i) DOVETAIL_LAMBDA {
    return LoadSingles(steps[k] == 0 ? filled[k] : from + i);
  };
  ptrdiff_t i = 0;
  for (; i + kSingles <= count; i += kSingles) {
    FetchAhead(x + i, out + i);
    StoreSingles(Operation::Of(at(0, x, i), at(1, y, i)), out + i);
  }
  if (i == count) return;
  Number last[kSingles];
  if (steps[0] != 0) std::copy_n(x + i, count - i, filled[0]);
  if (steps[1] != 0) std::copy_n(y + i, count - i, filled[1]);
  StoreSingles(Operation::Of(LoadSingles(filled[0]), LoadSingles(filled[1])), last);
  std::copy_n(last, count - i, out + i);
}

template <typename From, typename To>
void ConvertedStep(const void* const* operands, const ptrdiff_t* steps, void* result,
               ptrdiff_t count) {
  const auto* from = static_cast<const From*>(operands[0]);
  auto* to = static_cast<To*>(result);
  if (steps[0] != 0 || count == 0) return ConvertFloats(from, count, to);
  ConvertFloats(from, 1, to);
  std::fill(to + 1, to + count, *to);
}

template <typename T, typename Operation>
constexpr HostFunction kOfTwo = Divided<OfTwo<T, Operation>, T, T, T>;

#define DOVETAIL_FOR_NARROW(T, dtype)                                                        \
  {"add", dtype, kOfTwo<T, Sum>, kMany}, {"add_any", dtype, kOfTwo<T, Sum>, kMany},          \
      {"div", dtype, kOfTwo<T, Quotient>, kMany}, {"mul", dtype, kOfTwo<T, Product>, kMany}, \
      {"sub", dtype, kOfTwo<T, Difference>, kMany}

const HostEntry kFunctions[] = {
    DOVETAIL_FOR_NARROW(BFloat16, "bfloat16"),
    DOVETAIL_FOR_NARROW(Float16, "float16"),
};
#undef DOVETAIL_FOR_NARROW

// Programs may keep extremes that are subnormal.
const HostEntry kSteps[] = {
    {"max", "bfloat16", OfTwo<BFloat16, Extreme<true>>, 0},
    {"min", "bfloat16", OfTwo<BFloat16, Extreme<false>>, 0},
    {"max", "float16", OfTwo<Float16, Extreme<true>>, 0},
    {"min", "float16", OfTwo<Float16, Extreme<false>>, 0},
    {"to_bfloat16", "float32", ConvertedStep<float, BFloat16>, 0},
    {"to_float16", "float32", ConvertedStep<float, Float16>, 0},
    {"to_float32", "bfloat16", ConvertedStep<BFloat16, float>, 0},
    {"to_float32", "float16", ConvertedStep<Float16, float>, 0},
};

}  // namespace

const HostEntry* NarrowFunctions(size_t* count) {
  *count = sizeof(kFunctions) / sizeof(kFunctions[0]);
  return kFunctions;
}

const HostEntry* NarrowSteps(size_t* count) {
  *count = sizeof(kSteps) / sizeof(kSteps[0]);
  return kSteps;
}

void WidenBFloat16(const uint16_t* from, int64_t size, float* to) {
  ConvertFloats(reinterpret_cast<const BFloat16*>(from), size, to);
}

void WidenFloat16(const uint16_t* from, int64_t size, float* to) {
  ConvertFloats(reinterpret_cast<const Float16*>(from), size, to);
}

void NarrowToBFloat16(const float* from, int64_t size, uint16_t* to) {
  ConvertFloats(from, size, reinterpret_cast<BFloat16*>(to));
}

void NarrowToFloat16(const float* from, int64_t size, uint16_t* to) {
  ConvertFloats(from, size, reinterpret_cast<Float16*>(to));
}

}  // namespace dovetail
