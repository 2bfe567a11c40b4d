// Random bits and keys of small arrays in the memory of the host, and numbers made of bits.

#include <cstdint>

#include "host_functions.h"
#include "threefry.h"

namespace dovetail {
namespace {

// Numbers: keys, and integers for each.
template <typename Word>
void Bits(const uint32_t* key, const ptrdiff_t* numbers, void* result) {
  Word* out = static_cast<Word*>(result);
  for (ptrdiff_t row = 0; row < numbers[0]; ++row, key += 2, out += numbers[1]) {
    DrawBits(key, 0, numbers[1], out);
  }
}

// Numbers: also the bytes of an integer.
void RandomBits(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const uint32_t* key = static_cast<const uint32_t*>(operands[0]);
  switch (numbers[2]) {
    case 1:
      return Bits<uint8_t>(key, numbers, result);
    case 2:
      return Bits<uint16_t>(key, numbers, result);
    case 4:
      return Bits<uint32_t>(key, numbers, result);
    default:
      return Bits<uint64_t>(key, numbers, result);
  }
}

// The high and the low word of each integer. The number: integers.
template <typename T>
void RandomSeed(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const T* seed = static_cast<const T*>(operands[0]);
  uint32_t* out = static_cast<uint32_t*>(result);
  for (ptrdiff_t row = 0; row < numbers[0]; ++row) {
    out[2 * row] = sizeof(T) == 8 ? uint32_t(uint64_t(seed[row]) >> 32) : 0;
    out[2 * row + 1] = uint32_t(seed[row]);
  }
}

// Numbers: keys, and new ones for each.
void RandomSplit(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const uint32_t* key = static_cast<const uint32_t*>(operands[0]);
  uint32_t* out = static_cast<uint32_t*>(result);
  for (ptrdiff_t row = 0; row < numbers[0]; ++row, key += 2, out += 2 * numbers[1]) {
    SplitKey(key, numbers[1], out);
  }
}

// The number: keys.
void RandomFoldIn(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const uint32_t* key = static_cast<const uint32_t*>(operands[0]);
  const uint32_t* number = static_cast<const uint32_t*>(operands[1]);
  uint32_t* out = static_cast<uint32_t*>(result);
  for (ptrdiff_t row = 0; row < numbers[0]; ++row) {
    FoldInto(key + 2 * row, number[row], out + 2 * row);
  }
}

const HostEntry kEntries[] = {
    {"random_bits", "uint32", RandomBits, kMany},
    {"random_fold_in", "uint32", RandomFoldIn, kScarce},
    {"random_seed", "int32", RandomSeed<int32_t>, kMany},
    {"random_seed", "int64", RandomSeed<int64_t>, kMany},
    {"random_seed", "uint32", RandomSeed<uint32_t>, kMany},
    {"random_seed", "uint64", RandomSeed<uint64_t>, kMany},
    {"random_split", "uint32", RandomSplit, kSome},
};

}  // namespace

const HostEntry* RandomFunctions(size_t* count) {
  *count = sizeof(kEntries) / sizeof(kEntries[0]);
  return kEntries;
}

}  // namespace dovetail
