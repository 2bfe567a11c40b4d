// Stable sorting of arrays by keys of numbers.
//
// Keys become signed integers in the same order. What goes along with keys is moved by positions,
// which stand in the lower half of an integer whose upper half is the key: so any sorting of
// integers is stable.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "host_functions.h"
#include "kernel.h"
#include "key_order.h"
#include "large_pages.h"
#include "parallel.h"
#include "quicksort.h"
#include "radix_sort.h"
#include "transposition.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// One array that is sorted, or goes along.
struct Operand {
  const char* from;
  char* to;
  int64_t width;
  ffi::DataType type;

  template <typename Bits>
  const Bits* row(int64_t i, int64_t size) const {
    return reinterpret_cast<const Bits*>(from) + i * size;
  }
  template <typename Bits>
  Bits* result(int64_t i, int64_t size) const {
    return reinterpret_cast<Bits*>(to) + i * size;
  }
};

// Writes the elements of a kind to `to`, of which there are `count`, in their order.
template <typename Bits, typename IsWanted>
void CopyWanted(const Bits* from, Bits* to, int64_t count, const IsWanted& is_wanted) {
  // What is not wanted is overwritten, which is quicker than a branch.
  for (Bits* const end = to + count; to < end; ++from) {
    *to = *from;
    to += is_wanted(*from);
  }
}

// Puts back zeros and NaNs whose bits keys do not tell, in the order of a stable sort.
template <typename Bits>
void RestoreBits(const Bits* from, Bits* to, int64_t size, Order<Bits> order) {
  const auto is_zero = [&](Bits bits) { return Bits(bits & Bits(~order.kSign)) == 0; };
  const auto is_nan = [&](Bits bits) { return order.IsNan(bits); };
  int64_t negative = 0, zeros = 0, nans = 0;
  for (int64_t i = 0; i < size; ++i) {
    negative += order.Encode(from[i]) < 0;
    zeros += is_zero(from[i]);
    nans += is_nan(from[i]);
  }
  CopyWanted(from, to + negative, zeros, is_zero);
  CopyWanted(from, to + size - nans, nans, is_nan);
}

// Sorts keys of up to 16 bits by how often each occurs.
template <typename Bits>
void SortByCounts(const Bits* from, Bits* to, int64_t size, Order<Bits> order) {
  constexpr int64_t kValues = int64_t{1} << std::numeric_limits<Bits>::digits;
  // Several counts of each value, so that equal neighbours need not wait for one another.
  constexpr int64_t kTables = sizeof(Bits) == 1 ? 4 : 1;
  std::vector<int64_t> counts(kTables * kValues);
  for (int64_t i = 0; i < size; ++i) ++counts[i % kTables * kValues + from[i]];
  for (int64_t i = kValues; i < kTables * kValues; ++i) counts[i % kValues] += counts[i];
  // Infinities are the last floats on both sides; NaNs are beyond them.
  const bool is_float = order.kind == Kind::kFloat;
  const int64_t last = is_float ? int64_t(order.infinity) : kValues / 2 - 1;
  Bits* next = to;
  for (int64_t key = -last - 1; key <= last; ++key) {
    const Bits bits = order.Decode(key);
    next = std::fill_n(next, counts[bits], bits);
  }
  if (is_float && (counts[order.kSign] > 0 || next < to + size)) RestoreBits(from, to, size, order);
}

