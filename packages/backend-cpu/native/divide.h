// Eigenvalues and eigenvectors of symmetric tridiagonal matrices by dividing them.
//
// Source: M. Gu, S. C. Eisenstat, "A divide-and-conquer algorithm for the symmetric tridiagonal
// eigenproblem", SIAM J. Matrix Anal. Appl. 16, 1995. A matrix is one of two blocks and a matrix
// rho u u^T; in terms of the eigenvectors of the blocks, a diagonal d and rho z z^T. Eigenvalues
// for which z is small, or that are nearly equal, are left as they are.

#ifndef DOVETAIL_CPU_DIVIDE_H_
#define DOVETAIL_CPU_DIVIDE_H_

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "eigen_lanes.h"
#include "interrupts.h"
#include "memory.h"
#include "parallel.h"
#include "products.h"
#include "secular.h"
#include "transposition.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

// Multiplications for which another thread is worth its while.
constexpr int64_t kEigenPerThread = 1 << 22;

// Calls body(begin, count) for parts of `size` things, each of which takes so many multiplications,
// on several threads where that is worth it, and there is a pool.
template <typename Body>
void DivideAmong(xla::ffi::ThreadPool* pool, int64_t size, int64_t work, const Body& body) {
  constexpr int64_t kLine = 32;
  const int64_t worth = size * work / kEigenPerThread, lines = (size + kLine - 1) / kLine;
  const int64_t parts =
      pool == nullptr ? 1 : std::clamp<int64_t>(std::min(worth, ThreadsOf(*pool)), 1, lines);
  if (parts == 1) return body(int64_t{0}, size);
  ParallelFor(*pool, parts, [&](int64_t part) {
    const int64_t begin = lines * part / parts * kLine;
    body(begin, std::min(size, lines * (part + 1) / parts * kLine) - begin);
  });
}

template <typename T>
class DividedEigen {
 public:
  // `d` is the diagonal and `e` beside it, n and n - 1 numbers of about one and less. Threads of
  // `pool` help, if there is one.
  DividedEigen(xla::ffi::ThreadPool* pool, int64_t n, T* d, T* e)
      : pool_(pool),
        n_(n),
        stride_((n + kCount - 1) / kCount * kCount + kCount),
        d_(d),
        e_(e),
        rows_(n * stride_),
        kept_(n * stride_),
        factors_(n * stride_),
        numbers_(kNumbers * stride_),
        order_(n) {}

  // How many parts a matrix has.
  static int64_t PartsOf(int64_t n) {
    int64_t parts = 1;
    while (n > parts * kMostOfPart) parts *= 2;
    return parts;
  }

  // Makes the parts of matrices diagonal, of all that have the same number of rows.
  static void SolveParts(const std::vector<DividedEigen*>& all) {
    if (all.empty()) return;
    const int64_t n = all[0]->n_, count = PartsOf(n), most = (n + count - 1) / count;
    std::vector<Part> parts;
    for (DividedEigen* matrix : all) {
      matrix->found_ = true;
      matrix->Cut(0, n, count, &parts);
    }
    Memory<T> memory((most * most + 4 * most) * kCount);
    for (size_t first = 0; first < parts.size(); first += kCount) {
      const auto lanes = std::min<int64_t>(kCount, static_cast<int64_t>(parts.size() - first));
      SolveInLanes(most, &parts[first], lanes, reinterpret_cast<Vector*>(memory.get()));
    }
  }

  // Joins the parts, after which d has the eigenvalues, in any order. Returns whether they have
  // been found.
  bool Join() { return found_ && Merge(0, n_, PartsOf(n_)); }

  // Numbers of eigenvalues in ascending order.
  const std::vector<int32_t>& Order() const { return order_; }

  // Writes the eigenvectors in that order, as columns of n rows.
  void CopyTransposed(T* to) const {
    constexpr int64_t kTogether = 128 / sizeof(T);
    Memory<T> rows(kTogether * stride_);
    for (int64_t i = 0; i < n_; i += kTogether) {
      const int64_t count = std::min(kTogether, n_ - i);
      for (int64_t k = 0; k < count; ++k) {
        std::copy_n(Row(order_[i + k]), n_, rows.get() + k * stride_);
      }
      TransposeInSquares(rows.get(), stride_, count, n_, to + i, n_);
    }
  }

