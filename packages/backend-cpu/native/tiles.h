// Tiles of a result that are kept in registers while sums of products are added up.

#ifndef DOVETAIL_CPU_TILES_H_
#define DOVETAIL_CPU_TILES_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "vector_width.h"

namespace dovetail {

// Whether there are 32 vector registers, not 16.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr bool kManyRegisters = true;
#else
constexpr bool kManyRegisters = false;
#endif

// Steps of a tile between two comparisons with their number: small tiles have time for more.
constexpr int kStepsTogether = kManyRegisters ? 1 : 4;

// Clang divides wide vectors in two, for older processors' sake, where nothing asks for them.
#if defined(__clang__) && defined(__AVX512F__)
#define DOVETAIL_WIDE __attribute__((min_vector_width(512)))
#else
#define DOVETAIL_WIDE
#endif

template <typename T>
constexpr int kLanes = kVectorBytes / int{sizeof(T)};

// Tiles are as many vectors wide.
constexpr int kWidths[] = {1, 2, 4, 8};
constexpr int kWidest = 8;

// The most rows of a tile that is so many vectors wide.
constexpr int MostRows(int vectors) {
  const int rows = (kManyRegisters ? 28 : 12) / vectors;
  return rows > 14 ? 14 : rows < 1 ? 1 : rows;
}

// What is added up: for each of `taps` pairs of offsets into the operands, `steps` products, with
// these distances between them.
struct Sums {
  const int64_t* a_offsets;
  const int64_t* b_offsets;
  int64_t taps;
  int64_t steps;
  int64_t a_step;
  int64_t b_step;
  // Lines of the cache, so many bytes apart: tiles that look ahead ask for one in each step, those
  // that copy for two neighbours.
  const char* ahead = nullptr;
  int64_t ahead_step = 0;
  // Where tiles that copy write what they load of the second operand.
  void* copy = nullptr;
};

// What a tile does beside its sums: it asks for memory ahead, and copies.
enum class Beside { kNothing, kAhead, kAheadAndCopy };

// y[row][lane] (+)= sum of a[row] * b[lane], or with kLanewise of a[row][lane] * b[lane].
template <typename T>
using TileFunction = void (*)(const Sums&, const T* a, int64_t a_row, const T* b, T* y,
                              int64_t y_row, bool add);

// Whether the numbers of the rows are in registers, and not the vectors that they are multiplied
// with, since they are fewer.
template <bool kLanewise, int kVectors, int kRows>
constexpr bool kBroadcastFirst = !kLanewise && !kManyRegisters && kVectors > kRows;

// Adds what is there to the sums of a tile.
template <typename T, typename Vector, int kRows, int kVectors>
inline __attribute__((always_inline)) void AddTile(Vector (&total)[kRows][kVectors], const T* y,
                                                   int64_t y_row) {
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Vector before;
      std::memcpy(&before, y + row * y_row + v * kLanes<T>, sizeof(Vector));
      total[row][v] += before;
    }
  }
}

// Writes the sums of a tile, or adds them to what is there.
template <typename T, typename Vector, int kRows, int kVectors>
inline __attribute__((always_inline)) void StoreTile(Vector (&total)[kRows][kVectors], T* y,
                                                     int64_t y_row, bool add) {
  if (add) AddTile(total, y, y_row);
#pragma GCC unroll 16
  for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      std::memcpy(y + row * y_row + v * kLanes<T>, &total[row][v], sizeof(Vector));
    }
  }
}

