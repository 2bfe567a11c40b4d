// Functions of whole small arrays in the memory of the host. Their numbers are sizes, which
// `host_functions.py` computes.

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "extremes.h"
#include "host_functions.h"
#include "products.h"
#include "short_rows.h"
#include "sums.h"

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
// Longer rows are reduced as by kernels, to the same bits.
constexpr ptrdiff_t kLong = 4096;

// Integers wrap around.
struct Sum {
  using OfKernels = Plus;
  template <typename T>
  static T Start(T) {
    return 0;
  }
  template <typename T>
  static T Both(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return T(uint64_t(a) + uint64_t(b));
    } else {
      return a + b;
    }
  }
};

struct Product {
  using OfKernels = Times;
  template <typename T>
  static T Start(T) {
    return 1;
  }
  template <typename T>
  static T Both(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return T(uint64_t(a) * uint64_t(b));
    } else {
      return a * b;
    }
  }
};

// Integers without sign, as kernels add them.
template <typename T>
using NumberOf = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::common_type<T>>::type;

// What a long row of terms comes to.
template <typename Operation, typename Terms>
typename Terms::Type LongRow(Terms terms, ptrdiff_t size) {
  return FoldRow<Operation>([](ptrdiff_t count, const auto& body) { DivideInCompany(count, body); },
                            terms, size);
}

template <typename Operation>
constexpr bool kIsFolded = std::is_same_v<Operation, Sum> || std::is_same_v<Operation, Product>;

// Elements of a part of a row.
constexpr ptrdiff_t kPart = 1 << 15;

// What of_part(begin, end) gives for the parts of a row, joined from the first to the last.
template <typename OfPart, typename Join>
auto Joined(ptrdiff_t size, const OfPart& of_part, const Join& join) {
  if (size < kDivided) return of_part(0, size);
  std::vector<decltype(of_part(0, size))> parts((size + kPart - 1) / kPart);
  DivideInCompany(size, [&](ptrdiff_t begin, ptrdiff_t end) {
    // A part belongs to the range that has its first element.
    for (ptrdiff_t i = (begin + kPart - 1) / kPart; i * kPart < end; ++i) {
      parts[i] = of_part(i * kPart, std::min(size, (i + 1) * kPart));
    }
  });
  for (size_t i = 1; i < parts.size(); ++i) join(parts[0], parts[i]);
  return parts[0];
}

// The extreme of a row, and in which block it is first.
template <typename O>
Found<typename O::T> ExtremeOfRow(const typename O::T* x, ptrdiff_t size) {
  const auto of_part = [x](ptrdiff_t begin, ptrdiff_t end) { return RowExtreme<O>(x, begin, end); };
  Found<typename O::T> found;
  Uninterrupted([&] {
    found = of_part(0, std::min(size, kPart));
    const bool is_decided = size <= kPart || (!O::kIsFloat && found.best == O::kLast);
    if (!is_decided) found = Joined(size, of_part, JoinFound<O>);
  });
  return found;
}

template <typename Operation, typename T>
T ReducedRow(const T* x, ptrdiff_t size) {
  const auto of_part = [x](ptrdiff_t begin, ptrdiff_t end) {
    T lanes[kLanes];
    std::fill_n(lanes, kLanes, Operation::Start(T()));
    for (; begin + kLanes <= end; begin += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = Operation::Both(lanes[lane], x[begin + lane]);
      }
    }
    for (int lane = 0; begin < end; ++begin, ++lane) {
      lanes[lane] = Operation::Both(lanes[lane], x[begin]);
    }
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int lane = 0; lane < half; ++lane) {
        lanes[lane] = Operation::Both(lanes[lane], lanes[lane + half]);
      }
    }
    return lanes[0];
  };
  return Joined(size, of_part, [](T& whole, T part) { whole = Operation::Both(whole, part); });
}

