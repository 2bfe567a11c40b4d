// Convolutions in vectors of output features, with rows of positions.

#ifndef DOVETAIL_CPU_CONVOLUTION_FEATURES_H_
#define DOVETAIL_CPU_CONVOLUTION_FEATURES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "convolution_packing.h"
#include "convolution_phase.h"

namespace dovetail {

// The memory of a kernel that stays in the nearest cache, and in the next one, in bytes.
constexpr int64_t kNear = 16 << 10;
constexpr int64_t kNext = 128 << 10;

// Copies the kernel for a block of output features, to [tap][input feature][lane].
template <typename T>
void PackFeatures(const Phase<T>& phase, const T* w, const Block& block, T* to) {
  const Problem& p = phase.p_;
  const Axis &depth = phase.axes_[0], &down = phase.axes_[1], &across = phase.axes_[2];
  const Source<T> taps = phase.Taps(w, 1, 1);
  const int64_t pitch = block.width * kLanes<T>;
  const auto put = [&](int64_t i, int64_t d, int64_t h, int64_t k) {
    const T* from = taps.at + d * taps.stride[0] + h * taps.stride[1] + k * taps.stride[2] +
                    i * p.w_input;
    T* at = to + (((d * down.taps + h) * across.taps + k) * p.inputs + i) * pitch;
    if (p.w_output == 1) {
      std::copy_n(from, block.lanes, at);
    } else {
      for (int64_t o = 0; o < block.lanes; ++o) at[o] = from[o * p.w_output];
    }
    std::fill(at + block.lanes, at + pitch, T(0));
  };
  const auto put_taps = [&](int64_t i) {
    for (int64_t d = 0; d < depth.taps; ++d) {
      for (int64_t h = 0; h < down.taps; ++h) {
        for (int64_t k = 0; k < across.taps; ++k) put(i, d, h, k);
      }
    }
  };
  if (p.w_input >= std::abs(p.dimensions[2].w_stride)) {
    for (int64_t i = 0; i < p.inputs; ++i) put_taps(i);
    return;
  }
  for (int64_t d = 0; d < depth.taps; ++d) {
    for (int64_t h = 0; h < down.taps; ++h) {
      for (int64_t k = 0; k < across.taps; ++k) {
        for (int64_t i = 0; i < p.inputs; ++i) put(i, d, h, k);
      }
    }
  }
}

// An axis that sees what those of the phases see.
template <typename T>
Axis AxisOfAll(const std::vector<Phase<T>>& phases, int i) {
  Axis all = phases[0].axes_[i];
  int64_t last = all.offset;
  for (const Phase<T>& phase : phases) {
    const Axis& axis = phase.axes_[i];
    all.count = std::max(all.count, axis.count);
    all.offset = std::min(all.offset, axis.offset);
    last = std::max(last, axis.offset + (axis.taps - 1) * axis.spread);
  }
  all.spread = 1;
  all.taps = last - all.offset + 1;
  return all;
}

// These phases, which are one in depth, and in the order of rows: the result of a dilated input is
// written in the order of memory, and the input copied once.
template <typename T>
void ConvolveByFeatures(const std::vector<Phase<T>>& phases) {
  constexpr int64_t kL = kLanes<T>;
  const Phase<T>& one = phases[0];
  const Problem& p = one.p_;
  const Axis &depth = one.axes_[0], down = AxisOfAll(phases, 1), across = AxisOfAll(phases, 2);
  const int64_t inputs = p.inputs;
  // Rows whose addresses differ by a large power of two would share few lines of the cache.
  const int64_t pitch = inputs % 256 == 0 ? inputs + kL : inputs;
  int64_t all_taps = 0, most_taps = 0;
  for (const Phase<T>& phase : phases) {
    const int64_t taps = phase.axes_[0].taps * phase.axes_[1].taps * phase.axes_[2].taps;
    all_taps += taps;
    most_taps = std::max(most_taps, taps);
  }
  // All features of a position after each other, or else of a row, so that the result is written in
  // the order of memory, where that costs nothing: a cache keeps the kernel.
  const int64_t kernel = p.outputs * inputs * int64_t(sizeof(T));
  const bool near = most_taps * kernel <= kNear, next = all_taps * kernel <= kNext;
  // Wide tiles take fewer instructions, but read the kernel more often.
  const std::vector<Block> blocks = BlocksOf<T>(p.outputs, next && !kManyRegisters ? 4 : 2);
  const int64_t count = static_cast<int64_t>(blocks.size());
  const int64_t padded = blocks.back().begin + blocks.back().width * kL;

  const int64_t wide = across.reach(across.count);
  const int64_t row_memory = wide * pitch * depth.taps;
  const int64_t alike = p.groups * p.batch * depth.count;
  const int64_t rows = one.RowsOfTask(down, row_memory, alike);
  const int64_t high = down.reach(rows), chunks = PartsFor(down.count, rows);
  // Each task copies its part of the input: few features are not divided further.
  const int64_t deep = one.PartsOfDepth(p.groups * p.batch * chunks);
  const int64_t tasks = p.groups * p.batch * chunks * deep, threads = ThreadsOf(one.pool_);
  const int64_t splits =
      tasks >= 2 * threads ? 1 : std::min(count, PartsFor(2 * threads, tasks));
  // Where nothing is padded, the input can be taken as it is.
  bool direct_input = p.x_input == 1 && p.dimensions[2].x_stride % (4096 / sizeof(T)) != 0;
  const Axis* axes[] = {&depth, &down, &across};
  for (int i = 0; i < kSpatial; ++i) {
    direct_input &= axes[i]->offset >= 0 && axes[i]->offset + axes[i]->reach(axes[i]->count) <=
                                                p.dimensions[i].x_size;
  }
  const int64_t to_deeper = direct_input ? depth.spread * p.dimensions[0].x_stride
                                         : high * wide * pitch;
  const int64_t to_lower = direct_input ? p.dimensions[1].x_stride : wide * pitch;
  const int64_t to_right = direct_input ? p.dimensions[2].x_stride : pitch;

  // What is added up for a phase.
  struct Terms {
    int64_t first, weights, taps, steps, offsets;
    std::vector<int64_t> a_offsets, b_offsets;
  };
  std::vector<Terms> terms;
  int64_t taps_before = 0;
  for (const Phase<T>& phase : phases) {
    const Axis &lower = phase.axes_[1], &right = phase.axes_[2];
    const bool merged = to_right == inputs && right.spread == 1;
    Terms of;
    of.taps = depth.taps * lower.taps * right.taps;
    of.weights = taps_before * p.groups * padded * inputs;
    of.steps = merged ? right.taps * inputs : inputs;
    of.first = (lower.offset - down.offset) * to_lower + (right.offset - across.offset) * to_right;
    // For each place of the first plane.
    for (int64_t first = 0; first < depth.taps; ++first) {
      for (int64_t d = 0; d < depth.taps; ++d) {
        for (int64_t h = 0; h < lower.taps; ++h) {
          for (int64_t w = 0; w < (merged ? 1 : right.taps); ++w) {
            of.a_offsets.push_back((first + d) % depth.taps * to_deeper +
                                   h * lower.spread * to_lower + w * right.spread * to_right);
          }
        }
      }
    }
    of.offsets = static_cast<int64_t>(of.a_offsets.size()) / depth.taps;
    for (const Block& block : blocks) {
      for (int64_t i = 0; i < of.offsets; ++i) {
        of.b_offsets.push_back(i * of.steps * block.width * kL);
      }
    }
    taps_before += of.taps;
    terms.push_back(std::move(of));
  }
  const int64_t sets = p.groups * static_cast<int64_t>(phases.size());
  const auto weights = Memory<T>(p.groups * padded * all_taps * inputs);
  const auto weights_of = [&](const Terms& of, int64_t group, const Block& block) {
    return weights.get() + of.weights + (group * padded + block.begin) * of.taps * inputs;
  };
  ParallelFor(one.pool_, sets * count, [&](int64_t task) {
    const Block& block = blocks[task % count];
    const int64_t group = task / count % p.groups, phase = task / count / p.groups;
    PackFeatures(phases[phase], one.w_ + group * p.w_group + block.begin * p.w_output, block,
                 weights_of(terms[phase], group, block));
  });

  const int64_t tiles = PartsFor(across.count, MostRowsOf<false>(blocks[0].width));
  // Of the distances in depth only those of the taps are copied.
  const int64_t memory = direct_input ? 0 : depth.taps * high * wide * pitch;
  ForTasks<T>(one.pool_, tasks * splits, memory, [&](int64_t task, T* own) {
    const int64_t split = task % splits, chunk = task / splits % chunks;
    const int64_t part_of_depth = task / splits / chunks % deep;
    const int64_t n = task / splits / chunks / deep % p.batch;
    const int64_t group = task / splits / chunks / deep / p.batch;
    const int64_t first = chunk * rows, last = std::min(down.count, first + rows);
    const int64_t begin = count * split / splits, end = count * (split + 1) / splits;
    const Source<T> input =
        one.Input(one.x_ + group * p.x_group + n * p.x_batch, inputs, p.x_input);
    alignas(64) T tile[MostRows(1) * 2 * kL];
    // A block of features of a phase, in these rows, of which it is one of so many shares.
    const auto multiply = [&](size_t k, int64_t b, int64_t d, int64_t row, int64_t end_row,
                              int64_t share, int64_t shares, const T* input_at, int64_t plane) {
      const Phase<T>& phase = phases[k];
      const Terms& of = terms[k];
      const Block& block = blocks[b];
      const int64_t pitch_b = block.width * kL, positions = phase.axes_[2].count;
      const Sums sums{of.a_offsets.data() + plane * of.offsets,
                      of.b_offsets.data() + b * of.offsets,
                      of.offsets,
                      of.steps,
                      1,
                      pitch_b};
      const int64_t a_row = across.step * to_right, y_row = phase.y_step(2);
      const T* w = weights_of(of, group, block);
      const int64_t parts = PartsFor(positions, MostRowsOf<false>(block.width));
      const int64_t end_part = parts * (share + 1) / shares;
      for (int64_t h = row; h < std::min(end_row, phase.axes_[1].count); ++h) {
        for (int64_t part = parts * share / shares; part < end_part; ++part) {
          const int64_t from = positions * part / parts;
          const int64_t size = positions * (part + 1) / parts - from;
          const T* a = input_at + of.first + (h - first) * down.step * to_lower + from * a_row;
          T* y = phase.y_at(group, n, d, h, from) + block.begin * p.y_output;
          const auto sum = TileOf<T, false>(size, block.width);
          if (p.y_output == 1 && block.lanes == pitch_b) {
            sum(sums, a, a_row, w, y, y_row, false);
          } else {
            sum(sums, a, a_row, w, tile, pitch_b, false);
            Put(tile, pitch_b, size, block.lanes, y, y_row, p.y_output);
          }
        }
      }
    };
    Planes planes(depth);
    const int64_t end_depth = depth.count * (part_of_depth + 1) / deep;
    for (int64_t d = depth.count * part_of_depth / deep; d < end_depth; ++d) {
      EndIfInterrupted();
      const int64_t top = first * down.step + down.offset;
      const T* input_at = own;
      if (direct_input) {
        input_at = input.at + (d * depth.step + depth.offset) * input.stride[0] + top * to_lower +
                   across.offset * to_right;
      } else {
        planes.Fill(d, [&](int64_t place, int64_t z) {
          Pack(input, {z, top, across.offset}, {1, down.reach(last - first), wide},
               own + place * high * wide * pitch, pitch);
        });
      }
      const int64_t plane = direct_input ? 0 : Planes::First(depth, d);
      const int64_t lines = next ? 1 : last - first;
      for (int64_t line = first; line < last; line += lines) {
        for (size_t i = 0, j; i < phases.size(); i = j) {
          // The phases of the same rows.
          for (j = i; j < phases.size(); ++j) {
            if (phases[j].axes_[1].first != phases[i].axes_[1].first) break;
          }
          const bool several = j - i > 1 || end - begin > 1;
          const int64_t shares = near && several ? tiles : 1;
          for (int64_t share = 0; share < shares; ++share) {
            for (size_t k = i; k < j; ++k) {
              for (int64_t b = begin; b < end; ++b) {
                multiply(k, b, d, line, line + lines, share, shares, input_at, plane);
              }
            }
          }
        }
      }
    }
  });
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_CONVOLUTION_FEATURES_H_
