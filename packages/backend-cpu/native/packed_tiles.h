// Tiles of products of matrices that were both copied into the order of their use.

#ifndef DOVETAIL_CPU_PACKED_TILES_H_
#define DOVETAIL_CPU_PACKED_TILES_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tiles.h"

namespace dovetail {

// A tile whose rows, and columns, of each step lie behind each other.
template <typename T>
using PackedTileFunction = void (*)(int64_t steps, const T* a, const T* b, T* y, int64_t y_row,
                                    bool add);

template <typename T, int kVectors, int kRows>
DOVETAIL_WIDE void PackedTile(int64_t steps, const T* a, const T* b, T* y, int64_t y_row,
                              bool add) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  Vector total[kRows][kVectors] = {};
  const auto step = [&](const T* left, const T* right) __attribute__((always_inline)) {
    Vector factor[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(&factor[v], right + v * kLanes<T>, sizeof(Vector));
    }
#pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const T other = left[row];
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) total[row][v] += other * factor[v];
    }
  };
  constexpr int kTogether = 4;
  int64_t k = 0;
  for (; k + kTogether <= steps; k += kTogether) {
#pragma GCC unroll 8
    for (int i = 0; i < kTogether; ++i) step(a + i * kRows, b + i * kVectors * kLanes<T>);
    a += kTogether * kRows, b += kTogether * kVectors * kLanes<T>;
  }
  for (; k < steps; ++k, a += kRows, b += kVectors * kLanes<T>) step(a, b);
  StoreTile(total, y, y_row, add);
}

template <typename T, int kVectors, int... kRows>
constexpr std::array<PackedTileFunction<T>, sizeof...(kRows)> PackedTilesOf(
    std::integer_sequence<int, kRows...>) {
  return {&PackedTile<T, kVectors, kRows + 1>...};
}

// The function for up to MostRows(2) rows of one or two vectors.
template <typename T>
PackedTileFunction<T> PackedTileOf(int64_t rows, int64_t vectors) {
  using Rows = std::make_integer_sequence<int, MostRows(2)>;
  static constexpr auto k1 = PackedTilesOf<T, 1>(Rows()), k2 = PackedTilesOf<T, 2>(Rows());
  return vectors == 1 ? k1[rows - 1] : k2[rows - 1];
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_PACKED_TILES_H_
