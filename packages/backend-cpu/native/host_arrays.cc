// Functions of whole small arrays in the memory of the host. Their numbers are sizes, which
// `host_functions.py` computes.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "host_elementary.h"
#include "host_functions.h"
#include "products.h"

namespace dovetail {
namespace {

template <typename T>
const T* Operand(const void* const* operands, int number) {
  return static_cast<const T*>(operands[number]);
}

// ------------------------------------------------------------------------------------ reductions
//
// Numbers: of what is outside the axes, along them, and inside.

constexpr int kLanes = 32;

struct Sum {
  static float Start(float) { return 0; }
  static int32_t Start(int32_t) { return 0; }
  static float Both(float a, float b) { return a + b; }
  static int32_t Both(int32_t a, int32_t b) { return int32_t(uint32_t(a) + uint32_t(b)); }
};

struct Product {
  static float Start(float) { return 1; }
  static int32_t Start(int32_t) { return 1; }
  static float Both(float a, float b) { return a * b; }
  static int32_t Both(int32_t a, int32_t b) { return int32_t(uint32_t(a) * uint32_t(b)); }
};

template <typename T, typename Operation>
void Reduce(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  FlushDenormals flush;
  const T* x = Operand<T>(operands, 0);
  T* out = static_cast<T*>(result);
  const ptrdiff_t outer = numbers[0], size = numbers[1], inner = numbers[2];
  for (ptrdiff_t o = 0; o < outer; ++o, x += size * inner, out += inner) {
    if (inner == 1) {
      T lanes[kLanes];
      std::fill_n(lanes, kLanes, Operation::Start(T()));
      ptrdiff_t i = 0;
      for (; i + kLanes <= size; i += kLanes) {
        for (int lane = 0; lane < kLanes; ++lane) {
          lanes[lane] = Operation::Both(lanes[lane], x[i + lane]);
        }
      }
      for (int lane = 0; i < size; ++i, ++lane) lanes[lane] = Operation::Both(lanes[lane], x[i]);
      for (int half = kLanes / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) {
          lanes[lane] = Operation::Both(lanes[lane], lanes[lane + half]);
        }
      }
      out[0] = FlushedNumber(lanes[0]);
    } else {
      std::fill_n(out, inner, Operation::Start(T()));
      for (ptrdiff_t i = 0; i < size; ++i) {
        const T* row = x + i * inner;
        for (ptrdiff_t j = 0; j < inner; ++j) out[j] = Operation::Both(out[j], row[j]);
      }
      for (ptrdiff_t j = 0; j < inner; ++j) out[j] = FlushedNumber(out[j]);
    }
  }
}

// Whether one is true, or all are.
template <bool kAll>
void ReduceTruths(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const bool* x = Operand<bool>(operands, 0);
  bool* out = static_cast<bool*>(result);
  const ptrdiff_t outer = numbers[0], size = numbers[1], inner = numbers[2];
  for (ptrdiff_t o = 0; o < outer; ++o, x += size * inner, out += inner) {
    if (inner == 1) {
      out[0] = (size != 0 && std::memchr(x, !kAll, size) != nullptr) != kAll;
      continue;
    }
    std::fill_n(out, inner, kAll);
    for (ptrdiff_t i = 0; i < size; ++i) {
      for (ptrdiff_t j = 0; j < inner; ++j) {
        out[j] = kAll ? out[j] & x[i * inner + j] : out[j] | x[i * inner + j];
      }
    }
  }
}

// Where the first extreme is; the first NaN, if there is one.
template <typename T, bool kGreatest>
void ArgExtreme(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  FlushDenormals flush;
  const T* x = Operand<T>(operands, 0);
  int32_t* out = static_cast<int32_t*>(result);
  const ptrdiff_t outer = numbers[0], size = numbers[1], inner = numbers[2];
  for (ptrdiff_t o = 0; o < outer; ++o, x += size * inner, out += inner) {
    for (ptrdiff_t j = 0; j < inner; ++j) {
      T found;
      const void* row = x;
      const ptrdiff_t whole[3] = {1, size, 1};
      if (inner == 1) {
        Reduce<T, ExtremeOf<kGreatest>>(&row, whole, &found, 1);
      } else {
        found = x[j];
        for (ptrdiff_t i = 1; i < size; ++i) {
          found = ExtremeOf<kGreatest>::Both(found, x[i * inner + j]);
        }
      }
      ptrdiff_t i = 0;
      for (; i + 1 < size; ++i) {
        const T value = x[i * inner + j];
        if (value == found || value != value) break;
      }
      out[j] = int32_t(i);
    }
  }
}

// Numbers: as for reductions, and whether from the end.
template <typename T>
void CumulativeSum(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  FlushDenormals flush;
  const T* x = Operand<T>(operands, 0);
  T* out = static_cast<T*>(result);
  const ptrdiff_t outer = numbers[0], size = numbers[1], inner = numbers[2];
  const ptrdiff_t step = numbers[3] ? -inner : inner, first = numbers[3] ? (size - 1) * inner : 0;
  for (ptrdiff_t o = 0; o < outer; ++o, x += size * inner, out += size * inner) {
    for (ptrdiff_t j = 0; j < inner; ++j) {
      T sum = T(-0.0);  // added to -0, it gives that
      for (ptrdiff_t i = 0, at = first + j; i < size; ++i, at += step) {
        out[at] = sum = Sum::Both(sum, x[at]);
      }
    }
  }
}

// -------------------------------------------------------------------------------------- products

// Numbers: batches, rows, columns, and what is summed over; then how far apart elements are in the
// left operand along rows and sums, and in the right one along sums and columns.
void Products(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  FlushDenormals flush;
  const float* x = Operand<float>(operands, 0);
  const float* y = Operand<float>(operands, 1);
  float* out = static_cast<float*>(result);
  const ptrdiff_t rows = numbers[1], columns = numbers[2], size = numbers[3];
  const ptrdiff_t x_row = numbers[4], x_sum = numbers[5], y_sum = numbers[6], y_column = numbers[7];
  const bool in_tiles = rows >= 4 && columns >= 8 && rows * columns * size >= 2048;
  for (ptrdiff_t b = 0; b < numbers[0]; ++b) {
    if (in_tiles) {
      alignas(64) float memory[kProductMemory<float>];
      MultiplyMatrices<float>(
          {x, y, out, rows, columns, size, x_row, x_sum, y_sum, y_column, columns}, memory,
          kProductMemory<float>);
      out += rows * columns;
    }
    for (ptrdiff_t i = 0; i < rows && !in_tiles; ++i, out += columns) {
      const float* left = x + i * x_row;
      if (x_sum == 1 && y_sum == 1) {
        for (ptrdiff_t j = 0; j < columns; ++j) {
          const float* right = y + j * y_column;
          float lanes[kLanes] = {0};
          ptrdiff_t k = 0;
          for (; k + kLanes <= size; k += kLanes) {
            for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += left[k + lane] * right[k + lane];
          }
          for (int lane = 0; k < size; ++k, ++lane) lanes[lane] += left[k] * right[k];
          for (int half = kLanes / 2; half > 0; half /= 2) {
            for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
          }
          out[j] = lanes[0];
        }
      } else {
        std::fill_n(out, columns, 0.0f);
        for (ptrdiff_t k = 0; k < size; ++k) {
          const float factor = left[k * x_sum];
          const float* right = y + k * y_sum;
          if (y_column == 1) {
            for (ptrdiff_t j = 0; j < columns; ++j) out[j] += factor * right[j];
          } else {
            for (ptrdiff_t j = 0; j < columns; ++j) out[j] += factor * right[j * y_column];
          }
        }
      }
    }
    x += rows * size;
    y += size * columns;
  }
}

// ------------------------------------------------------------------------- conversions and shapes

template <typename From, typename To>
To Converted(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_same_v<From, float>) {
    if (x != x) return 0;
    if (x >= 0x1p31f) return std::numeric_limits<To>::max();
    if (x <= -0x1p31f) return std::numeric_limits<To>::min();
    return To(x);
  } else {
    return To(x);
  }
}