// Sorts integers whose lower halves ascend, by the upper halves, where these are spread evenly: into
// buckets of their highest bits, and in each by the other bits and the place in the bucket, as
// integers of 32 bits. Returns whether it did; `spare` has as many elements.
bool SortByBuckets(ffi::ThreadPool* pool, int64_t* packed, int64_t* spare, int64_t size) {
  // Fewer are sorted as quickly without, and so are numbers that many threads split.
  constexpr int64_t kFew = 1 << 14;
  constexpr int64_t kMostThreads = 4;
  // More buckets would be written to than stay in the nearest caches.
  constexpr int kMostBits = 12;
  if (size < kFew || (pool != nullptr && ThreadsOf(*pool) > kMostThreads)) return false;
  int32_t least = std::numeric_limits<int32_t>::max();
  int32_t greatest = std::numeric_limits<int32_t>::lowest();
  for (int64_t i = 0; i < size; ++i) {
    const auto key = static_cast<int32_t>(packed[i] >> 32);
    least = std::min(least, key);
    greatest = std::max(greatest, key);
  }
  const auto above = [least](int64_t x) {
    return static_cast<uint32_t>(x >> 32) - static_cast<uint32_t>(least);
  };
  const uint32_t range = static_cast<uint32_t>(greatest) - static_cast<uint32_t>(least);
  if (range == 0) return true;
  int bits = kMostBits;
  while (size >> bits < 64) --bits;
  const int shift = std::max(0, 32 - __builtin_clz(range) - bits);
  const int64_t buckets = int64_t{range >> shift} + 1;
  const int64_t most = shift == 0 ? size : int64_t{1} << (32 - shift);
  std::vector<int64_t> ends(buckets + 1);
  int64_t longest = 0;
  const auto count = [&](int64_t step) {
    std::fill(ends.begin(), ends.end(), 0);
    for (int64_t i = 0; i < size; i += step) ++ends[(above(packed[i]) >> shift) + 1];
    longest = step * *std::max_element(ends.begin(), ends.end());
    return longest <= most;
  };
  // A few elements tell first that it would be in vain.
  constexpr int64_t kStep = 64;
  if (!count(kStep) && longest > 8 * kStep + 2 * most) return false;
  if (!count(1)) return false;
  for (int64_t bucket = 0; bucket < buckets; ++bucket) ends[bucket + 1] += ends[bucket];
  InPieces(0, size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) spare[ends[above(packed[i]) >> shift]++] = packed[i];
  });
  const int64_t parts = pool == nullptr ? 1 : PartsOf(*pool, kStepsOfSort * size);
  const auto sort_part = [&](int64_t part) {
    const auto keys = Uninitialized<int32_t>(longest), other = Uninitialized<int32_t>(longest);
    for (int64_t bucket = buckets * part / parts; bucket < buckets * (part + 1) / parts; ++bucket) {
      EndIfInterrupted();
      const int64_t begin = bucket == 0 ? 0 : ends[bucket - 1], own = ends[bucket] - begin;
      const int64_t* const from = spare + begin;
      for (int64_t i = 0; i < own; ++i) {
        const uint32_t key = above(from[i]) << (32 - shift) | static_cast<uint32_t>(i);
        keys[i] = static_cast<int32_t>(key ^ uint32_t{1} << 31);
      }
      SortNumbers(nullptr, keys.get(), other.get(), own);
      for (int64_t i = 0; i < own; ++i) packed[begin + i] = from[keys[i] & (most - 1)];
    }
  };
  if (shift == 0) {
    std::copy(spare, spare + size, packed);
  } else if (parts == 1) {
    sort_part(0);
  } else {
    ParallelFor(*pool, parts, sort_part);
  }
  return true;
}

// Keys of 32 bits with a value each. A bit in `flipped` turns the order of a bit of keys around.
struct Pairs {
  const uint32_t *keys, *values;
  int64_t size;
  uint32_t flipped;

  uint32_t BucketOf(int64_t i, int bits) const { return (keys[i] ^ flipped) >> (32 - bits); }
  uint64_t At(int64_t i) const { return uint64_t{keys[i]} << 32 | values[i]; }
};

// Pairs in buckets of the highest bits of their keys.
struct Buckets {
  int bits;
  std::vector<uint32_t> begins, counts;  // Of each in `pairs`.
  uint64_t* pairs;
};

// More buckets would be written to than stay in the nearest caches, or of which the table of pages
// is at hand.
constexpr int kMostBits = 12, kRoomyBits = 11;
// Fewer are sorted as quickly without.
constexpr int64_t kFewPairs = 1 << 14;

int BitsOf(int64_t size, int most) {
  while (size >> most < 64) --most;
  return most;
}

