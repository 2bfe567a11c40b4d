// Eigenvalues and eigenvectors of real symmetric matrices.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "divide.h"
#include "eigen_lanes.h"
#include "kernel.h"
#include "memory.h"
#include "parallel.h"
#include "transposition.h"
#include "tridiagonal.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// The most rows of matrices of which each lane of a vector has one, as LAPACK does not divide them;
// and how many take longer one by one.
constexpr int64_t kMostInLanes = 25, kLeastInLanes = 2;

// What a matrix takes, or as many as there are lanes, in multiplications for each n^3.
constexpr int64_t kWorkOfOne = 10, kWorkInLanes = 60;

// Writes the upper triangle of a symmetric matrix of which one triangle is used, and squares on its
// diagonal, rows and columns up to a multiple of a vector's lanes, times a power of two: so numbers
// are about one. Returns the power, or NaN if the matrix is not finite.
template <typename T>
T CopyScaled(int64_t n, const T* from, bool lower, T* to, int64_t stride) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  using Vector = LanesOf<T>;
  Vector largest{};
  LaneMask<T> failed{};
  const auto look = [&](Vector x) {
    failed |= x - x != 0;
    const Vector size = Sizes<T>(x);
    largest = size > largest ? size : largest;
  };
  int64_t i = 0;
  for (; i + kCount <= n * n; i += kCount) look(Load(from + i));
  if (i < n * n) look(Load(from + i, n * n - i));
  if (AnyOf<T>(failed)) return std::numeric_limits<T>::quiet_NaN();
  T most = 0;
  for (int64_t lane = 0; lane < kCount; ++lane) most = std::max<T>(most, largest[lane]);
  const T power = PowerOf(most), inverse = 1 / power;
  const int64_t padded = (n + kCount - 1) / kCount * kCount;
  if (lower) {
    TransposeInSquares(from, n, n, n, to, stride);
  } else {
    for (i = 0; i < n; ++i) std::copy(from + i * n + i, from + (i + 1) * n, to + i * stride + i);
  }
  for (i = 0; i < padded; ++i) {
    T* const row = to + i * stride;
    const int64_t begin = i / kCount * kCount;
    std::fill(row + (i < n ? n : begin), row + padded, T(0));
    if (i >= n) continue;
    for (int64_t j = i; j < n; ++j) row[j] *= inverse;
    for (int64_t j = begin; j < i; ++j) row[j] = to[j * stride + i];
  }
  return power;
}

// The power of two of the largest size in a tridiagonal matrix; it is divided by it.
template <typename T>
T ScaleTridiagonal(int64_t n, T* d, T* e) {
  T most = 0;
  for (int64_t i = 0; i < n; ++i) most = std::max({most, std::abs(d[i]), std::abs(e[i])});
  const T power = PowerOf(most), inverse = 1 / power;
  for (int64_t i = 0; i < n; ++i) d[i] *= inverse, e[i] *= inverse;
  return power;
}

// Eigenvalues in their order, and eigenvectors as columns, of a symmetric matrix; NaN if there is
// anything not finite in it, or if they are not found.
template <typename T>
void Eigen(ffi::ThreadPool* pool, int64_t n, const T* from, bool lower, T* vectors, T* values) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t padded = (n + kCount - 1) / kCount * kCount, stride = padded + kCount;
  Memory<T> reflections(n * stride), numbers(6 * stride);
  T *const d = numbers.get(), *const e = d + stride, *const taus = e + stride;
  T* const rest = taus + stride;
  bool found;
  T power;
  {
    Memory<T> a(padded * stride);
    power = CopyScaled(n, from, lower, a.get(), stride);
    found = power == power;
    if (found) {
      std::fill_n(e, n, T(0));
      Tridiagonalization<T>{n, stride, a.get(), d, e, reflections.get(), taus, rest,
                            rest + stride}
          .Run();
    }
  }
  if (found) {
    const T own_power = ScaleTridiagonal(n, d, e);
    DividedEigen<T> divided(pool, n, d, e);
    found = divided.Run();
    if (found) {
      const auto& order = divided.Order();
      for (int64_t i = 0; i < n; ++i) values[i] = d[order[i]] * own_power * power;
      divided.CopyTransposed(vectors);
      DivideAmong(pool, n, n * n, [&](int64_t first, int64_t count) {
        ReflectBack(n, reflections.get(), stride, taus, vectors + first, count, n);
      });
    }
  }
  if (!found) {
    std::fill_n(values, n, std::numeric_limits<T>::quiet_NaN());
    std::fill_n(vectors, n * n, std::numeric_limits<T>::quiet_NaN());
  }
}

// Vectors and values of a batch of matrices, of which one triangle is used.
template <ffi::DataType kType>
ffi::Error EigenOfAll(ffi::ThreadPool pool, ffi::Buffer<kType> x,
                      ffi::Result<ffi::Buffer<kType>> vectors,
                      ffi::Result<ffi::Buffer<kType>> values, int64_t lower) {
  using T = ffi::NativeType<kType>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  if (x.element_count() == 0) return ffi::Error::Success();
  const int64_t n = x.dimensions().back(), size = n * n;
  const int64_t batch = static_cast<int64_t>(x.element_count()) / size;
  const T* from = x.typed_data();
  T *to = vectors->typed_data(), *found = values->typed_data();
  const int64_t together = n <= kMostInLanes && batch >= kLeastInLanes ? kCount : 1;
  const int64_t groups = (batch + together - 1) / together;
  const int64_t work = (together == 1 ? kWorkOfOne : kWorkInLanes) * size * n;
  const int64_t worth = std::max<int64_t>(1, groups * work / kEigenPerThread);
  const int64_t threads = ThreadsOf(pool);
  const auto part = [&](int64_t begin, int64_t end) {
    Memory<T> memory(together == 1 ? 0 : MemoryInLanes<T>(n));
    for (int64_t first = begin * together; first < end * together; first += together) {
      EndIfInterrupted();
      const int64_t last = std::min(batch, first + together), count = last - first;
      if (together > 1 && count >= kLeastInLanes) {
        EigenInLanes(n, count, from + first * size, lower != 0, to + first * size,
                     found + first * n, memory.get());
        continue;
      }
      for (int64_t b = first; b < last; ++b) {
        Eigen(groups == 1 ? &pool : nullptr, n, from + b * size, lower != 0, to + b * size,
              found + b * n);
      }
    }
  };
  const int64_t parts = threads == 1 ? 1 : std::min({4 * threads, groups, worth});
  if (parts == 1) {
    part(0, groups);
  } else {
    ParallelFor(pool, parts, [&](int64_t number) {
      part(groups * number / parts, groups * (number + 1) / parts);
    });
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
#define DOVETAIL_FOR(SUFFIX, TYPE)                                     \
  DOVETAIL_KERNEL(dovetail_eigh_##SUFFIX, dovetail::EigenOfAll<TYPE>, \
                  xla::ffi::Ffi::Bind()                                \
                      .Ctx<xla::ffi::ThreadPool>()                     \
                      .Arg<xla::ffi::Buffer<TYPE>>()                   \
                      .Ret<xla::ffi::Buffer<TYPE>>()                   \
                      .Ret<xla::ffi::Buffer<TYPE>>()                   \
                      .Attr<int64_t>("lower"))

DOVETAIL_FOR(f32, xla::ffi::F32);
DOVETAIL_FOR(f64, xla::ffi::F64);
#pragma GCC visibility pop
