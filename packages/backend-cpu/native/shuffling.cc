// Arrays in random order, as JAX makes it: sorted by random words, stably, several times.
//
// What is written to memory on the way is pairs of a word and a value alone, in buckets of the
// words' highest bits. Words are drawn where their pairs go into buckets. A bucket is sorted in the
// nearest cache, and its values go on to the buckets of the next sort, or to the result.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel.h"
#include "key_order.h"
#include "large_pages.h"
#include "parallel.h"
#include "threefry.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Fewer are sorted as quickly without buckets.
constexpr int64_t kFew = 1 << 12;
// More buckets would be written to than stay in the nearest caches. The position in a bucket takes
// as many bits.
constexpr int kMostBits = 12;
// Each part of an array has buckets of its own, which are short where there are many.
constexpr int64_t kMostParts = 8;

// How many pairs a bucket has room for, which chance exceeds in one of 10**5 arrays. As an odd
// number of cache lines, so that buckets do not meet in the same places of a cache.
int64_t RoomOf(int64_t size, int bits) {
  const double mean = std::ldexp(static_cast<double>(size), -bits);
  return ((static_cast<int64_t>(mean + 6 * std::sqrt(mean) + 8) / 8 + 1) | 1) * 8;
}

// By how many bits of words pairs go into buckets; 0 if they do not. The fewest by which positions
// in a bucket fit beside the other bits of a word.
int BitsOf(int64_t size) {
  if (size < kFew) return 0;
  int bits = 1;
  while (bits <= kMostBits && RoomOf(size, bits) > int64_t{1} << bits) ++bits;
  return bits <= kMostBits ? bits : 0;
}

// The words of the counters from `begin` to `end`, which are below 2**32, so that a block may begin
// anywhere.
void DrawWords(const uint32_t* key, int64_t begin, int64_t end, uint32_t* to) {
  ForCounters(key, begin, end, [=](int64_t i, uint32_t first, uint32_t second) {
    to[i - begin] = first ^ second;
  });
}

// Pairs in buckets, for each part of an array its own, so that threads share none.
class Buckets {
 public:
  // There is memory for so many pairs.
  static int64_t SizeOf(int64_t size, int bits, int64_t parts) {
    return (parts << bits) * RoomOf(size / parts, bits);
  }

  Buckets(int64_t size, int bits, int64_t parts, uint64_t* memory)
      : bits_(bits),
        parts_(parts),
        room_(RoomOf(size / parts, bits)),
        counts_(parts << bits),
        pairs_(memory) {}

  // Empties those of a part.
  void Clear(int64_t part) {
    std::fill_n(counts_.begin() + (part << bits_), int64_t{1} << bits_, 0);
  }

  // Adds pairs to those of a part. Returns whether there was room.
  bool Add(int64_t part, const uint32_t* words, const uint32_t* values, int64_t size) {
    const int shift = 32 - bits_;
    const int64_t room = room_;
    uint32_t* const counts = counts_.data() + (part << bits_);
    uint64_t* const pairs = pairs_ + (part << bits_) * room;
    for (int64_t i = 0; i < size; ++i) {
      const uint32_t bucket = words[i] >> shift, before = counts[bucket];
      if (before >= room) return false;
      counts[bucket] = before + 1;
      uint64_t* const to = pairs + bucket * room + before;
      *to = uint64_t{words[i]} << 32 | values[i];
      // A store that waits for a distant cache makes all others wait, so it is asked for early.
      __builtin_prefetch(to + 8, 1);
    }
    return true;
  }

  int64_t CountIn(int64_t bucket) const {
    int64_t count = 0;
    for (int64_t part = 0; part < parts_; ++part) count += counts_[(part << bits_) + bucket];
    return count;
  }

  // Asks for a bucket, which will be sorted soon.
  void Prefetch(int64_t bucket) const {
    for (int64_t part = 0; part < parts_; ++part) {
      const uint64_t* const pairs = pairs_ + ((part << bits_) + bucket) * room_;
      for (int64_t i = 0; i < counts_[(part << bits_) + bucket]; i += 8) {
        __builtin_prefetch(pairs + i);
      }
    }
  }

