// Convolutions of any layout, with strides, dilation and groups, in tiles of registers.
//
// Numbers are copied into the order in which they are used, with zeros around them, a part that fits
// the cache at a time. There are five ways:
//   - vectors of output features, rows of positions: many features;
//   - vectors of positions, rows of output features: few features, or features before positions;
//   - vectors of groups, of one feature each (depthwise), which may be copied at edges only;
//   - vectors of output features or groups, rows of examples, for few positions and large kernels,
//     as in the gradient of a kernel: there the sums are long, and divided among threads;
//   - vectors of positions, rows of blocks of them, for one feature and a long kernel.
// Between zeros that dilate the input, each phase of the result is a convolution without them.

#ifndef DOVETAIL_CPU_CONVOLUTION_H_
#define DOVETAIL_CPU_CONVOLUTION_H_

#include <algorithm>
#include <cstdint>

#include "convolution_features.h"
#include "convolution_packing.h"
#include "convolution_phase.h"
#include "long_kernels.h"
#include "sliding_tiles.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

namespace ffi = xla::ffi;

template <typename T>
class Convolution : private Phase<T> {
 public:
  using Phase<T>::Phase;

  void Run() {
    int64_t phases[kSpatial];
    for (int i = 0; i < kSpatial; ++i) {
      const Dimension& d = p_.dimensions[i];
      phases[i] = d.x_dilation / std::gcd(d.stride, d.x_dilation);
    }
    for (int64_t d = 0; d < phases[0]; ++d) {
      std::vector<Phase<T>> by_features;
      for (int64_t h = 0; h < phases[1]; ++h) {
        for (int64_t w = 0; w < phases[2]; ++w) {
          const int64_t phase[] = {d, h, w};
          for (int i = 0; i < kSpatial; ++i) axes_[i] = AxisOf(p_.dimensions[i], phase[i]);
          if (!RunPhase()) by_features.push_back(*this);
        }
      }
      if (!by_features.empty()) ConvolveByFeatures(by_features);
    }
  }

 private:
  using Base = Phase<T>;
  using Base::axes_, Base::kL, Base::p_, Base::pool_, Base::w_, Base::x_, Base::y_;
  using Base::Clear, Base::Input, Base::PartsOfDepth, Base::RowsOfTask, Base::Taps;
  using Base::y_at, Base::y_step;

  // False where the phase is left to ConvolveByFeatures.
  bool RunPhase() {
    int64_t positions = 1, taps = 1;
    for (const Axis& axis : axes_) {
      positions *= axis.count;
      taps *= axis.taps;
    }
    if (positions == 0) return true;
    if (taps == 0 || p_.inputs == 0) return Clear(), true;
    const bool depthwise = p_.groups > 1 && p_.groups * p_.outputs > kL / 2;
    const bool last = p_.x_input == 1 && p_.y_output == 1;
    if (positions <= taps) {
      if (p_.batch == 1 && p_.outputs <= 4 && depthwise) return LongByGroups(), true;
      return Long(), true;
    }
    if (depthwise && last && p_.inputs * p_.outputs <= 4) return ByGroups(), true;
    if (ConvolveLongKernels(pool_, p_, axes_, x_, w_, y_)) return true;
    const bool first = p_.dimensions[2].x_stride == 1 && p_.dimensions[2].y_stride == 1;
    const Axis& across = axes_[2];
    const int64_t pitch = across.count + (across.taps - 1) * across.spread / across.step;
    if (p_.outputs <= kL / 2 || (first && 10 * pitch < 11 * across.count)) {
      return ByPositions(), true;
    }
    return false;
  }

