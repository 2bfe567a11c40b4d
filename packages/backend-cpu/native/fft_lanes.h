// Transforms of one length in each lane of vectors.
//
// Source of the order of steps: Stockham's, by which results come out in order without a
// permutation (Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1992, 1.7).

#ifndef DOVETAIL_CPU_FFT_LANES_H_
#define DOVETAIL_CPU_FFT_LANES_H_

#include <complex>
#include <cstdint>
#include <utility>

#include "fft_plan.h"

namespace dovetail {

// One step: R elements, `rest` times `done` apart, are transformed, multiplied by roots unless
// this is the last step, and placed `done` apart. `load` gives elements, `store` is given them.
template <int R, bool kLast, typename T, typename LoadAt, typename StoreAt>
inline void TransformStep(const typename LanePlan<T>::Step& step, const std::complex<T>* roots,
                          const LoadAt& load, const StoreAt& store) {
  using C = Complexes<T>;
  const int64_t rest = kLast ? 1 : step.rest, done = step.done;
  const std::complex<T>* factors = roots + step.roots;
  const auto apply = [&](int64_t from, int64_t to, int64_t across,
                         int64_t along) __attribute__((always_inline)) {
    C x[R];
#pragma GCC unroll 16
    for (int k = 0; k < R; ++k) x[k] = load(from + across * k);
    Butterfly<R>::Apply(x);
    if constexpr (!kLast) {
#pragma GCC unroll 16
      for (int k = 1; k < R; ++k) x[k] = x[k].Times(factors[k - 1].real(), factors[k - 1].imag());
    }
#pragma GCC unroll 16
    for (int k = 0; k < R; ++k) store(to + along * k, x[k]);
  };
  // The first step has other roots each time. A compiler that knew that `done` is one would keep x
  // in memory, to copy it.
  if (!kLast && done < 2) {
    for (int64_t p = 0; p < rest; ++p, factors += R - 1) apply(p, R * p, rest, done);
    return;
  }
  for (int64_t p = 0; p < rest; ++p, factors += R - 1) {
    for (int64_t q = 0; q < done; ++q) apply(q + done * p, q + done * R * p, done * rest, done);
  }
}

// Steps between buffers, which are called.
template <int R, typename T>
__attribute__((noinline)) void MiddleStep(const LanePlan<T>& plan,
                                          const typename LanePlan<T>::Step& step,
                                          const Complexes<T>* from, Complexes<T>* to) {
  const auto load = [from](int64_t i) { return from[i]; };
  const auto store = [to](int64_t i, const Complexes<T>& x) { to[i] = x; };
  if (step.rest == 1) {
    TransformStep<R, true, T>(step, plan.roots.data(), load, store);
  } else {
    TransformStep<R, false, T>(step, plan.roots.data(), load, store);
  }
}

template <typename T>
void MiddleStep(const LanePlan<T>& plan, const typename LanePlan<T>::Step& step,
                const Complexes<T>* from, Complexes<T>* to) {
  switch (step.radix) {
    case 2: return MiddleStep<2, T>(plan, step, from, to);
    case 3: return MiddleStep<3, T>(plan, step, from, to);
    case 4: return MiddleStep<4, T>(plan, step, from, to);
    case 5: return MiddleStep<5, T>(plan, step, from, to);
    case 7: return MiddleStep<7, T>(plan, step, from, to);
    case 8: return MiddleStep<8, T>(plan, step, from, to);
    case 11: return MiddleStep<11, T>(plan, step, from, to);
    case 13: return MiddleStep<13, T>(plan, step, from, to);
    default: return MiddleStep<16, T>(plan, step, from, to);
  }
}

// Transforms what is in `first`, a buffer of the plan's size like `second`. Returns the one of both
// where the result is.
template <typename T>
Complexes<T>* TransformBetween(const LanePlan<T>& plan, Complexes<T>* first,
                               Complexes<T>* second) {
  for (const auto& step : plan.steps) {
    MiddleStep(plan, step, first, second);
    std::swap(first, second);
  }
  return first;
}

// Transforms what load(i) gives, and calls store(i, result) for each i; `first` and `second` are
// buffers of the plan's size.
template <typename T, typename LoadAt, typename StoreAt>
void TransformLanes(const LanePlan<T>& plan, Complexes<T>* first, Complexes<T>* second,
                    const LoadAt& load, const StoreAt& store) {
  const auto* step = plan.steps.data();
  const auto* end = step + plan.steps.size();
  const auto* roots = plan.roots.data();
  const auto keep = [first](int64_t i, const Complexes<T>& x) { first[i] = x; };
  const bool only = end - step == 1;
  const int opening = end == step || only ? 0 : step->radix;
  switch (opening) {
    case 2: TransformStep<2, false, T>(*step++, roots, load, keep); break;
    case 4: TransformStep<4, false, T>(*step++, roots, load, keep); break;
    case 8: TransformStep<8, false, T>(*step++, roots, load, keep); break;
    case 16: TransformStep<16, false, T>(*step++, roots, load, keep); break;
    default:
      for (int64_t i = 0; i < plan.size; ++i) first[i] = load(i);
  }
  for (; end - step > 1; ++step) {
    MiddleStep(plan, *step, first, second);
    std::swap(first, second);
  }
  const Complexes<T>* from = first;
  const auto kept = [from](int64_t i) { return from[i]; };
  const int closing = step == end ? 0 : step->radix;
  switch (closing) {
    case 2: return TransformStep<2, true, T>(*step, roots, kept, store);
    case 4: return TransformStep<4, true, T>(*step, roots, kept, store);
    case 8: return TransformStep<8, true, T>(*step, roots, kept, store);
    case 16: return TransformStep<16, true, T>(*step, roots, kept, store);
    case 0: break;
    default:
      MiddleStep(plan, *step, first, second);
      from = second;
  }
  for (int64_t i = 0; i < plan.size; ++i) store(i, from[i]);
}

// A real signal of length n in each lane: from the transform of its even points as real and its odd
// ones as imaginary parts to its coefficients, or with a sign of -1 back. get(k) has numbers 0 to
// half = n / 2, put(k, x) takes them. The first and the last are real in the coefficients, and alike
// in that transform.
template <typename T, typename Get, typename Put>
void CombineInLanes(const HalvesPlan<T>& plan, int64_t half, T sign, const Get& get,
                    const Put& put) {
  using C = Complexes<T>;
  for (int64_t k = 0; 2 * k <= half; ++k) {
    C a = get(k), b = get(half - k);
    if (k == 0 && sign < 0) a.im = b.im = typename C::V{};
    b.im = -b.im;
    const C sum = (a + b) * T(0.5);
    const C difference = (a - b).Times(plan.halves[k].real(), plan.halves[k].imag() * sign);
    a = sum + difference;
    b = sum - difference;
    b.im = -b.im;
    if (k == 0 && sign > 0) a.im = b.im = typename C::V{};
    put(k, a);
    put(half - k, b);
  }
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_FFT_LANES_H_
