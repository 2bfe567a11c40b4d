// Rows of an array, and elements of each row, at positions known at run time.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bits.h"
#include "kernel.h"
#include "parallel.h"
#include "streams.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// At least as many bytes as a vector has, the last of them in one that lies over the one before.
inline __attribute__((always_inline)) void CopyVectors(const char* from, int64_t bytes, char* to) {
  typedef uint8_t Bytes __attribute__((vector_size(kVectorBytes)));
  for (int64_t i = 0; i < bytes - kVectorBytes; i += kVectorBytes) {
    const auto some = Load<Bytes>(from + i);
    std::memcpy(to + i, &some, sizeof(some));
  }
  const auto last = Load<Bytes>(from + bytes - kVectorBytes);
  std::memcpy(to + bytes - kVectorBytes, &last, sizeof(last));
}

struct Rows {
  const char* from;
  int64_t count, bytes;
  const char* fill;  // An element for rows out of bounds, or null: then the nearest row is taken.
  int64_t width;

  template <typename Position>
  void Take(const Position* positions, int64_t begin, int64_t end, char* to) const {
    // What is read soon is asked for early: the next positions are known, the rows may be anywhere.
    constexpr int64_t kAhead = 8, kLine = 64;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t next = std::clamp<int64_t>(positions[std::min(i + kAhead, end - 1)], 0, count - 1);
      for (int64_t j = 0; j < bytes; j += kLine) __builtin_prefetch(from + next * bytes + j);
      const int64_t position = positions[i];
      const int64_t row = std::clamp<int64_t>(position, 0, count - 1);
      char* const target = to + i * bytes;
      if (fill == nullptr || row == position) {
        if (bytes < kVectorBytes) {
          std::memcpy(target, from + row * bytes, bytes);
        } else {
          CopyVectors(from + row * bytes, bytes, target);
        }
      } else {
        for (int64_t j = 0; j < bytes; j += width) std::memcpy(target + j, fill, width);
      }
    }
  }
};

// The rows along the first dimension, which is not empty, at each position.
ffi::Error TakeRows(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer positions,
                    ffi::AnyBuffer fill, ffi::Result<ffi::AnyBuffer> out, int64_t filled) {
  if (out->element_count() == 0) return ffi::Error::Success();
  const int64_t count = x.dimensions().front();
  const auto width = static_cast<int64_t>(ffi::ByteWidth(x.element_type()));
  const Rows rows{static_cast<const char*>(x.untyped_data()), count,
                  static_cast<int64_t>(x.size_bytes()) / count,
                  filled != 0 ? static_cast<const char*>(fill.untyped_data()) : nullptr, width};
  char* const to = static_cast<char*>(out->untyped_data());
  const auto wanted = static_cast<int64_t>(positions.element_count());
  const auto take = [&](int64_t begin, int64_t end) {
    if (positions.element_type() == ffi::DataType::S64) {
      rows.Take(static_cast<const int64_t*>(positions.untyped_data()), begin, end, to);
    } else {
      rows.Take(static_cast<const int32_t*>(positions.untyped_data()), begin, end, to);
    }
  };
  const int64_t each = rows.bytes / width;  // A part has the rows whose first element it has.
  ForRanges(&pool, wanted * each, [&](int64_t begin, int64_t end) {
    take((begin + each - 1) / each, (end + each - 1) / each);
  });
  return ffi::Error::Success();
}

// Where elements of rows of `count` are taken from: positions within bounds, and the places of those
// that were not.
struct Places {
  std::vector<int64_t> nearest, outside;

  template <typename Position>
  Places(const Position* positions, int64_t wanted, int64_t count) : nearest(wanted) {
    for (int64_t i = 0; i < wanted; ++i) {
      nearest[i] = std::clamp<int64_t>(positions[i], 0, count - 1);
      if (nearest[i] != positions[i]) outside.push_back(i);
    }
  }
};

// Elements at each position of every row, which is not empty.
ffi::Error TakeColumns(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer positions,
                       ffi::AnyBuffer fill, ffi::Result<ffi::AnyBuffer> out, int64_t filled) {
  if (out->element_count() == 0) return ffi::Error::Success();
  const int64_t count = x.dimensions().back();
  const auto rows = static_cast<int64_t>(x.element_count()) / count;
  const auto wanted = static_cast<int64_t>(positions.element_count());
  const Places places =
      positions.element_type() == ffi::DataType::S64
          ? Places(static_cast<const int64_t*>(positions.untyped_data()), wanted, count)
          : Places(static_cast<const int32_t*>(positions.untyped_data()), wanted, count);
  const int64_t parts = std::min(rows, PartsOf(pool, rows * wanted));
  const auto take = [&](auto word) {
    using Word = decltype(word);
    const auto take_some = [&](auto together, int64_t row, int64_t apart) {
      const Word* const from = static_cast<const Word*>(x.untyped_data()) + row * count;
      Word* const __restrict to = static_cast<Word*>(out->untyped_data()) + row * wanted;
      const int64_t* const nearest = places.nearest.data();
      for (int64_t i = 0; i < wanted; ++i) {
        const int64_t position = nearest[i];
#pragma GCC unroll 4
        for (int k = 0; k < together; ++k) {
          to[k * apart * wanted + i] = from[k * apart * count + position];
        }
      }
      if (filled == 0) return;
      const Word other = *static_cast<const Word*>(fill.untyped_data());
      for (int k = 0; k < together; ++k) {
        for (const int64_t i : places.outside) to[k * apart * wanted + i] = other;
      }
    };
    ParallelFor(pool, parts, [&](int64_t part) {
      InStreams(rows * part / parts, rows * (part + 1) / parts, take_some);
    });
    return ffi::Error::Success();
  };
  switch (ffi::ByteWidth(x.element_type())) {
    case 1:
      return take(uint8_t());
    case 2:
      return take(uint16_t());
    case 4:
      return take(uint32_t());
    case 8:
      return take(uint64_t());
    default:
      return take(std::array<uint64_t, 2>());
  }
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_take_rows, dovetail::TakeRows,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("filled"));
DOVETAIL_KERNEL(dovetail_take_columns, dovetail::TakeColumns,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("filled"));
#pragma GCC visibility pop