  // Writes the values of a bucket in the order of their words. `ranks`, `spare` and `values` have
  // room for them.
  void Sort(int64_t bucket, int32_t* ranks, int32_t* spare, uint32_t* values, uint32_t* to) const {
    int64_t size = 0;
    for (int64_t part = 0; part < parts_; ++part) {
      const int64_t own = counts_[(part << bits_) + bucket];
      const uint64_t* const pairs = pairs_ + ((part << bits_) + bucket) * room_;
      for (int64_t i = 0; i < own; ++i) {
        const uint32_t word = static_cast<uint32_t>(pairs[i] >> 32) << bits_;
        const uint32_t rank = word | static_cast<uint32_t>(size + i);
        ranks[size + i] = static_cast<int32_t>(rank ^ uint32_t{1} << 31);
        values[size + i] = static_cast<uint32_t>(pairs[i]);
      }
      size += own;
    }
    SortNumbers(nullptr, ranks, spare, size);
    const int32_t mask = (int32_t{1} << bits_) - 1;
    for (int64_t i = 0; i < size; ++i) to[i] = values[ranks[i] & mask];
  }

 private:
  int bits_;
  int64_t parts_, room_;
  std::vector<uint32_t> counts_;
  uint64_t* pairs_;
};

// What is shuffled: values of 32 bits, or the numbers from 0 if there are none; and two words of a
// key for each sort.
struct Deck {
  const uint32_t* values;
  int64_t size;
  std::vector<const uint32_t*> keys;

  // Writes some values.
  void Deal(int64_t begin, int64_t end, uint32_t* to) const {
    if (values != nullptr) {
      std::copy(values + begin, values + end, to);
    } else {
      std::iota(to, to + (end - begin), static_cast<uint32_t>(begin));
    }
  }
};

// Calls emit(begin, end, values) with the values of the result from `begin` to `end`, for all of
// them in any order. Returns whether buckets had room; if not, some may have been emitted.
template <typename Emit>
bool ShuffleByBuckets(ffi::ThreadPool& pool, const Deck& deck, int bits, const Emit& emit) {
  const int64_t size = deck.size, buckets = int64_t{1} << bits;
  const int64_t parts = std::min(kMostParts, PartsOf(pool, kStepsOfSort * size));
  const int64_t needed = Buckets::SizeOf(size, bits, parts);
  const KeptPages<uint64_t> memory((deck.keys.size() > 1 ? 2 : 1) * needed);
  Buckets some(size, bits, parts, memory.get());
  Buckets others(size, bits, parts, memory.get() + needed);
  Buckets *from = &some, *to = &others;
  std::atomic<bool> suffices{true};
  ParallelFor(pool, parts, [&](int64_t part) {
    constexpr int64_t kPiece = 4 * kBlock;
    uint32_t words[kPiece], values[kPiece];
    const int64_t end = size * (part + 1) / parts;
    for (int64_t i = size * part / parts; i < end && suffices; i += kPiece) {
      EndIfInterrupted();
      const int64_t stop = std::min(end, i + kPiece);
      DrawWords(deck.keys[0], i, stop, words);
      deck.Deal(i, stop, values);
      if (!from->Add(part, words, values, stop - i)) suffices = false;
    }
  });
  std::vector<int64_t> begins(buckets + 1);
  for (size_t sort = 0; sort < deck.keys.size() && suffices; ++sort, std::swap(from, to)) {
    int64_t longest = 0;
    for (int64_t i = 0; i < buckets; ++i) {
      const int64_t count = from->CountIn(i);
      longest = std::max(longest, count);
      begins[i + 1] = begins[i] + count;
    }
    if (longest > buckets) return false;
    const bool is_last = sort + 1 == deck.keys.size();
    ParallelFor(pool, parts, [&](int64_t part) {
      const auto numbers = Uninitialized<int32_t>(2 * longest);
      const auto memory = Uninitialized<uint32_t>(3 * longest);
      uint32_t *const values = memory.get(), *const sorted = values + longest;
      uint32_t* const words = sorted + longest;
      if (!is_last) to->Clear(part);
      const int64_t end = buckets * (part + 1) / parts;
      for (int64_t i = buckets * part / parts; i < end && suffices; ++i) {
        EndIfInterrupted();
        if (i + 1 < end) from->Prefetch(i + 1);
        from->Sort(i, numbers.get(), numbers.get() + longest, values, sorted);
        if (is_last) {
          emit(begins[i], begins[i + 1], sorted);
          continue;
        }
        DrawWords(deck.keys[sort + 1], begins[i], begins[i + 1], words);
        if (!to->Add(part, words, sorted, begins[i + 1] - begins[i])) suffices = false;
      }
    });
  }
  return suffices;
}

