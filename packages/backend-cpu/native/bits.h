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

}  // namespace dovetail

#endif  // DOVETAIL_CPU_BITS_H_
