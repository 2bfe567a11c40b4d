// What a convolution is given, and how its numbers are copied into the order in which they are used.

#ifndef DOVETAIL_CPU_CONVOLUTION_PACKING_H_
#define DOVETAIL_CPU_CONVOLUTION_PACKING_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "memory.h"
#include "parallel.h"
#include "tiles.h"
#include "transposition.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

namespace ffi = xla::ffi;

// A spatial dimension of the operands and the result.
struct Dimension {
  int64_t x_size, kernel, y_size;
  int64_t x_stride, w_stride, y_stride;
  int64_t stride, low, x_dilation, w_dilation;
};

constexpr int kSpatial = 3;

// Sizes and distances, in elements; features are those of a group.
struct Problem {
  int64_t groups, batch, inputs, outputs;
  int64_t x_group, x_batch, x_input;
  int64_t w_first, w_group, w_output, w_input;
  int64_t y_group, y_batch, y_output;
  Dimension dimensions[kSpatial];
};

static_assert(sizeof(Problem) == 44 * sizeof(int64_t), "it is copied from an array");

// Along a dimension, the positions of the result that see the same places of the kernel.
struct Axis {
  int64_t first, every, count;            // Of the result.
  int64_t step;                           // Between what two neighbours see.
  int64_t first_tap, tap_every, taps;     // Of the kernel.
  int64_t offset, spread;                 // Of the input at the first tap; between taps.

  int64_t reach(int64_t positions) const { return (positions - 1) * step + (taps - 1) * spread + 1; }

  // The first and the end of the positions that see nothing beyond an input of this size.
  std::pair<int64_t, int64_t> Inner(int64_t size) const {
    const int64_t room = size - reach(1) - offset;
    const int64_t begin = offset < 0 ? (step - 1 - offset) / step : 0;
    return {begin, room < 0 ? 0 : std::min(count, room / step + 1)};
  }
};

inline Axis AxisOf(const Dimension& d, int64_t phase) {
  const int64_t shared = std::gcd(d.stride, d.x_dilation);
  const int64_t together = std::gcd(d.w_dilation, d.x_dilation);
  Axis axis;
  axis.first = phase;
  axis.every = d.x_dilation / shared;
  axis.count = phase < d.y_size ? (d.y_size - phase - 1) / axis.every + 1 : 0;
  axis.step = d.stride / shared;
  axis.tap_every = d.x_dilation / together;
  axis.spread = d.w_dilation / together;
  axis.taps = 0;
  axis.first_tap = axis.offset = 0;
  for (int64_t k = 0; k < std::min(d.kernel, axis.tap_every); ++k) {
    const int64_t at = phase * d.stride + k * d.w_dilation - d.low;
    if (at % d.x_dilation != 0) continue;
    axis.first_tap = k;
    axis.offset = at / d.x_dilation;
    axis.taps = (d.kernel - k - 1) / axis.tap_every + 1;
    break;
  }
  return axis;
}

// An array of positions and channels.
template <typename T>
struct Source {
  const T* at;
  int64_t size[kSpatial], stride[kSpatial];
  int64_t channels, channel_stride;
  int64_t repeats = 1;  // How often each channel is taken.
};

// Copies a box of positions to [depth][height][width][pitch], with zeros for what there is not.
template <typename T>
void Pack(const Source<T>& from, const int64_t (&begin)[kSpatial], const int64_t (&size)[kSpatial],
          T* to, int64_t pitch) {
  const int64_t channels = from.channels, by = from.channel_stride, across = from.stride[2];
  const int64_t left = std::clamp<int64_t>(-begin[2], 0, size[2]);
  const int64_t right = std::clamp<int64_t>(from.size[2] - begin[2], left, size[2]);
  for (int64_t d = 0; d < size[0]; ++d) {
    const int64_t depth = begin[0] + d;
    for (int64_t h = 0; h < size[1]; ++h, to += size[2] * pitch) {
      const int64_t height = begin[1] + h;
      if (depth < 0 || depth >= from.size[0] || height < 0 || height >= from.size[1]) {
        std::fill_n(to, size[2] * pitch, T(0));
        continue;
      }
      std::fill_n(to, left * pitch, T(0));
      std::fill_n(to + right * pitch, (size[2] - right) * pitch, T(0));
      const T* row =
          from.at + depth * from.stride[0] + height * from.stride[1] + (begin[2] + left) * across;
      T* put = to + left * pitch;
      const int64_t count = right - left;
      if (from.repeats > 1) {
        for (int64_t w = 0; w < count; ++w) {
          const T* at = row + w * across;
          T* lanes = put + w * pitch;
          for (int64_t c = 0; c < channels; at += by) {
            for (const int64_t end = std::min(channels, c + from.repeats); c < end; ++c) {
              lanes[c] = *at;
            }
          }
        }
      } else if (by == 1 && across == channels && pitch == channels) {
        std::copy_n(row, count * channels, put);
      } else if (by == 1) {
        for (int64_t w = 0; w < count; ++w) {
          std::copy_n(row + w * across, channels, put + w * pitch);
        }
      } else {
        // In blocks that stay in the cache.
        for (int64_t w = 0; w < count; w += 16) {
          const int64_t end = std::min(count, w + 16);
          if (across == 1) {
            Transpose(row + w, by, channels, end - w, put + w * pitch, pitch);
            continue;
          }
          for (int64_t c = 0; c < channels; ++c) {
            for (int64_t i = w; i < end; ++i) put[i * pitch + c] = row[i * across + c * by];
          }
        }
      }
      if (channels < pitch) {
        for (int64_t w = 0; w < count; ++w) {
          std::fill_n(put + w * pitch + channels, pitch - channels, T(0));
        }
      }
    }
  }
}