// How many pairs a bucket has room for, which chance does not exceed. As an odd number of cache
// lines, so that buckets do not meet in the same places of a cache.
int64_t RoomOf(int64_t size, int bits) {
  const auto mean = static_cast<double>(size >> bits);
  return ((static_cast<int64_t>(mean + 8 * std::sqrt(mean)) / 8 + 1) | 1) * 8;
}

// Fills buckets of so much room, without counting before. Returns whether there was enough.
bool FillRoomy(const Pairs& from, Buckets& to) {
  const int64_t room = RoomOf(from.size, to.bits), buckets = int64_t{1} << to.bits;
  for (int64_t i = 0; i < buckets; ++i) to.begins[i] = static_cast<uint32_t>(i * room);
  uint32_t* const counts = to.counts.data();
  bool suffices = true;
  InPieces(0, from.size, [&, from, bits = to.bits, pairs = to.pairs](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end && suffices; ++i) {
      const uint32_t bucket = from.BucketOf(i, bits), count = counts[bucket];
      suffices = count < room;
      if (!suffices) return;
      counts[bucket] = count + 1;
      pairs[bucket * room + count] = from.At(i);
    }
  });
  return suffices;
}

// Counts first, and fills buckets that have no more room than they need. Returns whether none has
// more than their own number.
bool FillExactly(const Pairs& from, Buckets& to) {
  const int64_t buckets = int64_t{1} << to.bits;
  // Neighbours are counted apart, so that equal ones need not wait for one another.
  std::vector<uint32_t> ends(2 * buckets);
  uint32_t *const counts = ends.data(), *const others = counts + buckets;
  // A few elements tell first that it would be in vain.
  constexpr int64_t kStep = 64;
  for (int64_t i = 0; i < from.size; i += kStep) ++counts[from.BucketOf(i, to.bits)];
  if (kStep * *std::max_element(counts, others) > 8 * kStep + 2 * buckets) return false;
  std::fill(ends.begin(), ends.end(), 0);
  InPieces(0, from.size / 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      ++counts[from.BucketOf(2 * i, to.bits)];
      ++others[from.BucketOf(2 * i + 1, to.bits)];
    }
  });
  if (from.size % 2 != 0) ++counts[from.BucketOf(from.size - 1, to.bits)];
  uint32_t before = 0;
  for (int64_t i = 0; i < buckets; ++i) {
    to.counts[i] = counts[i] + others[i];
    to.begins[i] = counts[i] = before;
    before += to.counts[i];
  }
  if (*std::max_element(to.counts.begin(), to.counts.end()) > buckets) return false;
  InPieces(0, from.size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      to.pairs[counts[from.BucketOf(i, to.bits)]++] = from.At(i);
    }
  });
  return true;
}

// Sorts pairs by their keys where these are spread evenly over all of 32 bits, as random words are:
// in buckets, as above, but without the range, and with values in the place of positions, which
// nothing need look up. Returns whether it did.
bool SortPairs(ffi::ThreadPool* pool, const Pairs& from, uint32_t* sorted_keys,
               uint32_t* sorted_values) {
  constexpr int64_t kMostThreads = 4;
  const int64_t size = from.size;
  if (size < kFewPairs || size >= int64_t{1} << 32) return false;
  if (pool != nullptr && ThreadsOf(*pool) > kMostThreads) return false;
  const auto buckets_of = [](int bits, uint64_t* pairs) {
    const int64_t count = int64_t{1} << bits;
    return Buckets{bits, std::vector<uint32_t>(count), std::vector<uint32_t>(count), pairs};
  };
  const int roomy = BitsOf(size, kRoomyBits);
  const int64_t most = int64_t{1} << roomy, room = RoomOf(size, roomy);
  const LargePages<uint64_t> memory(room <= most ? most * room : size);
  Buckets all = buckets_of(roomy, memory.get());
  if (room > most || !FillRoomy(from, all)) {
    all = buckets_of(BitsOf(size, kMostBits), memory.get());
    if (!FillExactly(from, all)) return false;
  }
  const int bits = all.bits;
  const int64_t buckets = int64_t{1} << bits;
  std::vector<int64_t> results(buckets);
  std::partial_sum(all.counts.begin(), all.counts.end() - 1, results.begin() + 1);
  const int64_t longest = *std::max_element(all.counts.begin(), all.counts.end());
  const int64_t parts = pool == nullptr ? 1 : PartsOf(*pool, kStepsOfSort * size);
  const auto sort_part = [&](int64_t part) {
    const auto ranks = Uninitialized<int32_t>(longest), other = Uninitialized<int32_t>(longest);
    for (int64_t i = buckets * part / parts; i < buckets * (part + 1) / parts; ++i) {
      EndIfInterrupted();
      const int64_t own = all.counts[i], to = results[i];
      const uint64_t* const pairs = all.pairs + all.begins[i];
      for (int64_t j = 0; j < own; ++j) {
        const uint32_t key = (static_cast<uint32_t>(pairs[j] >> 32) ^ from.flipped) << bits;
        ranks[j] = static_cast<int32_t>((key | static_cast<uint32_t>(j)) ^ uint32_t{1} << 31);
      }
      SortNumbers(nullptr, ranks.get(), other.get(), own);
      for (int64_t j = 0; j < own; ++j) {
        const uint64_t pair = pairs[ranks[j] & (buckets - 1)];
        sorted_keys[to + j] = static_cast<uint32_t>(pair >> 32);
        sorted_values[to + j] = static_cast<uint32_t>(pair);
      }
    }
  };
  if (parts == 1) {
    sort_part(0);
  } else {
    ParallelFor(*pool, parts, sort_part);
  }
  return true;
}

