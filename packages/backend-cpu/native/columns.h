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
// Elements of a chunk of a long dimension, which one thread takes, and how many there are at most.
constexpr int64_t kPerChunk = 1 << 16, kChunks = 16;

// A Fold has the types In of elements, Part of what few come to, and Whole of what many come to;
// kFirst, which no elements come to; Add(part, in); and Join(whole, part), also of two wholes.
template <typename Fold>
void AddSteps(const typename Fold::In* from, int64_t steps, int64_t stride, int64_t count,
              typename Fold::Whole* to) {
  typename Fold::Part parts[kSide];
  for (int64_t step = 0; step < steps;) {
    const int64_t end = std::min(steps, step + kSteps);
    std::fill_n(parts, count, Fold::kFirst);
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

// What is combined with what depends on the shape alone, not on the number of threads.
template <typename Fold, typename Out>
void FoldColumns(xla::ffi::ThreadPool& pool, const typename Fold::In* from, Out* to, int64_t outer,
                 int64_t size, int64_t inner) {
  using Whole = typename Fold::Whole;
  const int64_t sides = (inner + kSide - 1) / kSide;
  const int64_t chunks =
      outer * sides >= kChunks
          ? 1
          : std::clamp<int64_t>(size * std::min(inner, kSide) / kPerChunk, 1, kChunks);
  const int64_t works = outer * chunks * sides;
  const int64_t parts = std::min(works, PartsOf(pool, outer * size * inner));
  std::vector<Whole> wholes(outer * chunks * inner);
  ForNeighbours(pool, works, parts, [&](int64_t work) {
    const int64_t side = work % sides * kSide, row = work / sides;
    const int64_t chunk = row % chunks, begin = size * chunk / chunks;
    FoldSide<Fold>(from + (row / chunks * size + begin) * inner + side,
                   size * (chunk + 1) / chunks - begin, inner, std::min(kSide, inner - side),
                   wholes.data() + row * inner + side);
  });
  for (int64_t row = 0; row < outer; ++row) {
    Whole* const first = wholes.data() + row * chunks * inner;
    for (int64_t chunk = 1; chunk < chunks; ++chunk) {
      for (int64_t i = 0; i < inner; ++i) first[i] = Fold::Join(first[i], first[chunk * inner + i]);
    }
    std::transform(first, first + inner, to + row * inner,
                   [](Whole whole) { return static_cast<Out>(whole); });
  }
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_COLUMNS_H_
