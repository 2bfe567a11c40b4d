// Products of matrices: parts of both that fit the caches are copied into the order in which tiles
// use them, but where they lie well as they are.

#include "products.h"

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "kernel.h"
#include "memory.h"
#include "narrow_floats.h"
#include "packed_tiles.h"
#include "parallel.h"
#include "transposition.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// The most bytes of a row of tiles of the left matrix, which stays in the nearest cache.
constexpr int64_t kMostOfRows = 14336;

constexpr bool kLongVectors = kVectorBytes == 64;

// Of a product in blocks: steps of a part of the sums, rows of the left matrix, and columns of the
// right one. With AVX-512 the rows of one tile stay in the nearest cache, and all the columns in the
// second one, which is larger where there are such vectors; else some rows in the second one.
template <typename T>
constexpr int64_t kStepsOfBlock = kLongVectors ? 1536 / int64_t{sizeof(T)} : 320;
template <typename T>
constexpr int64_t kRowsOfBlock = kLongVectors ? MostRows(2) : 960 / int64_t{sizeof(T)};
template <typename T>
constexpr int64_t kColumnsOfBlock = kLongVectors ? 1024 : 8192 / int64_t{sizeof(T)};
// The least rows, columns, and products of numbers; in blocks fewer of a triangle are computed.
// There must be more rows where tiles can copy columns while they use them.
constexpr int64_t kLeastRowsInBlocks = kLongVectors ? 64 : 24;
constexpr int64_t kLeastRowsWithoutCopies = kLongVectors ? 224 : 24;
constexpr int64_t kLeastColumnsInBlocks = 112;
constexpr int64_t kLeastInBlocks = 1 << (kLongVectors ? 26 : 22);
constexpr int64_t kLeastOfTriangle = 1 << 22;

// Whether panels of columns are vectors that lie in the right matrix.
template <typename T>
bool IsInRows(const MatrixProduct<T>& p) {
  return p.b_column == 1 && p.into != Into::kSubtract && !p.of_pairs;
}

template <typename T>
bool IsInBlocks(const MatrixProduct<T>& p) {
  const bool of_triangle = p.below < p.rows;
  const bool many_rows = IsInRows(p) && p.a_step == 1 && !of_triangle;
  return p.rows >= (many_rows ? kLeastRowsWithoutCopies : kLeastRowsInBlocks) &&
         p.columns >= kLeastColumnsInBlocks &&
         p.rows * p.columns * p.summed >= (of_triangle ? kLeastOfTriangle : kLeastInBlocks);
}

template <typename T>
int64_t MemoryInBlocks(const MatrixProduct<T>& p) {
  const int64_t columns = std::min(kColumnsOfBlock<T>, p.columns + kProductColumns<T>);
  return std::min(kStepsOfBlock<T>, p.summed) * (kRowsOfBlock<T> + columns);
}

// Writes the first columns of a tile that is `width` wide.
template <typename T>
void PutTile(const T* sums, int64_t width, int64_t rows, int64_t columns, T* y, int64_t y_row,
             bool add) {
  for (int64_t i = 0; i < rows; ++i, sums += width, y += y_row) {
    if (add) {
      for (int64_t j = 0; j < columns; ++j) y[j] += sums[j];
    } else {
      std::copy_n(sums, columns, y);
    }
  }
}

// Rows of pairs, as they lie, each followed by its product with i, in rows of `width` numbers. `b`
// is the first pair.
template <typename T>
void CopyPairs(const T* b, int64_t b_step, int64_t b_column, int64_t steps, int64_t columns, T* to,
               int64_t width) {
  // Neighbours in a column are read before the next one, and their lines stay in the cache.
  constexpr int64_t kTogether = 8;
  const int64_t together = b_column == 1 ? columns : kTogether;
  for (int64_t first = 0; first < columns; first += together) {
    const int64_t end = std::min(columns, first + together);
    for (int64_t k = 0; k < steps; ++k) {
      const T* from = b + 2 * k * b_step;
      T *pairs = to + 2 * k * width, *turned = pairs + width;
      if (b_column == 1) {
        for (int64_t j = 0; j < 2 * columns; j += 2) {
          const T real = from[j], imaginary = from[j + 1];
          pairs[j] = real, pairs[j + 1] = imaginary, turned[j] = -imaginary, turned[j + 1] = real;
        }
        continue;
      }
      for (int64_t j = first; j < end; ++j) {
        const T real = from[2 * j * b_column], imaginary = from[2 * j * b_column + 1];
        pairs[2 * j] = real, pairs[2 * j + 1] = imaginary;
        turned[2 * j] = -imaginary, turned[2 * j + 1] = real;
      }
    }
  }
}