 private:
  using Vector = LanesOf<T>;
  static constexpr int64_t kCount = Lanes<T>::kCount;
  // Rows of a part that is not divided: as many as in LAPACK, so that vectors have its signs.
  static constexpr int64_t kMostOfPart = 25;
  static constexpr int kNumbers = 8;
  // What the terms of a secular equation take for all lanes of a vector, in multiplications.
  static constexpr int64_t kWorkOfTerm = 400;

  const T* Row(int64_t i) const { return rows_.get() + i * stride_; }

  static int64_t Middle(int64_t begin, int64_t end) { return begin + (end - begin) / 2; }

  struct Part {
    DividedEigen* of;
    int64_t begin, size;
  };

  // Subtracts what joins the parts of a block.
  void Cut(int64_t begin, int64_t end, int64_t count, std::vector<Part>* parts) {
    if (count == 1) {
      parts->push_back({this, begin, end - begin});
      return;
    }
    const int64_t middle = Middle(begin, end);
    const T rho = std::abs(e_[middle - 1]);
    d_[middle - 1] -= rho;
    d_[middle] -= rho;
    Cut(begin, middle, count / 2, parts);
    Cut(middle, end, count / 2, parts);
  }

  // Each lane has a part, of at most `most` rows.
  static void SolveInLanes(int64_t most, const Part* parts, int64_t lanes, Vector* vectors) {
    Vector *const d = vectors + most * most, *const e = d + most, *const rest = e + most;
    std::fill(vectors, rest, Vector{});
    LaneMask<T> turned{};
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const auto [of, begin, size] = parts[lane];
      const T *const own = of->d_ + begin, *const beside = of->e_ + begin;
      const bool is_turned = std::abs(own[size - 1]) < std::abs(own[0]);
      turned[lane] = is_turned ? -1 : 0;
      for (int64_t i = 0; i < size; ++i) {
        const int64_t place = is_turned ? size - 1 - i : i;
        d[i][lane] = own[place];
        if (i + 1 < size) e[i][lane] = beside[place - (is_turned ? 1 : 0)];
        vectors[i * most + place][lane] = 1;
      }
    }
    const LaneMask<T> failed = QlInLanes<T>(most, d, e, vectors, most, turned, rest);
    for (int64_t lane = 0; lane < lanes; ++lane) {
      const auto [of, begin, size] = parts[lane];
      of->found_ = of->found_ && failed[lane] == 0;
      const T* const from = reinterpret_cast<const T*>(vectors) + lane;
      for (int64_t i = 0; i < size; ++i) {
        of->d_[begin + i] = d[i][lane];
        of->order_[begin + i] = static_cast<int32_t>(begin + i);
        T* const row = of->rows_.get() + (begin + i) * of->stride_ + begin;
        for (int64_t j = 0; j < size; ++j) row[j] = from[(i * most + j) * kCount];
      }
      of->Sort(begin, begin + size);
    }
  }

  void Sort(int64_t begin, int64_t end) {
    std::sort(order_.begin() + begin, order_.begin() + end,
              [this](int32_t i, int32_t j) { return d_[i] < d_[j]; });
  }

  bool Merge(int64_t begin, int64_t end, int64_t parts) {
    if (parts == 1) return true;
    const int64_t middle = Middle(begin, end);
    return Merge(begin, middle, parts / 2) && Merge(middle, end, parts / 2) &&
           JoinTwo(begin, middle, end);
  }

  bool JoinTwo(int64_t begin, int64_t middle, int64_t end) {
    EndIfInterrupted();
    constexpr T kEpsilon = std::numeric_limits<T>::epsilon() / 2;
    T* const rows = rows_.get();
    T* const z = numbers_.get();  // By number of the eigenvalue.
    const T sign = e_[middle - 1] < 0 ? T(-1) : T(1), rho = 2 * std::abs(e_[middle - 1]);
    T largest_d = 0, largest_z = 0;
    for (int64_t i = begin; i < end; ++i) {
      const T x = i < middle ? rows[i * stride_ + middle - 1] : sign * rows[i * stride_ + middle];
      z[i] = x * T(0.70710678118654752440);
      largest_z = std::max(largest_z, std::abs(z[i]));
      largest_d = std::max(largest_d, std::abs(d_[i]));
    }
    std::inplace_merge(order_.begin() + begin, order_.begin() + middle, order_.begin() + end,
                       [this](int32_t i, int32_t j) { return d_[i] < d_[j]; });
    const T least = 8 * kEpsilon * std::max(largest_d, largest_z);
    // Vectors of one block are zero in the places of the other, which are not multiplied.
    const auto clear = [&](int64_t i) {
      T* const row = rows + i * stride_;
      i < middle ? std::fill(row + middle, row + end, T(0))
                 : std::fill(row + begin, row + middle, T(0));
    };
    if (rho * largest_z <= least) {
      for (int64_t i = begin; i < end; ++i) clear(i);
      return true;
    }

    // Which eigenvalues change, in ascending order, and which do not.
    std::vector<int32_t> changing, left;
    std::vector<int8_t> mixed(end - begin, 0);
    int32_t last = -1;
    for (int64_t place = begin; place < end; ++place) {
      const int32_t i = order_[place];
      if (rho * std::abs(z[i]) <= least) {
        left.push_back(i);
        continue;
      }
      if (last >= 0) {
        const T length = std::hypot(z[i], z[last]), c = z[i] / length, s = -z[last] / length;
        const T distance = d_[i] - d_[last];
        if (std::abs(distance * c * s) <= least) {
          // Rotated so that the first of both need not change.
          z[i] = length;
          const bool apart = (i < middle) != (last < middle);
          if (apart || mixed[i - begin] != mixed[last - begin]) {
            for (const int32_t row : {i, last}) {
              if (mixed[row - begin] == 0) clear(row);
              mixed[row - begin] = 1;
            }
          }
          const bool whole = mixed[i - begin] != 0;
          const int64_t from = whole || i < middle ? begin : middle;
          Rotate((whole || i >= middle ? end : middle) - from, c, s, rows + last * stride_ + from,
                 rows + i * stride_ + from);
          const T first = d_[last];
          d_[last] = first * c * c + d_[i] * s * s;
          d_[i] = first * s * s + d_[i] * c * c;
          left.push_back(last);
          last = i;
          continue;
        }
        changing.push_back(last);
      }
      last = i;
    }
    if (last >= 0) changing.push_back(last);
    for (const int32_t i : left) {
      if (mixed[i - begin] == 0) clear(i);
    }
    return Change(begin, middle, end, rho, changing, left, mixed);
  }

  static void Rotate(int64_t size, T c, T s, T* __restrict x, T* __restrict y) {
    for (int64_t j = 0; j < size; ++j) {
      const T before = x[j];
      x[j] = c * before + s * y[j];
      y[j] = c * y[j] - s * before;
    }
  }

  // Overwrites eigenvalues that change with the new ones, and their vectors.
  DOVETAIL_WIDE bool Change(int64_t begin, int64_t middle, int64_t end, T rho,
                            const std::vector<int32_t>& changing, const std::vector<int32_t>& left,
                            const std::vector<int8_t>& mixed) {
    const int64_t size = static_cast<int64_t>(changing.size()), whole = Whole(size);
    const T* const z = numbers_.get();
    const auto numbers = [&](int use) { return numbers_.get() + use * stride_; };
    T *const poles = numbers(1), *const squares = numbers(2), *const origins = numbers(3);
    T *const distances = numbers(4), *const grouped = numbers(5), *const found = numbers(6);
    T* const values = numbers(7);
    for (int64_t j = 0; j < size; ++j) {
      poles[j] = d_[changing[j]];
      squares[j] = z[changing[j]] * z[changing[j]];
    }
    std::atomic<bool> solved{true};
    const SecularEquation<T> equation{size, poles, squares, rho};
    DivideAmong(pool_, whole / kCount, size * kWorkOfTerm, [&](int64_t first, int64_t count) {
      if (!equation.Solve(first * kCount, count * kCount, origins, distances)) solved = false;
    });
    if (!solved) return false;

    // Vectors of the first block, of both and of the second one, so that what is zero is together.
    std::vector<int32_t> places(size);
    int64_t counts[3] = {};
    const auto group_of = [&](int32_t i) { return mixed[i - begin] != 0 ? 1 : i < middle ? 0 : 2; };
    for (const int32_t i : changing) ++counts[group_of(i)];
    int64_t next[3] = {0, counts[0], counts[0] + counts[1]};
    const int64_t of_first = next[2], second = next[1];
    for (int64_t j = 0; j < size; ++j) {
      places[j] = static_cast<int32_t>(next[group_of(changing[j])]++);
    }
    for (int64_t j = 0; j < size; ++j) {
      const int64_t from = group_of(changing[j]) == 2 ? middle : begin;
      const int64_t to = group_of(changing[j]) == 0 ? middle : end;
      grouped[places[j]] = poles[j];
      std::copy_n(Row(changing[j]) + from, to - from, kept_.get() + places[j] * stride_ + from);
    }
    std::fill(grouped + size, grouped + whole, std::numeric_limits<T>::max());
    for (size_t j = 0; j < left.size(); ++j) {
      const T* const from = Row(left[j]);
      std::copy(from + begin, from + end, kept_.get() + (size + j) * stride_ + begin);
      values[size + j] = d_[left[j]];
    }

    // The z for which the roots are exact, of which the vectors are orthogonal.
    std::fill_n(found, whole, T(1));
    for (int64_t j = 0; j < size; ++j) {
      T* const row = factors_.get() + j * stride_;
      const T own = found[places[j]];
      for (int64_t i = 0; i < whole; i += kCount) {
        const Vector pole = Load(grouped + i), distance = (pole - origins[j]) - distances[j];
        Store(row + i, distance);
        Store(found + i, Load(found + i) * (distance / (pole - poles[j])));
      }
      found[places[j]] = own * row[places[j]];
      values[j] = origins[j] + distances[j];
    }
    for (int64_t j = 0; j < size; ++j) {
      T& x = found[places[j]];
      x = std::copysign(std::sqrt(std::max(-x, T(0))), z[changing[j]]);
    }
    std::fill(found + size, found + whole, T(0));
    for (int64_t j = 0; j < size; ++j) {
      T* const row = factors_.get() + j * stride_;
      Vector sums{};
      for (int64_t i = 0; i < whole; i += kCount) {
        const Vector x = Load(found + i) / Load(row + i);
        sums += x * x;
        Store(row + i, x);
      }
      T sum = 0;
      for (int64_t lane = 0; lane < kCount; ++lane) sum += sums[lane];
      // The only one that changes keeps its sign.
      const T inverse = (size == 1 && row[0] < 0 ? -1 : 1) / std::sqrt(sum);
      for (int64_t i = 0; i < whole; i += kCount) Store(row + i, Load(row + i) * inverse);
    }
    T* const rows = rows_.get() + begin * stride_;
    const auto multiply = [&](int64_t first, int64_t count, int64_t from, int64_t to) {
      if (count == 0) {
        for (int64_t j = 0; j < size; ++j) {
          std::fill(rows + j * stride_ + from, rows + j * stride_ + to, T(0));
        }
        return;
      }
      DivideAmong(pool_, size, (to - from) * count, [&](int64_t row, int64_t some) {
        MultiplyMatrices<T>({factors_.get() + row * stride_ + first,
                             kept_.get() + first * stride_ + from, rows + row * stride_ + from,
                             some, to - from, count, stride_, 1, stride_, 1, stride_});
      });
    };
    multiply(0, of_first, begin, middle);
    multiply(second, size - second, middle, end);
    for (size_t j = 0; j < left.size(); ++j) {
      const T* const from = kept_.get() + (size + j) * stride_;
      std::copy(from + begin, from + end, rows + (size + j) * stride_ + begin);
    }
    std::copy_n(values, end - begin, d_ + begin);
    for (int64_t i = begin; i < end; ++i) order_[i] = static_cast<int32_t>(i);
    Sort(begin + size, end);
    std::inplace_merge(order_.begin() + begin, order_.begin() + begin + size, order_.begin() + end,
                       [this](int32_t i, int32_t j) { return d_[i] < d_[j]; });
    return true;
  }

  static int64_t Whole(int64_t size) { return (size + kCount - 1) / kCount * kCount; }

  xla::ffi::ThreadPool* pool_;
  int64_t n_, stride_;
  T *d_, *e_;
  Memory<T> rows_, kept_, factors_, numbers_;
  std::vector<int32_t> order_;
  bool found_ = false;
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_DIVIDE_H_
