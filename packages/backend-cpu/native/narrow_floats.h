// Conversions of floats of 16 bits.

#ifndef DOVETAIL_CPU_NARROW_FLOATS_H_
#define DOVETAIL_CPU_NARROW_FLOATS_H_

#include <cstddef>
#include <cstdint>

#include "host_functions.h"

namespace dovetail {

void WidenBFloat16(const uint16_t* from, int64_t size, float* to);
void WidenFloat16(const uint16_t* from, int64_t size, float* to);
void NarrowToBFloat16(const float* from, int64_t size, uint16_t* to);
void NarrowToFloat16(const float* from, int64_t size, uint16_t* to);

// Conversions and extremes as steps of expressions.
const HostEntry* NarrowSteps(size_t* count);

}  // namespace dovetail

#endif  // DOVETAIL_CPU_NARROW_FLOATS_H_