template <typename From, typename To>
void ConvertTo(const void* const* operands, void* result, ptrdiff_t count) {
  const From* x = Operand<From>(operands, 0);
  To* out = static_cast<To*>(result);
  for (ptrdiff_t i = 0; i < count; ++i) out[i] = Converted<From, To>(x[i]);
}

// The number: 0 to float32, 1 to int32, 2 to bool.
template <typename From>
void Convert(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t count) {
  FlushDenormals flush;
  if (numbers[0] == 0) {
    ConvertTo<From, float>(operands, result, count);
  } else if (numbers[0] == 1) {
    ConvertTo<From, int32_t>(operands, result, count);
  } else {
    ConvertTo<From, bool>(operands, result, count);
  }
}

// The number: the exponent.
void IntegerPower(const void* const* operands, const ptrdiff_t* numbers, void* result,
                  ptrdiff_t count) {
  FlushDenormals flush;
  const float* x = Operand<float>(operands, 0);
  float* out = static_cast<float*>(result);
  std::fill_n(out, count, 1.0f);
  const ptrdiff_t power = numbers[0] < 0 ? -numbers[0] : numbers[0];
  for (int bit = 62; bit >= 0; --bit) {
    if (power >> bit == 0) continue;
    const bool more = power >> bit & 1;
    for (ptrdiff_t i = 0; i < count; ++i) out[i] *= more ? out[i] * x[i] : out[i];
  }
  for (ptrdiff_t i = 0; i < count && numbers[0] < 0; ++i) out[i] = 1 / out[i];
}

