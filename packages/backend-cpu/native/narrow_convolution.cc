// Convolutions of bfloat16, and of bytes, in tiles that some processors multiply at once.
//
// Rows of a tile are 16 neighbouring positions of the result, twice; columns are output features.
// What is summed over, 64 bytes at a time, are the input features at a place of the kernel; where
// that is less than if all places across were taken together, those of all places.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "convolution_packing.h"
#include "convolution_phase.h"
#include "kernel.h"
#include "memory.h"
#include "narrow_packing.h"
#include "narrow_tiles.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

template <typename T>
class NarrowConvolution : private Phase<T> {
 public:
  // Of inputs that are not dilated. `y_size` is the size of a result: 4 of sums, 2 of bfloat16.
  NarrowConvolution(ffi::ThreadPool& pool, const Problem& problem, Narrow kind, const T* x,
                    const T* w, char* y, int64_t y_size)
      : Phase<T>(pool, problem, x, w, nullptr), kind_(kind), to_(y), y_size_(y_size) {
    for (int i = 0; i < kSpatial; ++i) axes_[i] = AxisOf(p_.dimensions[i], 0);
    const int64_t places = axes_[2].taps;
    const auto steps = [](int64_t count) { return PartsFor(count, kOfStep); };
    together_ = steps(places * p_.inputs) < places * steps(p_.inputs);
    steps_of_place_ = steps(together_ ? places * p_.inputs : p_.inputs);
    places_ = axes_[0].taps * axes_[1].taps * (together_ ? 1 : places);
  }

  void Run() {
    const Axis &depth = axes_[0], &down = axes_[1], &across = axes_[2];
    const int64_t panels = PartsFor(p_.outputs, kTileSide), count = places_ * steps_of_place_;
    const int64_t panel_bytes = count * kPanelBytes;
    const Memory<char> weights(p_.groups * panels * panel_bytes);
    ParallelFor(pool_, p_.groups * panels, [&](int64_t task) {
      PackWeights(task / panels, task % panels * kTileSide, weights.get() + task * panel_bytes);
    });

    const int64_t pitch = steps_of_place_ * kOfStep;
    const int64_t wide = together_ ? across.count : across.reach(across.count);
    const int64_t alike = p_.groups * p_.batch * depth.count;
    const int64_t rows = RowsOfTask(down, wide * pitch * depth.taps, alike);
    const int64_t high = down.reach(rows), chunks = PartsFor(down.count, rows);
    const int64_t deep = PartsOfDepth(p_.groups * p_.batch * chunks);
    const std::vector<int64_t> steps = Steps(high, wide, pitch);
    const int64_t left_row = (together_ ? 1 : across.step) * pitch * kSize;
    // A tile reads beyond the last positions.
    const int64_t size = depth.taps * high * wide * pitch + kHalfSide * left_row / kSize;
    const int64_t row_size = together_ ? across.reach(across.count) * p_.inputs : 0;
    ForTasks<T>(pool_, p_.groups * p_.batch * chunks * deep, size + row_size,
                [&](int64_t task, T* own) {
      const int64_t chunk = task % chunks, part_of_depth = task / chunks % deep;
      const int64_t n = task / chunks / deep % p_.batch, group = task / chunks / deep / p_.batch;
      const int64_t first = chunk * rows, last = std::min(down.count, first + rows);
      const Source<T> input =
          Input(x_ + group * p_.x_group + n * p_.x_batch, p_.inputs, p_.x_input);
      const NarrowTiles tiles(kind_);
      Planes planes(depth);
      const int64_t end_depth = depth.count * (part_of_depth + 1) / deep;
      for (int64_t d = depth.count * part_of_depth / deep; d < end_depth; ++d) {
        EndIfInterrupted();
        planes.Fill(d, [&](int64_t place, int64_t z) {
          PackInput(input, z, first * down.step + down.offset, down.reach(last - first), wide,
                    pitch, own + place * high * wide * pitch, own + size);
        });
        TileProduct product{};
        product.left_row = left_row;
        product.steps = steps.data() + Planes::First(depth, d) * count;
        product.count = count;
        for (int64_t panel = 0; panel < panels; ++panel) {
          product.panel = weights.get() + (group * panels + panel) * panel_bytes;
          MultiplyRows(tiles, product, own, wide * pitch, group, n, d, first, last,
                       panel * kTileSide);
        }
      }
    });
  }