  // Vectors of positions, which are numbered through all rows, and rows of output features.
  void ByPositions() {
    const Axis &depth = axes_[0], &down = axes_[1], &across = axes_[2];
    const int64_t inputs = p_.inputs, taps = depth.taps * down.taps * across.taps;
    // Positions at a distance of `step` are neighbours, in a plane of their own for each remainder.
    const int64_t wide = across.count + (across.taps - 1) * across.spread / across.step;
    const int64_t more = (down.taps - 1) * down.spread / down.step;
    const std::vector<int64_t> y_rests = Remainders(down), x_rests = Remainders(across);
    const int64_t y_planes = static_cast<int64_t>(y_rests.size());
    const int64_t x_planes = static_cast<int64_t>(x_rests.size());
    const int64_t planes = depth.taps * y_planes * x_planes;
    // The widest tile that has registers for all features, or else for many.
    const int64_t features = p_.outputs;
    int64_t width = 2;
    while (width < kWidest && 2 * width * std::min<int64_t>(features, 7) <= 2 * MostRows(2)) {
      width *= 2;
    }
    const int64_t parts = PartsFor(features, MostRowsOf<false>(width));
    const auto begin_of = [&](int64_t part) { return features * part / parts; };
    const auto weights = Memory<T>(p_.groups * features * taps * inputs);
    ParallelFor(pool_, p_.groups * parts, [&](int64_t task) {
      const int64_t group = task / parts, part = task % parts;
      const int64_t begin = begin_of(part), size = begin_of(part + 1) - begin;
      T* to = weights.get() + (group * features + begin) * taps * inputs;
      const Source<T> from = Taps(w_ + group * p_.w_group + begin * p_.w_output, 1, 1);
      for (int64_t d = 0; d < depth.taps; ++d) {
        for (int64_t h = 0; h < down.taps; ++h) {
          for (int64_t k = 0; k < across.taps; ++k) {
            const T* at = from.at + d * from.stride[0] + h * from.stride[1] + k * from.stride[2];
            for (int64_t i = 0; i < inputs; ++i) {
              for (int64_t o = 0; o < size; ++o) *to++ = at[i * p_.w_input + o * p_.w_output];
            }
          }
        }
      }
    });

    const int64_t alike = p_.groups * p_.batch * depth.count;
    const int64_t rows = RowsOfTask(down, inputs * depth.taps * wide * x_planes, alike);
    const int64_t chunks = PartsFor(down.count, rows);
    const int64_t deep = PartsOfDepth(p_.groups * p_.batch * chunks);
    const int64_t plane = (rows + more) * wide, feature = planes * plane;
    // For each place of the first plane in depth.
    std::vector<int64_t> offsets;
    for (int64_t first = 0; first < depth.taps; ++first) {
      for (int64_t d = 0; d < depth.taps; ++d) {
        for (int64_t h = 0; h < down.taps; ++h) {
          for (int64_t k = 0; k < across.taps; ++k) {
            const int64_t y = h * down.spread, x = k * across.spread;
            const int64_t row = std::find(y_rests.begin(), y_rests.end(), y % down.step) -
                                y_rests.begin();
            const int64_t column = std::find(x_rests.begin(), x_rests.end(), x % across.step) -
                                   x_rests.begin();
            const int64_t which =
                ((first + d) % depth.taps * y_planes + row) * x_planes + column;
            offsets.push_back(which * plane + y / down.step * wide + x / across.step);
          }
        }
      }
    }
    // Rows whose positions fill vectors leave out what lies between them.
    const bool by_rows = PartsFor(across.count, width * kL) * width * kL <= wide;
    const int64_t slack = kWidest * kL;
    ForTasks<T>(pool_, p_.groups * p_.batch * chunks * deep, inputs * feature + slack,
                [&](int64_t task, T* own) {
      const int64_t chunk = task % chunks, part_of_depth = task / chunks % deep;
      const int64_t n = task / chunks / deep % p_.batch, group = task / chunks / deep / p_.batch;
      const int64_t first = chunk * rows, high = std::min(down.count, first + rows) - first;
      const T* x = x_ + group * p_.x_group + n * p_.x_batch;
      std::fill_n(own + inputs * feature, slack, T(0));
      alignas(64) T tile[2 * MostRows(2) * kL > kWidest * kL ? 2 * MostRows(2) * kL : kWidest * kL];
      std::vector<int64_t> a_offsets(taps);
      Planes held(depth);
      for (int64_t d = depth.count * part_of_depth / deep;
           d < depth.count * (part_of_depth + 1) / deep; ++d) {
        EndIfInterrupted();
        held.Fill(d, [&](int64_t place, int64_t z) {
          PackPlanes(x, z, first, high + more, wide, plane, feature, y_rests, x_rests,
                     own + place * y_planes * x_planes * plane);
        });
        for (int64_t part = 0; part < parts; ++part) {
          const int64_t begin = begin_of(part), size = begin_of(part + 1) - begin;
          for (int64_t i = 0; i < taps; ++i) a_offsets[i] = i * inputs * size;
          const Sums sums{a_offsets.data(), offsets.data() + Planes::First(depth, d) * taps,
                          taps,             inputs,
                          size,             feature};
          const T* a = weights.get() + (group * features + begin) * taps * inputs;
          // From one position to another.
          const auto multiply = [&](int64_t p, const int64_t stop) {
            while (p < stop) {
              const int64_t vectors = WidthFor<T>(stop - p, width), lanes = vectors * kL;
              const int64_t end = std::min(stop, p + lanes), row = p / wide;
              const auto sum = TileOf<T, false>(size, vectors);
              T* y = y_at(group, n, d, first + row, p % wide) + begin * p_.y_output;
              if (y_step(2) == 1 && p % wide + lanes <= across.count) {
                sum(sums, a, 1, own + p, y, p_.y_output, false);
                p = end;
                continue;
              }
              sum(sums, a, 1, own + p, tile, lanes, false);
              for (int64_t at = p; at < end;) {
                const int64_t h = at / wide, w = at % wide, to = std::min(end, (h + 1) * wide);
                const int64_t count = std::min(to - at, across.count - w);
                if (count > 0) {
                  Put(tile + (at - p), lanes, size, count,
                      y_at(group, n, d, first + h, w) + begin * p_.y_output, p_.y_output,
                      y_step(2));
                }
                at = to;
              }
              p = end;
            }
          };
          for (int64_t h = 0; h < high && by_rows; ++h) multiply(h * wide, h * wide + across.count);
          if (!by_rows) multiply(0, (high - 1) * wide + across.count);
        }
      }
    });
  }

