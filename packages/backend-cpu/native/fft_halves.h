// A real signal of even length from and to a complex one of half the length.

#ifndef DOVETAIL_CPU_FFT_HALVES_H_
#define DOVETAIL_CPU_FFT_HALVES_H_

#include <algorithm>
#include <complex>
#include <cstdint>

#include "fft_plan.h"
#include "fft_vectors.h"
#include "host_functions.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

// Elements of quick loops for which a transform takes as long as for one of its own.
constexpr int64_t kWork = 6;

// Who may take a part in a transform: threads of a pool, or without one those that look for work.
struct Threads {
  xla::ffi::ThreadPool* pool = nullptr;
};

// How many threads transform so many elements, this one alone if there are no `threads`.
inline int64_t ThreadsFor(const Threads* threads, int64_t elements) {
  if (threads == nullptr) return 1;
  const int64_t work = kWork * elements;
  if (threads->pool != nullptr) return PartsOf(*threads->pool, work);
  return work < kLeastInCompany ? 1 : std::min(lookouts.Count() + 1, work / kPerThread);
}

// Calls body(begin, end) for parts of `count` pieces of so many elements. Without a pool, threads may
// come while the first parts are transformed.
template <typename Body>
void ForPieces(const Threads* threads, int64_t count, int64_t elements, const Body& body) {
  int64_t first = 0;
  const auto several = [&] { return ThreadsFor(threads, (count - first) * elements); };
  if (threads != nullptr && threads->pool == nullptr) {
    const int64_t few = std::max<int64_t>(1, kPerThread / (kWork * elements));
    for (int64_t end; first < count && several() == 1; first = end) {
      EndIfInterrupted();
      end = std::min(count, first + few);
      body(first, end);
    }
  }
  const int64_t rest = count - first, helped = several();
  // Between parts an interrupt is noticed.
  constexpr int64_t kMost = 1 << 21;
  const int64_t parts =
      std::min(rest, std::max(helped == 1 ? 1 : 4 * helped, rest * elements / kMost));
  const auto run = [&](int64_t part) {
    const FlushDenormals flush;  // On threads that come to help, too.
    body(first + rest * part / parts, first + rest * (part + 1) / parts);
  };
  if (helped == 1 || rest <= 1) {
    for (int64_t part = 0; part < parts; ++part) {
      EndIfInterrupted();
      run(part);
    }
  } else if (threads->pool != nullptr) {
    ParallelFor(*threads->pool, parts, run);
  } else {
    Share(helped - 1, parts, [](SharedCalls* calls) { return lookouts.Give(calls); }, run);
  }
}

// A product of complex numbers of two arrays, with the signs of the imaginary parts of the first
// and of the result.
template <typename T>
void Multiply(const Threads* threads, const T* a, const std::complex<T>* b, T* to, int64_t size,
              T sign_a, T sign, T scale) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  const T* factors = reinterpret_cast<const T*>(b);
  const T conjugate = sign * scale;
  ForPieces(threads, (size + kCount - 1) / kCount, kCount, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * kCount; i < std::min(size, end * kCount); i += kCount) {
      Complexes<T> x = LoadPairs<T>(a + 2 * i, size - i);
      x.im *= sign_a;
      x = x * LoadPairs<T>(factors + 2 * i, size - i);
      StorePairs<T>(to + 2 * i, Complexes<T>{x.re * scale, x.im * conjugate}, size - i);
    }
  });
}

// Numbers k and half - k of the transform of both halves, from and to those of the coefficients.
template <typename T>
[[gnu::always_inline]] inline void CombinePair(Complexes<T>& a, Complexes<T>& b,
                                               const Complexes<T>& factor) {
  b.im = -b.im;
  const Complexes<T> sum = (a + b) * T(0.5), difference = (a - b) * factor;
  a = sum + difference;
  b = sum - difference;
  b.im = -b.im;
}

// The factors of a vector of such pairs.
template <typename T>
[[gnu::always_inline]] inline Complexes<T> FactorOf(const HalvesPlan<T>& plan, int64_t block,
                                                    T sign) {
  auto factor = plan.lanes.Times(plan.blocks[block].real(), plan.blocks[block].imag());
  factor.re *= T(0.5);
  factor.im *= T(0.5) * sign;
  return factor;
}

// Numbers at both ends: two of them, real, are one number of the transform of both halves.
template <typename T>
void CombineEnds(T first, T other, T* to, int64_t half, T sign) {
  if (sign > 0) {
    to[0] = first + other;
    to[1] = 0;
    to[2 * half] = first - other;
    to[2 * half + 1] = 0;
  } else {
    to[0] = (first + other) * T(0.5);
    to[1] = (first - other) * T(0.5);
  }
}

