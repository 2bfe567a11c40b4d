// Stable sorting of arrays by keys of numbers.
//
// Keys become signed integers in the same order: unsigned ones by their sign bit, floats by their
// bits, with -0 as 0 and every NaN as the greatest. What goes along with keys is moved by positions,
// which stand in the lower half of an integer whose upper half is the key: so any sorting of
// integers is stable.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "parallel.h"
#include "quicksort.h"
#include "radix_sort.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Sorts integers in place. `spare` has as many elements; `pool` may be null.
template <typename T>
void SortNumbers(ffi::ThreadPool* pool, T* elements, T* spare, int64_t size) {
#if defined(DOVETAIL_VECTORS)
  SortIntegers(pool, elements, spare, size);
#else
  SortByDigits(pool, elements, spare, size);
#endif
}

enum class Kind { kUnsigned, kSigned, kFloat };

// The order of keys that are given by their bits.
template <typename Bits>
struct Order {
  using Int = std::make_signed_t<Bits>;
  static constexpr Bits kSign = Bits(1) << (std::numeric_limits<Bits>::digits - 1);
  static constexpr Int kNan = std::numeric_limits<Int>::max();

  Kind kind;
  Bits infinity;  // The greatest float.

  bool IsNan(Bits bits) const { return Bits(bits & Bits(~kSign)) > infinity; }

  // Whether a float is equal to others with other bits.
  bool IsAmbiguous(Bits bits) const {
    return kind == Kind::kFloat && (bits == kSign || IsNan(bits));
  }

  Int Encode(Bits bits) const {
    if (kind == Kind::kSigned) return Int(bits);
    if (kind == Kind::kUnsigned) return Int(bits ^ kSign);
    const Int x = bits == kSign ? 0 : Int(bits);
    const Int encoded = x < 0 ? Int(x ^ Int(~kSign)) : x;
    return IsNan(bits) ? kNan : encoded;
  }

  // What Encode was given, unless that was ambiguous.
  Bits Decode(Int key) const {
    if (kind == Kind::kSigned) return Bits(key);
    if (kind == Kind::kUnsigned) return Bits(key) ^ kSign;
    return key < 0 ? Bits(key ^ Int(~kSign)) : Bits(key);
  }
};

template <typename Bits>
Order<Bits> OrderOf(ffi::DataType type) {
  switch (type) {
    case ffi::DataType::S8:
    case ffi::DataType::S16:
    case ffi::DataType::S32:
    case ffi::DataType::S64:
      return {Kind::kSigned, 0};
    case ffi::DataType::F16:
      return {Kind::kFloat, Bits(0x7C00)};
    case ffi::DataType::BF16:
      return {Kind::kFloat, Bits(0x7F80)};
    case ffi::DataType::F32:
      return {Kind::kFloat, Bits(0x7F800000)};
    case ffi::DataType::F64:
      return {Kind::kFloat, Bits(0x7FF0000000000000)};
    default:
      return {Kind::kUnsigned, 0};
  }
}

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

// Calls f with a value of the type of unsigned integers of a width.
template <typename F>
void ByWidth(int64_t width, const F& f) {
  switch (width) {
    case 1:
      return f(uint8_t());
    case 2:
      return f(uint16_t());
    case 4:
      return f(uint32_t());
    default:
      return f(uint64_t());
  }
}

template <typename T>
std::unique_ptr<T[]> Uninitialized(int64_t size) {
  return std::unique_ptr<T[]>(new T[size]);
}

// Puts back zeros and NaNs whose bits keys do not tell, in the order of a stable sort.
template <typename Bits>
void RestoreBits(const Bits* from, Bits* to, int64_t size, Order<Bits> order) {
  std::vector<Bits> zeros, nans;
  int64_t negative = 0;
  for (int64_t i = 0; i < size; ++i) {
    const auto key = order.Encode(from[i]);
    negative += key < 0;
    if (key == 0) zeros.push_back(from[i]);
    if (order.IsNan(from[i])) nans.push_back(from[i]);
  }
  std::copy(zeros.begin(), zeros.end(), to + negative);
  std::copy(nans.begin(), nans.end(), to + size - nans.size());
}