template <typename T, bool kLanewise, int kVectors, int kRows, Beside kBeside = Beside::kNothing>
DOVETAIL_WIDE void Tile(const Sums& sums, const T* a, int64_t a_row, const T* b, T* y,
                        int64_t y_row, bool add) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  // One pointer for every four rows: the others are at small multiples of `a_row`.
  constexpr int kPointers = (kRows + 3) / 4;
  Vector total[kRows][kVectors] = {};
  const int64_t steps = sums.steps, a_step = sums.a_step, b_step = sums.b_step;
  const int64_t ahead_step = sums.ahead_step;
  const char* ahead = sums.ahead;
  T* copy = static_cast<T*>(sums.copy);
  for (int64_t tap = 0; tap < sums.taps; ++tap) {
    const T* from = b + sums.b_offsets[tap];
    const T* rows[kPointers];
    for (int i = 0; i < kPointers; ++i) rows[i] = a + sums.a_offsets[tap] + 4 * i * a_row;
#pragma GCC unroll kStepsTogether
    for (int64_t step = 0; step < steps; ++step) {
      if constexpr (kBeside != Beside::kNothing) {
        __builtin_prefetch(ahead);
        if constexpr (kBeside == Beside::kAheadAndCopy) __builtin_prefetch(ahead + 64);
        ahead += ahead_step;
      }
      if constexpr (kBroadcastFirst<kLanewise, kVectors, kRows>) {
        Vector other[kRows];
#pragma GCC unroll 16
        for (int row = 0; row < kRows; ++row) {
          other[row] = rows[row / 4][row % 4 * a_row] - Vector{};
        }
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          Vector factor;
          std::memcpy(&factor, from + v * kLanes<T>, sizeof(Vector));
#pragma GCC unroll 16
          for (int row = 0; row < kRows; ++row) total[row][v] += other[row] * factor;
        }
      } else {
        Vector factor[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          std::memcpy(&factor[v], from + v * kLanes<T>, sizeof(Vector));
        }
        if constexpr (kBeside == Beside::kAheadAndCopy) {
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v, copy += kLanes<T>) {
            std::memcpy(copy, &factor[v], sizeof(Vector));
          }
        }
#pragma GCC unroll 16
        for (int row = 0; row < kRows; ++row) {
          const T* at = rows[row / 4] + row % 4 * a_row;
          if constexpr (kLanewise) {
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
              Vector other;
              std::memcpy(&other, at + v * kLanes<T>, sizeof(Vector));
              total[row][v] += other * factor[v];
            }
          } else {
            const T other = *at;
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) total[row][v] += other * factor[v];
          }
        }
      }
      from += b_step;
#pragma GCC unroll 4
      for (int i = 0; i < kPointers; ++i) rows[i] += a_step;
    }
  }
  StoreTile(total, y, y_row, add);
}

template <typename T, bool kLanewise, int kVectors, int... kRows>
constexpr std::array<TileFunction<T>, sizeof...(kRows)> TilesOf(
    std::integer_sequence<int, kRows...>) {
  return {&Tile<T, kLanewise, kVectors, kRows + 1>...};
}

// The function for a tile of so many rows (up to MostRows) of so many vectors.
template <typename T, bool kLanewise>
TileFunction<T> TileOf(int64_t rows, int64_t vectors) {
  // Of products of lanes both factors are loaded: more rows would not be faster.
  constexpr auto kRows = [](int v) { return kLanewise && MostRows(v) > 7 ? 7 : MostRows(v); };
  static constexpr auto k1 =
      TilesOf<T, kLanewise, 1>(std::make_integer_sequence<int, kRows(1)>());
  static constexpr auto k2 =
      TilesOf<T, kLanewise, 2>(std::make_integer_sequence<int, kRows(2)>());
  static constexpr auto k4 =
      TilesOf<T, kLanewise, 4>(std::make_integer_sequence<int, kRows(4)>());
  static constexpr auto k8 =
      TilesOf<T, kLanewise, 8>(std::make_integer_sequence<int, kRows(8)>());
  switch (vectors) {
    case 1:
      return k1[rows - 1];
    case 2:
      return k2[rows - 1];
    case 4:
      return k4[rows - 1];
    default:
      return k8[rows - 1];
  }
}

template <typename T, int kVectors, Beside kBeside, int... kRows>
constexpr std::array<TileFunction<T>, sizeof...(kRows)> TilesBeside(
    std::integer_sequence<int, kRows...>) {
  return {&Tile<T, false, kVectors, kRows + 1, kBeside>...};
}

// The same for one or two vectors, and up to MostRows(2) rows, of tiles that look ahead.
template <typename T>
TileFunction<T> TileAheadOf(int64_t rows, int64_t vectors) {
  using Rows = std::make_integer_sequence<int, MostRows(2)>;
  static constexpr auto k1 = TilesBeside<T, 1, Beside::kAhead>(Rows());
  static constexpr auto k2 = TilesBeside<T, 2, Beside::kAhead>(Rows());
  return vectors == 1 ? k1[rows - 1] : k2[rows - 1];
}

// The same for two vectors, of tiles that also copy.
template <typename T>
TileFunction<T> CopyingTileOf(int64_t rows) {
  static constexpr auto k2 =
      TilesBeside<T, 2, Beside::kAheadAndCopy>(std::make_integer_sequence<int, MostRows(2)>());
  return k2[rows - 1];
}

// The most rows of TileOf.
template <bool kLanewise>
int64_t MostRowsOf(int64_t vectors) {
  const int rows = MostRows(static_cast<int>(vectors));
  return kLanewise && rows > 7 ? 7 : rows;
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_TILES_H_