// Both matrices are copied: of the left one a block of rows, all of whose tiles go by a panel of
// columns that stays in the nearest cache, or one tile, which stays there, by all panels.
template <typename T>
class MultiplicationInBlocks {
 public:
  MultiplicationInBlocks(const MatrixProduct<T>& product, T* memory)
      : p_(product), rows_memory_(memory) {}

  void Run() {
    const int64_t most = std::min(kStepsOfBlock<T>, p_.summed);
    panels_ = rows_memory_ + most * kRowsOfBlock<T>;
    const int64_t parts = PartsOfAtMost(p_.summed, most);
    for (int64_t part = 0; part < parts; ++part) {
      begin_ = Begin(part, parts);
      steps_ = Begin(part + 1, parts) - begin_;
      for (int64_t j = 0; j < p_.columns; j += kColumnsOfBlock<T>) {
        first_ = j;
        columns_ = std::min(kColumnsOfBlock<T>, p_.columns - j);
        KeepCounting();
        CopyColumns();
        const int64_t blocks = PartsOfAtMost(p_.rows, kRowsOfBlock<T>);
        for (int64_t block = 0; block < blocks; ++block) {
          EndIfInterrupted();
          const int64_t i = p_.rows * block / blocks;
          Block(i, p_.rows * (block + 1) / blocks - i);
        }
      }
    }
  }

 private:
  static constexpr int64_t kColumns = kProductColumns<T>;
  static constexpr int64_t kMostRows = MostRows(2);

  // The first step of a part. Both steps of a complex number are in one part.
  int64_t Begin(int64_t part, int64_t parts) const {
    return p_.of_pairs ? p_.summed / 2 * part / parts * 2 : p_.summed * part / parts;
  }

  static int64_t WidthOf(int64_t columns) {
    return columns > kLanes<T> ? kColumns : kLanes<T>;
  }

  // Panels of columns, with zeros beside the last one.
  void CopyColumns() const {
    const T* b = p_.b + begin_ * p_.b_step + first_ * p_.b_column;
    // Panels whose rows are read together, and rows that are fetched before.
    constexpr int64_t kTogether = 4, kAhead = 4;
    int64_t j = 0;
    const bool in_rows = p_.b_column == 1 && !p_.of_pairs;
    for (int64_t count; in_rows && columns_ - j >= kColumns; j += count * kColumns) {
      count = std::min(kTogether, (columns_ - j) / kColumns);
      const T* from = b + j;
      T* to = panels_ + j * steps_;
      for (int64_t k = 0; k < steps_; ++k, from += p_.b_step, to += kColumns) {
        for (int64_t i = 0; i < count; ++i) {
          __builtin_prefetch(from + kAhead * p_.b_step + i * kColumns);
          std::memcpy(to + i * kColumns * steps_, from + i * kColumns, kColumns * sizeof(T));
        }
      }
    }
    for (; j < columns_; j += kColumns) {
      const int64_t count = std::min(kColumns, columns_ - j), width = WidthOf(count);
      const T* from = b + j * p_.b_column;
      T* to = panels_ + j * steps_;
      if (count < width) std::fill_n(to, steps_ * width, T(0));
      if (p_.of_pairs) {
        CopyPairs(from, p_.b_step, p_.b_column, steps_ / 2, count / 2, to, width);
        continue;
      }
      if (p_.b_step == 1) {
        Transpose(from, p_.b_column, count, steps_, to, width);
        continue;
      }
      for (int64_t k = 0; k < steps_; ++k, from += p_.b_step, to += width) {
        for (int64_t i = 0; i < count; ++i) to[i] = from[i * p_.b_column];
      }
    }
    if (p_.into != Into::kSubtract) return;
    const int64_t size = steps_ * (columns_ / kColumns * kColumns +
                                   (columns_ % kColumns > 0 ? WidthOf(columns_ % kColumns) : 0));
    for (int64_t i = 0; i < size; ++i) panels_[i] = -panels_[i];
  }

  // Rows of a tile, one step after another.
  void CopyRows(const T* a, int64_t rows, T* to) const {
    if (p_.a_step == 1) return Transpose(a, p_.a_row, rows, steps_, to, rows);
    if (p_.a_row == 1) return CopyStepsOf(rows)(a, p_.a_step, steps_, to);
    for (int64_t k = 0; k < steps_; ++k, a += p_.a_step, to += rows) {
      for (int64_t i = 0; i < rows; ++i) to[i] = a[i * p_.a_row];
    }
  }

