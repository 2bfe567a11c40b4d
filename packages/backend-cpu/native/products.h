// Products of matrices of any layout, in tiles of registers (`tiles.h`).

#ifndef DOVETAIL_CPU_PRODUCTS_H_
#define DOVETAIL_CPU_PRODUCTS_H_

#include <cstdint>
#include <limits>

#include "tiles.h"

namespace dovetail {

// y[i * y_row + j] = sum over k of a[i * a_row + k * a_step] * b[k * b_step + j * b_column]. It is
// added to what is there, or subtracted, if asked for.
enum class Into { kNothing, kAdd, kSubtract };
template <typename T>
struct MatrixProduct {
  const T* a;
  const T* b;
  T* y;
  int64_t rows, columns, summed;
  int64_t a_row, a_step, b_step, b_column, y_row;
  Into into = Into::kNothing;
  // Of column j, rows from j + below on need not be computed.
  int64_t below = std::numeric_limits<int64_t>::max() / 2;
  // The operands of the product that comes next, if they lie in as much memory as these.
  const T* next_a = nullptr;
  const T* next_b = nullptr;
  // Whether `b` has complex numbers, of which each makes two steps of two columns: its parts, and
  // those of its product with i. Its distances are in complex numbers, the sizes in real ones.
  bool of_pairs = false;
};

// Tiles are two vectors wide.
template <typename T>
constexpr int64_t kProductColumns = 2 * kLanes<T>;

// The least memory for MultiplyMatrices, in elements.
template <typename T>
constexpr int64_t kProductMemory = 49152 / int64_t{sizeof(T)};

// Multiplies on this thread. `memory` is for `size` elements, from a multiple of 64 bytes on; more
// of it, up to kMostProductMemory, makes large products faster.
template <typename T>
void MultiplyMatrices(const MatrixProduct<T>& product, T* memory, int64_t size);

// The same with memory of this thread's own.
template <typename T>
void MultiplyMatrices(const MatrixProduct<T>& product);

template <typename T>
constexpr int64_t kMostProductMemory = (int64_t{320} << 10) / int64_t{sizeof(T)};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_PRODUCTS_H_