// The same of channels that are each repeated, but for the first, of which `within` were taken.
template <typename T>
void PackRepeated(const Source<T>& input, int64_t within, const int64_t (&begin)[kSpatial],
                         const int64_t (&size)[kSpatial], T* to, int64_t pitch) {
  if (within == 0) return Pack(input, begin, size, to, pitch);
  // The first channel alone, then the others.
  const int64_t positions = size[0] * size[1] * size[2];
  const int64_t some = std::min(input.channels, input.repeats - within);
  Source<T> first = input, others = input;
  first.channels = some;
  others.channels = input.channels - some;
  others.at += input.channel_stride;
  const auto parts = Memory<T>(positions * (some + others.channels));
  Pack(first, begin, size, parts.get(), some);
  if (others.channels > 0) {
    Pack(others, begin, size, parts.get() + positions * some, others.channels);
  }
  for (int64_t p = 0; p < positions; ++p) {
    std::copy_n(parts.get() + p * some, some, to + p * pitch);
    std::copy_n(parts.get() + positions * some + p * others.channels, others.channels,
                to + p * pitch + some);
    std::fill(to + p * pitch + input.channels, to + (p + 1) * pitch, T(0));
  }
}

// Copies rows of lanes from a tile to the result.
template <typename T>
void Put(const T* tile, int64_t pitch, int64_t rows, int64_t lanes, T* y, int64_t row_step,
         int64_t lane_step) {
  if (lane_step == 1) {
    for (int64_t r = 0; r < rows; ++r) std::copy_n(tile + r * pitch, lanes, y + r * row_step);
  } else if (row_step == 1) {
    Transpose(tile, pitch, rows, lanes, y, lane_step);
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < lanes; ++i) y[r * row_step + i * lane_step] = tile[r * pitch + i];
    }
  }
}

// The remainders, by the step, of what the taps see.
inline std::vector<int64_t> Remainders(const Axis& axis) {
  std::vector<int64_t> rests;
  for (int64_t tap = 0; tap < axis.taps; ++tap) {
    const int64_t rest = tap * axis.spread % axis.step;
    if (std::find(rests.begin(), rests.end(), rest) != rests.end()) break;
    rests.push_back(rest);
  }
  return rests;
}

// The number of equal parts, of at most `most`, that `size` is divided into.
inline int64_t PartsFor(int64_t size, int64_t most) { return (size + most - 1) / most; }

// How many vectors wide the tile for so many more lanes is, of at most `most`.
template <typename T>
int64_t WidthFor(int64_t lanes, int64_t most) {
  int64_t width = 1;
  while (width < most && width * kLanes<T> < lanes) width *= 2;
  // Several narrower tiles waste less.
  if (width > 1 && lanes <= (width / 2 + width / 4) * kLanes<T>) width /= 2;
  return width;
}

struct Block {
  int64_t begin, lanes, width;
};

// Blocks of lanes, each as wide as a tile.
template <typename T>
std::vector<Block> BlocksOf(int64_t lanes, int64_t most) {
  std::vector<Block> blocks;
  for (int64_t begin = 0; begin < lanes;) {
    const int64_t width = WidthFor<T>(lanes - begin, most);
    const int64_t size = std::min(lanes - begin, width * kLanes<T>);
    blocks.push_back({begin, size, width});
    begin += size;
  }
  return blocks;
}

// Runs body(task, memory) for each task, with memory that tasks of a thread share.
template <typename T, typename Body>
void ForTasks(ffi::ThreadPool& pool, int64_t tasks, int64_t memory, const Body& body) {
  std::atomic<int64_t> next{0};
  ParallelFor(pool, std::min(ThreadsOf(pool), tasks), [&](int64_t) {
    std::optional<Memory<T>> own;
    for (int64_t task; (task = next.fetch_add(1)) < tasks;) {
      EndIfInterrupted();
      if (!own) own.emplace(memory);
      body(task, own->get());
    }
  });
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_CONVOLUTION_PACKING_H_
