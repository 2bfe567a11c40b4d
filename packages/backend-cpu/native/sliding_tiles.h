// Tiles of a result in which neighbouring rows see the same numbers.

#ifndef DOVETAIL_CPU_SLIDING_TILES_H_
#define DOVETAIL_CPU_SLIDING_TILES_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "tiles.h"

namespace dovetail {

// Steps of a sum, which go on by one row.
constexpr int kSlidingSteps = 3;
// The most rows and vectors, whose sums are kept in registers, with the factors of all steps.
constexpr int kSlidingVectors = 2;
constexpr int kSlidingRows = kManyRegisters ? 10 : 4;

// y[row][lane] = sum of a[row + step][lane] * b[step][lane]: each row of a is loaded once.
template <typename T, int kVectors, int kRows>
DOVETAIL_WIDE void SlidingTile(const Sums& sums, const T* a, int64_t a_row, const T* b, T* y,
                               int64_t y_row, bool) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  Vector total[kRows][kVectors] = {};
  for (int64_t tap = 0; tap < sums.taps; ++tap) {
    Vector factors[kSlidingSteps][kVectors];
#pragma GCC unroll 4
    for (int step = 0; step < kSlidingSteps; ++step) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const T* at = b + sums.b_offsets[tap] + step * sums.b_step + v * kLanes<T>;
        std::memcpy(&factors[step][v], at, sizeof(Vector));
      }
    }
    const T* from = a + sums.a_offsets[tap];
#pragma GCC unroll 16
    for (int seen = 0; seen < kRows + kSlidingSteps - 1; ++seen, from += a_row) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        Vector numbers;
        std::memcpy(&numbers, from + v * kLanes<T>, sizeof(Vector));
#pragma GCC unroll 4
        for (int step = 0; step < kSlidingSteps; ++step) {
          const int row = seen - step;
          if (row >= 0 && row < kRows) total[row][v] += numbers * factors[step][v];
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(y + row * y_row + v * kLanes<T>, &total[row][v], sizeof(Vector));
    }
  }
}

template <typename T, int kVectors, int... kRows>
constexpr std::array<TileFunction<T>, sizeof...(kRows)> SlidingTilesOf(
    std::integer_sequence<int, kRows...>) {
  return {&SlidingTile<T, kVectors, kRows + 1>...};
}

// The function for a tile of so many rows of so many vectors.
template <typename T>
TileFunction<T> SlidingTileOf(int64_t rows, int64_t vectors) {
  using Rows = std::make_integer_sequence<int, kSlidingRows>;
  static constexpr auto k1 = SlidingTilesOf<T, 1>(Rows());
  static constexpr auto k2 = SlidingTilesOf<T, 2>(Rows());
  return (vectors == 1 ? k1 : k2)[rows - 1];
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_SLIDING_TILES_H_
