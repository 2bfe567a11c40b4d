// Reductions along a dimension that others follow: neighbours are combined side by side.

#ifndef DOVETAIL_CPU_COLUMNS_H_
#define DOVETAIL_CPU_COLUMNS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

// Elements side by side that are combined at once: memory is read in long pieces, and what they
// come to stays in the nearest caches.
constexpr int64_t kSide = 4096;
// So many elements of several steps, where fewer lie side by side.
constexpr int64_t kTogether = 1024;
// Elements that are combined before the result is joined to that of those before.
constexpr int64_t kSteps = 128;
// Steps that are read side by side.
constexpr int kAtOnce = 4;
// Elements of a chunk of a long dimension, which one thread takes, and how many there are at most.
constexpr int64_t kPerChunk = 1 << 16, kChunks = 16;

// A Fold has the types In of elements, Part of what few come to, and Whole of what many come to;
// kFirst, which no elements come to; Add(part, in); AddVectors, which may add kAtOnce steps of some
// columns by itself, and returns how many; and Join(whole, part), also of two wholes.
template <typename Fold>
void AddSteps(const typename Fold::In* from, int64_t steps, int64_t stride, int64_t count,
              typename Fold::Whole* to) {
  typename Fold::Part parts[kSide];
  for (int64_t step = 0; step < steps;) {
    const int64_t end = std::min(steps, step + kSteps);
    std::fill_n(parts, count, Fold::kFirst);
    for (; step + kAtOnce <= end; step += kAtOnce, from += kAtOnce * stride) {
      for (int64_t i = Fold::AddVectors(parts, from, stride, count); i < count; ++i) {
        typename Fold::Part part = parts[i];
        for (int j = 0; j < kAtOnce; ++j) part = Fold::Add(part, from[j * stride + i]);
        parts[i] = part;
      }
    }
    for (; step < end; ++step, from += stride) {
      for (int64_t i = 0; i < count; ++i) parts[i] = Fold::Add(parts[i], from[i]);
    }
    for (int64_t i = 0; i < count; ++i) to[i] = Fold::Join(to[i], parts[i]);
  }
}

// Up to kSide columns. If they are few, and all there are, several steps lie side by side.
template <typename Fold>
void FoldSide(const typename Fold::In* from, int64_t steps, int64_t inner, int64_t count,
              typename Fold::Whole* to) {
  typename Fold::Whole wholes[kSide];
  const int64_t together =
      inner < kTogether ? std::clamp<int64_t>(steps / 4, 1, kTogether / inner) : 1;
  std::fill_n(wholes, together * count, Fold::kFirst);
  AddSteps<Fold>(from, steps / together, together * inner, together * count, wholes);
  const int64_t rest = steps % together;
  AddSteps<Fold>(from + (steps - rest) * inner, 1, 0, rest * count, wholes);
  for (int64_t group = 1; group < together; ++group) {
    for (int64_t i = 0; i < count; ++i) {
      wholes[i] = Fold::Join(wholes[i], wholes[group * count + i]);
    }
  }
  std::copy_n(wholes, count, to);
}

// Calls fold(outer, begin, end, first, count, wholes) for steps from `begin` to `end` and columns
// from `first` on; joins what chunks of steps come to.
//
// What is combined with what depends on the shape alone, not on the number of threads.
template <typename Whole, typename Out, typename Fold, typename Join>
void ForColumns(xla::ffi::ThreadPool& pool, Out* to, int64_t outer, int64_t size, int64_t inner,
                const Fold& fold, const Join& join) {
  const int64_t sides = (inner + kSide - 1) / kSide;
  const int64_t chunks =
      outer * sides >= kChunks
          ? 1
          : std::clamp<int64_t>(size * std::min(inner, kSide) / kPerChunk, 1, kChunks);
  const int64_t works = outer * chunks * sides;
  const int64_t parts = std::min(works, PartsOf(pool, outer * size * inner));
  std::vector<Whole> wholes(outer * chunks * inner);
  ForNeighbours(pool, works, parts, [&](int64_t work) {
    const int64_t side = work % sides, first = inner * side / sides;
    const int64_t row = work / sides, chunk = row % chunks;
    fold(row / chunks, size * chunk / chunks, size * (chunk + 1) / chunks, first,
         inner * (side + 1) / sides - first, wholes.data() + row * inner + first);
  });
  for (int64_t row = 0; row < outer; ++row) {
    Whole* const first = wholes.data() + row * chunks * inner;
    for (int64_t chunk = 1; chunk < chunks; ++chunk) {
      for (int64_t i = 0; i < inner; ++i) first[i] = join(first[i], first[chunk * inner + i]);
    }
    std::transform(first, first + inner, to + row * inner,
                   [](Whole whole) { return static_cast<Out>(whole); });
  }
}

template <typename Fold, typename Out>
void FoldColumns(xla::ffi::ThreadPool& pool, const typename Fold::In* from, Out* to, int64_t outer,
                 int64_t size, int64_t inner) {
  const auto fold = [=](int64_t row, int64_t begin, int64_t end, int64_t first, int64_t count,
                        typename Fold::Whole* wholes) {
    FoldSide<Fold>(from + (row * size + begin) * inner + first, end - begin, inner, count, wholes);
  };
  ForColumns<typename Fold::Whole>(pool, to, outer, size, inner, fold, Fold::Join);
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_COLUMNS_H_
