// The counter-based random generator Threefry-2x32, of 20 rounds.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. The
// constants are those of the Random123 library.

#ifndef DOVETAIL_CPU_THREEFRY_H_
#define DOVETAIL_CPU_THREEFRY_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "vector_width.h"

namespace dovetail {
namespace {

constexpr uint32_t kParity = 0x1BD11BDA;
constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
// Counters that are in registers or the nearest cache at once.
constexpr int64_t kBlock = 64;

// Vectors side by side: each operation on one of them waits for the one before.
constexpr int kLanes = kVectorBytes / sizeof(uint32_t), kVectors = 4;
typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));

// Two words of random bits from two words of key and two of counter, for several counters.
template <typename V, int kCount>
inline void Threefry(uint32_t key1, uint32_t key2, V (&x1)[kCount], V (&x2)[kCount]) {
  const uint32_t schedule[3] = {key1, key2, key1 ^ key2 ^ kParity};
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
    x1[v] += key1;
    x2[v] += key2;
  }
#pragma GCC unroll 5
  for (int group = 0; group < 5; ++group) {
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step) {
      const int distance = kRotations[group % 2][step];
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) {
        x1[v] += x2[v];
        x2[v] = x1[v] ^ (x2[v] << distance | x2[v] >> (32 - distance));
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      x1[v] += schedule[(group + 1) % 3];
      x2[v] += schedule[(group + 2) % 3] + static_cast<uint32_t>(group + 1);
    }
  }
}

// Calls write(i, first, second) with the words of each counter i from `begin`, a multiple of kBlock,
// to `end`.
template <typename Write>
void ForCounters(const uint32_t* key, int64_t begin, int64_t end, const Write& write) {
  const uint32_t key1 = key[0], key2 = key[1];
  if (end - begin < 4) {  // Where vectors have nothing to gain.
    for (int64_t i = begin; i < end; ++i) {
      uint32_t x1[] = {static_cast<uint32_t>(i >> 32)}, x2[] = {static_cast<uint32_t>(i)};
      Threefry(key1, key2, x1, x2);
      write(i, *x1, *x2);
    }
    return;
  }
  uint32_t first[kBlock], second[kBlock];
  Words lanes;
  std::iota(first, first + kLanes, 0);
  std::memcpy(&lanes, first, sizeof(lanes));
  for (; begin < end; begin += kBlock) {
    const uint32_t high = static_cast<uint32_t>(begin >> 32), low = static_cast<uint32_t>(begin);
    const int64_t size = std::min(kBlock, end - begin);
    for (int64_t i = 0; i < size; i += kVectors * kLanes) {
      Words x1[kVectors], x2[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        x1[v] = Words{} + high;
        x2[v] = lanes + (low + static_cast<uint32_t>(i + v * kLanes));
      }
      Threefry(key1, key2, x1, x2);
      std::memcpy(first + i, x1, sizeof(x1));
      std::memcpy(second + i, x2, sizeof(x2));
    }
    for (int64_t i = 0; i < size; ++i) write(begin + i, first[i], second[i]);
  }
}

// The key of a key and a number.
inline void FoldInto(const uint32_t* key, uint32_t number, uint32_t* to) {
  uint32_t x1[] = {0}, x2[] = {number};
  Threefry(key[0], key[1], x1, x2);
  to[0] = *x1;
  to[1] = *x2;
}

// As many keys as there is room for, for the counters from 0.
inline void SplitKey(const uint32_t* key, int64_t size, uint32_t* to) {
  ForCounters(key, 0, size, [to](int64_t i, uint32_t first, uint32_t second) {
    to[2 * i] = first;
    to[2 * i + 1] = second;
  });
}

// Random integers for the counters from `begin` to `end`, at their places.
template <typename Word>
void DrawBits(const uint32_t* key, int64_t begin, int64_t end, Word* out) {
  ForCounters(key, begin, end, [out](int64_t i, uint32_t first, uint32_t second) {
    out[i] = sizeof(Word) == 8 ? Word(uint64_t{first} << 32 | second) : Word(first ^ second);
  });
}

}  // namespace
}  // namespace dovetail

#endif  // DOVETAIL_CPU_THREEFRY_H_
