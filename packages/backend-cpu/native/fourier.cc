// Discrete Fourier transforms along one to three neighbouring dimensions.
//
// Vectors never hold neighbours of one transform: each lane has a transform of its own. One long
// transform is made in two steps, as one of the columns and one of the rows of a matrix (Bailey,
// "FFTs in external or hierarchical memory", 1990), of which the lanes hold several. Lengths with
// factors beyond 13 are convolutions with a chirp (Bluestein, 1970). Real signals of even length
// are complex ones of half the length.

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "fft_groups.h"
#include "fft_halves.h"
#include "fft_lanes.h"
#include "fft_plan.h"
#include "fft_registers.h"
#include "fft_slabs.h"
#include "fft_vectors.h"
#include "host_functions.h"
#include "kernel.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// The longest transforms that are made by several rows at once, one in each lane.
constexpr int64_t kLongestSideBySide = 4096;
// The longest that few rows are made by so, with lanes to spare.
constexpr int64_t kLongestWithSpareLanes = 128;
// Complex numbers of a matrix whose rows and columns are transformed before the next one's.
constexpr int64_t kMatrixInCache = 1 << 14;
// The longest transforms of columns that are made where they are.
constexpr int64_t kLongestColumn = 4096;

template <typename T>
std::shared_ptr<const RowPlan<T>> PlanOf(int64_t n);

template <typename T>
void TransformRow(const RowPlan<T>& plan, const Threads* threads, const T* from, T* to, T sign,
                  T scale);

template <typename T>
std::shared_ptr<const RowPlan<T>> NewPlan(int64_t n) {
  if (FirstFactor<T>(n) != 0 || (n <= kLongestInLanes && (n == 1 || !RadicesOf(n).empty()))) {
    return std::make_shared<RowPlan<T>>(n, nullptr);
  }
  const int64_t length = LongerLength<T>(n);
  auto longer = PlanOf<T>(length);
  auto plan = std::make_shared<RowPlan<T>>(n, longer);
  const Roots<T> roots(2 * n);
  plan->chirp.resize(n);
  plan->transformed_chirp.resize(length);
  int64_t square = 0;  // Of i, modulo 2 n.
  for (int64_t i = 0; i < n; ++i) {
    const auto root = roots.At(square);
    plan->chirp[i] = root;
    plan->transformed_chirp[i] = std::conj(root);
    if (i > 0) plan->transformed_chirp[length - i] = std::conj(root);
    square = (square + 2 * i + 1) % (2 * n);
  }
  T* values = reinterpret_cast<T*>(plan->transformed_chirp.data());
  TransformRow<T>(*longer, nullptr, values, values, 1, 1);
  return plan;
}

template <typename T>
std::shared_ptr<const RowPlan<T>> PlanOf(int64_t n) {
  static auto& kept = *new Kept<int64_t, RowPlan<T>>(kKeptBytes);
  return kept.Get(n, [n] { return NewPlan<T>(n); });
}

template <typename T>
std::shared_ptr<const LanePlan<T>> LanePlanOf(int64_t n) {
  static auto& kept = *new Kept<int64_t, LanePlan<T>>(kKeptBytes / 8);
  return kept.Get(n, [n] { return std::make_shared<LanePlan<T>>(n); });
}

template <typename T>
std::shared_ptr<const HalvesPlan<T>> HalvesPlanOf(int64_t n) {
  static auto& kept = *new Kept<int64_t, HalvesPlan<T>>(kKeptBytes / 8);
  return kept.Get(n, [n] { return std::make_shared<HalvesPlan<T>>(n); });
}

template <typename T>
int64_t RoundedUp(int64_t size) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  return (size + kCount - 1) / kCount * kCount;
}

// The vectors that the two functions below need besides `middle`.
template <typename T>
int64_t BuffersOf(const RowPlan<T>& plan) {
  return std::max(3 * RoundedUp<T>(plan.columns->size) + 2, 2 * plan.rows->size + 1);
}

