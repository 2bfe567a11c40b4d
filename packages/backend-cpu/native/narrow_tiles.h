// Products of narrow numbers in tiles, which some processors have instructions for (AMX).

#ifndef DOVETAIL_CPU_NARROW_TILES_H_
#define DOVETAIL_CPU_NARROW_TILES_H_

#include <cstdint>

namespace dovetail {

// Floats of 16 bits, whose sums are float32; or bytes, of the left operand and the right one, whose
// sums are integers of 32 bits, which wrap around.
enum class Narrow { kBFloat16, kSigned, kSignedByUnsigned, kUnsignedBySigned, kUnsigned };

inline Narrow KindOfBytes(bool left_is_signed, bool right_is_signed) {
  if (left_is_signed) return right_is_signed ? Narrow::kSigned : Narrow::kSignedByUnsigned;
  return right_is_signed ? Narrow::kUnsignedBySigned : Narrow::kUnsigned;
}

// Rows and columns of a tile, and of what one instruction computes.
constexpr int64_t kTileSide = 32;
constexpr int64_t kHalfSide = 16;
// Bytes of a row that one instruction multiplies, and of a panel of columns that belong to them.
constexpr int64_t kStepBytes = 64;
constexpr int64_t kPanelBytes = kStepBytes * kTileSide;
// The sums of a tile.
constexpr int64_t kTileBytes = 4 * kTileSide * kTileSide;

// What the sums of a tile are of. A row of the left operand has 64 bytes at each of `steps`. Rows
// are `left_row` bytes apart, and the second 16 of them begin `left_half` bytes after the first 16.
// The panel has for each step two halves of 16 columns, as 16 lines of four bytes of each column in
// turn.
struct TileProduct {
  const char* left;
  int64_t left_row, left_half;
  const int64_t* steps;
  int64_t count;
  const char* panel;
  // Of 16 rows and columns, 1 or 2.
  int64_t row_halves, column_halves;
};

// The tiles of the processor, which this thread has as long as this lives.
class NarrowTiles {
 public:
  explicit NarrowTiles(Narrow kind);
  NarrowTiles(const NarrowTiles&) = delete;
  NarrowTiles& operator=(const NarrowTiles&) = delete;
  ~NarrowTiles();

  // Writes a tile of sums, whose rows are `row` bytes apart, or adds to it.
  void Multiply(const TileProduct& product, void* sums, int64_t row, bool add) const {
    multiply_[product.row_halves - 1][product.column_halves - 1](product, static_cast<char*>(sums),
                                                                 row, add);
  }

  // Writes sums of a tile to rows that are `to_row` elements apart, of 4 bytes; or of 2, which are
  // bfloat16, or of 1, the lowest bits of integers.
  void Put(const char* sums, int64_t rows, int64_t columns, char* to, int64_t to_row,
           int64_t size) const;

 private:
  template <Narrow kKind>
  void Choose();

  void (*multiply_[2][2])(const TileProduct&, char*, int64_t, bool);
  void (*round_)(const float*, int64_t, int64_t, uint16_t*, int64_t);
  bool of_processor_;
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_NARROW_TILES_H_