template <typename T, typename Operation>
void Reduce(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  FlushDenormals flush;
  const T* x = Operand<T>(operands, 0);
  T* out = static_cast<T*>(result);
  const ptrdiff_t outer = numbers[0], size = numbers[1], inner = numbers[2];
  for (ptrdiff_t o = 0; o < outer; ++o, x += size * inner, out += inner) {
    if constexpr (kIsFolded<Operation>) {
      using Number = NumberOf<T>;
      if (inner == 1 && size >= kLong) {
        const Numbers<Number> row{reinterpret_cast<const Number*>(x)};
        out[0] = T(LongRow<typename Operation::OfKernels>(row, size));
        continue;
      }
    }
    if (inner == 1) {
      out[0] = FlushedNumber(ReducedRow<Operation>(x, size));
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

// The sums of terms that are made of the elements of rows.
template <typename Terms>
void SumRows(Terms terms, const ptrdiff_t* numbers, void* result) {
  FlushDenormals flush;
  typename Terms::Type* out = static_cast<typename Terms::Type*>(result);
  const ptrdiff_t outer = numbers[0], size = numbers[1];
  for (ptrdiff_t o = 0; o < outer; ++o) out[o] = LongRow<Plus>(terms + o * size, size);
}

// Numbers: as for reductions, and of what the sum is: elements, or what `_TERMS` says.
template <typename T>
void AddUp(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t count) {
  const T* x = Operand<T>(operands, 0);
  if (numbers[3] == 3) return SumRows(NotZero<T>{x}, numbers, result);
  if (numbers[3] == 4) {
    using Number = NumberOf<T>;
    const Number* same = Operand<Number>(operands, 0);
    return SumRows(Products<Number>{same, same}, numbers, result);
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (numbers[3] == 1) return SumRows(NotNan<T, false>{x}, numbers, result);
    if (numbers[3] == 2) return SumRows(NotNan<T, true>{x}, numbers, result);
  }
  Reduce<T, Sum>(operands, numbers, result, count);
}

// The extremes of bytes.
template <typename T, bool kGreatest>
void ReduceBytes(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  using O = Order<T, kGreatest>;
  const T* x = Operand<T>(operands, 0);
  T* out = static_cast<T*>(result);
  const ptrdiff_t outer = numbers[0], size = numbers[1], inner = numbers[2];
  for (ptrdiff_t o = 0; o < outer; ++o, x += size * inner, out += inner) {
    if (inner == 1) {
      out[0] = ExtremeOfRow<O>(x, size).best;
      continue;
    }
    std::fill_n(out, inner, O::kFirst);
    for (ptrdiff_t i = 0; i < size; ++i) {
      for (ptrdiff_t j = 0; j < inner; ++j) out[j] = O::Of(out[j], x[i * inner + j]);
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
    if (inner == 1 && size >= kLong) {
      using O = Order<T, kGreatest>;
      *out = int32_t(PositionOf<O>(x, size, ExtremeOfRow<O>(x, size)));
      continue;
    }
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
      const auto is_there = [&](ptrdiff_t i) {
        const T value = x[i * inner + j];
        return (value == found) | (value != value);
      };
      ptrdiff_t i = 0;
      for (bool none = inner == 1; none && i + kLanes <= size;) {
        // In a number as wide, or compilers would make no vectors of it.
        std::conditional_t<sizeof(T) == 8, int64_t, int32_t> any = 0;
        for (ptrdiff_t lane = 0; lane < kLanes; ++lane) any |= is_there(i + lane);
        none = any == 0;
        if (none) i += kLanes;
      }
      while (i + 1 < size && !is_there(i)) ++i;
      out[j] = int32_t(i);
    }
  }
}

// Numbers: as for reductions, and whether from the end.
template <typename T, typename Operation>
void Cumulative(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  FlushDenormals flush;
  const T* x = Operand<T>(operands, 0);
  T* out = static_cast<T*>(result);
  const ptrdiff_t outer = numbers[0], size = numbers[1], inner = numbers[2];
  const ptrdiff_t step = numbers[3] ? -inner : inner, first = numbers[3] ? (size - 1) * inner : 0;
  for (ptrdiff_t o = 0; o < outer; ++o, x += size * inner, out += size * inner) {
    for (ptrdiff_t j = 0; j < inner && size > 0; ++j) {
      T total = x[first + j];
      if constexpr (std::is_same_v<Operation, Sum>) total = Sum::Both(T(-0.0), total);
      out[first + j] = total = FlushedNumber(total);
      for (ptrdiff_t i = 1, at = first + j + step; i < size; ++i, at += step) {
        out[at] = total = FlushedNumber(Operation::Both(total, x[at]));
      }
    }
  }
}

// Where the first is true, or false; the first of all if none is.
template <bool kTrue>
void ArgTruth(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const bool* x = Operand<bool>(operands, 0);
  int32_t* out = static_cast<int32_t*>(result);
  const ptrdiff_t outer = numbers[0], size = numbers[1], inner = numbers[2];
  for (ptrdiff_t o = 0; o < outer; ++o, x += size * inner, out += inner) {
    if (inner == 1) {
      const void* const found = std::memchr(x, kTrue, size);
      *out = found == nullptr ? 0 : int32_t(static_cast<const bool*>(found) - x);
      continue;
    }
    for (ptrdiff_t j = 0; j < inner; ++j) {
      ptrdiff_t i = 0;
      while (i < size && x[i * inner + j] != kTrue) ++i;
      out[j] = i < size ? int32_t(i) : 0;
    }
  }
}

// -------------------------------------------------------------------------------------- products

// The most products of numbers that little memory makes as fast.
constexpr ptrdiff_t kSmallProduct = 1 << 21;

// Numbers: batches, rows, columns, and what is summed over; then how far apart elements are in the
// left operand along rows and sums, and in the right one along sums and columns.
template <typename T>
void MultiplyInTiles(const void* const* operands, const ptrdiff_t* numbers, void* result,
                     ptrdiff_t) {
  FlushDenormals flush;
  const ptrdiff_t count = numbers[0], rows = numbers[1], columns = numbers[2], size = numbers[3];
  for (ptrdiff_t b = 0; b < count; ++b) {
    MatrixProduct<T> product{Operand<T>(operands, 0) + b * rows * size,
                             Operand<T>(operands, 1) + b * size * columns,
                             static_cast<T*>(result) + b * rows * columns,
                             rows,
                             columns,
                             size,
                             numbers[4],
                             numbers[5],
                             numbers[6],
                             numbers[7],
                             columns};
    if (b + 1 < count) {
      product.next_a = product.a + rows * size, product.next_b = product.b + size * columns;
    }
    Uninterrupted([&] {
      if constexpr (std::is_floating_point_v<T>) {
        MultiplyMatrices(product);
      } else {
        MultiplyComplexMatrices(product);
      }
    });
  }
}

// The same of any size.
void Multiply(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  FlushDenormals flush;
  const float* x = Operand<float>(operands, 0);
  const float* y = Operand<float>(operands, 1);
  float* out = static_cast<float*>(result);
  const ptrdiff_t rows = numbers[1], columns = numbers[2], size = numbers[3];
  const ptrdiff_t x_row = numbers[4], x_sum = numbers[5], y_sum = numbers[6], y_column = numbers[7];
  const bool with_vector = numbers[0] == 1 && columns == 1 && x_sum == 1 && x_row == size;
  if (with_vector && size >= 2 && size <= kShort) {
    return DivideInCompany(rows, [=](ptrdiff_t begin, ptrdiff_t end) {
      const FlushDenormals on_this_thread;
      DotsOfShortRows<float>(x + begin * size, size, y, out + begin, end - begin);
    });
  }
  const bool in_tiles = rows >= 4 && columns >= 8 && rows * columns * size >= 2048;
  if (in_tiles && numbers[0] * rows * columns * size > kSmallProduct) {
    return MultiplyInTiles<float>(operands, numbers, result, 0);
  }
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
          if (size >= kLong) {
            out[j] = LongRow<Plus>(Products<float>{left, right}, size);
            continue;
          }
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
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (x != x) return 0;
    if (x >= From(Limits::max())) return Limits::max();
    if (x <= From(Limits::min())) return Limits::min();
    return To(x);
  } else {
    return To(x);
  }
}

template <typename From, typename To>
void ConvertTo(const void* const* operands, void* result, ptrdiff_t count) {
  // Compilers make no vectors of truths.
  using Element = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
  const Element* x = Operand<Element>(operands, 0);
  To* out = static_cast<To*>(result);
  for (ptrdiff_t i = 0; i < count; ++i) out[i] = Converted<Element, To>(x[i]);
}

// The number: which of the dtypes of `_DTYPES` to convert to.
template <typename From>
void Convert(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t count) {
  FlushDenormals flush;
  switch (numbers[0]) {
    case 0:
      return ConvertTo<From, float>(operands, result, count);
    case 1:
      return ConvertTo<From, int32_t>(operands, result, count);
    case 2:
      return ConvertTo<From, bool>(operands, result, count);
    case 3:
      return ConvertTo<From, uint32_t>(operands, result, count);
    case 4:
      return ConvertTo<From, double>(operands, result, count);
    case 5:
      return ConvertTo<From, int64_t>(operands, result, count);
    case 6:
      return ConvertTo<From, std::complex<float>>(operands, result, count);
    default:
      return ConvertTo<From, std::complex<double>>(operands, result, count);
  }
}

// The number: 0 away from zero, 1 to even, of what is halfway.
template <typename T>
void Round(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t count) {
  FlushDenormals flush;
  const T* x = Operand<T>(operands, 0);
  T* out = static_cast<T*>(result);
  if (numbers[0] == 0) {
    for (ptrdiff_t i = 0; i < count; ++i) out[i] = std::round(x[i]);
  } else {
    for (ptrdiff_t i = 0; i < count; ++i) out[i] = std::nearbyint(x[i]);
  }
}

template <typename T>
void PowersOf(const T* x, ptrdiff_t exponent, T* out, ptrdiff_t size) {
  FlushDenormals flush;
  const ptrdiff_t power = exponent < 0 ? -exponent : exponent;
  // x to the power of the first digit.
  std::copy_n(x, size, out);
  if (power == 0) std::fill_n(out, size, T(1));
  for (int bit = 61; bit >= 0; --bit) {
    if (power >> bit <= 1) continue;
    if (power >> bit & 1) {
      for (ptrdiff_t i = 0; i < size; ++i) out[i] *= out[i] * x[i];
    } else {
      for (ptrdiff_t i = 0; i < size; ++i) out[i] *= out[i];
    }
  }
  for (ptrdiff_t i = 0; i < size && exponent < 0; ++i) out[i] = T(1) / out[i];
}

// The number: the exponent.
template <typename T>
void IntegerPower(const void* const* operands, const ptrdiff_t* numbers, void* result,
                  ptrdiff_t count) {
  DivideInCompany(count, [&](ptrdiff_t begin, ptrdiff_t end) {
    constexpr ptrdiff_t kBlock = 1024;
    for (; begin < end; begin += kBlock) {
      const ptrdiff_t size = std::min(kBlock, end - begin);
      PowersOf(Operand<T>(operands, 0) + begin, numbers[0], static_cast<T*>(result) + begin, size);
    }
  });
}

// Numbers: rows that are added, and elements of each. Those whose index is out of bounds are not.
template <typename T>
void AddAtIndices(const void* const* operands, const ptrdiff_t* numbers, void* result,
                  ptrdiff_t count) {
  FlushDenormals flush;
  const int32_t* indices = Operand<int32_t>(operands, 1);
  const T* added = Operand<T>(operands, 2);
  T* out = static_cast<T*>(result);
  const ptrdiff_t size = numbers[1];
  std::copy_n(Operand<T>(operands, 0), count, out);
  for (ptrdiff_t i = 0; i < numbers[0]; ++i, added += size) {
    const ptrdiff_t place = indices[i] * size;
    if (indices[i] < 0 || place >= count) continue;
    for (ptrdiff_t j = 0; j < size; ++j) out[place + j] = Sum::Both(out[place + j], added[j]);
  }
}

// In long rows; `host_functions.py` says what is long.
constexpr ptrdiff_t kMuch = 2 * kMost;
// The first often decides.
constexpr ptrdiff_t kTruths = 32 * kMost;

#define DOVETAIL_FOR_NUMBERS(T, dtype)                                                       \
  {"reduce_sum", dtype, AddUp<T>, kMuch}, {"reduce_prod", dtype, Reduce<T, Product>, kMuch}, \
      {"reduce_max", dtype, Reduce<T, ExtremeOf<true>>, kMost},                              \
      {"reduce_min", dtype, Reduce<T, ExtremeOf<false>>, kMost},                             \
      {"argmax", dtype, ArgExtreme<T, true>, kMuch},                                         \
      {"argmin", dtype, ArgExtreme<T, false>, kMuch},                                        \
      {"cumsum", dtype, Cumulative<T, Sum>, kSome},                                          \
      {"cumprod", dtype, Cumulative<T, Product>, kSome},                                     \
      {"cummax", dtype, Cumulative<T, ExtremeOf<true>>, kFew},                              \
      {"cummin", dtype, Cumulative<T, ExtremeOf<false>>, kFew},                             \
      {"convert_element_type", dtype, Convert<T>, kSeveral},                                    \
      {"scatter-add", dtype, AddAtIndices<T>, kSome}
#define DOVETAIL_FOR_FLOATS(T, dtype)                                    \
  {"reduce_max_of_numbers", dtype, Reduce<T, ExtremeOf<true>>, kMost},   \
      {"integer_pow", dtype, IntegerPower<T>, kMuch}, {"round", dtype, Round<T>, kMany}
#define DOVETAIL_FOR_BYTES(T, dtype)                            \
  {"reduce_max", dtype, ReduceBytes<T, true>, kTruths},         \
      {"reduce_min", dtype, ReduceBytes<T, false>, kTruths}

const HostEntry kEntries[] = {
    DOVETAIL_FOR_NUMBERS(float, "float32"),
    DOVETAIL_FOR_NUMBERS(int32_t, "int32"),
    DOVETAIL_FOR_NUMBERS(double, "float64"),
    DOVETAIL_FOR_NUMBERS(int64_t, "int64"),
    DOVETAIL_FOR_FLOATS(float, "float32"),
    DOVETAIL_FOR_FLOATS(double, "float64"),
    DOVETAIL_FOR_BYTES(int8_t, "int8"),
    DOVETAIL_FOR_BYTES(uint8_t, "uint8"),
    {"argmax", "bool", ArgTruth<true>, kTruths},
    {"argmin", "bool", ArgTruth<false>, kTruths},
    {"reduce_and", "bool", ReduceTruths<true>, kTruths},
    {"reduce_or", "bool", ReduceTruths<false>, kTruths},
    {"dot_general", "float32", Multiply, 2 * kMuch},
    {"dot_general", "float64", MultiplyInTiles<double>, kMuch},
    {"dot_general", "complex64", MultiplyInTiles<std::complex<float>>, kMuch},
    {"dot_general", "complex128", MultiplyInTiles<std::complex<double>>, kMuch},
    {"convert_element_type", "bool", Convert<bool>, kMany},
    {"convert_element_type", "uint32", Convert<uint32_t>, kMany},
};
#undef DOVETAIL_FOR_NUMBERS
#undef DOVETAIL_FOR_FLOATS
#undef DOVETAIL_FOR_BYTES

}  // namespace

const HostEntry* ArrayFunctions(size_t* count) {
  *count = sizeof(kEntries) / sizeof(kEntries[0]);
  return kEntries;
}

}  // namespace dovetail