  // The same of rows that are neighbours. Of a number that is known, they are few vectors.
  template <int kRows>
  static void CopySteps(const T* a, int64_t a_step, int64_t steps, T* to) {
    for (int64_t k = 0; k < steps; ++k, a += a_step, to += kRows) {
      std::memcpy(to, a, kRows * sizeof(T));
    }
  }
  using CopyFunction = void (*)(const T*, int64_t, int64_t, T*);
  template <int... kRows>
  static constexpr std::array<CopyFunction, sizeof...(kRows)> CopyFunctions(
      std::integer_sequence<int, kRows...>) {
    return {&CopySteps<kRows + 1>...};
  }
  static CopyFunction CopyStepsOf(int64_t rows) {
    static constexpr auto kFunctions = CopyFunctions(std::make_integer_sequence<int, kMostRows>());
    return kFunctions[rows - 1];
  }

  void Block(int64_t first_row, int64_t rows) const {
    if (first_row >= first_ + columns_ - 1 + p_.below) return;
    const int64_t tiles = PartsOfAtMost(rows, kMostRows);
    const bool add = begin_ > 0 || p_.into != Into::kNothing;
    const auto row_of = [=](int64_t tile) { return rows * tile / tiles; };
    const T* a = p_.a + first_row * p_.a_row + begin_ * p_.a_step;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t i = row_of(tile);
      CopyRows(a + i * p_.a_row, row_of(tile + 1) - i, rows_memory_ + i * steps_);
    }
    for (int64_t j = 0; j < columns_; j += kColumns) {
      const int64_t count = std::min(kColumns, columns_ - j), width = WidthOf(count);
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t i = row_of(tile), size = row_of(tile + 1) - i;
        if (first_row + i >= first_ + j + count - 1 + p_.below) break;
        T* const y = p_.y + (first_row + i) * p_.y_row + first_ + j;
        for (int64_t r = 0; r < size; ++r) {
          __builtin_prefetch(y + r * p_.y_row);
          __builtin_prefetch(y + r * p_.y_row + count - 1);
        }
        const auto multiply = PackedTileOf<T>(size, width / kLanes<T>);
        const T *left = rows_memory_ + i * steps_, *right = panels_ + j * steps_;
        if (count == width) {
          multiply(steps_, left, right, y, p_.y_row, add);
          continue;
        }
        alignas(64) T tile_of_y[kMostRows * kColumns];
        multiply(steps_, left, right, tile_of_y, width, false);
        PutTile(tile_of_y, width, size, count, y, p_.y_row, add);
      }
    }
  }

  const MatrixProduct<T>& p_;
  T* rows_memory_;
  T* panels_ = nullptr;
  // What is multiplied: steps of the sums from `begin_` on, and columns.
  int64_t begin_ = 0, steps_ = 0, first_ = 0, columns_ = 0;
};

// Memory that is asked for while something else is computed, a line of the cache in each step.
class MemoryAhead {
 public:
  // What lies together.
  void Add(const void* from, int64_t bytes) { Add({static_cast<const char*>(from), bytes, 0}); }
  // Rows, as many as there are steps.
  void AddRows(const void* from, int64_t bytes, int64_t distance) {
    Add({static_cast<const char*>(from), bytes, distance});
  }
  void Clear() { regions_[0] = regions_[1] = {}; }

  // Says what the next tile asks for; returns whether anything is left.
  bool Take(Sums& sums) {
    for (Region& region : regions_) {
      if (region.bytes <= 0) continue;
      const bool in_rows = region.distance > 0;
      const int64_t taken = in_rows ? kLine : kLine * sums.steps;
      sums.ahead = region.from, sums.ahead_step = in_rows ? region.distance : kLine;
      region.from += taken, region.bytes -= taken;
      return true;
    }
    return false;
  }

 private:
  static constexpr int64_t kLine = 64;
  struct Region {
    const char* from = nullptr;
    int64_t bytes = 0;
    int64_t distance = 0;  // Of rows; 0 where there are none.
  };
  void Add(const Region& added) {
    for (Region& region : regions_) {
      if (region.bytes > 0) continue;
      region = added;
      return;
    }
  }
  Region regions_[2];
};

