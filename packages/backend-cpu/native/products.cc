// Products of matrices: parts of both that fit the caches are copied into the order in which tiles
// use them, but where they lie well as they are.

#include "products.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "kernel.h"
#include "memory.h"
#include "parallel.h"
#include "transposition.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

int64_t PartsOfAtMost(int64_t size, int64_t most) { return (size + most - 1) / most; }

// The most bytes of a row of tiles of the left matrix, which stays in the nearest cache.
constexpr int64_t kMostOfRows = 14336;

template <typename T>
class Multiplication {
 public:
  Multiplication(const MatrixProduct<T>& product, T* memory, int64_t size)
      : p_(product), rows_memory_(memory), panels_(memory + kMostOfRows / sizeof(T)) {
    // Steps of a part of the sums, and columns of a part of the right matrix.
    const int64_t room = size - kMostOfRows / sizeof(T);
    const int64_t most = kMostOfRows / int64_t{sizeof(T)} / kMostRows;
    steps_ = std::min(most, room / kColumns);
    steps_ = PartOf(p_.summed, steps_);
    panel_columns_ = std::max(kColumns, room / std::max<int64_t>(1, steps_) / kColumns * kColumns);
  }

  void Run() {
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

  static int64_t PartOf(int64_t size, int64_t most) {
    return size <= most ? size : PartsOfAtMost(size, PartsOfAtMost(size, most));
  }

  // Some columns, and some steps of the sums.
  void Block(int64_t k, int64_t steps, int64_t first, int64_t columns) {
    const bool add = k > 0 || p_.into != Into::kNothing;
    const int64_t full = columns / kColumns, rest = columns % kColumns;
    const int64_t tiles = PartsOfAtMost(p_.rows, kMostRows);
    const T* b = p_.b + k * p_.b_step + first * p_.b_column;
    // What is read a few times, or lies close together, need not be copied.
    const bool as_it_lies = p_.b_column == 1 && p_.into != Into::kSubtract &&
                            (tiles <= 5 || p_.b_step * int64_t{sizeof(T)} <= 512);
    const int64_t begin = as_it_lies ? full : 0, width = rest <= kLanes<T> ? kLanes<T> : kColumns;
    for (int64_t i = begin; i * kColumns < columns; ++i) {
      const int64_t count = std::min(kColumns, columns - i * kColumns);
      Pack(b + i * kColumns * p_.b_column, steps, count, i < full ? kColumns : width,
           panels_ + (i - begin) * kColumns * steps);
    }
    const T* last = panels_ + (full - begin) * kColumns * steps;
    constexpr int64_t kNone = 0;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t i = p_.rows * tile / tiles, rows = p_.rows * (tile + 1) / tiles - i;
      const T* a = p_.a + i * p_.a_row + k * p_.a_step;
      int64_t a_row = p_.a_row, a_step = p_.a_step;
      if (full > 1 && IsScattered(steps)) {
        PackRows(a, rows, steps);
        a = rows_memory_, a_row = packed_row_, a_step = packed_step_;
      }
      T* y = p_.y + i * p_.y_row + first;
      if (rest > 0) {
        const Sums sums{&kNone, &kNone, 1, steps, a_step, width};
        const auto multiply = TileOf<T, false>(rows, width / kLanes<T>);
        // What is written beyond a row is the start of the next one, and is written
        // again, if the block has all columns.
        if (!add && p_.y_row == columns && tile + 1 < tiles) {
          multiply(sums, a, a_row, last, y + full * kColumns, p_.y_row, false);
        } else {
          alignas(64) T tile_of_y[kMostRows * kColumns];
          multiply(sums, a, a_row, last, tile_of_y, width, false);
          Put(tile_of_y, width, rows, rest, y + full * kColumns, add);
        }
      }
      const int64_t b_step = as_it_lies ? p_.b_step : kColumns;
      const Sums sums{&kNone, &kNone, 1, steps, a_step, b_step};
      const auto multiply = TileOf<T, false>(rows, 2);
      for (int64_t j = 0; j < full; ++j) {
        const T* panel = as_it_lies ? b + j * kColumns : panels_ + j * kColumns * steps;
        multiply(sums, a, a_row, panel, y + j * kColumns, p_.y_row, add);
      }
    }
  }

  void Put(const T* sums, int64_t width, int64_t rows, int64_t columns, T* y, bool add) const {
    for (int64_t i = 0; i < rows; ++i, sums += width, y += p_.y_row) {
      if (add) {
        for (int64_t j = 0; j < columns; ++j) y[j] += sums[j];
      } else {
        std::copy_n(sums, columns, y);
      }
    }
  }

