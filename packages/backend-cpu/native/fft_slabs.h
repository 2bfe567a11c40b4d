// The first of several dimensions in two steps, of which the first is made while a part of the
// array is in a near cache.
//
// Its numbers are apart in memory, by a power of two more often than not, where they are in each
// other's way in caches. So others of its numbers are transformed than lie side by side: those that
// have the same place modulo 8 or 16, as soon as the other dimensions of these have been
// transformed. What remains are as many streams through memory.

#ifndef DOVETAIL_CPU_FFT_SLABS_H_
#define DOVETAIL_CPU_FFT_SLABS_H_

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

#include "fft_halves.h"
#include "fft_lanes.h"
#include "fft_plan.h"
#include "fft_vectors.h"
#include "memory.h"

namespace dovetail {

// Bytes that a near cache keeps besides what they are made of.
constexpr int64_t kBytesOfSlabs = 1 << 19;

// How many slabs, of `inner` numbers, the second step takes together, if `n` of them are to be
// transformed so; 0 if not.
template <typename T>
int SlabsTogether(int64_t n, int64_t inner) {
  const int64_t bytes = 2 * n * inner * int64_t(sizeof(T));
  if (bytes <= kBytesOfSlabs || inner % Lanes<T>::kCount != 0 || !HasRadices(n)) return 0;
  for (int together : {8, 16}) {
    if (n % together == 0 && bytes / together <= kBytesOfSlabs) return n > together ? together : 0;
  }
  return 0;
}

// The plan of the first step, and roots between both.
template <typename T>
struct SlabsPlan {
  LanePlan<T> first;
  std::vector<std::complex<T>> roots;

  SlabsPlan(int64_t n, int together) : first(n / together) {
    const Roots<T> all(n);
    for (int64_t slab = 0; slab < n / together; ++slab) {
      for (int k = 1; k < together; ++k) roots.push_back(all.At(slab * k));
    }
  }
  int64_t bytes() const {
    return first.bytes() + int64_t(roots.size() * sizeof(roots[0])) + 256;
  }
};

// Numbers between slabs in the buffer of the first step: not a power of two apart.
template <typename T>
int64_t SlabStep(int64_t inner) {
  return inner + Lanes<T>::kCount;
}

// The first step: of slabs SlabStep apart to others that follow each other.
template <typename T>
void TransformSlabs(const LanePlan<T>& plan, const T* from, T* to, int64_t inner, T sign) {
  using C = Complexes<T>;
  const int64_t n = plan.size, step = SlabStep<T>(inner);
  Memory<C> buffers(2 * n + 1);
  C* first = buffers.get();
  for (int64_t column = 0; column < inner; column += Lanes<T>::kCount) {
    const T* source = from + 2 * column;
    T* target = to + 2 * column;
    const auto load = [=](int64_t i) {
      C x = LoadPairs<T>(source + 2 * i * step);
      x.im *= sign;
      return x;
    };
    const auto store = [=](int64_t i, C x) {
      T* place = target + 2 * i * inner;
      PrefetchToWrite(place + 2 * Lanes<T>::kCount, 2 * Lanes<T>::kCount);
      x.im *= sign;
      StorePairs<T>(place, x);
    };
    TransformLanes(plan, first, first + n + 1, load, store);
  }
}

// The second step, in place, of R slabs.
template <int R, typename T>
void CombineSlabs(const Threads* threads, const SlabsPlan<T>& plan, T* values, int64_t inner,
                  T sign) {
  using C = Complexes<T>;
  const int64_t apart = plan.first.size;
  ForPieces(threads, apart, R * inner, [&](int64_t begin, int64_t end) {
    for (int64_t slab = begin; slab < end; ++slab) {
      const auto* factors = plan.roots.data() + slab * (R - 1);
      T* place = values + 2 * slab * inner;
      for (int64_t column = 0; column < inner; column += Lanes<T>::kCount) {
        C x[R];
#pragma GCC unroll 16
        for (int k = 0; k < R; ++k) {
          x[k] = LoadPairs<T>(place + 2 * (k * apart * inner + column));
          x[k].im *= sign;
          if (k > 0) x[k] = x[k].Times(factors[k - 1].real(), factors[k - 1].imag());
        }
        Butterfly<R>::Apply(x);
#pragma GCC unroll 16
        for (int k = 0; k < R; ++k) {
          x[k].im *= sign;
          StorePairs<T>(place + 2 * (k * apart * inner + column), x[k]);
        }
      }
    }
  });
}

// Transforms along the first of several dimensions, which has `n` slabs of `inner` numbers, so many
// `together`. others(first, step, count, to) has the other dimensions transformed of slabs `first`,
// `first + step` and so on, to slabs SlabStep apart.
template <typename T, typename Others>
void TransformFirstDimension(const Threads* threads, T* to, int64_t n, int together,
                             int64_t inner, T sign, const Others& others) {
  static auto& kept = *new Kept<int64_t, SlabsPlan<T>>(kKeptBytes / 8);
  const auto plan = kept.Get(n * 16 + together - 1, [n, together] {
    return std::make_shared<SlabsPlan<T>>(n, together);
  });
  const int64_t count = n / together;
  ForPieces(threads, together, count * inner, [&](int64_t begin, int64_t end) {
    const OwnMemory<T> buffer(2 * count * SlabStep<T>(inner));
    for (int64_t first = begin; first < end; ++first) {
      others(first, together, count, buffer.get());
      TransformSlabs<T>(plan->first, buffer.get(), to + 2 * first * count * inner, inner, sign);
    }
  });
  const auto combine = together == 8 ? CombineSlabs<8, T> : CombineSlabs<16, T>;
  combine(threads, *plan, to, inner, sign);
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_FFT_SLABS_H_