// Keys of up to 16 bits by how often each occurs.
template <typename Bits>
void SortByCounts(const Bits* from, Bits* to, int64_t size, Order<Bits> order) {
  constexpr int64_t kValues = int64_t{1} << std::numeric_limits<Bits>::digits;
  std::vector<int64_t> counts(kValues);
  for (int64_t i = 0; i < size; ++i) ++counts[order.Encode(from[i]) + kValues / 2];
  for (int64_t value = 0; value < kValues; ++value) {
    const Bits bits = order.Decode(value - kValues / 2);
    to = std::fill_n(to, counts[value], bits);
  }
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
    constexpr int64_t kFewCounts = sizeof(Bits) == 1 ? 64 : 8192;
    const bool counted = sizeof(Bits) <= 2 && size_ >= kFewCounts;
    const auto keys = Uninitialized<Int>(counted ? 0 : size_);
    const auto spare = Uninitialized<Int>(counted ? 0 : size_);
    for (int64_t row = begin; row < end; ++row) {
      const Bits* from = operands_[0].row<Bits>(row, size_);
      Bits* to = operands_[0].result<Bits>(row, size_);
      bool ambiguous = false;
      if constexpr (sizeof(Bits) <= 2) {
        if (counted) {
          for (int64_t i = 0; i < size_; ++i) ambiguous |= order.IsAmbiguous(from[i]);
          SortByCounts(from, to, size_, order);
          if (ambiguous) RestoreBits(from, to, size_, order);
          continue;
        }
      }
      for (int64_t i = 0; i < size_; ++i) {
        ambiguous |= order.IsAmbiguous(from[i]);
        keys[i] = order.Encode(from[i]);
      }
      SortNumbers(pool, keys.get(), spare.get(), size_);
      for (int64_t i = 0; i < size_; ++i) to[i] = order.Decode(keys[i]);
      if (ambiguous) RestoreBits(from, to, size_, order);
    }
  }

  // By positions: from the last key, which matters least, to the first.
  void SortTogether(ffi::ThreadPool* pool, int64_t begin, int64_t end) const {
    const int64_t listed = keys_ > 1 || operands_[0].width == 8 ? size_ : 0;
    const auto positions = Uninitialized<uint32_t>(listed), before = Uninitialized<uint32_t>(listed);
    const auto packed = Uninitialized<int64_t>(size_), spare = Uninitialized<int64_t>(size_);
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t k = keys_ - 1; k >= 0; --k) {
        if (k < keys_ - 1) std::copy(positions.get(), positions.get() + size_, before.get());
        ByWidth(operands_[k].width, [&](auto bits) {
          using Bits = decltype(bits);
          SortPositions<Bits>(pool, operands_[k].row<Bits>(row, size_),
                              OrderOf<Bits>(operands_[k].type), before.get(), positions.get(),
                              packed.get(), spare.get(), size_, k == keys_ - 1);
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

  // Takes the sorted key from what positions were sorted by, if it is all there.
  bool UnpackKeys(ffi::ThreadPool* pool, int64_t row, const int64_t* packed) const {
    const Operand& operand = operands_[0];
    if (operand.width != 4) return false;
    const auto order = OrderOf<uint32_t>(operand.type);
    if (order.kind == Kind::kFloat) {
      const uint32_t* from = operand.row<uint32_t>(row, size_);
      bool ambiguous = false;
      for (int64_t i = 0; i < size_; ++i) ambiguous |= order.IsAmbiguous(from[i]);
      if (ambiguous) return false;
    }
    uint32_t* to = operand.result<uint32_t>(row, size_);
    ForRanges(pool, size_, [&](int64_t begin, int64_t end) {
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
                     int64_t size, bool counted) const {
    const auto position_of = [&](int64_t rank) -> uint32_t { return counted ? rank : before[rank]; };
    // Of wide keys 32 bits are compared, from the first in which they differ.
    typename Order<Bits>::Int least = 0;
    int shift = 0;
    if constexpr (sizeof(Bits) == 8) {
      least = std::numeric_limits<int64_t>::max();
      int64_t greatest = std::numeric_limits<int64_t>::lowest();
      for (int64_t i = 0; i < size; ++i) {
        const int64_t key = order.Encode(keys[position_of(i)]);
        least = std::min(least, key);
        greatest = std::max(greatest, key);
      }
      const uint64_t range = static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least);
      shift = range == 0 ? 0 : std::max(0, 32 - __builtin_clzll(range));
    }
    const auto upper = [&](Bits bits) -> int64_t {
      const auto key = order.Encode(bits);
      if constexpr (sizeof(Bits) < 8) return key;
      const uint64_t above = static_cast<uint64_t>(key) - static_cast<uint64_t>(least);
      return static_cast<int64_t>(above >> shift) - (int64_t{1} << 31);
    };
    const auto pack = [&](Bits bits, int64_t rank) {
      return static_cast<int64_t>(static_cast<uint64_t>(upper(bits)) << 32 |
                                  static_cast<uint64_t>(rank));
    };
    ForRanges(pool, size, [&](int64_t begin, int64_t end) {
      if (counted) {
        for (int64_t i = begin; i < end; ++i) packed[i] = pack(keys[i], i);
      } else {
        for (int64_t i = begin; i < end; ++i) packed[i] = pack(keys[before[i]], i);
      }
    });
    SortNumbers(pool, packed, spare, size);
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
    if (shift == 0) return;
    for (int64_t begin = 0, end; begin < size; begin = end) {
      for (end = begin + 1; end < size && packed[end] >> 32 == packed[begin] >> 32;) ++end;
      if (end - begin == 1) continue;
      if (end - begin > kFewEqual) {
        std::copy(positions + begin, positions + end, before + begin);
        SortPositions(pool, keys, order, before + begin, positions + begin, packed + begin,
                      spare + begin, end - begin, false);
        continue;
      }
      for (int64_t i = begin + 1; i < end; ++i) {
        const uint32_t position = positions[i];
        const auto key = order.Encode(keys[position]);
        int64_t to = i;
        for (; to > begin && order.Encode(keys[positions[to - 1]]) > key; --to) {
          positions[to] = positions[to - 1];
        }
        positions[to] = position;
      }
    }
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

  // So few are sorted by insertion.
  static constexpr int64_t kFewEqual = 16;

  std::vector<Operand> operands_;
  int64_t keys_;
  int64_t size_;
};

// Sorts arrays together along their last dimension, by the first `num_keys` of them.
ffi::Error Sort(ffi::ThreadPool pool, ffi::RemainingArgs args, ffi::RemainingRets rets,
                int64_t num_keys) {
  std::vector<Operand> operands;
  int64_t total = 0, size = 0;
  for (size_t i = 0; i < args.size(); ++i) {
    const auto from = args.get<ffi::AnyBuffer>(i);
    auto to = rets.get<ffi::AnyBuffer>(i);
    if (!from.has_value()) return from.error();
    if (!to.has_value()) return to.error();
    const ffi::DataType type = from->element_type();
    size = from->dimensions().back();
    total = from->element_count();
    operands.push_back({static_cast<const char*>(from->untyped_data()),
                        static_cast<char*>((*to)->untyped_data()),
                        static_cast<int64_t>(ffi::ByteWidth(type)), type});
  }
  if (total == 0) return ffi::Error::Success();
  const int64_t rows = total / size;
  const Rows sorted(std::move(operands), num_keys, size);
  const bool within_rows = rows == 1 || (rows < ThreadsOf(pool) && size >= 2 * kPerThread);
  const int64_t parts = within_rows ? 1 : std::min(rows, PartsOf(pool, total));
  std::atomic<bool> out_of_memory{false};
  ParallelFor(pool, parts, [&](int64_t part) {
    try {
      sorted.Sort(within_rows ? &pool : nullptr, rows * part / parts, rows * (part + 1) / parts);
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  });
  if (out_of_memory) {
    return ffi::Error(ffi::ErrorCode::kResourceExhausted, "out of memory while sorting");
  }
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

XLA_FFI_DEFINE_HANDLER_SYMBOL(dovetail_sort, dovetail::Sort,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .RemainingArgs()
                                  .RemainingRets()
                                  .Attr<int64_t>("num_keys"));
