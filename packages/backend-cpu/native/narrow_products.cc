// Products of matrices of bfloat16, and of bytes, in tiles that some processors multiply at once.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "kernel.h"
#include "memory.h"
#include "narrow_packing.h"
#include "narrow_tiles.h"
#include "parallel.h"
#include "products.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Steps of a part of the sums, at most, and panels of a step that stay in the second cache.
constexpr int64_t kMostSteps = 64;
constexpr int64_t kMostPanels = 512;
// Tiles of sums that wait for the next part.
constexpr int64_t kMostTiles = 256;
// Steps whose rows and panel fit the nearest cache.
constexpr int64_t kNearSteps = 8;
// A task takes some ten microseconds with tiles.
constexpr int64_t kProductsPerThread = 1 << 24;

// y[i * y_row + j] = sum over k of a[i * a_row + k * a_step] * b[k * b_step + j * b_column].
template <typename T>
struct NarrowProduct {
  const T* a;
  const T* b;
  char* y;
  int64_t rows, columns, summed;
  int64_t a_row, a_step, b_step, b_column, y_row;
  // Bytes of a result: 4 of sums, 2 of bfloat16, 1 for the lowest bits of integers.
  int64_t y_size;
};

// Adds the product of rows from `i` on and panels from column `j` on, which are `panel` bytes
// apart, to `sums`, or to the result where that has sums as they are; the last time it writes the
// result.
template <typename T>
void MultiplyRow(const NarrowTiles& tiles, const NarrowProduct<T>& p, TileProduct product,
                 int64_t panel, int64_t i, int64_t j, int64_t rows, int64_t width, char* sums,
                 bool add, bool last) {
  for (int64_t at = 0; at < width; at += kTileSide) {
    const int64_t columns = std::min(kTileSide, width - at);
    product.column_halves = PartsOfAtMost(columns, kHalfSide);
    char* const y = p.y + (i * p.y_row + j + at) * p.y_size;
    if (p.y_size == 4 && columns % kHalfSide == 0 && rows % kHalfSide == 0) {
      tiles.Multiply(product, y, 4 * p.y_row, add);
    } else {
      tiles.Multiply(product, sums, 4 * kTileSide, add);
      if (last) tiles.Put(sums, rows, columns, y, p.y_row, p.y_size);
    }
    product.panel += panel;
    sums += kTileBytes;
  }
}

// A block of columns at a time is copied whole, 32 rows at a time.
template <typename T>
void Multiply(const NarrowTiles& tiles, const NarrowProduct<T>& p) {
  constexpr int64_t kOfStep = kStepBytes / sizeof(T);
  const int64_t all_steps = PartsOfAtMost(p.summed, kOfStep);
  const int64_t parts = std::max<int64_t>(1, PartsOfAtMost(all_steps, kMostSteps));
  const int64_t most = std::max<int64_t>(1, PartsOfAtMost(all_steps, parts));
  const int64_t panels = std::min(PartsOfAtMost(p.columns, kTileSide), kMostPanels / most);
  // Columns are copied anew for each block of rows.
  const int64_t tall = parts == 1 ? p.rows : std::min(p.rows, kMostTiles / panels * kTileSide);
  const int64_t tiles_kept = panels * (parts == 1 ? 1 : PartsOfAtMost(tall, kTileSide));
  const OwnMemory<char, 1> right(panels * most * kPanelBytes);
  const OwnMemory<char, 2> left(most * kPanelBytes);
  const OwnMemory<char, 3> kept(tiles_kept * kTileBytes);
  int64_t steps[kMostSteps];
  for (int64_t i = 0; i < most; ++i) steps[i] = i * kPanelBytes;

  for (int64_t j = 0; j < p.columns; j += panels * kTileSide) {
    const int64_t width = std::min(panels * kTileSide, p.columns - j);
    for (int64_t top = 0; top < p.rows; top += tall) {
      const int64_t bottom = std::min(p.rows, top + tall);
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t first = all_steps * part / parts;
        const int64_t count = all_steps * (part + 1) / parts - first;
        for (int64_t step = 0; step < count; ++step) {
          const int64_t k = (first + step) * kOfStep;
          for (int64_t at = 0; at < width; at += kTileSide) {
            PackColumns(p.b + k * p.b_step + (j + at) * p.b_column, p.b_step, p.b_column,
                        p.summed - k, width - at,
                        right.get() + (at / kTileSide * count + step) * kPanelBytes);
          }
        }
        for (int64_t i = top; i < bottom; i += kTileSide) {
          EndIfInterrupted();
          const int64_t rows = std::min(kTileSide, bottom - i);
          for (int64_t step = 0; step < count; ++step) {
            const int64_t k = (first + step) * kOfStep;
            PackRows(p.a + i * p.a_row + k * p.a_step, p.a_row, p.a_step, rows, p.summed - k,
                     left.get() + step * kPanelBytes);
          }
          char* const sums =
              kept.get() + (parts == 1 ? 0 : (i - top) / kTileSide * panels * kTileBytes);
          const int64_t shares = std::max<int64_t>(1, (count + kNearSteps / 2 - 1) / kNearSteps);
          for (int64_t share = 0; share < shares; ++share) {
            const int64_t from = count * share / shares, to = count * (share + 1) / shares;
            MultiplyRow(tiles, p,
                        {left.get() + from * kPanelBytes, kStepBytes, kHalfSide * kStepBytes,
                         steps, to - from, right.get() + from * kPanelBytes,
                         PartsOfAtMost(rows, kHalfSide), 0},
                        count * kPanelBytes, i, j, rows, width, sums, part + share > 0,
                        part + 1 == parts && share + 1 == shares);
          }
        }
      }
    }
  }
}