  // Copies the input at a depth to [remainders][row][position], with a distance between features.
  void PackPlanes(const T* x, int64_t z, int64_t first, int64_t high, int64_t wide, int64_t plane,
                  int64_t feature, const std::vector<int64_t>& y_rests,
                  const std::vector<int64_t>& x_rests, T* to) const {
    const Axis &down = axes_[1], &across = axes_[2];
    const Source<T> input = Input(x, p_.inputs, p_.x_input);
    const int64_t x_stride = input.stride[2] * across.step;
    for (const int64_t y_rest : y_rests) {
      for (const int64_t x_rest : x_rests) {
        // Positions from x_rest + offset on, in steps, as far as there are any.
        const int64_t from = across.offset + x_rest;
        const int64_t left =
            std::clamp<int64_t>(PartsFor(std::max<int64_t>(-from, 0), across.step), 0, wide);
        const int64_t right = std::clamp<int64_t>(
            from >= input.size[2] ? 0 : (input.size[2] - from - 1) / across.step + 1, left, wide);
        const int64_t count = right - left;
        const auto clear = [&](int64_t at, int64_t size) {
          for (int64_t i = 0; i < p_.inputs; ++i) std::fill_n(to + i * feature + at, size, T(0));
        };
        for (int64_t row = 0; row < high; ++row) {
          const int64_t y = (first + row) * down.step + down.offset + y_rest;
          if (z < 0 || z >= input.size[0] || y < 0 || y >= input.size[1]) {
            clear(row * wide, wide);
            continue;
          }
          clear(row * wide, left);
          clear(row * wide + right, wide - right);
          const T* at = input.at + z * input.stride[0] + y * input.stride[1] +
                        from * input.stride[2] + left * x_stride;
          T* put = to + row * wide + left;
          if (p_.x_input == 1 && p_.inputs > 1) {
            Transpose(at, x_stride, count, p_.inputs, put, feature);
            continue;
          }
          for (int64_t i = 0; i < p_.inputs; ++i, at += p_.x_input, put += feature) {
            if (x_stride == 1) {
              std::copy_n(at, count, put);
            } else if (x_stride == 2) {
              for (int64_t w = 0; w < count; ++w) put[w] = at[w * 2];
            } else {
              for (int64_t w = 0; w < count; ++w) put[w] = at[w * x_stride];
            }
          }
        }
        to += plane;
      }
    }
  }

