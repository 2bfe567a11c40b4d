// Sums of squares or exponentials of differences, and exponentials beside their sums, or divided by
// them, along neighbouring dimensions.
//
// What is subtracted is one number for each result, as a mean is, or an array of the same shape.

#include <algorithm>
#include <cstdint>

#include "differences.h"
#include "kernel.h"
#include "parallel.h"
#include "row_parts.h"
#include "sums.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

enum Function : int64_t { kSquare, kExponential };

// A function of the numbers of rows, less one for each row.
template <typename F, typename T>
struct Shifted {
  using Type = T;
  static constexpr int kSideBySide = kStreams;
  const T *x, *shifts;
  int64_t size, position;
  T shift;

  Shifted operator+(int64_t offset) const {
    const int64_t at = position + offset;
    return {x + offset, shifts, size, at, shifts[at / size]};
  }
  void FetchAhead(int64_t i) const { dovetail::FetchAhead<kFarAhead>(x + i); }
  template <typename V>
  DOVETAIL_INLINE V At(int64_t i) const {
    return F::Of(Load<V>(x + i) - shift);
  }
};

// A function of the differences of two arrays.
template <typename F, typename T>
struct Differences {
  using Type = T;
  static constexpr int kSideBySide = kStreamsOfTwo;
  const T *x, *y;

  Differences operator+(int64_t offset) const { return {x + offset, y + offset}; }
  void FetchAhead(int64_t i) const {
    dovetail::FetchAhead<kFarAhead>(x + i);
    dovetail::FetchAhead<kFarAhead>(y + i);
  }
  template <typename V>
  DOVETAIL_INLINE V At(int64_t i) const {
    return F::Of(Load<V>(x + i) - Load<V>(y + i));
  }
};

// Columns side by side, whose vectors may overlap at the end; there are enough for one.
template <typename T>
struct Side {
  int64_t count;

  int64_t Vectors() const { return (count + kRowLanes<T> - 1) / kRowLanes<T>; }
  int64_t At(int64_t i) const { return std::min(i * kRowLanes<T>, count - kRowLanes<T>); }
};

// The sums of a function of columns, less one number for each.
template <typename F, typename T>
void SumSide(const T* x, const T* shifts, int64_t steps, int64_t stride, Side<T> side,
             WholeOf<T>* to) {
  typedef T V __attribute__((vector_size(kVectorBytes)));
  V parts[kSide / kRowLanes<T>];
  const int64_t vectors = side.Vectors();
  std::fill_n(to, side.count, WholeOf<T>(0));
  for (int64_t step = 0; step < steps;) {
    const int64_t end = std::min(steps, step + kSteps);
    std::fill_n(parts, vectors, V{});
    for (; step < end; ++step, x += stride) {
      for (int64_t i = 0; i < vectors; ++i) {
        parts[i] += F::Of(Load<V>(x + side.At(i)) - Load<V>(shifts + side.At(i)));
      }
    }
    for (int64_t i = vectors; i-- > 0;) {
      // What two vectors hold is added once.
      const int64_t until = i + 1 < vectors ? side.At(i + 1) - side.At(i) : kRowLanes<T>;
      for (int64_t lane = 0; lane < until; ++lane) to[side.At(i) + lane] += parts[i][lane];
    }
  }
}

template <typename F, typename T>
void SumColumns(ffi::ThreadPool& pool, const T* x, const T* shifts, T* to, int64_t outer,
                int64_t size, int64_t inner) {
  const auto sum = [&](int64_t row, int64_t begin, int64_t end, int64_t first, int64_t count,
                       WholeOf<T>* sums) {
    SumSide<F>(x + (row * size + begin) * inner + first, shifts + row * inner + first, end - begin,
               inner, Side<T>{count}, sums);
  };
  const auto join = [](WholeOf<T> a, WholeOf<T> b) { return a + b; };
  ForColumns<WholeOf<T>>(pool, to, outer, size, inner, sum, join);
}

template <typename F, typename T>
ffi::Error Sums(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, const ffi::AnyBuffer& y, T* to,
                int64_t outer, int64_t size, int64_t inner) {
  const T* from = static_cast<const T*>(x.untyped_data());
  const T* less = static_cast<const T*>(y.untyped_data());
  if (x.element_count() == y.element_count()) {
    if (inner > 1) return {ffi::ErrorCode::kInvalidArgument, "no kernel sums such columns"};
    FoldRows<Plus>(pool, Differences<F, T>{from, less}, to, outer, size);
  } else if (inner == 1) {
    FoldRows<Plus>(pool, Shifted<F, T>{from, less, size, 0, less[0]}, to, outer, size);
  } else {
    SumColumns<F>(pool, from, less, to, outer, size, inner);
  }
  return ffi::Error::Success();
}