 private:
  using Base = Phase<T>;
  using Base::axes_, Base::p_, Base::pool_, Base::w_, Base::x_;
  using Base::Input, Base::PartsOfDepth, Base::RowsOfTask, Base::Taps, Base::y_step;
  static constexpr int64_t kSize = sizeof(T);
  static constexpr int64_t kOfStep = kStepBytes / kSize;

  // Where rows have the bytes of each step, for each place of the first plane in depth.
  std::vector<int64_t> Steps(int64_t high, int64_t wide, int64_t pitch) const {
    const Axis &depth = axes_[0], &down = axes_[1], &across = axes_[2];
    std::vector<int64_t> steps;
    for (int64_t first = 0; first < depth.taps; ++first) {
      for (int64_t d = 0; d < depth.taps; ++d) {
        for (int64_t h = 0; h < down.taps; ++h) {
          for (int64_t k = 0; k < (together_ ? 1 : across.taps); ++k) {
            const int64_t row = (first + d) % depth.taps * high + h * down.spread;
            for (int64_t step = 0; step < steps_of_place_; ++step) {
              steps.push_back((row * wide + k * across.spread) * pitch * kSize + step * kStepBytes);
            }
          }
        }
      }
    }
    return steps;
  }

  // The panel of output features from `first` on.
  void PackWeights(int64_t group, int64_t first, char* to) const {
    const Axis &depth = axes_[0], &down = axes_[1], &across = axes_[2];
    const Source<T> taps = Taps(w_ + group * p_.w_group + first * p_.w_output, 1, 1);
    const int64_t columns = std::min(kTileSide, p_.outputs - first);
    const int64_t summed = (together_ ? across.taps : 1) * p_.inputs;
    for (int64_t d = 0; d < depth.taps; ++d) {
      for (int64_t h = 0; h < down.taps; ++h) {
        for (int64_t k = 0; k < (together_ ? 1 : across.taps); ++k) {
          const T* from = taps.at + d * taps.stride[0] + h * taps.stride[1] + k * taps.stride[2];
          for (int64_t at = 0; at < summed; at += kOfStep, to += kPanelBytes) {
            const int64_t count = std::min(kOfStep, summed - at);
            if (!together_ && (p_.w_input == 1 || p_.w_output == 1)) {
              PackColumns(from + at * p_.w_input, p_.w_input, p_.w_output, count, columns, to);
              continue;
            }
            T numbers[kOfStep * kTileSide];
            for (int64_t i = 0; i < count; ++i) {
              const T* one = from + (at + i) / p_.inputs * taps.stride[2] +
                             (at + i) % p_.inputs * p_.w_input;
              T* put = numbers + i * kTileSide;
              for (int64_t o = 0; o < columns; ++o) put[o] = one[o * p_.w_output];
            }
            PackColumns(numbers, kTileSide, int64_t{1}, count, columns, to);
          }
        }
      }
    }
  }

  // Rows of the input at a depth: positions of the input, or what each of the result sees.
  void PackInput(const Source<T>& input, int64_t z, int64_t top, int64_t high, int64_t wide,
                 int64_t pitch, T* to, T* row) const {
    const Axis& across = axes_[2];
    if (!together_) return Pack(input, {z, top, across.offset}, {1, high, wide}, to, pitch);
    const int64_t inputs = p_.inputs, seen = across.taps * inputs;
    for (int64_t h = 0; h < high; ++h) {
      Pack(input, {z, top + h, across.offset}, {1, 1, across.reach(across.count)}, row, inputs);
      for (int64_t w = 0; w < across.count; ++w, to += pitch) {
        const T* from = row + w * across.step * inputs;
        if (across.spread == 1) {
          std::copy_n(from, seen, to);
        } else {
          for (int64_t k = 0; k < across.taps; ++k) {
            std::copy_n(from + k * across.spread * inputs, inputs, to + k * inputs);
          }
        }
        std::fill(to + seen, to + pitch, T(0));
      }
    }
  }

