// What a discrete Fourier transform of some length needs to know: how it is divided, and roots of
// unity. Plans are kept in the process.

#ifndef DOVETAIL_CPU_FFT_PLAN_H_
#define DOVETAIL_CPU_FFT_PLAN_H_

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "fft_vectors.h"
#include "memory.h"

namespace dovetail {

// The longest transform that is made in one go, in every lane of vectors.
constexpr int64_t kLongestInLanes = 8192;
// Lengths up to this one have a table of all roots between their two steps.
constexpr int64_t kLongestTable = 1 << 15;

// Twice the precision of a float, and more than that of a double.
template <typename T>
using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;

// exp(-2 pi i k / n), from an angle of the first octant.
template <typename W>
std::complex<W> RootOfUnity(int64_t k, int64_t n) {
  constexpr W kFullTurn = W(6.283185307179586476925286766559005768L);
  k %= n;
  const bool below = 2 * k > n;  // The conjugate of the one above.
  if (below) k = n - k;
  const bool left = 4 * k > n;
  int64_t twice = left ? n - 2 * k : 2 * k;  // Below n / 2.
  const bool swapped = 4 * twice > n;        // Above an eighth of a turn.
  const W angle = kFullTurn * (swapped ? W(n - 2 * twice) / 4 : W(twice) / 2) / W(n);
  W c = std::cos(angle), s = std::sin(angle);
  if (swapped) std::swap(c, s);
  return {left ? -c : c, below ? s : -s};
}

// All roots of unity of an order, as products of two, in more than the precision of T.
template <typename T>
class Roots {
 public:
  explicit Roots(int64_t order) : order_(order) {
    while ((int64_t{1} << (2 * bits_)) < order) ++bits_;
    const int64_t step = int64_t{1} << bits_;
    for (int64_t i = 0; i < step; ++i) low_.push_back(RootOfUnity<Wide<T>>(i, order));
    for (int64_t i = 0; i < order; i += step) high_.push_back(RootOfUnity<Wide<T>>(i, order));
  }
  // `k` is below the order.
  std::complex<T> At(int64_t k) const {
    const auto a = high_[k >> bits_], b = low_[k & ((int64_t{1} << bits_) - 1)];
    return {T(a.real() * b.real() - a.imag() * b.imag()),
            T(a.real() * b.imag() + a.imag() * b.real())};
  }
  int64_t order() const { return order_; }

 private:
  int64_t order_;
  int bits_ = 0;
  std::vector<std::complex<Wide<T>>> low_, high_;
};

// Whether a length has no other factors than those that are transformed in registers.
inline bool HasRadices(int64_t n) {
  for (int prime : {2, 3, 5, 7, 11, 13}) {
    while (n % prime == 0) n /= prime;
  }
  return n == 1;
}

// Factors of a length that are transformed in registers; none if it has others.
inline std::vector<int> RadicesOf(int64_t n) {
  std::vector<int> odd, even;
  for (int r : {13, 11, 7, 5, 3}) {
    for (; n % r == 0; n /= r) odd.push_back(r);
  }
  int bits = 0;
  for (; n % 2 == 0; n /= 2) ++bits;
  if (n != 1) return {};
  // Steps of eight, and of 16 or less for what remains.
  while (bits > 0) {
    const int step = bits >= 6 || bits == 3 ? 3 : bits == 5 ? 3 : bits == 4 ? 4 : bits;
    even.push_back(1 << step);
    bits -= step;
  }
  // Powers of two read at the start and write at the end.
  std::vector<int> all;
  size_t used = 0;
  if (!even.empty()) all.push_back(even[used++]);
  all.insert(all.end(), odd.begin(), odd.end());
  all.insert(all.end(), even.begin() + used, even.end());
  return all;
}

// A transform of one length in each lane.
template <typename T>
struct LanePlan {
  struct Step {
    int radix;
    int64_t rest, done;  // What remains of the length behind this step, and is done before it.
    int64_t roots;       // Where its roots begin.
  };
  int64_t size;
  std::vector<Step> steps;
  std::vector<std::complex<T>> roots;

