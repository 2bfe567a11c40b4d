// Exponentials for kernels whose own vectors are others.

#ifndef DOVETAIL_CPU_EXPONENTIALS_H_
#define DOVETAIL_CPU_EXPONENTIALS_H_

#include <cstdint>

namespace dovetail {

// Writes exp(factor * x) over numbers, as many as fill vectors.
void Exponentiate(float factor, float* x, int64_t count);

// Rows of two vectors, whose numbers become exponentials of what they are above the largest ones of
// their columns, before and in these rows. `sums` are of these exponentials and, times the factors
// that are written, of those before.
void ExponentiatePanel(int64_t rows, float* x, float* largest, float* sums, float* factors);

}  // namespace dovetail

#endif  // DOVETAIL_CPU_EXPONENTIALS_H_