// Sorts integers whose lower halves ascend.
void SortPacked(ffi::ThreadPool* pool, int64_t* packed, int64_t* spare, int64_t size) {
  if (!SortByBuckets(pool, packed, spare, size)) SortNumbers(pool, packed, spare, size);
}

// Rows of arrays that are sorted together.
class Rows {
 public:
  Rows(std::vector<Operand> operands, int64_t keys, int64_t size)
      : operands_(std::move(operands)), keys_(keys), size_(size) {}

  // Sorts the rows from `begin` to `end`, each on all threads unless `pool` is null.
  void Sort(ffi::ThreadPool* pool, int64_t begin, int64_t end) const {
    if (operands_.size() > 1) return SortTogether(pool, begin, end);
    ByWidth(operands_[0].width, [&](auto bits) {
      using Bits = decltype(bits);
      const Order<Bits> order = OrderOf<Bits>(operands_[0].type);
      switch (order.kind) {  // Constants, for the compiler.
        case Kind::kUnsigned:
          return SortAlone<Bits>(pool, {Kind::kUnsigned, 0}, begin, end);
        case Kind::kSigned:
          return SortAlone<Bits>(pool, {Kind::kSigned, 0}, begin, end);
        case Kind::kFloat:
          return SortAlone<Bits>(pool, {Kind::kFloat, order.infinity}, begin, end);
      }
    });
  }

 private:
  // Numbers that nothing goes along with.
  template <typename Bits>
  void SortAlone(ffi::ThreadPool* pool, Order<Bits> order, int64_t begin, int64_t end) const {
    using Int = std::conditional_t<sizeof(Bits) == 8, int64_t, int32_t>;
    constexpr bool kNarrow = sizeof(Bits) <= 2;
    constexpr int64_t kFewCounts = sizeof(Bits) == 1 ? 64 : 8192;
    const bool counted = kNarrow && size_ >= kFewCounts;
    constexpr int64_t kShort = 16;
    if (size_ <= kShort && end - begin > 1) return SortShort<Bits, Int>(order, begin, end);
    // Keys as wide as elements are sorted where the result will be.
    const auto wider = Uninitialized<Int>(kNarrow && !counted ? size_ : 0);
    const auto spare = Uninitialized<Int>(counted ? 0 : size_);
    for (int64_t row = begin; row < end; ++row) {
      EndIfInterrupted();
      const Bits* from = operands_[0].row<Bits>(row, size_);
      Bits* to = operands_[0].result<Bits>(row, size_);
      Int* keys = wider.get();
      if constexpr (kNarrow) {
        if (counted) {
          SortByCounts(from, to, size_, order);
          continue;
        }
      } else {
        keys = reinterpret_cast<Int*>(to);
      }
      std::atomic<bool> any_ambiguous{false};
      ForRanges(pool, size_, [&](int64_t begin, int64_t end) {
        if (EncodeAll(from + begin, keys + begin, end - begin, order)) any_ambiguous = true;
      });
      if (!kNarrow && order.kind == Kind::kFloat) {
        SortNumbers<true>(pool, keys, spare.get(), size_);
      } else {
        SortNumbers(pool, keys, spare.get(), size_);
      }
      if (kNarrow || order.kind == Kind::kUnsigned) {
        ForRanges(pool, size_, [&](int64_t begin, int64_t end) {
          DecodeAll(keys + begin, to + begin, end - begin, order);
        });
      }
      if (any_ambiguous) RestoreBits(from, to, size_, order);
    }
  }