  explicit LanePlan(int64_t n) : size(n) {
    const Roots<T> all(n);
    int64_t done = 1;
    for (int radix : RadicesOf(n)) {
      const int64_t rest = n / done / radix;
      steps.push_back({radix, rest, done, int64_t(roots.size())});
      for (int64_t p = 0; rest > 1 && p < rest; ++p) {
        for (int k = 1; k < radix; ++k) roots.push_back(all.At(p * k * done));
      }
      done *= radix;
    }
  }
  int64_t bytes() const { return int64_t(roots.size() * sizeof(roots[0])); }
};

// The time of a transform in lanes, in no unit.
inline double CostInLanes(int64_t n) {
  double cost = 0;
  for (int radix : RadicesOf(n)) {
    switch (radix) {
      case 2: cost += 2.0; break;
      case 4: cost += 2.4; break;
      case 8: cost += 3.3; break;
      case 16: cost += 4.6; break;
      default: cost += 1.6 + 0.4 * radix;
    }
  }
  return double(n) * (cost + 1);
}

// The first of two factors of a length for which both steps take the least time; 0 if none do.
template <typename T>
int64_t FirstFactor(int64_t n) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  int64_t best = 0;
  double least = 0;
  for (int64_t a = 2; a <= kLongestInLanes && a <= n / 2; ++a) {
    const int64_t b = n / a;
    if (a * b != n || b > kLongestInLanes || RadicesOf(a).empty() || RadicesOf(b).empty()) continue;
    double cost = double((b + kCount - 1) / kCount) * CostInLanes(a) +
                  double((a + kCount - 1) / kCount) * CostInLanes(b);
    if (std::max(a, b) > 4 * std::min(a, b)) cost *= 1.1;
    if (best == 0 || cost < least) best = a, least = cost;
  }
  return best;
}

// The best length of a convolution with a chirp.
template <typename T>
int64_t LongerLength(int64_t n) {
  int64_t best = 0;
  double least = 0;
  for (int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t m = odd;
    while (m < 2 * n - 1) m *= 2;
    const int64_t first = FirstFactor<T>(m);
    if (first == 0) continue;
    const double cost =
        double(m / first) * CostInLanes(first) + double(first) * CostInLanes(m / first);
    if (best == 0 || cost < least) best = m, least = cost;
  }
  return best;
}

// A transform of one length in memory.
template <typename T>
struct RowPlan {
  using V = Complexes<T>;
  static constexpr int64_t kCount = Lanes<T>::kCount;

  int64_t size;
  // In two steps, along the columns and the rows of a matrix; or a length in lanes alone.
  std::unique_ptr<LanePlan<T>> columns, rows;
  // Between both: for each block of columns and each row of the first result, a factor for all
  // lanes, and one for each lane; or the product of both.
  std::vector<std::complex<T>> block_roots;
  std::unique_ptr<Memory<V>> lane_roots, all_roots;
  // Or as a convolution, of a longer length, with a chirp.
  std::shared_ptr<const RowPlan> longer;
  std::vector<std::complex<T>> chirp, transformed_chirp;

  explicit RowPlan(int64_t n, std::shared_ptr<const RowPlan> convolution)
      : size(n), longer(std::move(convolution)) {
    if (longer) return;
    const int64_t first = FirstFactor<T>(n);
    if (first == 0) {
      columns = std::make_unique<LanePlan<T>>(n);
      return;
    }
    const int64_t second = n / first;
    columns = std::make_unique<LanePlan<T>>(first);
    rows = std::make_unique<LanePlan<T>>(second);
    const Roots<T> roots(n);
    const int64_t blocks = (second + kCount - 1) / kCount;
    const bool all = n <= kLongestTable;
    auto& table = all ? all_roots : lane_roots;
    table = std::make_unique<Memory<V>>(first * (all ? blocks : 1));
    for (int64_t block = 0; block < blocks; ++block) {
      for (int64_t row = 0; row < first; ++row) {
        if (!all) block_roots.push_back(roots.At(block * kCount * row % n));
        if (!all && block > 0) continue;
        V& to = table->get()[block * first + row];
        for (int64_t lane = 0; lane < kCount; ++lane) {
          const auto root = roots.At((block * kCount + lane) * row % n);
          to.re[lane] = root.real();
          to.im[lane] = root.imag();
        }
      }
    }
  }

