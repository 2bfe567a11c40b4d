// Means of values, weighted by the softmax of products of queries and keys.
//
// Some queries lie side by side in the lanes of a panel. Keys are in rows of tiles, so that what is
// computed for a key, and the largest of all, needs no sums across lanes. Of a block of keys the
// scores and the weights stay in the nearest cache until they have been multiplied by the values.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "exponentials.h"
#include "kernel.h"
#include "memory.h"
#include "packed_tiles.h"
#include "parallel.h"
#include "transposition.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Queries side by side, rows of a tile, and keys of a block.
constexpr int64_t kPanel = 2 * kLanes<float>;
constexpr int64_t kTile = MostRows(2);
constexpr int64_t kKeys = 252 / kTile * kTile;
// Products of numbers for which another thread is worth its while.
constexpr int64_t kProductsPerThread = 1 << 18;
// The exponential of a number below is zero.
constexpr float kNothing = -105.0f;
constexpr uint32_t kInfinity = 0x7F800000;

// The distances of rows and of what is summed over, or of columns, in each operand. The mask says
// which keys a query sees; the scores of others are `fill`.
struct Attention {
  int64_t queries, keys, depth, width;
  int64_t q_row, q_step, k_row, k_step, v_row, v_column, mask_row, mask_column, y_row;
  float scale, fill;
};

// Rows in tiles, in each of which the numbers of all rows at a step lie behind each other.
void CopyToTiles(const float* from, int64_t row, int64_t step, int64_t rows, int64_t steps,
                 float* to) {
  if (step == 1) {
    for (int64_t i = 0; i < rows; i += kTile) {
      const int64_t count = std::min(kTile, rows - i);
      Transpose(from + i * row, row, count, steps, to + i * steps, count);
    }
    return;
  }
  // Some neighbours are read before the next step, and as many lines stay in the nearest cache.
  constexpr int64_t kTogether = 16 * kTile;
  for (int64_t first = 0; first < rows; first += kTogether) {
    const int64_t last = std::min(rows, first + kTogether);
    for (int64_t k = 0; k < steps; ++k) {
      for (int64_t i = first; i < last; i += kTile) {
        const int64_t count = std::min(kTile, last - i);
        const float* const at = from + i * row + k * step;
        float* const put = to + i * steps + k * count;
        if (row == 1 && count == kTile) {
          std::memcpy(put, at, kTile * sizeof(float));
        } else {
          for (int64_t r = 0; r < count; ++r) put[r] = at[r * row];
        }
      }
    }
  }
}

// Multiplies rows of a panel by one factor for each lane.
void Multiply(float* x, int64_t rows, const float* factors) {
  typedef float Floats __attribute__((vector_size(kVectorBytes)));
  for (int64_t lane = 0; lane < kPanel; lane += kLanes<float>) {
    Floats factor, own;
    std::memcpy(&factor, factors + lane, sizeof(factor));
    for (float* at = x + lane; at < x + rows * kPanel; at += kPanel) {
      std::memcpy(&own, at, sizeof(own));
      own *= factor;
      std::memcpy(at, &own, sizeof(own));
    }
  }
}

// Whether none of eight keys is seen.
bool IsHidden(const bool* mask) {
  uint64_t bytes;
  std::memcpy(&bytes, mask, sizeof(bytes));
  return bytes == 0;
}

class Attending {
 public:
  explicit Attending(const Attention& sizes)
      : s_(sizes),
        keys_(s_.keys * s_.depth),
        values_(s_.keys * s_.width),
        queries_(s_.depth * kPanel),
        weights_(kKeys * kPanel),
        means_(s_.width * kPanel) {}

  // Keys and values, which stay the same for some panels.
  void Copy(const float* k, const float* v, bool is_masked) {
    if (k != k_) CopyToTiles(k, s_.k_row, s_.k_step, s_.keys, s_.depth, keys_.get());
    if (v != v_) CopyToTiles(v, s_.v_column, s_.v_row, s_.width, s_.keys, values_.get());
    k_ = k, v_ = v;
    if (!is_masked) return;
    // Zero times a value that is not finite is NaN, which must not be left out.
    uint32_t is_finite = 1;
    for (int64_t i = 0; i < s_.keys * s_.width; ++i) {
      uint32_t bits;
      std::memcpy(&bits, values_.get() + i, sizeof(bits));
      is_finite &= (bits & kInfinity) != kInfinity;
    }
    may_skip_ = is_finite && s_.mask_column == 1;
  }

