// Products of matrices of any layout, in tiles of registers (`tiles.h`).

#ifndef DOVETAIL_CPU_PRODUCTS_H_
#define DOVETAIL_CPU_PRODUCTS_H_

#include <complex>
#include <cstdint>
#include <limits>
#include <utility>

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

inline int64_t PartsOfAtMost(int64_t size, int64_t most) { return (size + most - 1) / most; }

// Products of matrices that lie behind each other in the result.
//
// The numbers are rows, columns and what is summed over; then the distances along rows and sums in
// the left operand, and along sums and columns in the right one; then for each other dimension its
// size, and the distances in both.
class Batch {
 public:
  template <typename Numbers>
  explicit Batch(const Numbers& numbers)
      : rows(numbers[0]),
        columns(numbers[1]),
        summed(numbers[2]),
        a_row(numbers[3]),
        a_step(numbers[4]),
        b_step(numbers[5]),
        b_column(numbers[6]),
        begin_(numbers.begin() + 7),
        end_(numbers.end()) {
    for (const int64_t* d = begin_; d != end_; d += 3) count *= d[0];
  }

  // Where the operands of a product begin.
  template <typename T>
  std::pair<const T*, const T*> Operands(const T* a, const T* b, int64_t number) const {
    for (const int64_t* d = end_; d != begin_;) {
      d -= 3;
      a += number % d[0] * d[1];
      b += number % d[0] * d[2];
      number /= d[0];
    }
    return {a, b};
  }

  const int64_t rows, columns, summed, a_row, a_step, b_step, b_column;
  int64_t count = 1;

 private:
  const int64_t *begin_, *end_;
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

// The same of complex numbers.
template <typename T>
void MultiplyComplexMatrices(const MatrixProduct<std::complex<T>>& product);

template <typename T>
constexpr int64_t kMostProductMemory = (int64_t{320} << 10) / int64_t{sizeof(T)};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_PRODUCTS_H_