// The columns of the first step, and their transposition into `middle`.
template <typename T>
__attribute__((noinline)) void TransformColumnBlocks(const RowPlan<T>& plan, const T* from,
                                                     Complexes<T>* middle, Complexes<T>* first,
                                                     T sign, int64_t begin, int64_t end) {
  using C = Complexes<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t height = plan.columns->size, width = plan.rows->size;
  const int64_t rounded = RoundedUp<T>(height);
  C* second = first + rounded + 1;  // Not a power of two apart.
  C* turned = second + rounded + 1;
  for (int64_t i = height; i < rounded; ++i) turned[i] = C{};
  for (int64_t block = begin; block < end; ++block) {
    const int64_t count = std::min(kCount, width - block * kCount);
    const T* source = from + 2 * block * kCount;
    const bool ahead = block + 1 < end && plan.size > kLongestTable;
    const auto load = [=](int64_t i) {
      const T* place = source + 2 * i * width;
      if (ahead) Prefetch(place + 2 * kCount, 2 * kCount);
      C x = LoadPairs<T>(place, count);
      x.im *= sign;
      return x;
    };
    if (plan.all_roots) {
      const C* roots = plan.all_roots->get() + block * height;
      TransformLanes(*plan.columns, first, second, load,
                     [=](int64_t i, const C& x) { turned[i] = x * roots[i]; });
    } else {
      const C* lanes = plan.lane_roots->get();
      const auto* factors = plan.block_roots.data() + block * height;
      TransformLanes(*plan.columns, first, second, load, [=](int64_t i, const C& x) {
        turned[i] = x * lanes[i].Times(factors[i].real(), factors[i].imag());
      });
    }
    for (int64_t i = 0; i < rounded; i += kCount) {
      typename C::V re[kCount], im[kCount];
#pragma GCC unroll 16
      for (int64_t lane = 0; lane < kCount; ++lane) re[lane] = turned[i + lane].re;
      Transpose<T>(re);
      C* to = middle + i / kCount * width + block * kCount;
      if (count == kCount) {
#pragma GCC unroll 16
        for (int64_t lane = 0; lane < kCount; ++lane) to[lane].re = re[lane];
      } else {
        for (int64_t lane = 0; lane < count; ++lane) to[lane].re = re[lane];
      }
#pragma GCC unroll 16
      for (int64_t lane = 0; lane < kCount; ++lane) im[lane] = turned[i + lane].im;
      Transpose<T>(im);
      if (count == kCount) {
#pragma GCC unroll 16
        for (int64_t lane = 0; lane < kCount; ++lane) to[lane].im = im[lane];
      } else {
        for (int64_t lane = 0; lane < count; ++lane) to[lane].im = im[lane];
      }
    }
  }
}

// The rows of the second step, of which the result is transposed once more by where it is stored.
template <typename T>
__attribute__((noinline)) void TransformRowBlocks(const RowPlan<T>& plan,
                                                  const Complexes<T>* middle, Complexes<T>* first,
                                                  T* to, T sign, T scale, int64_t begin,
                                                  int64_t end) {
  using C = Complexes<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t height = plan.columns->size, width = plan.rows->size;
  const T conjugate = sign * scale;
  for (int64_t block = begin; block < end; ++block) {
    const int64_t count = std::min(kCount, height - block * kCount);
    const C* source = middle + block * width;
    T* target = to + 2 * block * kCount;
    const bool ahead = block + 1 < end && plan.size > kLongestTable;
    TransformLanes(
        *plan.rows, first, first + width + 1, [=](int64_t i) { return source[i]; },
        [=](int64_t i, const C& x) {
          T* place = target + 2 * i * height;
          if (ahead) PrefetchToWrite(place + 2 * kCount, 2 * kCount);
          StorePairs<T>(place, C{x.re * scale, x.im * conjugate}, count);
        });
  }
}