  // Rows of few numbers, many at once: vectors hold the elements at one place of all of them.
  template <typename Bits, typename Int>
  void SortShort(Order<Bits> order, int64_t begin, int64_t end) const {
    constexpr int64_t kTogether = 64;
    const int64_t size = size_;
    std::vector<Int> columns(size * kTogether);
    for (int64_t row = begin; row < end; row += kTogether) {
      EndIfInterrupted();
      const int64_t count = std::min(kTogether, end - row);
      const Bits* const from = operands_[0].row<Bits>(row, size);
      Bits* const to = operands_[0].result<Bits>(row, size);
      bool any_ambiguous = false;
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < size; ++j) {
          const Bits bits = from[i * size + j];
          any_ambiguous |= order.IsAmbiguous(bits);
          columns[j * kTogether + i] = order.Encode(bits);
        }
      }
      const auto compare = [&](int64_t first, int64_t second) {
        Int* const low = columns.data() + first * kTogether;
        Int* const high = columns.data() + second * kTogether;
        for (int64_t i = 0; i < kTogether; ++i) {
          const Int x = low[i], y = high[i];
          low[i] = std::min(x, y);
          high[i] = std::max(x, y);
        }
      };
      // Source: D. E. Knuth, The art of computer programming 3 (1998), algorithm 5.2.2M.
      int64_t half = 1;
      while (2 * half < size) half *= 2;
      for (int64_t step = half; step > 0; step /= 2) {
        int64_t apart = step, wanted = 0;
        for (int64_t next = half;; next /= 2) {
          for (int64_t i = 0; i + apart < size; ++i) {
            if ((i & step) == wanted) compare(i, i + apart);
          }
          if (next == step) break;
          apart = next - step;
          wanted = step;
        }
      }
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t j = 0; j < size; ++j) {
          to[i * size + j] = order.Decode(columns[j * kTogether + i]);
        }
        if (any_ambiguous) RestoreBits(from + i * size, to + i * size, size, order);
      }
    }
  }

  // By positions: from the last key, which matters least, to the first.
  void SortTogether(ffi::ThreadPool* pool, int64_t begin, int64_t end) const {
    const int64_t listed = keys_ > 1 || operands_[0].width == 8 ? size_ : 0;
    const auto positions = Uninitialized<uint32_t>(listed), before = Uninitialized<uint32_t>(listed);
    std::unique_ptr<int64_t[]> packed, spare;
    for (int64_t row = begin; row < end; ++row) {
      EndIfInterrupted();
      if (SortAsPairs(pool, row)) continue;
      if (packed == nullptr) {
        packed = Uninitialized<int64_t>(size_);
        spare = Uninitialized<int64_t>(size_);
      }
      for (int64_t k = keys_ - 1; k >= 0; --k) {
        if (k < keys_ - 1) std::copy(positions.get(), positions.get() + size_, before.get());
        ByWidth(operands_[k].width, [&](auto bits) {
          using Bits = decltype(bits);
          SortPositions<Bits>(pool, operands_[k].row<Bits>(row, size_),
                              OrderOf<Bits>(operands_[k].type), before.get(), positions.get(),
                              packed.get(), spare.get(), k == keys_ - 1);
        });
      }
      if (keys_ == 1 && operands_[0].width <= 4) {
        // Packed integers hold all that is needed.
        const auto position = [&](int64_t i) { return static_cast<uint32_t>(packed[i]); };
        const bool unpacked = UnpackKeys(pool, row, packed.get());
        for (size_t i = unpacked ? 1 : 0; i < operands_.size(); ++i) {
          Gather(pool, operands_[i], row, position);
        }
        continue;
      }
      const auto position = [&](int64_t i) { return positions[i]; };
      for (const Operand& operand : operands_) Gather(pool, operand, row, position);
    }
  }

  // Integers with one value each of the same width.
  bool SortAsPairs(ffi::ThreadPool* pool, int64_t row) const {
    if (keys_ > 1 || operands_.size() != 2) return false;
    const Operand &keys = operands_[0], &values = operands_[1];
    if (keys.width != 4 || values.width != 4) return false;
    const Kind kind = OrderOf<uint32_t>(keys.type).kind;
    if (kind == Kind::kFloat) return false;
    const Pairs pairs{keys.row<uint32_t>(row, size_), values.row<uint32_t>(row, size_), size_,
                      kind == Kind::kSigned ? uint32_t{1} << 31 : 0};
    return SortPairs(pool, pairs, keys.result<uint32_t>(row, size_),
                     values.result<uint32_t>(row, size_));
  }

  // Takes the sorted key from what positions were sorted by, if it is all there.
  bool UnpackKeys(ffi::ThreadPool* pool, int64_t row, const int64_t* packed) const {
    const Operand& operand = operands_[0];
    if (operand.width != 4) return false;
    const auto order = OrderOf<uint32_t>(operand.type);
    if (order.kind == Kind::kFloat) {
      const uint32_t* from = operand.row<uint32_t>(row, size_);
      uint32_t ambiguous = 0;
      for (int64_t i = 0; i < size_; ++i) ambiguous |= uint32_t(order.IsAmbiguous(from[i]));
      if (ambiguous != 0) return false;
    }
    uint32_t* to = operand.result<uint32_t>(row, size_);
    ForRanges(pool, size_, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = order.Decode(packed[i] >> 32);
    });
    return true;
  }

  // Sorts positions by their keys to `positions`; those with equal keys keep the order in which they
  // are in `before`, or, if `counted`, are all positions in their order. `packed` and `spare` have as
  // many elements. The positions of a single narrow key stay in `packed`.
  template <typename Bits>
  void SortPositions(ffi::ThreadPool* pool, const Bits* keys, Order<Bits> order,
                     uint32_t* before, uint32_t* positions, int64_t* packed, int64_t* spare,
                     bool counted) const {
    const int64_t size = size_;
    // Of wide keys 32 bits are compared, from the first in which they differ.
    typename Order<Bits>::Int least = 0;
    int shift = 0;
    if constexpr (sizeof(Bits) == 8) {
      least = std::numeric_limits<int64_t>::max();
      int64_t greatest = std::numeric_limits<int64_t>::lowest();
      for (int64_t i = 0; i < size; ++i) {
        const int64_t key = order.Encode(keys[i]);
        least = std::min(least, key);
        greatest = std::max(greatest, key);
      }
      const uint64_t range = static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least);
      shift = range == 0 ? 0 : std::max(0, 32 - __builtin_clzll(range));
    }
    const auto packer = [order, least, shift](Bits bits, int64_t rank) {
      const auto key = order.Encode(bits);
      if constexpr (sizeof(Bits) < 8) {
        return Packed(Above(key, -(int64_t{1} << 31)), rank);
      } else {
        return Packed(Above(key, least) >> shift, rank);
      }
    };
    ForRanges(pool, size, [&](int64_t begin, int64_t end) {
      const auto pack = packer;  // Not in memory that the compiler supposes to be overwritten.
      if (counted) {
        for (int64_t i = begin; i < end; ++i) packed[i] = pack(keys[i], i);
      } else {
        for (int64_t i = begin; i < end; ++i) packed[i] = pack(keys[before[i]], i);
      }
    });
    SortPacked(pool, packed, spare, size);
    if (counted && sizeof(Bits) <= 4 && keys_ == 1) return;
    ForRanges(pool, size, [&](int64_t begin, int64_t end) {
      if (counted) {
        for (int64_t i = begin; i < end; ++i) positions[i] = static_cast<uint32_t>(packed[i]);
      } else {
        for (int64_t i = begin; i < end; ++i) {
          positions[i] = before[static_cast<uint32_t>(packed[i])];
        }
      }
    });
    if constexpr (sizeof(Bits) == 8) {
      for (int64_t begin = 0, end; shift > 0 && begin < size; begin = end) {
        for (end = begin + 1; end < size && packed[end] >> 32 == packed[begin] >> 32;) ++end;
        if (end - begin == 1) continue;
        SortRun(pool, keys, order, before + begin, positions + begin, packed + begin, spare + begin,
                end - begin);
      }
    }
  }

  // Sorts a run of positions whose keys agree but for 32 bits.
  template <typename Bits>
  static void SortRun(ffi::ThreadPool* pool, const Bits* keys, Order<Bits> order, uint32_t* before,
                      uint32_t* positions, int64_t* packed, int64_t* spare, int64_t size) {
    if (size == 2) {
      if (order.Encode(keys[positions[1]]) < order.Encode(keys[positions[0]])) {
        std::swap(positions[0], positions[1]);
      }
      return;
    }
    // Keys are all over the memory: each is looked up once.
    ForRanges(pool, size, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        before[i] = positions[i];
        spare[i] = order.Encode(keys[positions[i]]);
      }
    });
    const int64_t least = *std::min_element(spare, spare + size);
    for (int64_t i = 0; i < size; ++i) packed[i] = Packed(Above(spare[i], least), i);
    SortPacked(pool, packed, spare, size);
    ForRanges(pool, size, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        positions[i] = before[static_cast<uint32_t>(packed[i])];
      }
    });
  }

  static uint64_t Above(int64_t key, int64_t least) {
    return static_cast<uint64_t>(key) - static_cast<uint64_t>(least);
  }

  // An integer with 32 bits in its upper half, and the rank in the lower half.
  static int64_t Packed(uint64_t bits, int64_t rank) {
    return static_cast<int64_t>((bits ^ uint64_t{1} << 31) << 32 | static_cast<uint64_t>(rank));
  }

  template <typename PositionOf>
  void Gather(ffi::ThreadPool* pool, const Operand& operand, int64_t row,
              const PositionOf& position) const {
    const auto gather = [&](auto word) {
      using Word = decltype(word);
      const Word* from = operand.row<Word>(row, size_);
      Word* to = operand.result<Word>(row, size_);
      if constexpr (std::is_same_v<Word, uint32_t> || std::is_same_v<Word, uint64_t>) {
        // Positions themselves, as of argsort, need not be looked up in memory.
        const Word first = from[0];
        int64_t i = 1;
        while (i < size_ && from[i] == Word(first + Word(i))) ++i;
        if (i == size_) {
          return ForRanges(pool, size_, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) to[i] = Word(first + position(i));
          });
        }
      }
      ForRanges(pool, size_, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = from[position(i)];
      });
    };
    if (operand.width == 16) return gather(std::array<uint64_t, 2>());
    ByWidth(operand.width, gather);
  }

  std::vector<Operand> operands_;
  int64_t keys_;
  int64_t size_;
};