template <typename T>
class Multiplication {
 public:
  Multiplication(const MatrixProduct<T>& product, T* memory, int64_t size)
      : p_(product), rows_memory_(memory), panels_(memory + kMostOfRows / sizeof(T)) {
    // Steps of a part of the sums, and columns of a part of the right matrix.
    const int64_t room = size - kMostOfRows / sizeof(T);
    const int64_t most = kMostOfRows / int64_t{sizeof(T)} / kMostRows;
    steps_ = std::min(most, room / kColumns / (CopiesPanels() ? 2 : 1));
    looks_ahead_ = kLongVectors && (LiesWell() || CopiesPanels()) &&
                   p_.summed * p_.b_step * int64_t{sizeof(T)} >= kMuch;
    if (looks_ahead_) steps_ = std::min(steps_, std::max(kStepsAhead, p_.summed / 8));
    steps_ = PartOf(p_.summed, steps_);
    if (p_.of_pairs) steps_ += steps_ % 2;
    panel_columns_ = std::max(kColumns, room / std::max<int64_t>(1, steps_) / kColumns * kColumns);
  }

  void Run() {
    if (kLongVectors && p_.next_a != nullptr) {
      ahead_.Add(p_.next_a, p_.rows * p_.summed * sizeof(T));
      ahead_.Add(p_.next_b, p_.summed * p_.columns * sizeof(T));
    }
    for (int64_t k = 0; k < p_.summed; k += steps_) {
      const int64_t steps = std::min(steps_, p_.summed - k);
      for (int64_t j = 0; j < p_.columns; j += panel_columns_) {
        Block(k, steps, j, std::min(panel_columns_, p_.columns - j));
      }
    }
  }

 private:
  static constexpr int64_t kColumns = kProductColumns<T>;
  static constexpr int64_t kMostRows = MostRows(2);
  static constexpr int64_t kNoOffset = 0;
  // Rows of a panel that a tile that copies asks for before it needs them.
  static constexpr int64_t kRowsAhead = 8;

  // A right matrix of so many bytes is asked for ahead, in parts of so many steps, but for
  // the first. Of long sums parts are longer, as to add up more would round more.
  static constexpr int64_t kMuch = 1 << 19, kStepsAhead = 160;
  // A left matrix of so many bytes is asked for, rows after rows.
  static constexpr int64_t kManyRows = 1 << 17;

  int64_t Tiles() const { return PartsOfAtMost(p_.rows, kMostRows); }

  // Whether panels of the right matrix are used as they lie: what is read a few times, or lies
  // close together, need not be copied.
  bool LiesWell() const {
    return IsInRows(p_) && (Tiles() <= (kLongVectors ? 1 : 5) ||
                          p_.b_step * int64_t{sizeof(T)} <= 512);
  }

  // Whether the first tile copies each panel while it uses it, which takes no time of its own.
  bool CopiesPanels() const {
    return kLongVectors && IsInRows(p_) && !LiesWell() &&
           (p_.a_step <= 2 || !IsScattered(p_.summed));
  }

  // Whether the panel from column j on has any that does not end above row i.
  bool IsWanted(int64_t i, int64_t j) const { return i < j + kColumns - 1 + p_.below; }

  static int64_t PartOf(int64_t size, int64_t most) {
    return size <= most ? size : PartsOfAtMost(size, PartsOfAtMost(size, most));
  }