// One transform of complex numbers; `sign` is -1 for the inverse. `to` may be `from`.
template <typename T>
void TransformRow(const RowPlan<T>& plan, const Threads* threads, const T* from, T* to, T sign,
                  T scale) {
  using C = Complexes<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t n = plan.size;
  if (plan.longer) {
    const int64_t length = plan.longer->size;
    Memory<T> values(2 * length);
    T* x = values.get();
    Multiply<T>(threads, from, plan.chirp.data(), x, n, sign, 1, 1);
    std::fill(x + 2 * n, x + 2 * length, T(0));
    TransformRow<T>(*plan.longer, threads, x, x, 1, 1);
    // What is transformed next is the conjugate, which is an inverse transform but for a factor.
    Multiply<T>(threads, x, plan.transformed_chirp.data(), x, length, 1, -1, 1);
    TransformRow<T>(*plan.longer, threads, x, x, 1, T(1) / T(length));
    Multiply<T>(threads, x, plan.chirp.data(), to, n, -1, sign, scale);
    return;
  }
  if (!plan.rows) {
    Memory<C> buffers(2 * n);
    C* first = buffers.get();
    TransformLanes(
        *plan.columns, first, first + n,
        [=](int64_t i) {
          C x{};
          x.re[0] = from[2 * i];
          x.im[0] = sign * from[2 * i + 1];
          return x;
        },
        [=](int64_t i, const C& x) {
          to[2 * i] = x.re[0] * scale;
          to[2 * i + 1] = x.im[0] * scale * sign;
        });
    return;
  }
  const int64_t height = plan.columns->size, width = plan.rows->size;
  const int64_t row_blocks = (height + kCount - 1) / kCount;
  Memory<C> middle(row_blocks * width);
  const int64_t column_blocks = (width + kCount - 1) / kCount;
  ForPieces(threads, column_blocks, height * kCount, [&](int64_t begin, int64_t end) {
    Memory<C> buffers(BuffersOf(plan));
    TransformColumnBlocks<T>(plan, from, middle.get(), buffers.get(), sign, begin, end);
  });
  ForPieces(threads, row_blocks, width * kCount, [&](int64_t begin, int64_t end) {
    Memory<C> buffers(BuffersOf(plan));
    TransformRowBlocks<T>(plan, middle.get(), buffers.get(), to, sign, scale, begin, end);
  });
}

// Rows of which each lane has one; `from_step` and `to_step` are their distances.
template <typename T>
void TransformSideBySide(const LanePlan<T>& plan, const T* from, int64_t from_step, T* to,
                         int64_t to_step, int64_t rows, T sign, T scale) {
  using C = Complexes<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t n = plan.size, rounded = RoundedUp<T>(n);
  const T conjugate = sign * scale;
  Memory<C> buffers(2 * rounded + 1);
  C* first = buffers.get();
  C* second = first + rounded + 1;
  for (int64_t row = 0; row < rows; row += kCount) {
    const int64_t count = std::min(kCount, rows - row);
    const T* source = from + row * from_step;
    T* target = to + row * to_step;
    if (row + kCount < rows) Prefetch(source + kCount * from_step, kCount * from_step);
    PrefetchToWrite(target, count * to_step);
    for (int64_t i = 0; i < n; i += kCount) {
      LoadColumns<T>(source + 2 * i, from_step, count, n - i,
                     [=](int64_t k, const C& x) { first[i + k] = C{x.re, x.im * sign}; });
    }
    const C* result = TransformBetween(plan, first, second);
    for (int64_t i = 0; i < n; i += kCount) {
      StoreColumns<T>(target + 2 * i, to_step, count, n - i, [=](int64_t k) {
        const C x = result[i + k];
        return C{x.re * scale, x.im * conjugate};
      });
    }
  }
}

// Whether several rows are transformed at once, one in each lane.
template <typename T>
bool GoSideBySide(int64_t rows, int64_t n) {
#if defined(DOVETAIL_FFT_REGISTERS)
  if (FitsRegisters<T>(n) || GoInGroups<T>(rows, n)) return false;
#endif
  const bool few = rows < Lanes<T>::kCount;
  return rows > 1 && n <= (few ? kLongestWithSpareLanes : kLongestSideBySide) &&
         !RadicesOf(n).empty();
}

#if defined(DOVETAIL_FFT_REGISTERS)
template <typename T>
std::shared_ptr<const RegistersPlan<T>> RegistersPlanOf(int64_t n) {
  static auto& kept = *new Kept<int64_t, RegistersPlan<T>>(kKeptBytes / 8);
  return kept.Get(n, [n] { return std::make_shared<RegistersPlan<T>>(n); });
}
#endif

// Rows of complex numbers, `from_step` and `to_step` apart in numbers of T.
template <typename T>
void TransformRows(const Threads* threads, const T* from, int64_t from_step, T* to, int64_t to_step,
                   int64_t rows, int64_t n, T sign, T scale) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  if (n == 1) {
    for (int64_t row = 0; row < rows; ++row) {
      to[row * to_step] = from[row * from_step] * scale;
      to[row * to_step + 1] = from[row * from_step + 1] * scale;
    }
    return;
  }
#if defined(DOVETAIL_FFT_REGISTERS)
  if (FitsRegisters<T>(n)) {
    const auto plan = RegistersPlanOf<T>(n);
    const auto transform =
        sign < 0 ? TransformInRegisters<T, true> : TransformInRegisters<T, false>;
    ForPieces(threads, rows, n, [&](int64_t begin, int64_t end) {
      transform(*plan, from + begin * from_step, from_step, to + begin * to_step, to_step,
                end - begin, scale);
    });
    return;
  }
  if (GoInGroups<T>(rows, n)) {
    return TransformInGroups<T>(threads, from, from_step, to, to_step, rows, n, sign, scale);
  }
