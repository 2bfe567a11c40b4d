// Functions that move elements of small arrays in the memory of the host, of any dtype. Their numbers
// are computed by `host_functions.py`.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "host_functions.h"

namespace dovetail {
namespace {

constexpr int kMostDimensions = 8;

// Elements in both arrays: how many, and how many bytes apart.
struct Dimension {
  ptrdiff_t size, from, to;
};

struct Pair {
  uint64_t words[2];
};

template <typename Element>
void MoveElements(const char* from, char* to, const Dimension* dimensions, int count) {
  const Dimension& own = dimensions[0];
  if (count > 1) {
    for (ptrdiff_t i = 0; i < own.size; ++i, from += own.from, to += own.to) {
      MoveElements<Element>(from, to, dimensions + 1, count - 1);
    }
  } else if (own.from == sizeof(Element) && own.to == sizeof(Element)) {
    std::memcpy(to, from, own.size * sizeof(Element));
  } else if (own.from == -ptrdiff_t(sizeof(Element)) && own.to == sizeof(Element)) {
    for (ptrdiff_t i = 0; i < own.size; ++i) {
      std::memcpy(to + i * sizeof(Element), from - i * sizeof(Element), sizeof(Element));
    }
  } else {
    for (ptrdiff_t i = 0; i < own.size; ++i, from += own.from, to += own.to) {
      std::memcpy(to, from, sizeof(Element));
    }
  }
}

void Move(const void* from, void* to, ptrdiff_t item, const Dimension* dimensions, int count) {
  const char* source = static_cast<const char*>(from);
  char* target = static_cast<char*>(to);
  for (int d = 0; d < count; ++d) {
    if (dimensions[d].size <= 0) return;
  }
  switch (item) {
    case 1:
      return MoveElements<uint8_t>(source, target, dimensions, count);
    case 2:
      return MoveElements<uint16_t>(source, target, dimensions, count);
    case 4:
      return MoveElements<uint32_t>(source, target, dimensions, count);
    case 8:
      return MoveElements<uint64_t>(source, target, dimensions, count);
    default:
      return MoveElements<Pair>(source, target, dimensions, count);
  }
}

// Numbers: bytes of an element, the place of the first that is taken, the dimensions of the result
// (at least one), and for each its size and how many bytes further to go in the operand.
void Rearrange(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  Dimension dimensions[kMostDimensions];
  const ptrdiff_t count = numbers[2];
  ptrdiff_t step = numbers[0];
  for (ptrdiff_t d = count - 1; d >= 0; --d) {
    dimensions[d] = {numbers[3 + 2 * d], numbers[4 + 2 * d], step};
    step *= dimensions[d].size;
  }
  Move(static_cast<const char*>(operands[0]) + numbers[1], result, numbers[0], dimensions,
       int(count));
}

// Numbers: rows, operands, and the bytes of a row of each.
void Concatenate(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  char* out = static_cast<char*>(result);
  for (ptrdiff_t row = 0; row < numbers[0]; ++row) {
    for (ptrdiff_t k = 0; k < numbers[1]; ++k) {
      const ptrdiff_t bytes = numbers[2 + k];
      std::memcpy(out, static_cast<const char*>(operands[k]) + row * bytes, bytes);
      out += bytes;
    }
  }
}

// Numbers: rows, results, and the bytes of a row of each; results are at multiples of 64 bytes.
void Split(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const char* x = static_cast<const char*>(operands[0]);
  for (ptrdiff_t row = 0; row < numbers[0]; ++row) {
    char* out = static_cast<char*>(result);
    for (ptrdiff_t k = 0; k < numbers[1]; ++k) {
      const ptrdiff_t bytes = numbers[2 + k];
      std::memcpy(out + row * bytes, x, bytes);
      x += bytes;
      out += (numbers[0] * bytes + 63) / 64 * 64;
    }
  }
}

// The place of a part in a whole, whose first indices are moved into bounds. Numbers: bytes of an
// element, dimensions, and for each the size of the whole and that of the part.
template <bool kTakes>
ptrdiff_t PartOf(const void* const* indices, const ptrdiff_t* numbers, Dimension* dimensions) {
  ptrdiff_t whole = numbers[0], part = numbers[0], place = 0;
  for (ptrdiff_t d = numbers[1] - 1; d >= 0; --d) {
    const ptrdiff_t size = numbers[2 + 2 * d], own = numbers[3 + 2 * d];
    const ptrdiff_t index = *static_cast<const int32_t*>(indices[d]);
    place += std::clamp<ptrdiff_t>(index, 0, size - own) * whole;
    dimensions[d] = kTakes ? Dimension{own, whole, part} : Dimension{own, part, whole};
    whole *= size;
    part *= own;
  }
  return place;
}

void DynamicSlice(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  Dimension dimensions[kMostDimensions];
  const ptrdiff_t place = PartOf<true>(operands + 1, numbers, dimensions);
  Move(static_cast<const char*>(operands[0]) + place, result, numbers[0], dimensions,
       int(numbers[1]));
}

void DynamicUpdateSlice(const void* const* operands, const ptrdiff_t* numbers, void* result,
                        ptrdiff_t count) {
  Dimension dimensions[kMostDimensions];
  const ptrdiff_t place = PartOf<false>(operands + 2, numbers, dimensions);
  std::memcpy(result, operands[0], count * numbers[0]);
  Move(operands[1], static_cast<char*>(result) + place, numbers[0], dimensions, int(numbers[1]));
}

// Numbers: bytes of an element, dimensions, and for each the size of the operand, the elements
// before it and those between two of its own, and the size of the result.
void Pad(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t count) {
  const ptrdiff_t item = numbers[0];
  Dimension all = {count, 0, item};
  Move(operands[1], result, item, &all, 1);
  Dimension dimensions[kMostDimensions];
  ptrdiff_t from = item, to = item, place = 0;
  for (ptrdiff_t d = numbers[1] - 1; d >= 0; --d) {
    const ptrdiff_t* own = numbers + 2 + 4 * d;
    place += own[1] * to;
    dimensions[d] = {own[0], from, (own[2] + 1) * to};
    from *= own[0];
    to *= own[3];
  }
  Move(operands[0], static_cast<char*>(result) + place, item, dimensions, int(numbers[1]));
}

// Numbers: rows of the operand, bytes of each, and rows that are taken. Indices out of bounds are
// moved into bounds.
void TakeRows(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const char* x = static_cast<const char*>(operands[0]);
  const int32_t* indices = static_cast<const int32_t*>(operands[1]);
  char* out = static_cast<char*>(result);
  const ptrdiff_t last = numbers[0] - 1, bytes = numbers[1];
  const auto row = [&](ptrdiff_t i) {
    return x + std::clamp<ptrdiff_t>(indices[i], 0, last) * bytes;
  };
  for (ptrdiff_t i = 0; i < numbers[2]; ++i, out += bytes) {
    if (bytes == 4) {
      std::memcpy(out, row(i), 4);
    } else {
      std::memcpy(out, row(i), bytes);
    }
  }
}

// Numbers: rows, bytes of each, and rows that are put. Those whose index is out of bounds are not.
void PutRows(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const int32_t* indices = static_cast<const int32_t*>(operands[1]);
  const char* from = static_cast<const char*>(operands[2]);
  char* out = static_cast<char*>(result);
  const ptrdiff_t rows = numbers[0], bytes = numbers[1];
  std::memcpy(out, operands[0], rows * bytes);
  for (ptrdiff_t i = 0; i < numbers[2]; ++i, from += bytes) {
    if (indices[i] >= 0 && indices[i] < rows) std::memcpy(out + indices[i] * bytes, from, bytes);
  }
}

const HostEntry kEntries[] = {
    {"broadcast_in_dim", "*", Rearrange, kSome},
    {"concatenate", "*", Concatenate, kMost},
    {"dynamic_slice", "int32", DynamicSlice, kSome},
    {"dynamic_update_slice", "int32", DynamicUpdateSlice, kSome},
    {"gather", "int32", TakeRows, kSome},
    {"pad", "*", Pad, kSome},
    {"rev", "*", Rearrange, kFew},
    {"scatter", "*", PutRows, kSome},
    {"slice", "*", Rearrange, kSome},
    {"split", "*", Split, kMost},
    {"stack", "*", Concatenate, kMost},
    {"transpose", "*", Rearrange, kSome},
};

}  // namespace

const HostEntry* MoveFunctions(size_t* count) {
  *count = sizeof(kEntries) / sizeof(kEntries[0]);
  return kEntries;
}

}  // namespace dovetail
