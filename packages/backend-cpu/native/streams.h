// Parts of an array that are read side by side.

#ifndef DOVETAIL_CPU_STREAMS_H_
#define DOVETAIL_CPU_STREAMS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "interrupts.h"
#include "vector_width.h"

namespace dovetail {

// So many at once: processors with vectors of this width fetch one part from memory at little more
// than half of the speed at which they fetch four.
constexpr int kStreams = kVectorBytes == 32 ? 4 : 1;

// Calls body(count, i, apart), with a constant `count`, for each i from `begin` to `end`: for so many
// of them at once, which are `apart` from one another.
template <int kMost = kStreams, typename Body>
void InStreams(int64_t begin, int64_t end, const Body& body) {
  if constexpr (kMost > 1) {
    const int64_t apart = (end - begin) / kMost;
    for (int64_t i = 0; i < apart; ++i) {
      EndIfInterrupted();
      body(std::integral_constant<int, kMost>(), begin + i, apart);
    }
    begin += apart * kMost;
  }
  while (begin < end) {
    EndIfInterrupted();
    constexpr int64_t kFew = 64;  // They may take no longer than to look.
    for (const int64_t stop = std::min(end, begin + kFew); begin < stop; ++begin) {
      body(std::integral_constant<int, 1>(), begin, int64_t{0});
    }
  }
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_STREAMS_H_