  // Vectors of output features of all groups, which have few.
  void ByGroups() {
    const Axis &depth = axes_[0], &down = axes_[1], &across = axes_[2];
    const int64_t taps = depth.taps * down.taps * across.taps;
    const int64_t channels = p_.groups * p_.outputs;
    const bool sliding = across.taps == kSlidingSteps && across.step == across.spread;
    const std::vector<Block> blocks = BlocksOf<T>(channels, sliding ? kSlidingVectors : 4);
    const int64_t padded = blocks.back().begin + blocks.back().width * kL, inputs = p_.inputs;
    const auto weights = Memory<T>(padded * taps * inputs);
    for (const Block& block : blocks) {
      T* to = weights.get() + block.begin * taps * inputs;
      for (int64_t lane = 0; lane < block.width * kL; ++lane) {
        const int64_t channel = block.begin + lane, pitch = block.width * kL;
        const Source<T> from = Taps(w_ + channel * p_.w_output, 1, 1);
        int64_t at = lane;
        for (int64_t i = 0; i < inputs; ++i) {
          for (int64_t d = 0; d < depth.taps; ++d) {
            for (int64_t h = 0; h < down.taps; ++h) {
              for (int64_t k = 0; k < across.taps; ++k, at += pitch) {
                to[at] = lane >= block.lanes
                             ? T(0)
                             : from.at[d * from.stride[0] + h * from.stride[1] +
                                       k * from.stride[2] + i * p_.w_input];
              }
            }
          }
        }
      }
    }

    const int64_t wide = across.reach(across.count), most = 4 * kL;
    // Numbers that lie side by side are taken as they are, but at edges with zeros.
    const bool plain = inputs == 1 && p_.outputs == 1 && p_.x_group == 1;
    // Then a task takes several blocks, as memory is read best in order: the first of each task.
    const int64_t seen = depth.taps * down.reach(2) * wide * blocks[0].width * kL;
    const int64_t together = plain ? std::max<int64_t>(1, kCached / int64_t{sizeof(T)} / seen) : 1;
    std::vector<int64_t> firsts;
    for (int64_t b = 0; b < static_cast<int64_t>(blocks.size()); ++b) {
      const bool alone = firsts.empty() || b - firsts.back() >= together ||
                         blocks[b].lanes < blocks[firsts.back()].width * kL;
      if (alone) firsts.push_back(b);
    }
    const int64_t count = static_cast<int64_t>(firsts.size());
    firsts.push_back(static_cast<int64_t>(blocks.size()));
    const int64_t alike = p_.batch * depth.count * count;
    const int64_t rows = RowsOfTask(down, inputs * wide * most * depth.taps, alike);
    const int64_t high = down.reach(rows), chunks = PartsFor(down.count, rows);
    const int64_t size = inputs * depth.taps * high * wide * most;
    const auto middle = down.Inner(p_.dimensions[1].x_size);
    const auto inner = across.Inner(p_.dimensions[2].x_size);
    ForTasks<T>(pool_, alike * chunks, size, [&](int64_t task, T* own) {
      const int64_t b0 = firsts[task % count], b1 = firsts[task % count + 1];
      const Block& block = blocks[b0];  // The others are as wide, and as full.
      const int64_t chunk = task / count % chunks, d = task / count / chunks % depth.count;
      const int64_t n = task / count / chunks / depth.count;
      const int64_t first = chunk * rows, last = std::min(down.count, first + rows);
      const int64_t pitch = block.width * kL, y_lane = p_.y_output;
      Source<T> input = Input(x_ + n * p_.x_batch + block.begin / p_.outputs * p_.x_group,
                              block.lanes, p_.x_group);
      input.repeats = p_.outputs;
      const int64_t deep = d * depth.step + depth.offset;
      std::vector<int64_t> a_offsets(inputs * depth.taps * down.taps), b_offsets(a_offsets.size());
      for (size_t i = 0; i < b_offsets.size(); ++i) b_offsets[i] = int64_t(i) * across.taps * pitch;
      alignas(64) T tile[28 * kL];
      // A box of the result for these blocks, from an input with these distances between rows and
      // positions.
      const auto box = [&](int64_t first, int64_t end, int64_t top, int64_t bottom, int64_t left,
                           int64_t right, const T* a, int64_t row, int64_t position) {
        const Sums sums{a_offsets.data(), b_offsets.data(),         int64_t(a_offsets.size()),
                        across.taps,      across.spread * position, pitch};
        const int64_t most = sliding ? kSlidingRows : MostRowsOf<true>(block.width);
        const int64_t parts = PartsFor(right - left, most);
        for (int64_t h = top; h < bottom; ++h, a += down.step * row) {
          for (int64_t part = 0; part < parts; ++part) {
            const int64_t from = (right - left) * part / parts;
            const int64_t some = (right - left) * (part + 1) / parts - from;
            T* y = y_at(0, n, d, h, left + from) + blocks[first].begin * y_lane;
            const T* at = a + from * across.step * position;
            const T* b = weights.get() + blocks[first].begin * taps * inputs;
            const auto multiply = sliding ? SlidingTileOf<T>(some, block.width)
                                          : TileOf<T, true>(some, block.width);
            if (block.lanes < pitch) {
              multiply(sums, at, across.step * position, b, tile, pitch, false);
              Put(tile, pitch, some, block.lanes, y, y_step(2), y_lane);
              continue;
            }
            for (int64_t i = first; i < end; ++i, at += pitch, y += pitch, b += pitch * taps) {
              multiply(sums, at, across.step * position, b, y, y_step(2), false);
            }
          }
        }
      };
      const auto pack_and_multiply = [&](int64_t b, int64_t top, int64_t bottom, int64_t left,
                                  int64_t right) {
        const int64_t high = down.reach(bottom - top), wide = across.reach(right - left);
        Source<T> source = input;
        source.at += (b - b0) * pitch * p_.x_group;
        for (int64_t i = 0, at = 0; i < inputs; ++i, source.at += p_.x_input) {
          for (int64_t tap = 0; tap < depth.taps; ++tap) {
            const int64_t plane = (i * depth.taps + tap) * high * wide * pitch;
            // A block that begins within a group starts with fewer repeats of its first channel.
            PackRepeated(source, block.begin % p_.outputs,
                         {deep + tap * depth.spread, top * down.step + down.offset,
                          left * across.step + across.offset},
                         {1, high, wide}, own + plane, pitch);
            for (int64_t h = 0; h < down.taps; ++h) {
              a_offsets[at++] = plane + h * down.spread * wide * pitch;
            }
          }
        }
        box(b, b + 1, top, bottom, left, right, own, wide * pitch, pitch);
      };
      const auto packed = [&](int64_t top, int64_t bottom, int64_t left, int64_t right) {
        if (top >= bottom || left >= right) return;
        for (int64_t b = b0; b < b1; ++b) pack_and_multiply(b, top, bottom, left, right);
      };
      const int64_t top = std::max(first, middle.first), bottom = std::min(last, middle.second);
      const bool inside = deep >= 0 && deep + depth.reach(1) <= input.size[0];
      const bool none = top >= bottom || inner.first >= inner.second;
      if (!plain || !inside || block.lanes < pitch || none) {
        return packed(first, last, 0, across.count);
      }
      for (int64_t tap = 0, at = 0; tap < depth.taps; ++tap) {
        for (int64_t h = 0; h < down.taps; ++h) {
          a_offsets[at++] =
              tap * depth.spread * input.stride[0] + h * down.spread * input.stride[1];
        }
      }
      box(b0, b1, top, bottom, inner.first, inner.second,
          input.at + deep * input.stride[0] +
              (top * down.step + down.offset) * input.stride[1] +
              (inner.first * across.step + across.offset) * input.stride[2],
          input.stride[1], input.stride[2]);
      packed(first, top, 0, across.count);
      packed(bottom, last, 0, across.count);
      packed(top, bottom, 0, inner.first);
      packed(top, bottom, inner.second, across.count);
    });
  }

