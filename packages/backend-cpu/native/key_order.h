// Keys of numbers: signed integers in the same order, and how those are sorted.
//
// Unsigned integers become keys by their sign bit, floats by their bits, with -0 as 0 and every NaN
// as the greatest.

#ifndef DOVETAIL_CPU_KEY_ORDER_H_
#define DOVETAIL_CPU_KEY_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "parallel.h"
#include "quicksort.h"
#include "radix_sort.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

namespace ffi = xla::ffi;

// Sorts integers in place; with kFloats keys of floats, which become their bits. `spare` has as
// many elements; `pool` may be null.
template <bool kFloats = false, typename T>
void SortNumbers(ffi::ThreadPool* pool, T* elements, T* spare, int64_t size) {
#if defined(DOVETAIL_VECTORS)
  SortIntegers<T, kFloats>(pool, elements, spare, size);
#else
  SortByDigits(pool, elements, spare, size);
  if (kFloats) ToFloatBits(elements, size);
#endif
}

// Sorts in place the first `count` of the sorted order of integers, to the front. The others follow
// in any order, or are lost to `spare`, which has as many elements.
template <typename T>
void SortFirst(T* elements, T* spare, int64_t size, int64_t count) {
#if defined(DOVETAIL_VECTORS)
  SortWantedParts(WholeSegment(elements, spare, size), elements,
                  [count](int64_t begin, int64_t end) {
                    return std::pair(begin, std::min(end, count));
                  });
#else
  (void)spare;
  if (count < size) std::nth_element(elements, elements + count, elements + size);
  std::sort(elements, elements + count);
#endif
}

// Moves elements in place so that those at some positions, which ascend, are what they would be in
// sorted order. `spare` has as many elements.
template <typename T>
void PlaceInOrder(T* elements, T* spare, int64_t size, const std::vector<int64_t>& positions) {
#if defined(DOVETAIL_VECTORS)
  SortWantedParts(WholeSegment(elements, spare, size), elements, [&](int64_t begin, int64_t end) {
    const auto first = std::lower_bound(positions.begin(), positions.end(), begin);
    const auto last = std::lower_bound(first, positions.end(), end);
    return first == last ? std::pair(end, end) : std::pair(*first, last[-1] + 1);
  });
#else
  (void)spare;
  int64_t begin = 0;
  for (const int64_t position : positions) {
    if (position < begin) continue;
    std::nth_element(elements + begin, elements + position, elements + size);
    begin = position + 1;
  }
#endif
}

enum class Kind { kUnsigned, kSigned, kFloat };

// The order of keys that are given by their bits.
template <typename Bits>
struct Order {
  using Int = std::make_signed_t<Bits>;
  static constexpr Bits kSign = Bits(1) << (std::numeric_limits<Bits>::digits - 1);
  static constexpr Int kNan = std::numeric_limits<Int>::max();

  Kind kind;
  Bits infinity;  // The greatest float.

  bool IsNan(Bits bits) const { return Bits(bits & Bits(~kSign)) > infinity; }

  // Whether a float is equal to others with other bits.
  bool IsAmbiguous(Bits bits) const {
    return kind == Kind::kFloat && (bits == kSign || IsNan(bits));
  }

  Int Encode(Bits bits) const {
    if (kind == Kind::kSigned) return Int(bits);
    if (kind == Kind::kUnsigned) return Int(bits ^ kSign);
    // By arithmetic: a branch would be mispredicted where signs are mixed.
    const Int x = Int(bits & Bits(-Bits(bits != kSign)));
    const Int encoded = Int(x ^ Int(Int(x >> (std::numeric_limits<Bits>::digits - 1)) & Int(~kSign)));
    return IsNan(bits) ? kNan : encoded;
  }

  // What Encode was given, unless that was ambiguous.
  Bits Decode(Int key) const {
    if (kind == Kind::kSigned) return Bits(key);
    if (kind == Kind::kUnsigned) return Bits(key) ^ kSign;
    return Bits(key ^ Int(Int(key >> (std::numeric_limits<Bits>::digits - 1)) & Int(~kSign)));
  }
};

// Writes the keys of elements, and says whether any of these is equal to others with other bits.
//
// The order is a copy: of one in memory the compiler would suppose that keys overwrite it.
template <typename Bits, typename Key>
bool EncodeAll(const Bits* __restrict from, Key* __restrict keys, int64_t size, Order<Bits> order) {
  Bits ambiguous = 0;
  for (int64_t i = 0; i < size; ++i) {
    ambiguous |= Bits(order.IsAmbiguous(from[i]));
    keys[i] = order.Encode(from[i]);
  }
  return ambiguous != 0;
}

// Writes the elements of keys, which may lie in the same place.
template <typename Key, typename Bits>
void DecodeAll(const Key* keys, Bits* to, int64_t size, Order<Bits> order) {
  for (int64_t i = 0; i < size; ++i) to[i] = order.Decode(keys[i]);
}

template <typename Bits>
Order<Bits> OrderOf(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::S8:
    case ffi::DataType::S16:
    case ffi::DataType::S32:
    case ffi::DataType::S64:
      return {Kind::kSigned, 0};
    case ffi::DataType::F16:
      return {Kind::kFloat, Bits(0x7C00)};
    case ffi::DataType::BF16:
      return {Kind::kFloat, Bits(0x7F80)};
    case ffi::DataType::F32:
      return {Kind::kFloat, Bits(0x7F800000)};
    case ffi::DataType::F64:
      return {Kind::kFloat, Bits(0x7FF0000000000000)};
    default:
      return {Kind::kUnsigned, 0};
  }
}

// Calls f with a value of the type of unsigned integers of a width.
template <typename F>
void ByWidth(int64_t width, const F& f) {
  switch (width) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    default:
      return f(uint64_t());
  }
}

template <typename T>
std::unique_ptr<T[]> Uninitialized(int64_t size) {
  return std::unique_ptr<T[]>(new T[size]);
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_KEY_ORDER_H_