// Sorts columns of matrices of `inner` columns each, some at a time as rows beside them.
void SortColumns(ffi::ThreadPool& pool, const std::vector<Operand>& operands, int64_t keys,
                 int64_t outer, int64_t size, int64_t inner) {
  const int64_t shared = std::max<int64_t>(1, outer * inner / ThreadsOf(pool));
  const int64_t most = std::min<int64_t>({16, inner, shared});
  const int64_t across = (inner + most - 1) / most;
  ParallelFor(pool, outer * across, [&](int64_t task) {
    const int64_t matrix = task / across, first = task % across * most;
    const int64_t count = std::min(most, inner - first), start = matrix * size * inner + first;
    std::vector<Operand> rows;
    std::vector<std::unique_ptr<char[]>> memory;
    for (const Operand& operand : operands) {
      const int64_t bytes = count * size * operand.width;
      memory.push_back(Uninitialized<char>(2 * bytes));
      char* const from = memory.back().get();
      ByWidth(operand.width, [&](auto bits) {
        using Bits = decltype(bits);
        Transpose(operand.row<Bits>(0, 0) + start, inner, size, count,
                  reinterpret_cast<Bits*>(from), size);
      });
      rows.push_back({from, from + bytes, operand.width, operand.type});
    }
    Rows(rows, keys, size).Sort(nullptr, 0, count);
    for (size_t i = 0; i < operands.size(); ++i) {
      ByWidth(operands[i].width, [&](auto bits) {
        using Bits = decltype(bits);
        Transpose(static_cast<const Bits*>(rows[i].result<Bits>(0, 0)), size, count, size,
                  operands[i].result<Bits>(0, 0) + start, inner);
      });
    }
  });
}

