// Roots of secular equations, 1 / rho + sum over i of z_i^2 / (d_i - lambda) = 0, one in each lane.
//
// Source: R.-C. Li, "Solving secular equations stably and efficiently", LAPACK Working Note 89,
// 1993: the "middle way", here inside of an interval that is bisected where the step leaves it.

#ifndef DOVETAIL_CPU_SECULAR_H_
#define DOVETAIL_CPU_SECULAR_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "eigen_lanes.h"
#include "tiles.h"

namespace dovetail {

// The equation, for ascending d whose z are not zero; the sum of the squares is at most 1.
template <typename T>
struct SecularEquation {
  using Vector = LanesOf<T>;
  using Mask = LaneMask<T>;
  using Int = typename Lanes<T>::Int;
  static constexpr int64_t kCount = Lanes<T>::kCount;

  int64_t size;
  const T* d;
  const T* squares;
  T rho;

  // Finds `count` roots from that of number `first` on: root j is origins[j] + distances[j], where
  // the first is the nearest pole. Both numbers are multiples of a vector's lanes, and memory is
  // there for them. Returns whether all have been found.
  DOVETAIL_WIDE bool Solve(int64_t first, int64_t count, T* origins, T* distances) const {
    if (size == 1) {
      origins[0] = d[0], distances[0] = rho * squares[0];
      return true;
    }
    bool found = true;
    for (int64_t j = first; j < std::min(size, first + count); j += kCount) {
      found = SolveLanes(j, origins, distances) && found;
    }
    return found;
  }

 private:
  // The sums up to the pole to the left of each root, and of the others, with their derivatives.
  struct Values {
    Vector left{}, left_slope{}, right{}, right_slope{};
  };

  static Vector Inverse(Vector x) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 8) {  // Steps of Newton's method take less time than a division.
      const Vector about = (Vector)_mm512_rcp14_pd((__m512d)x);
      const Vector better = about + about * (1 - x * about);
      return better + better * (1 - x * better);
    }
#endif
    return 1 / x;
  }

  DOVETAIL_WIDE Values Evaluate(int64_t first, Mask left_poles, Vector origin,
                                Vector distance) const {
    // Those of every second pole are added up apart.
    Values found, others;
    const auto add = [&](int64_t i, Vector* sum, Vector* slope) __attribute__((always_inline)) {
      const Vector inverse = Inverse((d[i] - origin) - distance), term = squares[i] * inverse;
      *sum += term, *slope += term * inverse;
    };
    const int64_t mixed = std::min(first, size - 2) + 1, right = std::min(size, first + kCount + 1);
    int64_t i = 0;
    for (; i + 2 <= mixed; i += 2) {
      add(i, &found.left, &found.left_slope);
      add(i + 1, &others.left, &others.left_slope);
    }
    for (; i < right; ++i) {
      Vector term{}, slope{};
      add(i, &term, &slope);
      const Mask is_left = left_poles >= Int(i);
      found.left += is_left ? term : Vector{}, found.left_slope += is_left ? slope : Vector{};
      found.right += is_left ? Vector{} : term, found.right_slope += is_left ? Vector{} : slope;
    }
    for (; i + 2 <= size; i += 2) {
      add(i, &found.right, &found.right_slope);
      add(i + 1, &others.right, &others.right_slope);
    }
    if (i < size) add(i, &others.right, &others.right_slope);
    found.left += others.left, found.left_slope += others.left_slope;
    found.right += others.right, found.right_slope += others.right_slope;
    return found;
  }

  // A root of c x^2 - a x + b: that between two poles, or beyond the second one.
  static Vector Root(Vector a, Vector b, Vector c, Mask beyond) {
    const Vector square = a * a - 4 * b * c;
    const Vector root = SquareRoots<T>(square > 0 ? square : Vector{});
    const Mask by_sum = (beyond != 0) != (a > 0);
    const Vector sum = a + (a > 0 ? root : -root);
    return by_sum ? (2 * b) / sum : sum / (2 * c);
  }

  DOVETAIL_WIDE bool SolveLanes(int64_t first, T* origins, T* distances) const {
    constexpr T kEpsilon = std::numeric_limits<T>::epsilon() / 2;
    constexpr int kMostSteps = 400;
    T numbers[4][kCount];
    Mask left_poles{}, last{};
    for (int64_t lane = 0; lane < kCount; ++lane) {
      const int64_t j = std::min(first + lane, size - 1), pole = std::min(j, size - 2);
      left_poles[lane] = static_cast<Int>(pole);
      last[lane] = j == size - 1 ? -1 : 0;
      numbers[0][lane] = d[pole], numbers[1][lane] = d[pole + 1];
      numbers[2][lane] = squares[pole], numbers[3][lane] = squares[pole + 1];
    }
    const Vector left = Load(numbers[0]), right = Load(numbers[1]);
    const Vector left_square = Load(numbers[2]), right_square = Load(numbers[3]);
    const Vector inverse = Vector{} + 1 / rho;

    // Which pole is nearer says the sign in the middle; there the other terms are as good as known.
    const Vector half = last ? Vector{} + rho / 2 : (right - left) / 2;
    Vector origin = last ? right : left;
    Values at = Evaluate(first, left_poles, origin, half);
    Vector value = inverse + at.left + at.right;
    const Vector others = value - left_square / ((left - origin) - half) -
                          right_square / ((right - origin) - half);
    const Mask by_left = ~last & (value >= 0), upper = ~by_left & (last == 0);
    origin = upper ? right : origin;
    Vector low = upper ? -half : (last & (value < 0)) ? half : Vector{};
    Vector high = upper ? Vector{} : (last & (value < 0)) ? half * 2 : half;
    const Vector to_left = left - origin, to_right = right - origin;
    Vector x = Root(others * (to_left + to_right) + left_square + right_square,
                    others * to_left * to_right + left_square * to_right + right_square * to_left,
                    others, last);
    x = ((x > low) & (x < high)) ? x : (low + high) / 2;

    Mask done{};
    Vector before = Vector{} + std::numeric_limits<T>::infinity();
    for (int step = 0; step < kMostSteps; ++step) {
      at = Evaluate(first, left_poles, origin, x);
      value = inverse + at.left + at.right;
      const Vector slope = at.left_slope + at.right_slope;
      const Vector size_of_value = Sizes<T>(value);
      done |= size_of_value <=
              kEpsilon * (8 * (inverse - at.left + at.right) + Sizes<T>(x) * slope);
      low = value < 0 ? x : low;
      high = value < 0 ? high : x;
      const Vector l = to_left - x, r = to_right - x;
      Vector next = x + Root((l + r) * value - l * r * slope, l * r * value,
                             value - l * at.left_slope - r * at.right_slope, last);
      const Mask slow = (size_of_value > T(0.25) * before) & Int(step > 2 ? -1 : 0);
      next = ((next > low) & (next < high) & ~slow) ? next : (low + high) / 2;
      before = slow ? Vector{} + std::numeric_limits<T>::infinity() : size_of_value;
      const Mask still = Sizes<T>(next - x) <= kEpsilon * Sizes<T>(x);
      x = done ? x : next;
      done |= still;
      if (!AnyOf<T>(done == 0)) break;
    }
    Store(origins + first, origin);
    Store(distances + first, x);
    return !AnyOf<T>(done == 0);
  }
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_SECULAR_H_