// The same without buckets.
template <typename Emit>
void ShuffleAtOnce(ffi::ThreadPool& pool, const Deck& deck, const Emit& emit) {
  const int64_t size = deck.size;
  const auto words = Uninitialized<uint32_t>(size);
  const auto packed = Uninitialized<int64_t>(size), spare = Uninitialized<int64_t>(size);
  auto values = Uninitialized<uint32_t>(size), next = Uninitialized<uint32_t>(size);
  deck.Deal(0, size, values.get());
  for (const uint32_t* key : deck.keys) {
    DrawWords(key, 0, size, words.get());
    for (int64_t i = 0; i < size; ++i) {
      const uint64_t word = words[i] ^ uint32_t{1} << 31;
      packed[i] = static_cast<int64_t>(word << 32 | static_cast<uint64_t>(i));
    }
    SortNumbers(&pool, packed.get(), spare.get(), size);
    for (int64_t i = 0; i < size; ++i) next[i] = values[static_cast<uint32_t>(packed[i])];
    std::swap(values, next);
  }
  emit(0, size, values.get());
}

template <typename Emit>
void Shuffle(ffi::ThreadPool& pool, const Deck& deck, const Emit& emit) {
  const int bits = BitsOf(deck.size);
  if (bits > 0 && ShuffleByBuckets(pool, deck, bits, emit)) return;
  ShuffleAtOnce(pool, deck, emit);
}

// Shuffles an array, or the numbers from 0 if the first argument is none; all others are keys.
ffi::Error ShuffleArray(ffi::ThreadPool pool, ffi::RemainingArgs args,
                        ffi::Result<ffi::AnyBuffer> out, int64_t numbers) {
  Deck deck{nullptr, static_cast<int64_t>(out->element_count()), {}};
  const void* array = nullptr;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto arg = args.get<ffi::AnyBuffer>(i);
    if (!arg.has_value()) return arg.error();
    if (i == 0 && numbers == 0) {
      array = arg->untyped_data();
    } else {
      deck.keys.push_back(static_cast<const uint32_t*>(arg->untyped_data()));
    }
  }
  if (deck.size == 0) return ffi::Error::Success();
  const auto with = [&](auto element) {
    using Element = decltype(element);
    Element* const to = static_cast<Element*>(out->untyped_data());
    if constexpr (sizeof(Element) == 4) {
      deck.values = static_cast<const uint32_t*>(array);
      Shuffle(pool, deck, [=](int64_t begin, int64_t end, const uint32_t* values) {
        std::memcpy(to + begin, values, (end - begin) * sizeof(*values));
      });
    } else if (array == nullptr) {
      if constexpr (std::is_integral_v<Element>) {
        Shuffle(pool, deck, [=](int64_t begin, int64_t end, const uint32_t* values) {
          std::copy(values, values + (end - begin), to + begin);
        });
      }
    } else {
      const Element* const from = static_cast<const Element*>(array);
      Shuffle(pool, deck, [=](int64_t begin, int64_t end, const uint32_t* values) {
        for (int64_t i = begin; i < end; ++i) to[i] = from[values[i - begin]];
      });
    }
  };
  if (ffi::ByteWidth(out->element_type()) == 16) {
    with(std::array<uint64_t, 2>());
  } else {
    ByWidth(static_cast<int64_t>(ffi::ByteWidth(out->element_type())), with);
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_shuffle, dovetail::ShuffleArray,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .RemainingArgs()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("numbers"));
#pragma GCC visibility pop
