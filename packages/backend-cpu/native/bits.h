// Bits of numbers, and of vectors of them.

#ifndef DOVETAIL_CPU_BITS_H_
#define DOVETAIL_CPU_BITS_H_

#include <cstring>

namespace dovetail {

template <typename To, typename From>
inline __attribute__((always_inline)) To As(From x) {
  static_assert(sizeof(To) == sizeof(From), "the bits of another type of the same size");
  To result;
  std::memcpy(&result, &x, sizeof(result));
  return result;
}

// The number or vector at any address.
template <typename T>
inline __attribute__((always_inline)) T Load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_BITS_H_