  // A part of a row of the result.
  struct Half {
    int64_t from, rows;
    char* to;
  };

  void MultiplyRows(const NarrowTiles& tiles, TileProduct product, const T* own, int64_t line,
                    int64_t group, int64_t n, int64_t d, int64_t first, int64_t last,
                    int64_t output) const {
    const Axis &down = axes_[1], &across = axes_[2];
    const int64_t columns = std::min(kTileSide, p_.outputs - output);
    product.column_halves = PartsFor(columns, kHalfSide);
    Half halves[2];
    int64_t waiting = 0;
    const auto multiply = [&] {
      if (waiting == 0) return;
      alignas(64) char sums[kTileBytes];
      product.left = reinterpret_cast<const char*>(own) + halves[0].from;
      product.left_half = waiting > 1 ? halves[1].from - halves[0].from : 0;
      product.row_halves = waiting;
      tiles.Multiply(product, sums, 4 * kTileSide, false);
      for (int64_t i = 0; i < waiting; ++i) {
        PutHalf(tiles, sums + i * kTileBytes / 2, halves[i].rows, columns, halves[i].to);
      }
      waiting = 0;
    };
    for (int64_t h = first; h < last; ++h) {
      const int64_t y = group * p_.y_group + n * p_.y_batch + d * y_step(0) + h * y_step(1) +
                        output * p_.y_output;
      for (int64_t w = 0; w < across.count; w += kHalfSide) {
        halves[waiting++] = {(h - first) * down.step * line * kSize + w * product.left_row,
                             std::min(kHalfSide, across.count - w),
                             to_ + (y + w * y_step(2)) * y_size_};
        if (waiting == 2) multiply();
      }
    }
    multiply();
  }

  void PutHalf(const NarrowTiles& tiles, const char* sums, int64_t rows, int64_t columns,
               char* to) const {
    if (p_.y_output == 1) return tiles.Put(sums, rows, columns, to, y_step(2), y_size_);
    alignas(64) char numbers[kTileBytes / 2];
    tiles.Put(sums, rows, columns, numbers, kTileSide, y_size_);
    const auto put = [&](auto zero) {
      using Number = decltype(zero);
      dovetail::Put(reinterpret_cast<const Number*>(numbers), kTileSide, rows, columns,
                    reinterpret_cast<Number*>(to), y_step(2), p_.y_output);
    };
    y_size_ == 2 ? put(uint16_t()) : put(uint32_t());
  }

  const Narrow kind_;
  char* const to_;
  const int64_t y_size_;
  // Whether the places across are summed over together; steps of one place, or of those; and how
  // many there are.
  bool together_;
  int64_t steps_of_place_, places_;
};

ffi::Error ConvolveNarrow(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer w,
                          ffi::Result<ffi::AnyBuffer> y, ffi::Span<const int64_t> sizes) {
  Problem problem;
  if (sizes.size() * sizeof(int64_t) != sizeof(problem)) {
    return ffi::Error(ffi::ErrorCode::kInvalidArgument, "sizes of a convolution are missing");
  }
  std::memcpy(&problem, sizes.begin(), sizeof(problem));
  if (y->element_count() == 0) return ffi::Error::Success();
  const auto y_size = static_cast<int64_t>(y->size_bytes() / y->element_count());
  const auto run = [&](Narrow kind, auto zero) {
    using T = decltype(zero);
    NarrowConvolution<T>(pool, problem, kind, static_cast<const T*>(x.untyped_data()),
                         static_cast<const T*>(w.untyped_data()),
                         static_cast<char*>(y->untyped_data()), y_size)
        .Run();
  };
  if (x.element_type() == ffi::DataType::BF16) {
    run(Narrow::kBFloat16, uint16_t());
  } else {
    run(KindOfBytes(x.element_type() == ffi::DataType::S8, w.element_type() == ffi::DataType::S8),
        uint8_t());
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_convolve_narrow, dovetail::ConvolveNarrow,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<xla::ffi::Span<const int64_t>>("sizes"));
#pragma GCC visibility pop