#endif
  if (GoSideBySide<T>(rows, n)) {
    const auto plan = LanePlanOf<T>(n);
    ForPieces(threads, (rows + kCount - 1) / kCount, n * kCount, [&](int64_t begin, int64_t end) {
      begin *= kCount;
      end = std::min(rows, end * kCount);
      TransformSideBySide<T>(*plan, from + begin * from_step, from_step, to + begin * to_step,
                             to_step, end - begin, sign, scale);
    });
    return;
  }
  const auto plan = PlanOf<T>(n);
  if (rows == 1) return TransformRow<T>(*plan, threads, from, to, sign, scale);
  ForPieces(threads, rows, n, [&](int64_t begin, int64_t end) {
    if (!plan->rows) {
      for (int64_t row = begin; row < end; ++row) {
        TransformRow<T>(*plan, nullptr, from + row * from_step, to + row * to_step, sign, scale);
      }
      return;
    }
    const int64_t columns = plan->columns->size, width = plan->rows->size;
    Memory<Complexes<T>> middle(RoundedUp<T>(columns) / kCount * width), buffers(BuffersOf(*plan));
    for (int64_t row = begin; row < end; ++row) {
      const T* source = from + row * from_step;
      T* target = to + row * to_step;
      if (n <= kLongestTable) {
        if (row + 1 < end) Prefetch(source + from_step, 2 * n);
        PrefetchToWrite(target, 2 * n);
      }
      TransformColumnBlocks<T>(*plan, source, middle.get(), buffers.get(), sign, 0,
                               RoundedUp<T>(width) / kCount);
      TransformRowBlocks<T>(*plan, middle.get(), buffers.get(), target, sign, scale, 0,
                            RoundedUp<T>(columns) / kCount);
    }
  });
}

// Along the middle one of three dimensions; `to` may be `from`.
template <typename T>
void TransformColumns(const Threads* threads, const T* from, T* to, int64_t outer, int64_t n,
                      int64_t inner, T sign, T scale) {
  using C = Complexes<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t across = (inner + kCount - 1) / kCount;
  const T conjugate = sign * scale;
  if (n <= kLongestColumn && !RadicesOf(n).empty()) {
    const auto plan = LanePlanOf<T>(n);
    ForPieces(threads, outer * across, n * kCount, [&](int64_t begin, int64_t end) {
      Memory<C> buffers(2 * n + 1);
      C* first = buffers.get();
      for (int64_t piece = begin; piece < end; ++piece) {
        const int64_t column = piece % across * kCount;
        const int64_t offset = 2 * (piece / across * n * inner + column);
        const int64_t count = std::min(kCount, inner - column);
        const T* source = from + offset;
        T* target = to + offset;
        const bool ahead = column + kCount < inner && n * inner > kLongestTable;
        TransformLanes(
            *plan, first, first + n + 1,
            [=](int64_t i) {
              const T* place = source + 2 * i * inner;
              if (ahead) Prefetch(place + 2 * kCount, 2 * kCount);
              C x = LoadPairs<T>(place, count);
              x.im *= sign;
              return x;
            },
            [=](int64_t i, const C& x) {
              T* place = target + 2 * i * inner;
              if (ahead) PrefetchToWrite(place + 2 * kCount, 2 * kCount);
              StorePairs<T>(place, C{x.re * scale, x.im * conjugate}, count);
            });
      }
    });
    return;
  }
  // Each column by itself.
  if (n == 1) {
    if (to == from && scale == 1) return;
    for (int64_t i = 0; i < 2 * outer * inner; ++i) to[i] = from[i] * scale;
    return;
  }
  const auto plan = PlanOf<T>(n);
  const bool together = outer * across == 1;
  const Threads* const sharing = together ? nullptr : threads;
  ForPieces(sharing, outer * across, n * kCount, [&](int64_t begin, int64_t end) {
    Memory<T> values(2 * n * kCount);
    T* rows = values.get();
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t column = piece % across * kCount;
      const int64_t offset = 2 * (piece / across * n * inner + column);
      const int64_t count = std::min(kCount, inner - column);
      for (int64_t i = 0; i < n; ++i) {
        const T* source = from + offset + 2 * i * inner;
        for (int64_t lane = 0; lane < count; ++lane) {
          rows[2 * (lane * n + i)] = source[2 * lane];
          rows[2 * (lane * n + i) + 1] = source[2 * lane + 1];
        }
      }
      for (int64_t lane = 0; lane < count; ++lane) {
        T* row = rows + 2 * lane * n;
        TransformRow<T>(*plan, together ? threads : nullptr, row, row, sign, scale);
      }
      for (int64_t i = 0; i < n; ++i) {
        T* target = to + offset + 2 * i * inner;
        for (int64_t lane = 0; lane < count; ++lane) {
          target[2 * lane] = rows[2 * (lane * n + i)];
          target[2 * lane + 1] = rows[2 * (lane * n + i) + 1];
        }
      }
    }
  });
}