// Whether CombineRow does what CombineHalves does.
template <typename T>
bool IsWholeRow(int64_t n) {
  return n % 4 == 0 && n >= 4 * Lanes<T>::kCount;
}

// CombineHalves for such a length and one thread; both have n / 2 + 1 numbers, of which the last is
// read or written in vain.
template <typename T>
void CombineRow(const HalvesPlan<T>& plan, const T* from, T* to, int64_t n, T sign) {
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t half = n / 2;
  const T first = from[0], other = sign > 0 ? from[1] : from[2 * half];
  const T re = from[half], im = -from[half + 1];
  const Complexes<T>* const products = plan.products ? plan.products->get() : nullptr;
  for (int64_t i = 0; 2 * i < half; i += kCount) {
    // The last vectors share some with those before.
    const bool whole = 2 * (i + kCount) <= half;
    const int64_t k = whole ? i : half / 2 - kCount;
    const int64_t block = whole ? i / kCount : int64_t(plan.blocks.size()) - 1;
    const int64_t mirrored = 2 * (half - k - kCount + 1);
    // What the next row needs, if rows follow each other.
    PrefetchToWrite(to + n + 2 * k, 2 * kCount);
    PrefetchToWrite(to + n + mirrored, 2 * kCount);
    auto a = LoadPairs<T>(from + 2 * k), b = LoadPairsBackwards<T>(from + mirrored);
    Complexes<T> factor;
    if (products != nullptr) {
      factor = products[block];
      factor.im *= sign;
    } else {
      factor = FactorOf(plan, block, sign);
    }
    CombinePair(a, b, factor);
    StorePairs<T>(to + 2 * k, a);
    StorePairsBackwards<T>(to + mirrored, b);
  }
  to[half] = re;
  to[half + 1] = im;
  CombineEnds(first, other, to, half, sign);
}

// A real signal of even length n from and to the transform of its even points as real and its odd
// ones as imaginary parts: from that transform, of n / 2 numbers, to the n / 2 + 1 coefficients, or
// with a sign of -1 back. Numbers at both ends are a pair. `to` may be `from`.
template <typename T>
void CombineHalves(const Threads* threads, const HalvesPlan<T>& plan, const T* from, T* to,
                   int64_t n, T sign) {
  using C = Complexes<T>;
  constexpr int64_t kCount = Lanes<T>::kCount;
  const int64_t half = n / 2;
  const T first = from[0], other = sign > 0 ? from[1] : from[2 * half];
  const int64_t last = (half - 1) / 2;  // Pairs of 1 to here are of two different numbers.
  const int64_t blocks = last / kCount + 1;
  if (half % 2 == 0) {
    // -i exp(-i pi / 2) is -1, so that the middle number is conjugated.
    to[half] = from[half];
    to[half + 1] = -from[half + 1];
  }
  ForPieces(threads, blocks, 2 * kCount, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t k = block * kCount;
      const C factor = FactorOf(plan, block, sign);
      const int64_t count = std::min(kCount, last + 1 - k);
      if (block > 0 && count == kCount) {
        C a = LoadPairs<T>(from + 2 * k);
        C b = LoadPairsBackwards<T>(from + 2 * (half - k - kCount + 1));
        CombinePair(a, b, factor);
        StorePairs<T>(to + 2 * k, a);
        StorePairsBackwards<T>(to + 2 * (half - k - kCount + 1), b);
        continue;
      }
      // Without the first, which has no partner.
      C a = LoadPairs<T>(from + 2 * k, count), b{};
      for (int64_t lane = 0; lane < count; ++lane) {
        if (k + lane == 0) continue;
        b.re[lane] = from[2 * (half - k - lane)];
        b.im[lane] = from[2 * (half - k - lane) + 1];
      }
      CombinePair(a, b, factor);
      for (int64_t lane = 0; lane < count; ++lane) {
        if (k + lane == 0) continue;
        to[2 * (k + lane)] = a.re[lane];
        to[2 * (k + lane) + 1] = a.im[lane];
        to[2 * (half - k - lane)] = b.re[lane];
        to[2 * (half - k - lane) + 1] = b.im[lane];
      }
    }
  });
  CombineEnds(first, other, to, half, sign);
}

template <typename T>
void CombineHalvesOfRow(const HalvesPlan<T>& plan, const T* from, T* to, int64_t n, T sign) {
  CombineHalves<T>(nullptr, plan, from, to, n, sign);
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_FFT_HALVES_H_