  // Rows of examples, and long sums over places of the kernel and input features.
  void Long() {
    const Axis &depth = axes_[0], &down = axes_[1], &across = axes_[2];
    const std::vector<Block> blocks = BlocksOf<T>(p_.outputs, 2);
    const int64_t padded = blocks.back().begin + blocks.back().width * kL;
    const int64_t positions = depth.count * down.count * across.count;
    const int64_t threads = ThreadsOf(pool_);
    // Examples are divided where all would not fit the cache, or there are many.
    const int64_t whole = positions * p_.batch * padded;
    int64_t examples = 1;
    if (p_.groups < threads && p_.batch >= 16 * threads) examples = threads;
    const int64_t most_examples = PartsFor(p_.batch, examples);
    const int64_t wide = across.reach(across.count);
    const int64_t high_result = down.count, deep = (depth.count - 1) * depth.step + 1;
    // A part of the sum: `taken` rows of the kernel of a feature, or all rows of several.
    const int64_t for_row = deep * down.step * wide * most_examples + across.taps * padded;
    int64_t taken = std::max<int64_t>(1, 2 * kCached / int64_t{sizeof(T)} / for_row);
    taken = std::min(taken, down.taps);
    const int64_t row_parts = PartsFor(down.taps, taken);
    const int64_t all_parts = p_.inputs * depth.taps * row_parts;
    int64_t shares = 1;
    const int64_t tasks_before = p_.groups * examples;
    if (tasks_before < threads) {
      shares = std::min({PartsFor(threads, tasks_before), all_parts,
                         std::max<int64_t>(1, (int64_t{16} << 20) / std::max<int64_t>(1, whole))});
    }
    const auto partial = Memory<T>(shares * p_.groups * whole);
    const int64_t high = (high_result - 1) * down.step + (taken - 1) * down.spread + 1;
    const int64_t input_size = deep * high * wide * most_examples;
    const bool direct = p_.w_output == 1 && padded == p_.outputs;
    const int64_t kernel_size = direct ? 0 : taken * across.taps * padded;
    const int64_t tasks = p_.groups * examples * shares;
    ForTasks<T>(pool_, tasks, input_size + kernel_size, [&](int64_t task, T* own) {
      const int64_t share = task % shares, part_of = task / shares % examples;
      const int64_t group = task / shares / examples;
      const int64_t n0 = p_.batch * part_of / examples, n1 = p_.batch * (part_of + 1) / examples;
      const int64_t count = n1 - n0;
      T* totals = partial.get() + (share * p_.groups + group) * whole;
      const Source<T> input = Input(x_ + group * p_.x_group + n0 * p_.x_batch, count, p_.x_batch);
      const Source<T> kernel = Taps(w_ + group * p_.w_group, p_.outputs, p_.w_output);
      T* packed = own + input_size;
      std::vector<int64_t> a_offsets(taken), b_offsets(taken);
      bool add = false;
      for (int64_t part = all_parts * share / shares; part < all_parts * (share + 1) / shares;
           ++part, add = true) {
        const int64_t i = part / row_parts / depth.taps, d = part / row_parts % depth.taps;
        const int64_t k0 = down.taps * (part % row_parts) / row_parts;
        const int64_t k1 = down.taps * (part % row_parts + 1) / row_parts;
        Source<T> x = input, w = kernel;
        x.at += i * p_.x_input;
        w.at += i * p_.w_input + d * w.stride[0] + k0 * w.stride[1];
        const int64_t box = (high_result - 1) * down.step + (k1 - k0 - 1) * down.spread + 1;
        Pack(x, {depth.offset + d * depth.spread, down.offset + k0 * down.spread, across.offset},
             {deep, box, wide}, own, count);
        if (!direct) {
          w.size[1] = k1 - k0;
          Pack(w, {0, 0, 0}, {1, k1 - k0, across.taps}, packed, padded);
        }
        const int64_t b_row = direct ? w.stride[1] : across.taps * padded;
        const int64_t b_step = direct ? w.stride[2] : padded;
        for (int64_t k = 0; k < k1 - k0; ++k) {
          a_offsets[k] = k * down.spread * wide * count;
          b_offsets[k] = k * b_row;
        }
        const Sums sums{a_offsets.data(), b_offsets.data(),      k1 - k0,
                        across.taps,      across.spread * count, b_step};
        // Neighbours are further rows, where what they see has the same distance.
        const bool flat = across.step == 1;
        const int64_t rows = flat ? across.count * count : count;
        for (const Block& block : blocks) {
          const T* b = (direct ? w.at : packed) + block.begin;
          const int64_t parts = PartsFor(rows, MostRowsOf<false>(block.width));
          for (int64_t p = 0; p < positions; p += flat ? across.count : 1) {
            const int64_t column = p % across.count, line = p / across.count % down.count;
            const int64_t layer = p / across.count / down.count;
            const T* a = own + ((layer * depth.step * box + line * down.step) * wide +
                                column * across.step) * count;
            for (int64_t tile = 0; tile < parts; ++tile) {
              const int64_t from = rows * tile / parts, size = rows * (tile + 1) / parts - from;
              // The examples of a position that other tasks take lie beyond.
              T* y = totals + n0 * positions * padded + (p * count + from) * padded + block.begin;
              TileOf<T, false>(size, block.width)(sums, a + from, 1, b, y, padded, add);
            }
          }
        }
      }
    });
    std::vector<int64_t> places;
    for (int64_t p = 0; p < positions; ++p) {
      const int64_t column = p % across.count, line = p / across.count % down.count;
      places.push_back(y_at(0, 0, p / across.count / down.count, line, column) - y_);
    }
    // Sums of the shares, in order.
    ParallelFor(pool_, p_.groups * examples, [&](int64_t task) {
      const int64_t part_of = task % examples, group = task / examples;
      const int64_t n0 = p_.batch * part_of / examples, n1 = p_.batch * (part_of + 1) / examples;
      T* totals = partial.get() + group * whole + n0 * positions * padded;
      const int64_t size = positions * (n1 - n0) * padded;
      for (int64_t share = 1; share < shares; ++share) {
        const T* other = totals + share * p_.groups * whole;
        for (int64_t i = 0; i < size; ++i) totals[i] += other[i];
      }
      // A few features of an example at all positions, whatever the order of the result.
      const int64_t some = 16;
      for (int64_t o = 0; o < p_.outputs; o += some) {
        const int64_t end = std::min(p_.outputs, o + some);
        for (int64_t n = n0; n < n1; ++n) {
          for (int64_t p = 0; p < positions; ++p) {
            const T* from = totals + (p * (n1 - n0) + n - n0) * padded;
            T* to = y_ + group * p_.y_group + n * p_.y_batch + places[p];
            for (int64_t i = o; i < end; ++i) to[i * p_.y_output] = from[i];
          }
        }
      }
    });
  }