  // Some columns, and some steps of the sums.
  void Block(int64_t k, int64_t steps, int64_t first, int64_t columns) {
    const bool add = k > 0 || p_.into != Into::kNothing;
    const int64_t full = columns / kColumns, rest = columns % kColumns;
    const int64_t tiles = Tiles();
    const T* b = p_.b + k * p_.b_step + first * p_.b_column;
    const bool as_it_lies = LiesWell(), copies = CopiesPanels();
    if (looks_ahead_) {
      ahead_.Clear();
      const int64_t next = std::min(steps_, p_.summed - k - steps);
      if (next > 0) {
        ahead_.AddRows(b + steps * p_.b_step, columns * sizeof(T), p_.b_step * sizeof(T));
      }
    }
    const int64_t begin = as_it_lies || copies ? full : 0;
    const int64_t width = rest <= kLanes<T> ? kLanes<T> : kColumns;
    for (int64_t i = begin; i * kColumns < columns; ++i) {
      const int64_t count = std::min(kColumns, columns - i * kColumns);
      Pack(b + i * kColumns * p_.b_column, steps, count, i < full ? kColumns : width,
           panels_ + (i - begin) * kColumns * steps);
    }
    const T* last = panels_ + (full - begin) * kColumns * steps;
    // The next rows are asked for if nothing else is, and they lie together.
    const bool looks_for_rows = kLongVectors && !looks_ahead_ && p_.next_a == nullptr &&
                                p_.a_step == 1 && p_.a_row == steps &&
                                p_.rows * steps * int64_t{sizeof(T)} >= kManyRows;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t i = p_.rows * tile / tiles, rows = p_.rows * (tile + 1) / tiles - i;
      const T* a = p_.a + i * p_.a_row + k * p_.a_step;
      int64_t a_row = p_.a_row, a_step = p_.a_step;
      if (full > 1 && IsScattered(steps)) {
        PackRows(a, rows, steps);
        a = rows_memory_, a_row = packed_row_, a_step = packed_step_;
      }
      T* y = p_.y + i * p_.y_row + first;
      if (looks_for_rows && tile + 1 < tiles) {
        const int64_t next = p_.rows * (tile + 2) / tiles - i - rows;
        ahead_.Clear();
        ahead_.Add(p_.a + (i + rows) * steps, next * steps * sizeof(T));
        if (p_.y_row == p_.columns) ahead_.Add(y + rows * p_.y_row, next * p_.y_row * sizeof(T));
      }
      Sums sums{&kNoOffset, &kNoOffset, 1, steps, a_step, width};
      const auto tile_of = [&](int64_t vectors) {
        if constexpr (kLongVectors) {
          if (ahead_.Take(sums)) return TileAheadOf<T>(rows, vectors);
        }
        return TileOf<T, false>(rows, vectors);
      };
      if (rest > 0) {
        const auto multiply = tile_of(width / kLanes<T>);
        // What is written beyond a row is the start of the next ones, and is written again, if
        // the block has all columns and there are so many.
        if (!add && p_.y_row == columns &&
            (p_.rows - i - rows + 1) * columns >= full * kColumns + width) {
          multiply(sums, a, a_row, last, y + full * kColumns, p_.y_row, false);
        } else {
          alignas(64) T tile_of_y[kMostRows * kColumns];
          multiply(sums, a, a_row, last, tile_of_y, width, false);
          PutTile(tile_of_y, width, rows, rest, y + full * kColumns, p_.y_row, add);
        }
      }
      if (copies) continue;
      sums.b_step = as_it_lies ? p_.b_step : kColumns;
      for (int64_t j = 0; j < full; ++j) {
        if (!IsWanted(i, first + j * kColumns)) continue;
        const T* panel = as_it_lies ? b + j * kColumns : panels_ + j * kColumns * steps;
        tile_of(2)(sums, a, a_row, panel, y + j * kColumns, p_.y_row, add);
      }
    }
    if (copies) MultiplyAndCopy(k, steps, first, full, add);
  }

  // All tiles of rows use a panel, which stays in the nearest cache: the first one copies it.
  void MultiplyAndCopy(int64_t k, int64_t steps, int64_t first, int64_t full, bool add) {
    // Behind the last columns, where these are no full panel.
    T* const copy = panels_ + (p_.columns % kColumns > 0 ? kColumns * steps : 0);
    const int64_t tiles = Tiles();
    for (int64_t j = first; j < first + full * kColumns; j += kColumns) {
      const T* const panel = p_.b + k * p_.b_step + j;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t i = p_.rows * tile / tiles, rows = p_.rows * (tile + 1) / tiles - i;
        if (!IsWanted(i, j)) break;
        const T* const a = p_.a + i * p_.a_row + k * p_.a_step;
        T* const y = p_.y + i * p_.y_row + j;
        Sums sums{&kNoOffset, &kNoOffset, 1, steps, p_.a_step, kColumns};
        if (tile == 0) {
          sums.b_step = p_.b_step, sums.copy = copy;
          sums.ahead = reinterpret_cast<const char*>(panel + kRowsAhead * p_.b_step);
          sums.ahead_step = p_.b_step * int64_t{sizeof(T)};
          CopyingTileOf<T>(rows)(sums, a, p_.a_row, panel, y, p_.y_row, add);
          continue;
        }
        const auto multiply =
            ahead_.Take(sums) ? TileAheadOf<T>(rows, 2) : TileOf<T, false>(rows, 2);
        multiply(sums, a, p_.a_row, copy, y, p_.y_row, add);
      }
    }
  }

  // Whether rows of tiles would have few lines of the cache, or many pages, as they lie.
  bool IsScattered(int64_t steps) const {
    if (p_.a_step <= 2) return p_.a_row != steps && p_.a_row * int64_t{sizeof(T)} % 512 == 0;
    return p_.a_step * int64_t{sizeof(T)} >= 512 && steps > 16;
  }

  void PackRows(const T* a, int64_t rows, int64_t steps) {
    if (p_.a_step == 1) {
      packed_row_ = steps, packed_step_ = 1;
      for (int64_t i = 0; i < rows; ++i) {
        std::memcpy(rows_memory_ + i * steps, a + i * p_.a_row, steps * sizeof(T));
      }
      return;
    }
    packed_row_ = 1, packed_step_ = rows;
    for (int64_t k = 0; k < steps; ++k, a += p_.a_step) {
      for (int64_t i = 0; i < rows; ++i) rows_memory_[k * rows + i] = a[i * p_.a_row];
    }
  }

  // Columns of the right matrix, with zeros beside them up to a width.
  void Pack(const T* b, int64_t steps, int64_t columns, int64_t width, T* to) const {
    Copy(b, steps, columns, width, to);
    if (p_.into != Into::kSubtract) return;
    for (int64_t i = 0; i < steps * width; ++i) to[i] = -to[i];
  }

  void Copy(const T* b, int64_t steps, int64_t columns, int64_t width, T* to) const {
    if (p_.of_pairs) {
      if (columns < width) std::memset(to, 0, steps * width * sizeof(T));
      return CopyPairs(b, p_.b_step, p_.b_column, steps / 2, columns / 2, to, width);
    }
    if (p_.b_step == 1 && p_.b_column != 1) {
      if (columns < width) std::memset(to, 0, steps * width * sizeof(T));
      return Transpose(b, p_.b_column, columns, steps, to, width);
    }
    for (int64_t k = 0; k < steps; ++k, to += width) {
      const T* from = b + k * p_.b_step;
      if (p_.b_column == 1 && columns == kColumns) {
        std::memcpy(to, from, kColumns * sizeof(T));
      } else if (p_.b_column == 1) {
        std::copy_n(from, columns, to);
      } else {
        for (int64_t j = 0; j < columns; ++j) to[j] = from[j * p_.b_column];
      }
      std::fill(to + columns, to + width, T(0));
    }
  }

  const MatrixProduct<T>& p_;
  T* rows_memory_;
  T* panels_;
  int64_t steps_, panel_columns_;
  int64_t packed_row_ = 0, packed_step_ = 0;
  bool looks_ahead_;
  MemoryAhead ahead_;
};

}  // namespace

