// Random numbers by Threefry.

#include <algorithm>
#include <cstdint>

#include "kernel.h"
#include "parallel.h"
#include "threefry.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

template <typename Word>
void WriteBits(ffi::ThreadPool& pool, const uint32_t* keys, int64_t rows, int64_t size, Word* to) {
  const auto write = [=](int64_t row, int64_t begin, int64_t end) {
    DrawBits(keys + 2 * row, begin, end, to + row * size);
  };
  const int64_t most = PartsOf(pool, rows * size);
  if (rows >= most) {
    return ForNeighbours(pool, rows, most, [&](int64_t row) { write(row, 0, size); });
  }
  const int64_t blocks = (size + kBlock - 1) / kBlock, parts = std::min(most, blocks);
  for (int64_t row = 0; row < rows; ++row) {
    ParallelFor(pool, parts, [&](int64_t part) {
      write(row, blocks * part / parts * kBlock,
            std::min(size, blocks * (part + 1) / parts * kBlock));
    });
  }
}

// Random integers for the counters from 0, as many for each key as the result has room for.
ffi::Error Bits(ffi::ThreadPool pool, ffi::Buffer<ffi::U32> keys,
                ffi::Result<ffi::AnyBuffer> out) {
  const int64_t rows = static_cast<int64_t>(keys.element_count()) / 2;
  if (rows == 0) return ffi::Error::Success();
  const int64_t size = static_cast<int64_t>(out->element_count()) / rows;
  const uint32_t* from = keys.typed_data();
  void* to = out->untyped_data();
  switch (out->element_type()) {
    case ffi::DataType::U8:
      WriteBits(pool, from, rows, size, static_cast<uint8_t*>(to));
      break;
    case ffi::DataType::U16:
      WriteBits(pool, from, rows, size, static_cast<uint16_t*>(to));
      break;
    case ffi::DataType::U32:
      WriteBits(pool, from, rows, size, static_cast<uint32_t*>(to));
      break;
    case ffi::DataType::U64:
      WriteBits(pool, from, rows, size, static_cast<uint64_t*>(to));
      break;
    default:
      return ffi::Error(ffi::ErrorCode::kInvalidArgument, "random bits are unsigned integers");
  }
  return ffi::Error::Success();
}

// Keys for the counters from 0, as many for each key as the result has room for.
ffi::Error Split(ffi::Buffer<ffi::U32> keys, ffi::Result<ffi::Buffer<ffi::U32>> out) {
  const int64_t rows = static_cast<int64_t>(keys.element_count()) / 2;
  if (rows == 0) return ffi::Error::Success();
  const int64_t size = static_cast<int64_t>(out->element_count()) / (2 * rows);
  const uint32_t* key = keys.typed_data();
  uint32_t* to = out->typed_data();
  for (int64_t row = 0; row < rows; ++row, key += 2, to += 2 * size) SplitKey(key, size, to);
  return ffi::Error::Success();
}

// The key of each key and number.
ffi::Error FoldIn(ffi::Buffer<ffi::U32> keys, ffi::Buffer<ffi::U32> data,
                  ffi::Result<ffi::Buffer<ffi::U32>> out) {
  const uint32_t* key = keys.typed_data();
  const uint32_t* number = data.typed_data();
  uint32_t* to = out->typed_data();
  const int64_t rows = static_cast<int64_t>(data.element_count());
  for (int64_t row = 0; row < rows; ++row) {
    FoldInto(key + 2 * row, number[row], to + 2 * row);
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_threefry_bits, dovetail::Bits,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::Buffer<xla::ffi::U32>>()
                    .Ret<xla::ffi::AnyBuffer>());
DOVETAIL_KERNEL(dovetail_threefry_split, dovetail::Split,
                xla::ffi::Ffi::Bind()
                    .Arg<xla::ffi::Buffer<xla::ffi::U32>>()
                    .Ret<xla::ffi::Buffer<xla::ffi::U32>>());
DOVETAIL_KERNEL(dovetail_threefry_fold_in, dovetail::FoldIn,
                xla::ffi::Ffi::Bind()
                    .Arg<xla::ffi::Buffer<xla::ffi::U32>>()
                    .Arg<xla::ffi::Buffer<xla::ffi::U32>>()
                    .Ret<xla::ffi::Buffer<xla::ffi::U32>>());
#pragma GCC visibility pop