  // The same for groups of one input example, in vectors of the output features of all groups.
  void LongByGroups() {
    const Axis &depth = axes_[0], &down = axes_[1], &across = axes_[2];
    const std::vector<Block> blocks = BlocksOf<T>(p_.groups * p_.outputs, 4);
    const int64_t count = static_cast<int64_t>(blocks.size());
    const int64_t positions = depth.count * down.count * across.count, pitch_most = 4 * kL;
    const int64_t wide = across.reach(across.count), deep = (depth.count - 1) * depth.step + 1;
    const int64_t for_row = (deep * down.step * wide + across.taps) * pitch_most;
    const int64_t taken = std::min(
        down.taps, std::max<int64_t>(1, kCached / int64_t{sizeof(T)} / for_row));
    const int64_t row_parts = PartsFor(down.taps, taken);
    const int64_t all_parts = p_.inputs * depth.taps * row_parts;
    const int64_t shares = std::min(all_parts, PartsFor(ThreadsOf(pool_), count));
    const auto partial = Memory<T>(shares * count * positions * pitch_most);
    const int64_t high = (down.count - 1) * down.step + (taken - 1) * down.spread + 1;
    const int64_t input_size = deep * high * wide * pitch_most;
    ForTasks<T>(pool_, count * shares, input_size + taken * across.taps * pitch_most,
                [&](int64_t task, T* own) {
      const int64_t share = task % shares;
      const Block& block = blocks[task / shares];
      const int64_t pitch = block.width * kL;
      T* totals = partial.get() + (share * count + task / shares) * positions * pitch_most;
      Source<T> input = Input(x_ + block.begin / p_.outputs * p_.x_group, block.lanes, p_.x_group);
      input.repeats = p_.outputs;
      const Source<T> kernel = Taps(w_ + block.begin * p_.w_output, block.lanes, p_.w_output);
      T* packed = own + input_size;
      std::vector<int64_t> a_offsets(taken), b_offsets(taken);
      bool add = false;
      for (int64_t part = all_parts * share / shares; part < all_parts * (share + 1) / shares;
           ++part, add = true) {
        const int64_t i = part / row_parts / depth.taps, d = part / row_parts % depth.taps;
        const int64_t k0 = down.taps * (part % row_parts) / row_parts;
        const int64_t k1 = down.taps * (part % row_parts + 1) / row_parts;
        Source<T> x = input, w = kernel;
        x.at += i * p_.x_input;
        w.at += i * p_.w_input + d * w.stride[0] + k0 * w.stride[1];
        w.size[1] = k1 - k0;
        const int64_t box = (down.count - 1) * down.step + (k1 - k0 - 1) * down.spread + 1;
        PackRepeated(x, block.begin % p_.outputs,
                     {depth.offset + d * depth.spread, down.offset + k0 * down.spread,
                      across.offset},
                     {deep, box, wide}, own, pitch);
        Pack(w, {0, 0, 0}, {1, k1 - k0, across.taps}, packed, pitch);
        for (int64_t k = 0; k < k1 - k0; ++k) {
          a_offsets[k] = k * down.spread * wide * pitch;
          b_offsets[k] = k * across.taps * pitch;
        }
        const Sums sums{a_offsets.data(), b_offsets.data(),      k1 - k0,
                        across.taps,      across.spread * pitch, pitch};
        const int64_t parts = PartsFor(across.count, MostRowsOf<true>(block.width));
        for (int64_t p = 0; p < positions; p += across.count) {
          const int64_t line = p / across.count % down.count;
          const int64_t layer = p / across.count / down.count;
          const T* a = own + (layer * depth.step * box + line * down.step) * wide * pitch;
          for (int64_t tile = 0; tile < parts; ++tile) {
            const int64_t from = across.count * tile / parts;
            const int64_t size = across.count * (tile + 1) / parts - from;
            TileOf<T, true>(size, block.width)(sums, a + from * across.step * pitch,
                                               across.step * pitch, packed,
                                               totals + (p + from) * pitch, pitch, add);
          }
        }
      }
    });
    for (int64_t b = 0; b < count; ++b) {
      const Block& block = blocks[b];
      const int64_t pitch = block.width * kL;
      T* totals = partial.get() + b * positions * pitch_most;
      for (int64_t share = 1; share < shares; ++share) {
        const T* other = totals + share * count * positions * pitch_most;
        for (int64_t i = 0; i < positions * pitch; ++i) totals[i] += other[i];
      }
      for (int64_t p = 0; p < positions; ++p) {
        const int64_t column = p % across.count, line = p / across.count % down.count;
        Put(totals + p * pitch, pitch, 1, block.lanes,
            y_at(0, 0, p / across.count / down.count, line, column) +
                block.begin * p_.y_output,
            0, p_.y_output);
      }
    }
  }
};

// A convolution, of which `sizes` is the problem, of elements of one of these types.
template <typename... Ts>
ffi::Error Convolve(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer w,
                    ffi::Result<ffi::AnyBuffer> y, ffi::Span<const int64_t> sizes,
                    const ffi::DataType (&types)[sizeof...(Ts)]) {
  Problem problem;
  if (sizes.size() * sizeof(int64_t) != sizeof(problem)) {
    return ffi::Error(ffi::ErrorCode::kInvalidArgument, "sizes of a convolution are missing");
  }
  std::memcpy(&problem, sizes.begin(), sizeof(problem));
  if (y->element_count() == 0) return ffi::Error::Success();
  bool found = false;
  const ffi::DataType* type = types;
  const auto run_if = [&](auto zero) {
    using T = decltype(zero);
    if (x.element_type() != *type++) return;
    found = true;
    Convolution<T>(pool, problem, static_cast<const T*>(x.untyped_data()),
                   static_cast<const T*>(w.untyped_data()), static_cast<T*>(y->untyped_data()))
        .Run();
  };
  (run_if(Ts()), ...);
  if (found) return ffi::Error::Success();
  return ffi::Error(ffi::ErrorCode::kInvalidArgument, "a convolution has another dtype");
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_CONVOLUTION_H_