ffi::Error SumsOfDifferences(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer y,
                             ffi::Result<ffi::AnyBuffer> out, int64_t function, int64_t count,
                             int64_t after) {
  if (x.element_count() == 0) return {ffi::ErrorCode::kInvalidArgument, "nothing to sum"};
  const Sizes s(x.dimensions(), count, after);
  if (x.element_type() == ffi::DataType::F64 && function == kSquare) {
    return Sums<Square>(pool, x, y, static_cast<double*>(out->untyped_data()), s.outer, s.size,
                        s.inner);
  }
  if (x.element_type() != ffi::DataType::F32) {
    return {ffi::ErrorCode::kInvalidArgument, "no kernel sums differences of this dtype"};
  }
  float* const to = static_cast<float*>(out->untyped_data());
  return function == kSquare ? Sums<Square>(pool, x, y, to, s.outer, s.size, s.inner)
                             : Sums<Power>(pool, x, y, to, s.outer, s.size, s.inner);
}

// Writes exponentials of a part of a row, perhaps where it was, and returns their sum.
float Exponentials(const float* x, float shift, float* out, int64_t size) {
  Singles sums[4] = {};
  const Singles last = Load<Singles>(x + size - kFloats);
  int64_t i = 0;
  for (; i + 4 * kFloats <= size; i += 4 * kFloats) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const Singles power = Exponential::Of(Load<Singles>(x + i + j * kFloats) - shift);
      Store(power, out + i + j * kFloats);
      sums[j] += power;
    }
  }
  for (; i < size; i += kFloats) {
    const int64_t at = std::min(i, size - kFloats);
    const Singles own = i == at ? Load<Singles>(x + i) : last;
    const Singles power = Exponential::Of(own - shift);
    Store(power, out + at);
    const auto lanes = NumbersOf<AllBits32, 2 * kLanes>();
    sums[1] += lanes >= int32_t(i - at) ? power : Singles{};
  }
  return Across<Plus, float>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

void Multiply(float* out, int64_t size, const Factor& factor) {
  const Singles last = factor.Times(Load<Singles>(out + size - kFloats));
  for (int64_t i = 0; i + kFloats <= size; i += kFloats) {
    Store(factor.Times(Load<Singles>(out + i)), out + i);
  }
  Store(last, out + size - kFloats);
}

// Arrays whose rows or columns become exponentials, and of each what is subtracted, and the sum; if
// both are null, the largest is subtracted, and the exponentials are divided by the sum.
struct Arrays {
  const float *x, *shifts;
  float *out, *sums;
};

void PowersOfRows(ffi::ThreadPool& pool, const Arrays& a, int64_t rows, int64_t size) {
  ForRowsInParts(pool, rows, size, [&](int64_t row, const auto& parts) {
    const float* const x = a.x + row * size;
    float* const out = a.out + row * size;
    const auto largest = [&](int64_t begin, int64_t count) { return LargestOf(x + begin, count); };
    const float shift = a.shifts == nullptr ? float(parts.Largest(largest)) : a.shifts[row];
    const double sum = parts.Sum([&](int64_t begin, int64_t count) {
      return Exponentials(x + begin, shift, out + begin, count);
    });
    if (a.sums != nullptr) {
      a.sums[row] = static_cast<float>(sum);
      return;
    }
    const Factor factor(sum);
    parts.For([&](int64_t begin, int64_t count) { Multiply(out + begin, count, factor); });
  });
}

// Columns that are computed at once. With AVX-512 they stay in a cache between the passes. With AVX2
// it is faster to read long pieces of few pages: 1000x1000 take 0.65 ms, and took 1.3 by 64 columns.
#if defined(DOVETAIL_AVX512)
constexpr int64_t kTogetherColumns = 64;
#else
constexpr int64_t kTogetherColumns = 1024;
#endif
constexpr int kInRegisters = 4;