template <typename T>
void MultiplyMatrices(const MatrixProduct<T>& product, T* memory, int64_t size) {
  Multiplication<T>(product, memory, size).Run();
}

template void MultiplyMatrices(const MatrixProduct<float>&, float*, int64_t);
template void MultiplyMatrices(const MatrixProduct<double>&, double*, int64_t);

namespace {

// Products of numbers for which another thread is worth its while.
constexpr int64_t kProductsPerThread = 1 << 21;
// The same before it is looked whether they are to end.
constexpr int64_t kProductsPerLook = 1 << 18;

// The memory that makes a product fastest.
template <typename T>
int64_t MemoryFor(const MatrixProduct<T>& p) {
  if (IsInBlocks(p)) return MemoryInBlocks(p);
  const int64_t across = PartsOfAtMost(p.columns, kProductColumns<T>) * kProductColumns<T>;
  const int64_t wanted = kMostOfRows / int64_t{sizeof(T)} + across * p.summed;
  return std::min(kMostProductMemory<T>, std::max(kProductMemory<T>, wanted));
}

// Calls multiply(product) for parts of the products of a `Batch` with such numbers, on all threads.
template <typename T, typename Multiply>
void ForProducts(ffi::ThreadPool& pool, const T* a, const T* b, T* y,
                 ffi::Span<const int64_t> sizes, const Multiply& multiply) {
  constexpr int64_t kColumns = kProductColumns<T>;
  const Batch batch(sizes);
  const int64_t rows = batch.rows, columns = batch.columns, summed = batch.summed;
  const int64_t count = batch.count;
  const int64_t each = std::max<int64_t>(1, rows * columns * summed);
  const int64_t threads = ThreadsOf(pool);
  // Those that come late have less to do, if there are several parts for each.
  const int64_t most = lookouts.Any() ? threads : 3 * threads;
  int64_t wanted = std::max<int64_t>(1, std::min(most, count * each / kProductsPerThread));
  // Whole products are divided among threads if there are many, or else their columns or rows.
  int64_t column_parts = 1, row_parts = 1;
  if (threads > 1 && count < wanted) {
    const int64_t parts = PartsOfAtMost(wanted, count), blocks = each / kLeastInBlocks;
    if (count == 1 && blocks > 1) {
      // Few parts, of which as little as possible is copied: rows of the left matrix for each part
      // of the columns, and columns for each part of the rows.
      wanted = std::min(threads * (blocks >= 32 * threads ? 2 : 1), blocks);
      const auto copied = [=](int64_t part) { return part * rows + wanted / part * columns; };
      for (int64_t part = 2; part <= wanted; ++part) {
        if (wanted % part == 0 && copied(part) < copied(column_parts)) column_parts = part;
      }
      row_parts = wanted / column_parts;
    } else if (columns >= 2 * kColumns * parts || columns >= rows) {
      column_parts = std::min(parts, PartsOfAtMost(columns, kColumns));
    } else {
      row_parts = std::min(parts, PartsOfAtMost(rows, MostRows(2)));
    }
  }
  const int64_t parts = column_parts * row_parts;
  const int64_t tasks = threads == 1 ? 1 : std::min(wanted, count * parts);
  // Whether the operands of each product lie together in memory.
  const auto is_dense = [](int64_t down, int64_t right, int64_t rows, int64_t columns) {
    return (right == 1 && down == columns) || (down == 1 && right == rows);
  };
  const bool lie_together = parts == 1 && is_dense(batch.a_row, batch.a_step, rows, summed) &&
                            is_dense(batch.b_step, batch.b_column, summed, columns);
  ParallelFor(pool, tasks, [&](int64_t task) {
    for (int64_t at = count * parts * task / tasks; at < count * parts * (task + 1) / tasks; ++at) {
      if (each > kProductsPerLook) EndIfInterrupted();
      const int64_t number = at / parts, part = at % parts;
      MatrixProduct<T> product{a,
                               b,
                               y + number * rows * columns,
                               rows,
                               columns,
                               summed,
                               batch.a_row,
                               batch.a_step,
                               batch.b_step,
                               batch.b_column,
                               columns};
      std::tie(product.a, product.b) = batch.Operands(a, b, number);
      if (lie_together && number + 1 < count) {
        std::tie(product.next_a, product.next_b) = batch.Operands(a, b, number + 1);
      }
      const auto bounds = [&](int64_t size, int64_t unit, int64_t of, int64_t which) {
        const int64_t units = PartsOfAtMost(size, unit);
        return std::min(size, units * which / of * unit);
      };
      const int64_t c0 = bounds(columns, kColumns, column_parts, part % column_parts);
      const int64_t c1 = bounds(columns, kColumns, column_parts, part % column_parts + 1);
      const int64_t r0 = rows * (part / column_parts) / row_parts;
      const int64_t r1 = rows * (part / column_parts + 1) / row_parts;
      product.a += r0 * product.a_row;
      product.b += c0 * product.b_column;
      product.y += r0 * columns + c0;
      product.rows = r1 - r0, product.columns = c1 - c0;
      multiply(product);
    }
  });
}

template <ffi::DataType kType>
ffi::Error MatrixProducts(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Buffer<kType> w,
                          ffi::Result<ffi::Buffer<kType>> y, ffi::Span<const int64_t> sizes) {
  using T = ffi::NativeType<kType>;
  ForProducts(pool, x.typed_data(), w.typed_data(), y->typed_data(), sizes,
              [](const MatrixProduct<T>& product) { MultiplyMatrices(product); });
  return ffi::Error::Success();
}

// Of 16-bit floats, in float32.
ffi::Error NarrowProducts(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer w,
                          ffi::Result<ffi::AnyBuffer> y, ffi::Span<const int64_t> sizes) {
  const auto a_size = static_cast<int64_t>(x.element_count());
  const auto b_size = static_cast<int64_t>(w.element_count());
  const auto size = static_cast<int64_t>(y->element_count());
  const bool of_float16 = x.element_type() == ffi::DataType::F16;
  const bool is_wide = y->element_type() == ffi::DataType::F32;
  const OwnMemory<float, 1> a(a_size);
  const OwnMemory<float, 2> b(b_size);
  const OwnMemory<float, 3> sums(is_wide ? 0 : size);
  const auto widen = of_float16 ? WidenFloat16 : WidenBFloat16;
  const auto narrow = of_float16 ? NarrowToFloat16 : NarrowToBFloat16;
  const auto convert_all = [&](int64_t size, auto convert, auto from, auto to) {
    ForRanges(&pool, size, [=](int64_t begin, int64_t end) {
      convert(from + begin, end - begin, to + begin);
    });
  };
  convert_all(a_size, widen, static_cast<const uint16_t*>(x.untyped_data()), a.get());
  convert_all(b_size, widen, static_cast<const uint16_t*>(w.untyped_data()), b.get());
  float* const to = is_wide ? static_cast<float*>(y->untyped_data()) : sums.get();
  ForProducts<float>(pool, a.get(), b.get(), to, sizes,
                     [](const MatrixProduct<float>& product) { MultiplyMatrices(product); });
  if (!is_wide) convert_all(size, narrow, to, static_cast<uint16_t*>(y->untyped_data()));
  return ffi::Error::Success();
}

template <ffi::DataType kType>
ffi::Error ComplexProducts(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Buffer<kType> w,
                           ffi::Result<ffi::Buffer<kType>> y, ffi::Span<const int64_t> sizes) {
  using T = ffi::NativeType<kType>;
  ForProducts(pool, x.typed_data(), w.typed_data(), y->typed_data(), sizes,
              [](const MatrixProduct<T>& product) { MultiplyComplexMatrices(product); });
  return ffi::Error::Success();
}

}  // namespace

