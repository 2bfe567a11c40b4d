// Euclidean norms.

#ifndef DOVETAIL_CPU_NORM_H_
#define DOVETAIL_CPU_NORM_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace dovetail {

// The Euclidean norm of every `stride`-th number, without overflow or underflow.
template <typename T>
T Norm(int64_t size, const T* x, int64_t stride) {
  if (sizeof(T) == 4) {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += double(x[i * stride]) * double(x[i * stride]);
    return T(std::sqrt(sum));
  }
  T sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += x[i * stride] * x[i * stride];
  if (sum > T(1e-280) && sum < T(1e280)) return std::sqrt(sum);
  T largest = 0;
  for (int64_t i = 0; i < size; ++i) largest = std::max(largest, std::abs(x[i * stride]));
  if (largest == 0 || !(largest < std::numeric_limits<T>::infinity())) return std::sqrt(sum);
  sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    const T part = x[i * stride] / largest;
    sum += part * part;
  }
  return largest * std::sqrt(sum);
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_NORM_H_