  // At most as many queries as a panel has.
  void Panel(const float* q, int64_t count, const bool* mask, float* y) {
    CopyQueries(q, count);
    int64_t begin = 0, end = s_.keys;
    if (mask != nullptr && may_skip_) FindSeen(mask, count, &begin, &end);
    Run(mask, count, begin, end);
    // Where all that is seen is as small as what is not, both count.
    for (int64_t i = 0; i < count && end - begin < s_.keys; ++i) {
      if (!(s_.fill - most_[i] < kNothing)) begin = 0, end = s_.keys, Run(mask, count, begin, end);
    }
    for (float& sum : sums_) sum = 1 / sum;
    Multiply(means_.get(), s_.width, sums_);
    Transpose(means_.get(), kPanel, s_.width, count, y, s_.y_row);
  }

 private:
  void CopyQueries(const float* q, int64_t count) {
    float* const to = queries_.get();
    if (count < kPanel) std::fill_n(to, s_.depth * kPanel, 0.0f);
    if (s_.q_step == 1) {
      Transpose(q, s_.q_row, count, s_.depth, to, kPanel);
    } else {
      for (int64_t k = 0; k < s_.depth; ++k) {
        for (int64_t i = 0; i < count; ++i) to[k * kPanel + i] = q[i * s_.q_row + k * s_.q_step];
      }
    }
    float scales[kPanel];
    std::fill_n(scales, kPanel, s_.scale);
    Multiply(to, s_.depth, scales);
  }

  // From the first key that one of the queries sees to the last; all, if one sees none.
  void FindSeen(const bool* mask, int64_t count, int64_t* begin, int64_t* end) const {
    int64_t first = s_.keys, last = 0;
    for (int64_t i = 0; i < count; ++i, mask += s_.mask_row) {
      const auto* const from = static_cast<const bool*>(std::memchr(mask, 1, s_.keys));
      if (from == nullptr) return;
      int64_t to = s_.keys;
      while (to - last >= 8 && IsHidden(mask + to - 8)) to -= 8;
      while (to > last && !mask[to - 1]) --to;
      first = std::min<int64_t>(first, from - mask), last = std::max(last, to);
    }
    *begin = first, *end = last;
  }

  // Gives what is hidden the same score, from the first key on that is hidden of one query.
  void Hide(const bool* mask, int64_t count, int64_t keys) {
    int64_t first = s_.mask_column == 1 ? keys : 0;
    for (int64_t i = 0; i < count && s_.mask_column == 1; ++i) {
      const bool* const row = mask + i * s_.mask_row;
      const void* const hidden = std::memchr(row, 0, first);
      if (hidden != nullptr) first = static_cast<const bool*>(hidden) - row;
    }
    for (int64_t i = 0; i < count; ++i) {
      const bool* const row = mask + i * s_.mask_row;
      for (int64_t j = first; j < keys; ++j) seen_[j * kPanel + i] = row[j * s_.mask_column];
    }
    typedef float Floats __attribute__((vector_size(kVectorBytes)));
    typedef int32_t Integers __attribute__((vector_size(kVectorBytes)));
    typedef int8_t Bytes __attribute__((vector_size(kVectorBytes / 4)));
    for (int64_t i = first * kPanel; i < keys * kPanel; i += kLanes<float>) {
      Floats scores;
      Bytes seen;
      std::memcpy(&scores, weights_.get() + i, sizeof(scores));
      std::memcpy(&seen, seen_ + i, sizeof(seen));
      scores = __builtin_convertvector(seen, Integers) != 0 ? scores : Floats{} + s_.fill;
      std::memcpy(weights_.get() + i, &scores, sizeof(scores));
    }
  }