// Up to `kVectors` vectors of columns; so many, in registers, if they are few.
template <int kVectors>
void PowersOfSide(const Arrays& a, int64_t steps, int64_t stride, Side<float> side) {
  const float* const x = a.x;
  float* out = a.out;
  const int64_t vectors = kVectors > kInRegisters ? side.Vectors() : kVectors;
  Singles most[kVectors], parts[kVectors];
  double sums[kTogetherColumns] = {};
  const int64_t end = side.count - kFloats;
  const auto place = [=](int64_t i) { return i + 1 < vectors ? i * kFloats : end; };
#pragma GCC unroll 4
  for (int64_t i = 0; i < vectors; ++i) {
    most[i] = a.shifts == nullptr ? Singles{} + kNone : Load<Singles>(a.shifts + place(i));
  }
  for (int64_t step = 0; step < steps && a.shifts == nullptr; ++step) {
#pragma GCC unroll 4
    for (int64_t i = 0; i < vectors; ++i) {
      most[i] = Most(Load<Singles>(x + step * stride + place(i)), most[i]);
    }
  }
  for (int64_t step = 0; step < steps;) {
    const int64_t stop = std::min(steps, step + kSteps);
#pragma GCC unroll 4
    for (int64_t i = 0; i < vectors; ++i) parts[i] = Singles{};
    for (; step < stop; ++step) {
      Singles powers[kVectors];
#pragma GCC unroll 4
      for (int64_t i = 0; i < vectors; ++i) powers[i] = Load<Singles>(x + step * stride + place(i));
#pragma GCC unroll 4
      for (int64_t i = 0; i < vectors; ++i) {
        const Singles power = Exponential::Of(powers[i] - most[i]);
        Store(power, out + step * stride + place(i));
        parts[i] += power;
      }
    }
    for (int64_t i = 0; i < vectors; ++i) {
      // What two vectors hold is added once.
      const int64_t until = i + 1 < vectors ? place(i + 1) - place(i) : kFloats;
      for (int64_t lane = 0; lane < until; ++lane) sums[place(i) + lane] += parts[i][lane];
    }
  }
  if (a.sums != nullptr) {
    std::transform(sums, sums + side.count, a.sums, [](double sum) { return float(sum); });
    return;
  }
  float high[kTogetherColumns], low[kTogetherColumns];
  for (int64_t i = 0; i < side.count; ++i) {
    const Factor factor(sums[i]);
    high[i] = factor.high;
    low[i] = factor.low;
  }
  for (int64_t step = 0; step < steps; ++step, out += stride) {
    Singles powers[kVectors];
#pragma GCC unroll 4
    for (int64_t i = 0; i < vectors; ++i) powers[i] = Load<Singles>(out + place(i));
#pragma GCC unroll 4
    for (int64_t i = 0; i < vectors; ++i) {
      const int64_t at = place(i);
      Store(powers[i] * Load<Singles>(high + at) + powers[i] * Load<Singles>(low + at), out + at);
    }
  }
}

template <int kVectors = kTogetherColumns / kFloats>
void PowersOfColumns(const Arrays& a, int64_t steps, int64_t stride, Side<float> side) {
  if constexpr (kVectors > 1 && kVectors <= kInRegisters) {
    if (side.Vectors() < kVectors) return PowersOfColumns<kVectors - 1>(a, steps, stride, side);
  }
  PowersOfSide<kVectors>(a, steps, stride, side);
}

ffi::Error Powers(ffi::ThreadPool& pool, const Arrays& a, const Sizes& s) {
  if ((s.inner == 1 ? s.size : s.inner) < kFloats) {
    return {ffi::ErrorCode::kInvalidArgument, "no kernel computes exponentials of so few numbers"};
  }
  if (s.inner == 1) {
    PowersOfRows(pool, a, s.outer, s.size);
    return ffi::Error::Success();
  }
  const int64_t most = PartsOf(pool, s.outer * s.size * s.inner);
  const int64_t vectors = (s.inner + kFloats - 1) / kFloats;
  const auto sides_of = [&](int64_t columns) { return (s.inner + columns - 1) / columns; };
  const int64_t sides = std::clamp(most / s.outer, sides_of(kTogetherColumns), sides_of(64));
  const int64_t works = s.outer * sides, parts = std::min(works, most);
  ForNeighbours(pool, works, parts, [&](int64_t work) {
    const int64_t row = work / sides, side = work % sides, begin = vectors * side / sides * kFloats;
    const int64_t end = side + 1 < sides ? vectors * (side + 1) / sides * kFloats : s.inner;
    const int64_t at = row * s.size * s.inner + begin, result = row * s.inner + begin;
    const bool divided = a.sums == nullptr;
    const Arrays own{a.x + at, divided ? nullptr : a.shifts + result, a.out + at,
                     divided ? nullptr : a.sums + result};
    PowersOfColumns(own, s.size, s.inner, Side<float>{end - begin});
  });
  return ffi::Error::Success();
}

ffi::Error ExponentialsAndSums(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x,
                               ffi::Buffer<ffi::F32> shifts,
                               ffi::Result<ffi::Buffer<ffi::F32>> out,
                               ffi::Result<ffi::Buffer<ffi::F32>> sums, int64_t count,
                               int64_t after) {
  if (x.element_count() == 0) return {ffi::ErrorCode::kInvalidArgument, "nothing to sum"};
  const Arrays arrays{x.typed_data(), shifts.typed_data(), out->typed_data(), sums->typed_data()};
  return Powers(pool, arrays, Sizes(x.dimensions(), count, after));
}

ffi::Error Softmax(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x,
                   ffi::Result<ffi::Buffer<ffi::F32>> out, int64_t count,
                   int64_t after) {
  if (x.element_count() == 0) return ffi::Error::Success();
  const Arrays arrays{x.typed_data(), nullptr, out->typed_data(), nullptr};
  return Powers(pool, arrays, Sizes(x.dimensions(), count, after));
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_sums_of_differences, dovetail::SumsOfDifferences,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("function")
                    .Attr<int64_t>("count")
                    .Attr<int64_t>("after"));
DOVETAIL_KERNEL(dovetail_exponentials_and_sums, dovetail::ExponentialsAndSums,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Attr<int64_t>("count")
                    .Attr<int64_t>("after"));
DOVETAIL_KERNEL(dovetail_softmax, dovetail::Softmax,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Attr<int64_t>("count")
                    .Attr<int64_t>("after"));
#pragma GCC visibility pop