// Sorts arrays together along the dimension after which there are `after` others, by the first
// `num_keys` of them.
ffi::Error Sort(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                int64_t num_keys, int64_t after) {
  std::vector<Operand> operands;
  int64_t total = 0, size = 0, inner = 1;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto from = args.get<ffi::AnyBuffer>(i);
    auto to = rets.get<ffi::AnyBuffer>(i);
    if (!from.has_value()) return from.error();
    if (!to.has_value()) return to.error();
    const ffi::DataType type = from->element_type();
    const auto shape = from->dimensions();
    size = shape[shape.size() - 1 - after];
    total = from->element_count();
    inner = 1;
    for (size_t j = shape.size() - after; j < shape.size(); ++j) inner *= shape[j];
    operands.push_back({static_cast<const char*>(from->untyped_data()),
                        static_cast<char*>((*to)->untyped_data()),
                        static_cast<int64_t>(ffi::ByteWidth(type)), type});
  }
  if (total == 0) return ffi::Error::Success();
  if (inner > 1) {
    SortColumns(pool, operands, num_keys, total / size / inner, size, inner);
    return ffi::Error::Success();
  }
  const int64_t rows = total / size;
  const Rows sorted(std::move(operands), num_keys, size);
  const bool within_rows = rows == 1 || (rows < ThreadsOf(pool) && size >= 2 * kPerThread);
  const int64_t parts = within_rows ? 1 : std::min(rows, PartsOf(pool, kStepsOfSort * total));
  ParallelFor(pool, parts, [&](int64_t part) {
    sorted.Sort(within_rows ? &pool : nullptr, rows * part / parts, rows * (part + 1) / parts);
  });
  return ffi::Error::Success();
}

