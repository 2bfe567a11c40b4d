// Transposes of matrices in memory.

#ifndef DOVETAIL_CPU_TRANSPOSITION_H_
#define DOVETAIL_CPU_TRANSPOSITION_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace dovetail {

// Transposes four rows of four elements, each to a place of its own.
template <typename T>
void TransposeFour(const T* from, int64_t row, T* to0, T* to1, T* to2, T* to3) {
#if defined(__clang__) || __GNUC__ >= 12
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  Four a, b, c, d;
  std::memcpy(&a, from, sizeof(Four));
  std::memcpy(&b, from + row, sizeof(Four));
  std::memcpy(&c, from + 2 * row, sizeof(Four));
  std::memcpy(&d, from + 3 * row, sizeof(Four));
  const Four low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  a = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
  b = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7);
  c = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
  d = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);
  std::memcpy(to0, &a, sizeof(Four));
  std::memcpy(to1, &b, sizeof(Four));
  std::memcpy(to2, &c, sizeof(Four));
  std::memcpy(to3, &d, sizeof(Four));
#else
  T* const to[] = {to0, to1, to2, to3};
  for (int i = 0; i < 4; ++i) {
    for (int r = 0; r < 4; ++r) to[i][r] = from[r * row + i];
  }
#endif
}

// to[i][r] = from[r][i], for `rows` rows of `size` elements, with these distances of rows.
template <typename T>
void Transpose(const T* from, int64_t from_row, int64_t rows, int64_t size, T* to,
               int64_t to_row) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* at = from + r * from_row;
    T* put = to + r;
    int64_t i = 0;
    for (; i + 4 <= size; i += 4, put += 4 * to_row) {
      TransposeFour(at + i, from_row, put, put + to_row, put + 2 * to_row, put + 3 * to_row);
    }
    for (; i < size; ++i, put += to_row) {
      for (int64_t j = 0; j < 4; ++j) put[j] = at[j * from_row + i];
    }
  }
  for (; r < rows; ++r) {
    for (int64_t i = 0; i < size; ++i) to[i * to_row + r] = from[r * from_row + i];
  }
}

// The same in squares, whose rows stay in the nearest cache until all of a line has been written.
template <typename T>
void TransposeInSquares(const T* from, int64_t from_row, int64_t rows, int64_t size, T* to,
                        int64_t to_row) {
  constexpr int64_t kSide = 128 / sizeof(T);
  for (int64_t r = 0; r < rows; r += kSide) {
    for (int64_t i = 0; i < size; i += kSide) {
      Transpose(from + r * from_row + i, from_row, std::min(kSide, rows - r),
                std::min(kSide, size - i), to + i * to_row + r, to_row);
    }
  }
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_TRANSPOSITION_H_
