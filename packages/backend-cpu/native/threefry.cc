// The counter-based random generator Threefry-2x32, of 20 rounds.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011. The
// constants are those of the Random123 library.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "kernel.h"
#include "parallel.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

constexpr uint32_t kParity = 0x1BD11BDA;
constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
// Counters that are in registers or the nearest cache at once.
constexpr int64_t kBlock = 64;

// Vectors side by side: each operation on one of them waits for the one before.
constexpr int kLanes = kVectorBytes / sizeof(uint32_t), kVectors = 4;
typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));

// Two words of random bits from two words of key and two of counter, for several counters.
template <typename V, int kCount>
inline void Threefry(uint32_t key1, uint32_t key2, V (&x1)[kCount], V (&x2)[kCount]) {
  const uint32_t schedule[3] = {key1, key2, key1 ^ key2 ^ kParity};
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
    x1[v] += key1;
    x2[v] += key2;
  }
#pragma GCC unroll 5
  for (int group = 0; group < 5; ++group) {
#pragma GCC unroll 4
    for (int step = 0; step < 4; ++step) {
      const int distance = kRotations[group % 2][step];
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) {
        x1[v] += x2[v];
        x2[v] = x1[v] ^ (x2[v] << distance | x2[v] >> (32 - distance));
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      x1[v] += schedule[(group + 1) % 3];
      x2[v] += schedule[(group + 2) % 3] + static_cast<uint32_t>(group + 1);
    }
  }
}

// Calls write(i, first, second) with the words of each counter i from `begin`, a multiple of kBlock,
// to `end`.
template <typename Write>
void ForCounters(const uint32_t* key, int64_t begin, int64_t end, const Write& write) {
  const uint32_t key1 = key[0], key2 = key[1];
  if (end - begin < 4) {  // Where vectors have nothing to gain.
    for (int64_t i = begin; i < end; ++i) {
      uint32_t x1[] = {static_cast<uint32_t>(i >> 32)}, x2[] = {static_cast<uint32_t>(i)};
      Threefry(key1, key2, x1, x2);
      write(i, *x1, *x2);
    }
    return;
  }
  uint32_t first[kBlock], second[kBlock];
  Words lanes;
  std::iota(first, first + kLanes, 0);
  std::memcpy(&lanes, first, sizeof(lanes));
  for (; begin < end; begin += kBlock) {
    const uint32_t high = static_cast<uint32_t>(begin >> 32), low = static_cast<uint32_t>(begin);
    const int64_t size = std::min(kBlock, end - begin);
    for (int64_t i = 0; i < size; i += kVectors * kLanes) {
      Words x1[kVectors], x2[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        x1[v] = Words{} + high;
        x2[v] = lanes + (low + static_cast<uint32_t>(i + v * kLanes));
      }
      Threefry(key1, key2, x1, x2);
      std::memcpy(first + i, x1, sizeof(x1));
      std::memcpy(second + i, x2, sizeof(x2));
    }
    for (int64_t i = 0; i < size; ++i) write(begin + i, first[i], second[i]);
  }
}

template <typename Word>
void WriteBits(ffi::ThreadPool& pool, const uint32_t* keys, int64_t rows, int64_t size, Word* to) {
  const auto write = [=](int64_t row, int64_t begin, int64_t end) {
    Word* const out = to + row * size;
    ForCounters(keys + 2 * row, begin, end, [out](int64_t i, uint32_t first, uint32_t second) {
      out[i] = sizeof(Word) == 8 ? Word(uint64_t{first} << 32 | second) : Word(first ^ second);
    });
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
  for (int64_t row = 0; row < rows; ++row, key += 2, to += 2 * size) {
    ForCounters(key, 0, size, [to](int64_t i, uint32_t first, uint32_t second) {
      to[2 * i] = first;
      to[2 * i + 1] = second;
    });
  }
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
    uint32_t x1[] = {0}, x2[] = {number[row]};
    Threefry(key[2 * row], key[2 * row + 1], x1, x2);
    to[2 * row] = *x1;
    to[2 * row + 1] = *x2;
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