// Numbers: matrices, and their rows and columns.
void Transpose(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const uint32_t* x = Operand<uint32_t>(operands, 0);
  uint32_t* out = static_cast<uint32_t*>(result);
  for (ptrdiff_t b = 0; b < numbers[0]; ++b, x += numbers[1] * numbers[2]) {
    for (ptrdiff_t j = 0; j < numbers[2]; ++j) {
      for (ptrdiff_t i = 0; i < numbers[1]; ++i) *out++ = x[i * numbers[2] + j];
    }
  }
}

// Numbers: rows, and elements of each. Indices out of bounds are moved into bounds.
void TakeRows(const void* const* operands, const ptrdiff_t* numbers, void* result,
              ptrdiff_t count) {
  const uint32_t* x = Operand<uint32_t>(operands, 0);
  const int32_t* indices = Operand<int32_t>(operands, 1);
  uint32_t* out = static_cast<uint32_t*>(result);
  const ptrdiff_t last = numbers[0] - 1, size = numbers[1];
  for (ptrdiff_t i = 0; i < count / size; ++i) {
    const ptrdiff_t row = std::clamp<ptrdiff_t>(indices[i], 0, last);
    if (size == 1) {
      out[i] = x[row];
    } else {
      std::memcpy(out + i * size, x + row * size, size * sizeof(*x));
    }
  }
}

// The number: how many are added. Those whose index is out of bounds are not.
void AddAtIndices(const void* const* operands, const ptrdiff_t* numbers, void* result,
                  ptrdiff_t count) {
  FlushDenormals flush;
  const int32_t* indices = Operand<int32_t>(operands, 1);
  const float* added = Operand<float>(operands, 2);
  float* out = static_cast<float*>(result);
  std::copy_n(Operand<float>(operands, 0), count, out);
  for (ptrdiff_t i = 0; i < numbers[0]; ++i) {
    if (indices[i] >= 0 && indices[i] < count) out[indices[i]] += added[i];
  }
}

const HostEntry kEntries[] = {
    {"reduce_sum", "float32", Reduce<float, Sum>, kMost},
    {"reduce_sum", "int32", Reduce<int32_t, Sum>, kMost},
    {"reduce_prod", "float32", Reduce<float, Product>, kMost},
    {"reduce_prod", "int32", Reduce<int32_t, Product>, kMost},
    {"reduce_max", "float32", Reduce<float, ExtremeOf<true>>, kMost},
    {"reduce_max", "int32", Reduce<int32_t, ExtremeOf<true>>, kMost},
    {"reduce_max_of_numbers", "float32", Reduce<float, ExtremeOf<true>>, kMost},
    {"reduce_min", "float32", Reduce<float, ExtremeOf<false>>, kMost},
    {"reduce_min", "int32", Reduce<int32_t, ExtremeOf<false>>, kMost},
    {"reduce_and", "bool", ReduceTruths<true>, kMost},
    {"reduce_or", "bool", ReduceTruths<false>, kMost},
    {"argmax", "float32", ArgExtreme<float, true>, kMany},
    {"argmax", "int32", ArgExtreme<int32_t, true>, kMany},
    {"argmin", "float32", ArgExtreme<float, false>, kMany},
    {"argmin", "int32", ArgExtreme<int32_t, false>, kMany},
    {"cumsum", "float32", CumulativeSum<float>, kSome},
    {"cumsum", "int32", CumulativeSum<int32_t>, kSome},
    {"dot_general", "float32", Products, kMost},
    {"convert_element_type", "float32", Convert<float>, kMany},
    {"convert_element_type", "int32", Convert<int32_t>, kMany},
    {"convert_element_type", "bool", Convert<bool>, kMany},
    {"integer_pow", "float32", IntegerPower, kMany},
    {"transpose", "float32", Transpose, kSome},
    {"gather", "int32", TakeRows, kSome},
    {"scatter-add", "float32", AddAtIndices, kSome},
};

}  // namespace

const HostEntry* ArrayFunctions(size_t* count) {
  *count = sizeof(kEntries) / sizeof(kEntries[0]);
  return kEntries;
}

}  // namespace dovetail