template <typename T>
void MultiplyMatrices(const MatrixProduct<T>& product) {
  const int64_t size = MemoryFor(product);
  const OwnMemory<T> memory(size);
  if (IsInBlocks(product)) return MultiplicationInBlocks<T>(product, memory.get()).Run();
  MultiplyMatrices(product, memory.get(), size);
}

template void MultiplyMatrices(const MatrixProduct<float>&);
template void MultiplyMatrices(const MatrixProduct<double>&);

// Numbers of the left matrix, as they lie, are multiplied by rows of pairs, and by those of the
// product with i.
template <typename T>
void MultiplyComplexMatrices(const MatrixProduct<std::complex<T>>& product) {
  const T* const right = reinterpret_cast<const T*>(product.b);
  MatrixProduct<T> real{reinterpret_cast<const T*>(product.a),
                        right,
                        reinterpret_cast<T*>(product.y),
                        product.rows,
                        2 * product.columns,
                        product.summed,
                        2 * product.a_row,
                        product.a_step,
                        product.b_step,
                        product.b_column,
                        2 * product.y_row};
  if (product.a_step == 1) {
    real.summed *= 2, real.of_pairs = true;
    return MultiplyMatrices(real);
  }
  // The parts of the left matrix by every second row of pairs.
  const T* const left = real.a;
  const int64_t most = kStepsOfBlock<T> / 2;
  const int64_t parts = std::max<int64_t>(1, PartsOfAtMost(product.summed, most));
  const OwnMemory<T, 1> pairs(2 * std::min(most, product.summed) * real.columns);
  real.a_step *= 2, real.b_step = 2 * real.columns, real.b_column = 1;
  for (int64_t part = 0; part < parts; ++part) {
    EndIfInterrupted();
    const int64_t begin = product.summed * part / parts;
    real.summed = product.summed * (part + 1) / parts - begin;
    CopyPairs(right + 2 * begin * product.b_step, product.b_step, product.b_column, real.summed,
              product.columns, pairs.get(), real.columns);
    real.a = left + 2 * begin * product.a_step;
    real.b = pairs.get(), real.into = part > 0 ? Into::kAdd : Into::kNothing;
    MultiplyMatrices(real);
    ++real.a, real.b += real.columns, real.into = Into::kAdd;
    MultiplyMatrices(real);
  }
}

