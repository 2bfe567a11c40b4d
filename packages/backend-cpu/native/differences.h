// Functions of differences, and what is subtracted and divided by in a softmax.

#ifndef DOVETAIL_CPU_DIFFERENCES_H_
#define DOVETAIL_CPU_DIFFERENCES_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "bits.h"
#include "exponential.h"
#include "vector_width.h"

namespace dovetail {

template <typename T>
constexpr int64_t kRowLanes = kVectorBytes / sizeof(T);

struct Square {
  template <typename V>
  static DOVETAIL_INLINE V Of(V x) {
    return x * x;
  }
};

struct Power {
  static DOVETAIL_INLINE Singles Of(Singles x) { return Exponential::Of(x); }
  static float Of(float x) { return Exponential::Of(Singles{} + x)[0]; }
};

constexpr int64_t kFloats = kRowLanes<float>;
constexpr float kNone = -std::numeric_limits<float>::infinity();

// The larger of two; of NaN, the second.
DOVETAIL_INLINE Singles Most(Singles a, Singles b) { return a > b ? a : b; }

// A factor in two parts: what is multiplied by it is rounded as if divided.
struct Factor {
  explicit Factor(double sum) : high(float(1 / sum)), low(float(1 / sum - high)) {}
  DOVETAIL_INLINE Singles Times(Singles x) const { return x * high + x * low; }
  float high, low;
};

// The largest number of a part of a row, or no less than that of its numbers beside NaN.
inline float LargestOf(const float* x, int64_t size) {
  Singles most[4];
  for (Singles& v : most) v = Singles{} + kNone;
  int64_t i = 0;
  for (; i + 4 * kFloats <= size; i += 4 * kFloats) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) most[j] = Most(Load<Singles>(x + i + j * kFloats), most[j]);
  }
  for (; i < size; i += kFloats) {
    most[0] = Most(Load<Singles>(x + std::min(i, size - kFloats)), most[0]);
  }
  const Singles all = Most(Most(most[0], most[1]), Most(most[2], most[3]));
  float largest = kNone;
  for (int64_t lane = 0; lane < kFloats; ++lane) largest = std::max(largest, all[lane]);
  return largest;
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_DIFFERENCES_H_