  int64_t bytes() const {
    int64_t total = 1024;
    for (const auto* plan : {columns.get(), rows.get()}) total += plan ? plan->bytes() : 0;
    const int64_t counts =
        int64_t(block_roots.size() + chirp.size() + transformed_chirp.size());
    total += counts * int64_t(sizeof(std::complex<T>));
    if (lane_roots) total += columns->size * int64_t(sizeof(V));
    if (all_roots) total += 2 * kLongestTable * int64_t(sizeof(std::complex<T>));
    return total;
  }
};

// Factors of a real signal's transform of length n: -i exp(-2 pi i k / n) for k up to n / 4, as
// products of one for each vector and one for each lane; and the half of each. Behind the factors
// of vectors is that of the last whole one. Of lengths that come in many rows the halves of all
// products are kept, too.
template <typename T>
struct HalvesPlan {
  Complexes<T> lanes;
  std::vector<std::complex<T>> blocks, halves;
  std::unique_ptr<Memory<Complexes<T>>> products;

  explicit HalvesPlan(int64_t n) {
    constexpr int64_t kCount = Lanes<T>::kCount;
    const Roots<T> roots(n);
    for (int64_t lane = 0; lane < kCount; ++lane) {
      const auto root = roots.At(lane % n);
      lanes.re[lane] = root.real();
      lanes.im[lane] = root.imag();
    }
    const auto add_block = [&](int64_t k) {
      const auto root = roots.At(k);
      blocks.push_back({root.imag(), -root.real()});
    };
    for (int64_t k = 0; k <= n / 4; k += kCount) add_block(k);
    const int64_t last = std::max<int64_t>(0, n / 4 - kCount);
    add_block(last);
    if (n <= kLongestInLanes) {
      products = std::make_unique<Memory<Complexes<T>>>(blocks.size());
      Complexes<T>* to = products->get();
      for (size_t block = 0; block < blocks.size(); ++block, ++to) {
        const int64_t first = block + 1 < blocks.size() ? int64_t(block) * kCount : last;
        for (int64_t lane = 0; lane < kCount; ++lane) {
          const auto root = roots.At((first + lane) % n);
          to->re[lane] = root.imag() * T(0.5);
          to->im[lane] = root.real() * T(-0.5);
        }
      }
    }
    for (int64_t k = 0; k <= n / 4; ++k) {
      const auto root = roots.At(k);
      halves.push_back({root.imag() * T(0.5), root.real() * T(-0.5)});
    }
  }
  int64_t bytes() const {
    const size_t vectors = products ? blocks.size() : 0;
    return int64_t((blocks.size() + halves.size()) * sizeof(blocks[0]) + vectors * sizeof(lanes)) +
           256;
  }
};

// Bytes of plans that are kept.
constexpr int64_t kKeptBytes = int64_t{64} << 20;

// What was made for keys, the latest of them.
template <typename Key, typename Value>
class Kept {
 public:
  explicit Kept(int64_t most) : most_(most) {}

  // What make() has returned for the key; made without the lock, perhaps twice.
  template <typename Make>
  std::shared_ptr<const Value> Get(const Key& key, const Make& make) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto found = places_.find(key);
      if (found != places_.end()) {
        order_.splice(order_.begin(), order_, found->second);
        return found->second->second;
      }
    }
    std::shared_ptr<const Value> made = make();
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = places_.find(key);
    if (found != places_.end()) return found->second->second;
    if (made->bytes() > most_) return made;
    order_.emplace_front(key, made);
    places_[key] = order_.begin();
    bytes_ += made->bytes();
    while (bytes_ > most_) {
      bytes_ -= order_.back().second->bytes();
      places_.erase(order_.back().first);
      order_.pop_back();
    }
    return made;
  }

 private:
  const int64_t most_;
  int64_t bytes_ = 0;
  std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<const Value>>> order_;
  std::map<Key, typename std::list<std::pair<Key, std::shared_ptr<const Value>>>::iterator> places_;
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_FFT_PLAN_H_