// The sizes are the numbers of a `Batch`, in elements.
template <typename T>
void MultiplyAll(ffi::ThreadPool& pool, Narrow kind, const T* a, const T* b, char* y,
                 int64_t y_size, ffi::Span<const int64_t> sizes) {
  const Batch batch(sizes);
  const int64_t rows = batch.rows, columns = batch.columns, summed = batch.summed;
  const int64_t count = batch.count;
  const int64_t each = std::max<int64_t>(1, rows * columns * summed);
  const int64_t threads = ThreadsOf(pool);
  const int64_t wanted = threads == 1 ? 1
                                      : std::max<int64_t>(1, std::min(2 * threads, count * each /
                                                                          kProductsPerThread));
  // Whole products are divided among threads, or the longer side of few of them.
  const bool by_columns = columns >= rows;
  const int64_t strips = PartsOfAtMost(by_columns ? columns : rows, kTileSide);
  const int64_t parts = std::min(strips, PartsOfAtMost(wanted, count));
  const int64_t tasks = std::min(wanted, count * parts);
  ParallelFor(pool, tasks, [&](int64_t task) {
    const NarrowTiles tiles(kind);
    for (int64_t at = count * parts * task / tasks; at < count * parts * (task + 1) / tasks; ++at) {
      const int64_t number = at / parts, part = at % parts;
      NarrowProduct<T> product{a,
                               b,
                               y + number * rows * columns * y_size,
                               rows,
                               columns,
                               summed,
                               batch.a_row,
                               batch.a_step,
                               batch.b_step,
                               batch.b_column,
                               columns,
                               y_size};
      std::tie(product.a, product.b) = batch.Operands(a, b, number);
      const int64_t begin = strips * part / parts * kTileSide;
      const int64_t end = strips * (part + 1) / parts * kTileSide;
      if (by_columns) {
        product.b += begin * product.b_column;
        product.y += begin * y_size;
        product.columns = std::min(columns, end) - begin;
      } else {
        product.a += begin * product.a_row;
        product.y += begin * columns * y_size;
        product.rows = std::min(rows, end) - begin;
      }
      Multiply(tiles, product);
    }
  });
}

ffi::Error NarrowProducts(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer w,
                          ffi::Result<ffi::AnyBuffer> y, ffi::Span<const int64_t> sizes) {
  if (y->element_count() == 0) return ffi::Error::Success();
  const auto y_size = static_cast<int64_t>(y->size_bytes() / y->element_count());
  char* const to = static_cast<char*>(y->untyped_data());
  if (x.element_type() == ffi::DataType::BF16) {
    MultiplyAll(pool, Narrow::kBFloat16, static_cast<const uint16_t*>(x.untyped_data()),
                static_cast<const uint16_t*>(w.untyped_data()), to, y_size, sizes);
    return ffi::Error::Success();
  }
  const Narrow kind = KindOfBytes(x.element_type() == ffi::DataType::S8,
                                  w.element_type() == ffi::DataType::S8);
  MultiplyAll(pool, kind, static_cast<const uint8_t*>(x.untyped_data()),
              static_cast<const uint8_t*>(w.untyped_data()), to, y_size, sizes);
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_multiply_narrow, dovetail::NarrowProducts,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<xla::ffi::Span<const int64_t>>("sizes"));
#pragma GCC visibility pop