// Rows of real numbers of even length, each in one lane, to their coefficients or with a sign of -1
// back.
template <typename T>
void TransformRealSideBySide(const Threads* threads, const T* from, T* to, int64_t rows, int64_t n,
                             T sign, T scale) {
  using C = Complexes<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t half = n / 2, rounded = RoundedUp<T>(half + 1);
  const int64_t from_step = sign > 0 ? n : n + 2, to_step = sign > 0 ? n + 2 : n;
  const auto plan = LanePlanOf<T>(half);
  const auto halves = HalvesPlanOf<T>(n);
  ForPieces(threads, (rows + kCount - 1) / kCount, n * kCount, [&](int64_t begin, int64_t end) {
    Memory<C> buffers(2 * rounded + 1);
    C* first = buffers.get();
    C* second = first + rounded + 1;
    for (int64_t block = begin; block < end; ++block) {
      const int64_t row = block * kCount, count = std::min(kCount, rows - row);
      const T* source = from + row * from_step;
      T* target = to + row * to_step;
      if (block + 1 < end) Prefetch(source + kCount * from_step, kCount * from_step);
      PrefetchToWrite(target, count * to_step);
      for (int64_t i = 0; 2 * i < from_step; i += kCount) {
        LoadColumns<T>(source + 2 * i, from_step, count, from_step / 2 - i,
                       [=](int64_t k, const C& x) { first[i + k] = x; });
      }
      C* x = first;
      const auto get = [&](int64_t k) { return x[k]; };
      const auto put = [&](int64_t k, const C& y) { x[k] = y; };
      // An inverse transform is the conjugate of that of the conjugate.
      if (sign < 0) {
        CombineInLanes<T>(*halves, half, sign, get,
                          [&](int64_t k, const C& y) { x[k] = C{y.re, -y.im}; });
      }
      x = TransformBetween(*plan, first, second);
      if (sign > 0) {
        x[half] = x[0];
        CombineInLanes<T>(*halves, half, sign, get, put);
      }
      const T re = sign > 0 ? scale : 2 * scale, im = sign * re;
      for (int64_t i = 0; 2 * i < to_step; i += kCount) {
        StoreColumns<T>(target + 2 * i, to_step, count, to_step / 2 - i,
                        [=](int64_t k) { return C{x[i + k].re * re, x[i + k].im * im}; });
      }
    }
  });
}

// Room for complex transforms of half the length `n` of a few rows, which the nearest cache keeps.
template <typename T>
struct HalvesBuffer {
  const int64_t step, rows;
  const Memory<T> memory;
  void (*const combine)(const HalvesPlan<T>&, const T*, T*, int64_t, T);

  explicit HalvesBuffer(int64_t n)
      : step(2 * RoundedUp<T>(n / 2 + 1)),
        rows(std::max<int64_t>(4, 4096 / n / 4 * 4)),
        memory(rows * step),
        combine(IsWholeRow<T>(n) ? CombineRow<T> : CombineHalvesOfRow<T>) {}
};

