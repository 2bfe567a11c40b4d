// The products of a vector with rows of so few numbers that vectors are made of several of them.

#ifndef DOVETAIL_CPU_SHORT_ROWS_H_
#define DOVETAIL_CPU_SHORT_ROWS_H_

#include <algorithm>
#include <cstdint>

namespace dovetail {

constexpr int64_t kShort = 8;

template <typename T, int64_t kSize = 2>
void DotsOfShortRows(const T* rows, int64_t size, const T* x, T* sums, int64_t count) {
  if constexpr (kSize < kShort) {
    if (size > kSize) return DotsOfShortRows<T, kSize + 1>(rows, size, x, sums, count);
  }
  T factors[kSize];
  std::copy_n(x, kSize, factors);
  constexpr int64_t kTogether = 64, kAhead = 1024, kLine = 64 / sizeof(T);
  for (int64_t i = 0; i < count; i += kTogether) {
    const int64_t some = std::min(kTogether, count - i);
    const T* const from = rows + i * kSize;
    T* const to = sums + i;
    for (int64_t j = 0; j < kTogether * kSize; j += kLine) __builtin_prefetch(from + kAhead + j);
    for (int64_t j = 0; j < kTogether; j += kLine) __builtin_prefetch(to + kAhead + j, 1);
    for (int64_t row = 0; row < some; ++row) {
      T sum = from[row * kSize] * factors[0];
#pragma GCC unroll 8
      for (int64_t k = 1; k < kSize; ++k) sum += from[row * kSize + k] * factors[k];
      to[row] = sum;
    }
  }
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_SHORT_ROWS_H_