// Small arrays in the memory of the host. Numbers: rows, their size, keys, arrays, and for each the
// bytes of an element and whether these are 0 unsigned, 1 signed, 2 floats. Results are at multiples
// of 64 bytes.
void SortOnHost(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const int64_t rows = numbers[0], size = numbers[1];
  if (rows == 0 || size == 0) return;
  std::vector<Operand> arrays;
  char* to = static_cast<char*>(result);
  for (ptrdiff_t k = 0; k < numbers[3]; ++k) {
    const int64_t width = numbers[4 + 2 * k], kind = numbers[5 + 2 * k];
    const ffi::DataType floats = width == 8   ? ffi::DataType::F64
                                 : width == 4 ? ffi::DataType::F32
                                              : ffi::DataType::F16;
    const ffi::DataType type = kind == 0   ? ffi::DataType::U32
                               : kind == 1 ? ffi::DataType::S32
                                           : floats;
    arrays.push_back({static_cast<const char*>(operands[k]), to, width, type});
    to += (rows * size * width + 63) / 64 * 64;
  }
  const Rows sorted(std::move(arrays), numbers[2], size);
  Uninterrupted([&] { sorted.Sort(nullptr, 0, rows); });
}

const HostEntry kSort = {"sort", "*", SortOnHost, kSome};

}  // namespace

const HostEntry* SortFunctions(size_t* count) {
  *count = 1;
  return &kSort;
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_sort, dovetail::Sort,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .RemainingArgs()
                    .RemainingRets()
                    .Attr<int64_t>("num_keys")
                    .Attr<int64_t>("after"));
#pragma GCC visibility pop