  void Run(const bool* mask, int64_t count, int64_t begin, int64_t end) {
    // Not the least: what is nowhere seen has weights, but for scores of minus infinity.
    std::fill_n(most_, kPanel, std::numeric_limits<float>::lowest());
    std::fill_n(sums_, kPanel, 0.0f);
    begin = begin / kTile * kTile, end = std::min(s_.keys, (end + kTile - 1) / kTile * kTile);
    float* const weights = weights_.get();
    for (int64_t i = begin; i < end; i += kKeys) {
      const int64_t keys = std::min(kKeys, end - i);
      for (int64_t j = 0; j < keys; j += kTile) {
        PackedTileOf<float>(std::min(kTile, keys - j), 2)(
            s_.depth, keys_.get() + (i + j) * s_.depth, queries_.get(), weights + j * kPanel,
            kPanel, false);
      }
      if (mask != nullptr) Hide(mask + i * s_.mask_column, count, keys);
      alignas(64) float factors[kPanel];
      ExponentiatePanel(keys, weights, most_, sums_, factors);
      const bool add = i > begin;
      if (add) Multiply(means_.get(), s_.width, factors);
      for (int64_t c = 0; c < s_.width; c += kTile) {
        const int64_t columns = std::min(kTile, s_.width - c);
        PackedTileOf<float>(columns, 2)(keys, values_.get() + c * s_.keys + i * columns, weights,
                                        means_.get() + c * kPanel, kPanel, add);
      }
    }
  }

  const Attention& s_;
  const Memory<float> keys_, values_, queries_, weights_, means_;
  const float *k_ = nullptr, *v_ = nullptr;
  bool may_skip_ = false;
  alignas(64) float most_[kPanel], sums_[kPanel];
  alignas(64) uint8_t seen_[kKeys * kPanel] = {};
};

// The sizes are those of Attention; then for each other dimension its size, and the distances in
// queries, keys, values, mask and result.
ffi::Error Attend(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> q, ffi::Buffer<ffi::F32> k,
                  ffi::Buffer<ffi::F32> v, ffi::Buffer<ffi::F32> scale, ffi::RemainingArgs masks,
                  ffi::Result<ffi::Buffer<ffi::F32>> y, ffi::Span<const int64_t> sizes,
                  bool divides, float fill) {
  constexpr int64_t kFixed = 13, kEach = 6;
  const float factor = *scale.typed_data();
  const int64_t* const n = sizes.begin();
  const Attention s{n[0], n[1], n[2], n[3],  n[4],  n[5],  n[6],
                    n[7], n[8], n[9], n[10], n[11], n[12], divides ? 1 / factor : factor,
                    fill};
  const bool* mask = nullptr;
  if (masks.size() > 0) mask = masks.get<ffi::Buffer<ffi::PRED>>(0)->typed_data();
  const int64_t others = (static_cast<int64_t>(sizes.size()) - kFixed) / kEach;
  int64_t count = 1;
  for (int64_t d = 0; d < others; ++d) count *= n[kFixed + kEach * d];
  const int64_t each = s.queries * s.keys * (s.depth + s.width);
  const int64_t threads = ThreadsOf(pool), panels = (s.queries + kPanel - 1) / kPanel;
  const int64_t wanted =
      threads == 1 ? 1 : std::clamp<int64_t>(count * each / kProductsPerThread, 1, 3 * threads);
  const int64_t parts = std::min(panels, (wanted + count - 1) / count);
  const int64_t tasks = std::min(wanted, count * parts);
  ParallelFor(pool, tasks, [&](int64_t task) {
    Attending attending(s);
    for (int64_t at = count * parts * task / tasks; at < count * parts * (task + 1) / tasks; ++at) {
      int64_t first[5] = {}, rest = at / parts;
      for (int64_t d = others - 1; d >= 0; --d) {
        const int64_t* const dimension = n + kFixed + kEach * d;
        for (int i = 0; i < 5; ++i) first[i] += rest % dimension[0] * dimension[i + 1];
        rest /= dimension[0];
      }
      attending.Copy(k.typed_data() + first[1], v.typed_data() + first[2], mask != nullptr);
      for (int64_t p = panels * (at % parts) / parts; p < panels * (at % parts + 1) / parts; ++p) {
        EndIfInterrupted();
        const int64_t row = p * kPanel;
        attending.Panel(q.typed_data() + first[0] + row * s.q_row,
                        std::min(kPanel, s.queries - row),
                        mask == nullptr ? nullptr : mask + first[3] + row * s.mask_row,
                        y->typed_data() + first[4] + row * s.y_row);
      }
    }
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_attention, dovetail::Attend,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                    .RemainingArgs()
                    .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Attr<xla::ffi::Span<const int64_t>>("sizes")
                    .Attr<bool>("divides")
                    .Attr<float>("fill"));
#pragma GCC visibility pop