// Rows of real numbers, of which the first half of the coefficients is wanted.
template <typename T>
void TransformReal(const Threads* threads, const T* from, T* to, int64_t rows, int64_t n) {
  const int64_t half = n / 2, step = 2 * (half + 1);
  if (n % 2 == 0 && GoSideBySide<T>(rows, half)) {
    return TransformRealSideBySide<T>(threads, from, to, rows, n, 1, 1);
  }
  if (n % 2 == 0) {
    const auto plan = HalvesPlanOf<T>(n);
    if (rows == 1) {
      TransformRows<T>(threads, from, n, to, step, rows, half, 1, 1);
      return CombineHalves<T>(threads, *plan, to, to, n, 1);
    }
    ForPieces(threads, rows, n, [&](int64_t begin, int64_t end) {
      const HalvesBuffer<T> buffer(n);
      for (int64_t row = begin; row < end; row += buffer.rows) {
        const int64_t count = std::min(buffer.rows, end - row);
        T* values = buffer.memory.get();
        TransformRows<T>(nullptr, from + row * n, n, values, buffer.step, count, half, 1, 1);
        for (int64_t i = 0; i < count; ++i) {
          buffer.combine(*plan, values + i * buffer.step, to + (row + i) * step, n, 1);
        }
      }
    });
    return;
  }
  ForPieces(rows == 1 ? nullptr : threads, rows, n, [&](int64_t begin, int64_t end) {
    Memory<T> values(2 * n);
    T* x = values.get();
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < n; ++i) {
        x[2 * i] = from[row * n + i];
        x[2 * i + 1] = 0;
      }
      TransformRows<T>(rows == 1 ? threads : nullptr, x, 2 * n, x, 2 * n, 1, n, 1, 1);
      x[1] = 0;
      std::copy(x, x + step, to + row * step);
    }
  });
}

// Rows of real numbers from the first half of their coefficients.
template <typename T>
void TransformToReal(const Threads* threads, const T* from, T* to, int64_t rows, int64_t n,
                     T scale) {
  const int64_t half = n / 2, step = 2 * (half + 1);
  const Threads* inner = rows == 1 ? threads : nullptr;
  if (n % 2 == 0 && GoSideBySide<T>(rows, half)) {
    return TransformRealSideBySide<T>(threads, from, to, rows, n, -1, scale);
  }
  if (n % 2 == 0) {
    const auto plan = HalvesPlanOf<T>(n);
    if (rows == 1) {
      CombineHalves<T>(threads, *plan, from, to, n, -1);
      return TransformRows<T>(threads, to, n, to, n, rows, half, -1, 2 * scale);
    }
    ForPieces(threads, rows, n, [&](int64_t begin, int64_t end) {
      const HalvesBuffer<T> buffer(n);
      for (int64_t row = begin; row < end; row += buffer.rows) {
        const int64_t count = std::min(buffer.rows, end - row);
        T* values = buffer.memory.get();
        for (int64_t i = 0; i < count; ++i) {
          buffer.combine(*plan, from + (row + i) * step, values + i * buffer.step, n, -1);
        }
        TransformRows<T>(nullptr, values, buffer.step, to + row * n, n, count, half, -1, 2 * scale);
      }
    });
    return;
  }
  ForPieces(rows == 1 ? nullptr : threads, rows, n, [&](int64_t begin, int64_t end) {
    Memory<T> values(2 * n);
    T* x = values.get();
    for (int64_t row = begin; row < end; ++row) {
      std::copy(from + row * step, from + (row + 1) * step, x);
      x[1] = 0;
      for (int64_t i = 1; i <= half; ++i) {
        x[2 * (n - i)] = x[2 * i];
        x[2 * (n - i) + 1] = -x[2 * i + 1];
      }
      TransformRows<T>(inner, x, 2 * n, x, 2 * n, 1, n, -1, scale);
      for (int64_t i = 0; i < n; ++i) to[row * n + i] = x[2 * i];
    }
  });
}

