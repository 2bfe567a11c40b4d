// Eigenvalues and eigenvectors of real symmetric matrices.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

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

// Writes the upper triangle of a symmetric matrix, whose lower one is read, and squares on its
// diagonal, rows and columns up to a multiple of a vector's lanes, divided by a power of two: so
// numbers are about one. Returns the power, or NaN if the matrix is not finite.
template <typename T>
T CopyScaled(int64_t n, const T* from, T* to, int64_t stride) {
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
  TransposeInSquares(from, n, n, n, to, stride);
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

// One matrix, on its way to eigenvalues in their order, and eigenvectors as columns; NaN if there
// is anything not finite in it, or if they are not found.
template <typename T>
class Eigen {
 public:
  Eigen(ffi::ThreadPool* pool, int64_t n)
      : pool_(pool),
        n_(n),
        stride_((n + kCount - 1) / kCount * kCount + kCount),
        reflections_(n * stride_),
        numbers_(6 * stride_),
        divided_(pool, n, numbers_.get(), numbers_.get() + stride_) {}

  // Makes the matrix tridiagonal. Returns what is to be divided; null if it is not finite.
  DividedEigen<T>* Begin(const T* from) {
    Memory<T> a((n_ + kCount - 1) / kCount * kCount * stride_);
    power_ = CopyScaled(n_, from, a.get(), stride_);
    found_ = power_ == power_;
    if (!found_) return nullptr;
    T *const d = Row(0), *const e = Row(1);
    std::fill_n(e, n_, T(0));
    Tridiagonalization<T>{n_,     stride_, a.get(), d,      e, reflections_.get(),
                          Row(2), Row(3),  Row(4)}
        .Run();
    power_of_divided_ = ScaleTridiagonal(n_, d, e);
    return &divided_;
  }

  // Once its parts have been solved.
  void End(T* vectors, T* values) {
    if (!found_ || !divided_.Join()) {
      std::fill_n(values, n_, std::numeric_limits<T>::quiet_NaN());
      std::fill_n(vectors, n_ * n_, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    const T* const d = Row(0);
    for (int64_t i = 0; i < n_; ++i) {
      values[i] = d[divided_.Order()[i]] * power_of_divided_ * power_;
    }
    divided_.CopyTransposed(vectors);
    DivideAmong(pool_, n_, n_ * n_, [&](int64_t first, int64_t count) {
      ReflectBack(n_, reflections_.get(), stride_, Row(2), vectors + first, count, n_);
    });
  }

 private:
  static constexpr int64_t kCount = Lanes<T>::kCount;

  T* Row(int64_t i) const { return numbers_.get() + i * stride_; }

  ffi::ThreadPool* pool_;
  int64_t n_, stride_;
  Memory<T> reflections_, numbers_;
  DividedEigen<T> divided_;
  bool found_ = false;
  T power_ = 1, power_of_divided_ = 1;
};

// Vectors and values of a batch of matrices, of which the lower triangle is used.
template <ffi::DataType kType>
ffi::Error EigenOfAll(ffi::ThreadPool pool, ffi::Buffer<kType> x,
                      ffi::Result<ffi::Buffer<kType>> vectors,
                      ffi::Result<ffi::Buffer<kType>> values) {
  using T = ffi::NativeType<kType>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  if (x.element_count() == 0) return ffi::Error::Success();
  const int64_t n = x.dimensions().back(), size = n * n;
  const int64_t batch = static_cast<int64_t>(x.element_count()) / size;
  const T* from = x.typed_data();
  T *to = vectors->typed_data(), *found = values->typed_data();
  const bool in_lanes = n <= kMostInLanes && batch >= kLeastInLanes;
  const int64_t threads = ThreadsOf(pool);
  // Parts of several matrices are solved in the lanes of a vector.
  const int64_t most = std::max<int64_t>(1, kCount / DividedEigen<T>::PartsOf(n));
  const int64_t together = in_lanes ? kCount : std::clamp<int64_t>(batch / threads, 1, most);
  const int64_t groups = (batch + together - 1) / together;
  const int64_t work = (in_lanes ? kWorkInLanes : together * kWorkOfOne) * size * n;
  const int64_t worth = std::max<int64_t>(1, groups * work / kEigenPerThread);
  const auto part = [&](int64_t begin, int64_t end) {
    Memory<T> memory(in_lanes ? MemoryInLanes<T>(n) : 0);
    std::deque<Eigen<T>> matrices;
    for (int64_t i = 0; i < (in_lanes ? 1 : together); ++i) {
      matrices.emplace_back(batch == 1 ? &pool : nullptr, n);
    }
    for (int64_t first = begin * together; first < end * together; first += together) {
      EndIfInterrupted();
      const int64_t last = std::min(batch, first + together), count = last - first;
      if (in_lanes && count >= kLeastInLanes) {
        EigenInLanes(n, count, from + first * size, to + first * size, found + first * n,
                     memory.get());
        continue;
      }
      std::vector<DividedEigen<T>*> divided;
      for (int64_t i = 0; i < count; ++i) {
        auto* const matrix = matrices[i].Begin(from + (first + i) * size);
        if (matrix != nullptr) divided.push_back(matrix);
      }
      DividedEigen<T>::SolveParts(divided);
      for (int64_t i = 0; i < count; ++i) {
        matrices[i].End(to + (first + i) * size, found + (first + i) * n);
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
                      .Ret<xla::ffi::Buffer<TYPE>>())

DOVETAIL_FOR(f32, xla::ffi::F32);
DOVETAIL_FOR(f64, xla::ffi::F64);
#pragma GCC visibility pop
