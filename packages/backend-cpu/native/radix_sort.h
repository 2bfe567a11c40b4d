// Sorting of signed integers by their digits, from the least significant one, for processors whose
// vectors lack what quicksort.h needs.

#ifndef DOVETAIL_CPU_RADIX_SORT_H_
#define DOVETAIL_CPU_RADIX_SORT_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "parallel.h"

namespace dovetail {

// The bits of a float whose key this is, but for those that have one key with other bits.
template <typename T>
T FloatBits(T key) {
  return key ^ ((key >> (std::numeric_limits<T>::digits)) & std::numeric_limits<T>::max());
}

template <typename T>
void ToFloatBits(T* keys, int64_t size) {
  for (int64_t i = 0; i < size; ++i) keys[i] = FloatBits(keys[i]);
}

// To sort takes as long as so many simple operations for each element, where threads are concerned.
constexpr int64_t kStepsOfSort = 4;

// Sorts integers in place. `spare` has as many elements; `pool` may be null.
template <typename T>
void SortByDigits(xla::ffi::ThreadPool* pool, T* elements, T* spare, int64_t size) {
  constexpr int kDigitBits = 8;
  constexpr int kDigits = 1 << kDigitBits;
  constexpr int kPasses = sizeof(T) * 8 / kDigitBits;
  // Shorter rows are sorted by comparison: counting digits would take longer.
  constexpr int64_t kFew = 512;
  if (size < kFew) return std::sort(elements, elements + size);
  using Unsigned = std::make_unsigned_t<T>;
  const auto digit = [](T x, int pass) {
    return ((static_cast<Unsigned>(x) ^ static_cast<Unsigned>(std::numeric_limits<T>::lowest())) >>
            (pass * kDigitBits)) &
           (kDigits - 1);
  };
  const int64_t parts = pool == nullptr ? 1 : PartsOf(*pool, kStepsOfSort * size);
  const auto begin = [&](int64_t part) { return size * part / parts; };
  const auto for_parts = [&](const auto& body) {
    if (parts == 1) return body(0);
    ParallelFor(*pool, parts, body);
  };
  // How often each digit occurs in each part.
  std::unique_ptr<int64_t[][kDigits]> counts(new int64_t[parts][kDigits]);
  T* const result = elements;
  for (int pass = 0; pass < kPasses; ++pass) {
    for_parts([&](int64_t part) {
      int64_t* own = counts[part];
      std::fill(own, own + kDigits, 0);
      InPieces(begin(part), begin(part + 1), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) ++own[digit(elements[i], pass)];
      });
    });
    int64_t total = 0, most = 0;
    for (int d = 0; d < kDigits; ++d) {
      const int64_t before = total;
      for (int64_t part = 0; part < parts; ++part) total += std::exchange(counts[part][d], total);
      most = std::max(most, total - before);
    }
    if (most == size) continue;  // The digit is the same everywhere.
    for_parts([&](int64_t part) {
      int64_t* next = counts[part];
      InPieces(begin(part), begin(part + 1), [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) {
          spare[next[digit(elements[i], pass)]++] = elements[i];
        }
      });
    });
    std::swap(elements, spare);
  }
  if (elements != result) std::copy(elements, elements + size, result);
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_RADIX_SORT_H_
