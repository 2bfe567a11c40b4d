// Convolutions with a long kernel, of one feature in a row of positions.
//
// Rows of a tile are blocks of neighbouring positions, lanes the positions within a block, so that
// each number of the input and of the kernel that is loaded is used by a whole vector or column.
// Lanes see the kernel at places that differ by one, with zeros around it.

#ifndef DOVETAIL_CPU_LONG_KERNELS_H_
#define DOVETAIL_CPU_LONG_KERNELS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "convolution_packing.h"
#include "tiles.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

// With fewer places of the kernel than this, zeros around it cost more than is gained.
constexpr int64_t kLongKernel = 64;

template <typename T>
class LongKernel {
 public:
  static constexpr int kVectors = 2;
  static constexpr int64_t kBlock = kVectors * kLanes<T>;
  static constexpr int64_t kPositions = MostRows(kVectors) * kBlock;

  LongKernel(const T* kernel, int64_t stride, int64_t taps)
      : taps_(taps), forward_(taps), backward_(taps + 2 * kBlock - 2) {
    for (int64_t k = 0; k < taps; ++k) {
      forward_[k] = kernel[k * stride];
      backward_[taps + kBlock - 2 - k] = forward_[k];
    }
  }

  // How much of the input is read for so many results.
  int64_t Reach(int64_t count) const { return PartsFor(count, kBlock) * kBlock + taps_ - 1; }

  void Apply(const T* x, int64_t count, T* y, int64_t stride) const {
    alignas(64) T tile[kPositions];
    const int64_t zero = 0;
    for (int64_t p = 0; p < count; p += kPositions) {
      const int64_t size = std::min(kPositions, count - p), rows = PartsFor(size, kBlock);
      if (ZerosVanish(x + p, Reach(size))) {
        const Sums sums{&zero, &zero, 1, taps_ + kBlock - 1, 1, -1};
        const T* last = backward_.data() + taps_ + kBlock - 2;
        TileOf<T, false>(rows, kVectors)(sums, x + p, kBlock, last, tile, kBlock, false);
      } else {
        const Sums sums{&zero, &zero, 1, taps_, 1, 1};
        for (int64_t at = 0; at < size; at += kBlock) {
          TileOf<T, false>(1, kVectors)(sums, forward_.data(), 1, x + p + at, tile + at, kBlock,
                                        false);
        }
      }
      for (int64_t i = 0; i < size; ++i) y[(p + i) * stride] = tile[i];
    }
  }

 private:
  // Whether all numbers times zero are zero.
  static bool ZerosVanish(const T* x, int64_t size) {
    T sums[kBlock] = {};
    int64_t i = 0;
    for (; i + kBlock <= size; i += kBlock) {
      for (int64_t lane = 0; lane < kBlock; ++lane) sums[lane] += x[i + lane] * T(0);
    }
    for (; i < size; ++i) sums[0] += x[i] * T(0);
    return std::all_of(sums, sums + kBlock, [](T sum) { return sum == T(0); });
  }

  int64_t taps_;
  // From the first place on, and from the last, among zeros.
  std::vector<T> forward_, backward_;
};

// The convolution, if it is one of this kind.
template <typename T>
bool ConvolveLongKernels(ffi::ThreadPool& pool, const Problem& p, const Axis (&axes)[kSpatial],
                         const T* x, const T* w, T* y) {
  const Axis &depth = axes[0], &down = axes[1], &across = axes[2];
  if (p.inputs != 1 || p.outputs != 1 || depth.taps != 1 || down.taps != 1 || across.step != 1 ||
      across.spread != 1 || across.taps < kLongKernel) {
    return false;
  }
  std::vector<LongKernel<T>> kernels;
  for (int64_t group = 0; group < p.groups; ++group) {
    const T* from = w + group * p.w_group;
    for (int i = 0; i < kSpatial; ++i) from += axes[i].first_tap * p.dimensions[i].w_stride;
    kernels.emplace_back(from, across.tap_every * p.dimensions[2].w_stride, across.taps);
  }
  // Parts of a row that are long beside the kernel, and fit the cache with what they see.
  constexpr int64_t kTiles = LongKernel<T>::kPositions;
  const int64_t parts = PartsFor(across.count, PartsFor(4 * across.taps, kTiles) * kTiles);
  const int64_t part = PartsFor(PartsFor(across.count, kTiles), parts) * kTiles;
  const int64_t rows = p.batch * depth.count * down.count;
  ForTasks<T>(pool, p.groups * rows * parts, kernels[0].Reach(part), [&](int64_t task, T* own) {
    const int64_t begin = task % parts * part, group = task / parts / rows;
    const int64_t count = std::min(part, across.count - begin);
    if (count <= 0) return;
    const int64_t n = task / parts / (depth.count * down.count) % p.batch;
    const int64_t at[] = {task / parts / down.count % depth.count, task / parts % down.count,
                          begin};
    Source<T> source{x + group * p.x_group + n * p.x_batch, {}, {}, 1, 1};
    int64_t first[kSpatial];
    T* to = y + group * p.y_group + n * p.y_batch;
    for (int i = 0; i < kSpatial; ++i) {
      source.size[i] = p.dimensions[i].x_size;
      source.stride[i] = p.dimensions[i].x_stride;
      first[i] = at[i] * axes[i].step + axes[i].offset;
      to += (axes[i].first + at[i] * axes[i].every) * p.dimensions[i].y_stride;
    }
    Pack(source, first, {1, 1, kernels[group].Reach(count)}, own, 1);
    kernels[group].Apply(own, count, to, across.every * p.dimensions[2].y_stride);
  });
  return true;
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_LONG_KERNELS_H_