  // Whether rows of tiles would have few lines of the cache, or many pages, as they lie.
  bool IsScattered(int64_t steps) const {
    if (p_.a_step == 1) return p_.a_row != steps && p_.a_row * int64_t{sizeof(T)} % 512 == 0;
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
constexpr int64_t kProductsPerThread = 1 << 18;

// The memory that makes a product fastest.
template <typename T>
int64_t MemoryFor(int64_t columns, int64_t summed) {
  const int64_t across = PartsOfAtMost(columns, kProductColumns<T>) * kProductColumns<T>;
  return std::min(kMostProductMemory<T>,
                  std::max(kProductMemory<T>, kMostOfRows / int64_t{sizeof(T)} + across * summed));
}

// Memory of this thread, which it keeps: mapping it anew would take longer than small products.
template <typename T>
T* OwnMemory(int64_t size) {
  static thread_local std::unique_ptr<Memory<T>> own;
  static thread_local int64_t has = 0;
  if (size > has) {
    has = 0;
    own = std::make_unique<Memory<T>>(size);
    has = size;
  }
  return own->get();
}

// The sizes are rows, columns and what is summed over; then the distances along rows and sums in
// the left operand, and along sums and columns in the right one; then for each other dimension its
// size, and the distances in both.
template <ffi::DataType kType>
ffi::Error MatrixProducts(ffi::ThreadPool pool, ffi::Buffer<kType> x, ffi::Buffer<kType> w,
                          ffi::Result<ffi::Buffer<kType>> y, ffi::Span<const int64_t> sizes) {
  using T = ffi::NativeType<kType>;
  constexpr int64_t kColumns = kProductColumns<T>, kFixed = 7;
  const int64_t rows = sizes[0], columns = sizes[1], summed = sizes[2];
  const int64_t others = (static_cast<int64_t>(sizes.size()) - kFixed) / 3;
  int64_t count = 1;
  for (int64_t d = 0; d < others; ++d) count *= sizes[kFixed + 3 * d];
  const int64_t each = std::max<int64_t>(1, rows * columns * summed);
  const int64_t wanted = std::max<int64_t>(
      1, std::min(3 * ThreadsOf(pool), count * each / kProductsPerThread));
  // Whole products are divided among threads if there are many, or else their columns or rows.
  const int64_t threads = ThreadsOf(pool);
  int64_t column_parts = 1, row_parts = 1;
  if (threads > 1 && count < wanted) {
    const int64_t parts = PartsOfAtMost(wanted, count);
    if (columns >= 2 * kColumns * parts || columns >= rows) {
      column_parts = std::min(parts, PartsOfAtMost(columns, kColumns));
    } else {
      row_parts = std::min(parts, PartsOfAtMost(rows, MostRows(2)));
    }
  }
  const int64_t parts = column_parts * row_parts;
  const int64_t tasks = threads == 1 ? 1 : std::min(wanted, count * parts);
  const int64_t size = MemoryFor<T>(columns, summed);
  const T *a = x.typed_data(), *b = w.typed_data();
  ParallelFor(pool, tasks, [&](int64_t task) {
    T* const memory = OwnMemory<T>(size);
    for (int64_t at = count * parts * task / tasks; at < count * parts * (task + 1) / tasks; ++at) {
      if (each > kProductsPerThread) EndIfInterrupted();
      const int64_t number = at / parts, part = at % parts;
      MatrixProduct<T> product{a,        b,        y->typed_data() + number * rows * columns,
                               rows,     columns,  summed,
                               sizes[3], sizes[4], sizes[5],
                               sizes[6], columns};
      int64_t rest = number;
      for (int64_t d = others - 1; d >= 0; --d) {
        const int64_t* dimension = sizes.begin() + kFixed + 3 * d;
        product.a += rest % dimension[0] * dimension[1];
        product.b += rest % dimension[0] * dimension[2];
        rest /= dimension[0];
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
      MultiplyMatrices(product, memory, size);
    }
  });
  return ffi::Error::Success();
}

}  // namespace

template <typename T>
void MultiplyMatrices(const MatrixProduct<T>& product) {
  const int64_t size = MemoryFor<T>(product.columns, product.summed);
  MultiplyMatrices(product, OwnMemory<T>(size), size);
}

template void MultiplyMatrices(const MatrixProduct<float>&);
template void MultiplyMatrices(const MatrixProduct<double>&);

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
#define DOVETAIL_PRODUCTS(suffix, type)                                          \
  DOVETAIL_KERNEL(dovetail_products_##suffix, dovetail::MatrixProducts<type>,    \
                  xla::ffi::Ffi::Bind()                                          \
                      .Ctx<xla::ffi::ThreadPool>()                               \
                      .Arg<xla::ffi::Buffer<type>>()                             \
                      .Arg<xla::ffi::Buffer<type>>()                             \
                      .Ret<xla::ffi::Buffer<type>>()                             \
                      .Attr<xla::ffi::Span<const int64_t>>("sizes"))
DOVETAIL_PRODUCTS(f32, xla::ffi::DataType::F32);
DOVETAIL_PRODUCTS(f64, xla::ffi::DataType::F64);
#pragma GCC visibility pop
