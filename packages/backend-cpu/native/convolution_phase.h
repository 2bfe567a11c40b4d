// The part of a convolution whose positions see the same places of the kernel.

#ifndef DOVETAIL_CPU_CONVOLUTION_PHASE_H_
#define DOVETAIL_CPU_CONVOLUTION_PHASE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "convolution_packing.h"

namespace dovetail {

// The memory that a thread copies the input to, in bytes.
constexpr int64_t kCached = 256 << 10;

// What the taps see in depth, a plane for each: of what is in memory only that is copied anew which
// the next positions in depth do not share. No two taps have the same place.
class Planes {
 public:
  explicit Planes(const Axis& depth) : depth_(depth), held_(depth.taps, -1) {}

  // The place of the first tap: those of the others follow, in a circle.
  static int64_t First(const Axis& depth, int64_t d) {
    return d * depth.step / depth.spread % depth.taps;
  }

  // Calls copy(place, z) for what is not there: z is a position in the input.
  template <typename Copy>
  void Fill(int64_t d, const Copy& copy) {
    for (int64_t tap = 0; tap < depth_.taps; ++tap) {
      const int64_t place = (First(depth_, d) + tap) % depth_.taps;
      const int64_t at = d * depth_.step + tap * depth_.spread;
      if (held_[place] != at) copy(place, at + depth_.offset);
      held_[place] = at;
    }
  }

 private:
  const Axis& depth_;
  std::vector<int64_t> held_;
};

template <typename T>
struct Phase {
  Phase(ffi::ThreadPool& pool, const Problem& problem, const T* x, const T* w, T* y)
      : pool_(pool), p_(problem), x_(x), w_(w + problem.w_first), y_(y) {}

  static constexpr int64_t kL = kLanes<T>;

  T* y_at(int64_t group, int64_t n, int64_t d, int64_t h, int64_t w) const {
    const int64_t at[] = {d, h, w};
    T* y = y_ + group * p_.y_group + n * p_.y_batch;
    for (int i = 0; i < kSpatial; ++i) {
      y += (axes_[i].first + at[i] * axes_[i].every) * p_.dimensions[i].y_stride;
    }
    return y;
  }

  // The distance between neighbours in the result.
  int64_t y_step(int i) const { return axes_[i].every * p_.dimensions[i].y_stride; }

  void Clear() {
    ParallelFor(pool_, p_.groups * p_.batch, [&](int64_t task) {
      for (int64_t d = 0; d < axes_[0].count; ++d) {
        for (int64_t h = 0; h < axes_[1].count; ++h) {
          for (int64_t w = 0; w < axes_[2].count; ++w) {
            T* y = y_at(task / p_.batch, task % p_.batch, d, h, w);
            for (int64_t o = 0; o < p_.outputs; ++o) y[o * p_.y_output] = T(0);
          }
        }
      }
    });
  }

  // The input with these channels.
  Source<T> Input(const T* x, int64_t channels, int64_t channel_stride) const {
    Source<T> source{x, {}, {}, channels, channel_stride};
    for (int i = 0; i < kSpatial; ++i) {
      source.size[i] = p_.dimensions[i].x_size;
      source.stride[i] = p_.dimensions[i].x_stride;
    }
    return source;
  }

  // The taps of the kernel, as a source of positions, with these channels.
  Source<T> Taps(const T* w, int64_t channels, int64_t channel_stride) const {
    Source<T> source{w, {}, {}, channels, channel_stride};
    for (int i = 0; i < kSpatial; ++i) {
      source.at += axes_[i].first_tap * p_.dimensions[i].w_stride;
      source.size[i] = axes_[i].taps;
      source.stride[i] = axes_[i].tap_every * p_.dimensions[i].w_stride;
    }
    return source;
  }

  // Rows of the result for which the input fits the cache and there are enough tasks.
  int64_t RowsOfTask(const Axis& axis, int64_t row_memory, int64_t tasks) const {
    const int64_t reach = kCached / std::max<int64_t>(1, row_memory * int64_t{sizeof(T)});
    int64_t rows = std::max<int64_t>(1, (reach - axis.reach(1)) / axis.step + 1);
    const int64_t wanted = ThreadsOf(pool_) > 1 ? 3 * ThreadsOf(pool_) : 1;
    if (tasks < wanted) rows = std::min(rows, std::max<int64_t>(1, axis.count * tasks / wanted));
    rows = std::min(rows, axis.count);
    return PartsFor(axis.count, PartsFor(axis.count, rows));
  }

  // Into how many parts the depth is divided, so that there are enough tasks.
  int64_t PartsOfDepth(int64_t tasks) const {
    const int64_t wanted = ThreadsOf(pool_) > 1 ? 3 * ThreadsOf(pool_) : 1;
    return std::min(axes_[0].count, PartsFor(wanted, tasks));
  }

  ffi::ThreadPool& pool_;
  const Problem p_;
  const T* x_;
  const T* w_;
  T* y_;
  Axis axes_[kSpatial];
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_CONVOLUTION_PHASE_H_