// Columns of real numbers of even length, whose coefficients become columns, or with a sign of -1
// back. Each lane has a column: see CombineHalves for the two halves.
template <typename T>
void TransformRealColumns(const Threads* threads, const T* from, T* to, int64_t outer, int64_t n,
                          int64_t inner, T sign, T scale) {
  using C = Complexes<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t across = (inner + kCount - 1) / kCount, half = n / 2;
  const auto plan = LanePlanOf<T>(half);
  const auto halves = HalvesPlanOf<T>(n);
  ForPieces(threads, outer * across, n * kCount, [&](int64_t begin, int64_t end) {
    Memory<C> buffers(3 * half + 4);
    C* first = buffers.get();
    C* second = first + half + 1;
    C* side = second + half + 1;
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t column = piece % across * kCount, place = piece / across;
      const int64_t count = std::min(kCount, inner - column);
      const bool ahead = column + kCount < inner && n * inner > kLongestTable;
      if (sign > 0) {
        const T* source = from + place * n * inner + column;
        T* target = to + 2 * (place * (half + 1) * inner + column);
        TransformLanes(
            *plan, first, second,
            [=](int64_t i) {
              const T* pair = source + 2 * i * inner;
              if (ahead) Prefetch(pair + kCount, kCount), Prefetch(pair + inner + kCount, kCount);
              return C{Load<T>(pair, count), Load<T>(pair + inner, count)};
            },
            [=](int64_t i, const C& x) { side[i] = x; });
        side[half] = side[0];
        CombineInLanes<T>(
            *halves, half, sign, [=](int64_t k) { return side[k]; },
            [=](int64_t k, const C& x) { StorePairs<T>(target + 2 * k * inner, x, count); });
        continue;
      }
      const T* source = from + 2 * (place * (half + 1) * inner + column);
      T* target = to + place * n * inner + column;
      CombineInLanes<T>(
          *halves, half, sign,
          [=](int64_t k) {
            const T* place = source + 2 * k * inner;
            if (ahead) Prefetch(place + 2 * kCount, 2 * kCount);
            return LoadPairs<T>(place, count);
          },
          [=](int64_t k, const C& x) { side[k] = x; });  // What is behind the last is not read.
      TransformLanes(
          *plan, first, second, [=](int64_t i) { return C{side[i].re, -side[i].im}; },
          [=](int64_t i, const C& x) {
            T* pair = target + 2 * i * inner;
            if (ahead) PrefetchToWrite(pair + kCount, 1), PrefetchToWrite(pair + inner + kCount, 1);
            Store<T>(pair, x.re * (2 * scale), count);
            Store<T>(pair + inner, x.im * (-2 * scale), count);
          });
    }
  });
}

enum class Kind : int64_t { kForward, kInverse, kReal, kToReal };

// `lengths` are those of the signal, along `rank` dimensions; numbers along the last of them are
// `inner` apart, and `batch` times `inner` signals are there. With several side by side, real ones
// have an even length.
template <typename T>
void Transform(const Threads* threads, Kind kind, const T* from, T* to, int64_t batch,
               const int64_t* lengths, int64_t rank, int64_t inner) {
  const int64_t last = lengths[rank - 1];
  const bool inverse = kind == Kind::kInverse || kind == Kind::kToReal;
  const bool halved = kind == Kind::kReal || kind == Kind::kToReal;
  const int64_t width = halved ? last / 2 + 1 : last;
  int64_t others = 1;
  for (int64_t i = 0; i < rank - 1; ++i) others *= lengths[i];
  const int64_t rows = batch * others;
  const T sign = inverse ? -1 : 1, scale = inverse ? T(1) / (T(others) * T(last)) : T(1);
  // Dimension `first` and those before it, in place or from one array to another.
  const auto columns = [&](const T* source, T* target, int64_t first) {
    int64_t behind = width * inner, before = rows;
    for (int64_t i = rank - 2; i >= 0; --i) {
      before /= lengths[i];
      if (i <= first) {
        TransformColumns<T>(threads, source, target, before, lengths[i], behind, sign, T(1));
        source = target;
      }
      behind *= lengths[i];
    }
  };
  if (kind == Kind::kToReal) {
    std::unique_ptr<Memory<T>> middle;
    if (rank > 1) {
      middle = std::make_unique<Memory<T>>(2 * rows * width * inner);
      columns(from, middle->get(), rank - 2);
      from = middle->get();
    }
    if (inner > 1) {
      return TransformRealColumns<T>(threads, from, to, rows, last, inner, sign, scale);
    }
    return TransformToReal<T>(threads, from, to, rows, last, scale);
  }
  if (inner > 1) {
    const auto transform = kind == Kind::kReal ? TransformRealColumns<T> : TransformColumns<T>;
    transform(threads, from, to, rows, last, inner, sign, scale);
    return columns(to, to, rank - 2);
  }
  const auto transform_rows = [&](const Threads* threads, int64_t begin, int64_t count) {
    T* target = to + 2 * begin * width;
    if (kind == Kind::kReal) {
      TransformReal<T>(threads, from + begin * last, target, count, last);
    } else {
      TransformRows<T>(threads, from + 2 * begin * last, 2 * last, target, 2 * last, count, last,
                       sign, scale);
    }
  };
#if defined(DOVETAIL_FFT_REGISTERS)
  // With three dimensions nothing was gained, and with AVX2 a sixth was lost.
  const int together = halved || rank != 2 ? 0 : SlabsTogether<T>(others, last);
  if (together > 0 && ThreadsFor(threads, rows * last) <= together) {
    for (int64_t i = 0; i < batch; ++i, from += 2 * others * last, to += 2 * others * last) {
      const auto rest = [&](int64_t first, int64_t step, int64_t count, T* target) {
        TransformRows<T>(nullptr, from + 2 * first * last, 2 * step * last, target,
                         2 * SlabStep<T>(last), count, last, sign, scale);
      };
      TransformFirstDimension<T>(threads, to, others, together, last, sign, rest);
    }
    return;
  }
#endif
  const int64_t height = rank > 1 ? lengths[rank - 2] : rows;
  if (rank == 1 || rows == height || height * width > kMatrixInCache) {
    transform_rows(threads, 0, rows);
    return columns(to, to, rank - 2);
  }
  // Small matrices are done with while they are in a near cache.
  const int64_t matrices = rows / height;
  ForPieces(threads, matrices, height * width, [&](int64_t begin, int64_t end) {
    const int64_t most = kMatrixInCache / (height * width);
    for (int64_t i = begin; i < end; i += most) {
      const int64_t count = std::min(most, end - i);
      T* target = to + 2 * i * height * width;
      transform_rows(nullptr, i * height, count * height);
      TransformColumns<T>(nullptr, target, target, count, height, width, sign, T(1));
    }
  });
  columns(to, to, rank - 3);
}

