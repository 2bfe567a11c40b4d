// Exponentials for kernels whose own vectors are others.

#ifndef DOVETAIL_CPU_EXPONENTIALS_H_
#define DOVETAIL_CPU_EXPONENTIALS_H_

#include <cstdint>

namespace dovetail {

// Writes exp(factor * x) over numbers, as many as fill vectors.
void Exponentiate(float factor, float* x, int64_t count);

}  // namespace dovetail

#endif  // DOVETAIL_CPU_EXPONENTIALS_H_
