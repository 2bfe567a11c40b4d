// Elements that are put or added at positions of a vector.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernel.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Sums of integers at up to so many positions are made in several tables, for neighbours in turn:
// an addition waits for the one before it if both are at one position.
constexpr int64_t kSmallTable = 1 << 12;
constexpr int kTables = 4;

// Where updates go: positions that are less than `least` are it, and negative ones are counted from
// the end if `wraps` is the size, or dropped, as all are that are out of bounds.
template <typename Position, typename T>
struct Updates {
  const Position* positions;
  const T* from;  // One for all positions if `step` is 0.
  int64_t step, size, least, wraps;

  // Without sign, so that what is dropped is no less than the size.
  uint64_t Place(int64_t i) const {
    const int64_t position = std::max<int64_t>(positions[i], least);
    return static_cast<uint64_t>(position + (position >> 63 & wraps));
  }
  // The places of some neighbours, the size for those that are dropped.
  void Find(int64_t begin, int64_t count, Position* places) const {
    using Unsigned = std::make_unsigned_t<Position>;
    constexpr int64_t kLowest = std::numeric_limits<Position>::min();
    const auto lowest = static_cast<Position>(std::max(least, kLowest));
    const auto end = static_cast<Position>(size), added = static_cast<Position>(wraps);
    for (int64_t i = 0; i < count; ++i) {
      const Position position = std::max(positions[begin + i], lowest);
      const auto place = static_cast<Unsigned>(position + (position < 0 ? added : 0));
      places[i] = static_cast<Position>(std::min(place, static_cast<Unsigned>(end)));
    }
  }
  bool Keeps(uint64_t place) const { return place < static_cast<uint64_t>(size); }
  T Update(int64_t i) const { return from[i * step]; }
};

template <typename Position, typename T>
void AddInTables(ffi::ThreadPool& pool, const Updates<Position, T>& updates, int64_t count, T* to) {
  // What is dropped has a place of its own.
  const int64_t parts = PartsOf(pool, count), size = updates.size, room = size + 1;
  std::vector<T> sums(parts * kTables * room);
  ParallelFor(pool, parts, [&](int64_t part) {
    T* const tables = sums.data() + part * kTables * room;
    constexpr int64_t kBlock = 256;  // Their places are found in vectors.
    Position places[kBlock];
    const auto add = [&](const T* from, int64_t step, int64_t found) {
      for (int64_t i = 0; i < found; i += kTables) {
#pragma GCC unroll 4
        for (int64_t table = 0; table < kTables; ++table) {
          tables[table * room + places[i + table]] += from[(i + table) * step];
        }
      }
    };
    const int64_t end = count * (part + 1) / parts;
    for (int64_t begin = count * part / parts; begin < end; begin += kBlock) {
      EndIfInterrupted();
      const int64_t found = std::min(kBlock, end - begin), whole = found / kTables * kTables;
      updates.Find(begin, found, places);
      if (updates.step == 0) {
        const T update = *updates.from;
        add(&update, 0, whole);
      } else {
        add(updates.from + begin, 1, whole);
      }
      for (int64_t i = whole; i < found; ++i) tables[places[i]] += updates.Update(begin + i);
    }
  });
  for (int64_t table = 0; table < parts * kTables; ++table) {
    for (int64_t i = 0; i < size; ++i) to[i] += sums[table * room + i];
  }
}

template <typename Position, typename T, bool kAdds>
void Scatter(ffi::ThreadPool& pool, const Updates<Position, T>& updates, int64_t count, T* to) {
  if constexpr (kAdds && std::is_integral_v<T>) {
    if (updates.size <= kSmallTable) {
      return AddInTables(pool, updates, count, to);
    }
  }
  // In the order of the updates: the last one stays, and sums are rounded as they ever were. What
  // is changed soon is asked for early.
  constexpr int64_t kAhead = 16;
  InPieces(0, count, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      __builtin_prefetch(to + updates.positions[std::min(i + kAhead, end - 1)], 1);
      const uint64_t place = updates.Place(i);
      if (updates.Keeps(place)) to[place] = (kAdds ? to[place] : T(0)) + updates.Update(i);
    }
  });
}

template <typename T, bool kAdds>
ffi::Error Into(ffi::ThreadPool& pool, const ffi::AnyBuffer& positions,
                const ffi::AnyBuffer& updates, ffi::AnyBuffer& out, int64_t least, bool wraps) {
  const auto count = static_cast<int64_t>(positions.element_count());
  const auto size = static_cast<int64_t>(out.element_count());
  const auto by_position = [&](auto position) {
    using Position = decltype(position);
    const Updates<Position, T> all{static_cast<const Position*>(positions.untyped_data()),
                                   static_cast<const T*>(updates.untyped_data()),
                                   updates.dimensions().size() == 0 ? 0 : 1,
                                   size,
                                   least,
                                   wraps ? size : 0};
    Scatter<Position, T, kAdds>(pool, all, count, static_cast<T*>(out.untyped_data()));
    return ffi::Error::Success();
  };
  if (positions.element_type() == ffi::DataType::S64) return by_position(int64_t());
  return by_position(int32_t());
}

// Updates, or one for all positions, into what the result holds.
ffi::Error Scattered(ffi::ThreadPool pool, ffi::AnyBuffer, ffi::AnyBuffer positions,
                     ffi::AnyBuffer updates, ffi::Result<ffi::AnyBuffer> out, int64_t adds,
                     int64_t least, int64_t wraps) {
  const ffi::DataType type = out->element_type();
  if (adds != 0) {
    switch (type) {
      case ffi::DataType::S32:
      case ffi::DataType::U32:
        return Into<uint32_t, true>(pool, positions, updates, *out, least, wraps != 0);
      case ffi::DataType::S64:
      case ffi::DataType::U64:
        return Into<uint64_t, true>(pool, positions, updates, *out, least, wraps != 0);
      case ffi::DataType::F32:
        return Into<float, true>(pool, positions, updates, *out, least, wraps != 0);
      case ffi::DataType::F64:
        return Into<double, true>(pool, positions, updates, *out, least, wraps != 0);
      default:
        return ffi::Error(ffi::ErrorCode::kInvalidArgument, "no kernel adds this dtype");
    }
  }
  switch (ffi::ByteWidth(type)) {
    case 1:
      return Into<uint8_t, false>(pool, positions, updates, *out, least, wraps != 0);
    case 2:
      return Into<uint16_t, false>(pool, positions, updates, *out, least, wraps != 0);
    case 4:
      return Into<uint32_t, false>(pool, positions, updates, *out, least, wraps != 0);
    default:
      return Into<uint64_t, false>(pool, positions, updates, *out, least, wraps != 0);
  }
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_scatter, dovetail::Scattered,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("adds")
                    .Attr<int64_t>("least")
                    .Attr<int64_t>("wraps"));
#pragma GCC visibility pop
