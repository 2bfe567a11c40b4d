// Conversions of floats of 16 bits.

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

}  // namespace

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
