// Conversions of floats of 16 bits.

#ifndef DOVETAIL_CPU_NARROW_FLOATS_H_
#define DOVETAIL_CPU_NARROW_FLOATS_H_

#include <cstdint>

namespace dovetail {

void WidenBFloat16(const uint16_t* from, int64_t size, float* to);
void WidenFloat16(const uint16_t* from, int64_t size, float* to);
void NarrowToBFloat16(const float* from, int64_t size, uint16_t* to);
void NarrowToFloat16(const float* from, int64_t size, uint16_t* to);

}  // namespace dovetail

#endif  // DOVETAIL_CPU_NARROW_FLOATS_H_