// Arrays in the memory of the host, without a program. Numbers: the kind, signals, dimensions of
// each and their lengths.
template <typename T>
void TransformOnHost(const void* const* operands, const ptrdiff_t* numbers, void* result,
                     ptrdiff_t count) {
  const FlushDenormals flush;
  int64_t lengths[3];
  std::copy_n(numbers + 3, numbers[2], lengths);
  const bool divides = kWork * count >= kLeastInCompany && most_threads.load() > 1;
  if (divides) CallCompany(kWork * count);
  const Threads threads;
  Uninterrupted([&] {
    Transform<T>(divides ? &threads : nullptr, static_cast<Kind>(numbers[0]),
                 static_cast<const T*>(operands[0]), static_cast<T*>(result), numbers[1], lengths,
                 numbers[2], 1);
  });
  if (divides) lookouts.NoteEnd();
}

// An eighth of the numbers up to which there is no program.
constexpr ptrdiff_t kMostTransformed = 1 << 17;

const HostEntry kHostEntries[] = {
    {"fft", "float32", TransformOnHost<float>, kMostTransformed},
    {"fft", "complex64", TransformOnHost<float>, kMostTransformed},
    {"fft", "float64", TransformOnHost<double>, kMostTransformed},
    {"fft", "complex128", TransformOnHost<double>, kMostTransformed},
};

// Along `rank` dimensions, which `inner_dimensions` others follow.
ffi::Error Fourier(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out,
                   int64_t kind, int64_t rank, int64_t inner_dimensions) {
  const auto which = static_cast<Kind>(kind);
  const auto dimensions = (which == Kind::kToReal ? out->dimensions() : x.dimensions());
  const int64_t lead = int64_t(dimensions.size()) - rank - inner_dimensions;
  int64_t batch = 1, inner = 1;
  for (int64_t i = 0; i < lead; ++i) batch *= dimensions[i];
  for (size_t i = lead + rank; i < dimensions.size(); ++i) inner *= dimensions[i];
  if (x.element_count() == 0 || out->element_count() == 0) return ffi::Error::Success();
  const int64_t* lengths = dimensions.begin() + lead;
  const Threads threads{&pool};
  const bool wide = x.element_type() == ffi::DataType::F64 ||
                    x.element_type() == ffi::DataType::C128;
  if (wide) {
    Transform<double>(&threads, which, static_cast<const double*>(x.untyped_data()),
                      static_cast<double*>(out->untyped_data()), batch, lengths, rank, inner);
  } else {
    Transform<float>(&threads, which, static_cast<const float*>(x.untyped_data()),
                     static_cast<float*>(out->untyped_data()), batch, lengths, rank, inner);
  }
  return ffi::Error::Success();
}

}  // namespace

const HostEntry* FourierFunctions(size_t* count) {
  *count = sizeof(kHostEntries) / sizeof(kHostEntries[0]);
  return kHostEntries;
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_fft, dovetail::Fourier,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("kind")
                    .Attr<int64_t>("rank")
                    .Attr<int64_t>("inner_dimensions"));
#pragma GCC visibility pop