template void MultiplyComplexMatrices(const MatrixProduct<std::complex<float>>&);
template void MultiplyComplexMatrices(const MatrixProduct<std::complex<double>>&);

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
#define DOVETAIL_PRODUCTS(suffix, function, type)                             \
  DOVETAIL_KERNEL(dovetail_products_##suffix, dovetail::function<type>,       \
                  xla::ffi::Ffi::Bind()                                       \
                      .Ctx<xla::ffi::ThreadPool>()                            \
                      .Arg<xla::ffi::Buffer<type>>()                          \
                      .Arg<xla::ffi::Buffer<type>>()                          \
                      .Ret<xla::ffi::Buffer<type>>()                          \
                      .Attr<xla::ffi::Span<const int64_t>>("sizes"))
DOVETAIL_PRODUCTS(f32, MatrixProducts, xla::ffi::DataType::F32);
DOVETAIL_PRODUCTS(f64, MatrixProducts, xla::ffi::DataType::F64);
DOVETAIL_PRODUCTS(c64, ComplexProducts, xla::ffi::DataType::C64);
DOVETAIL_PRODUCTS(c128, ComplexProducts, xla::ffi::DataType::C128);
DOVETAIL_KERNEL(dovetail_products_narrow, dovetail::NarrowProducts,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<xla::ffi::Span<const int64_t>>("sizes"));
#pragma GCC visibility pop
