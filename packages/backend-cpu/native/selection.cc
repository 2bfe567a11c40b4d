// The largest elements of rows, and elements at positions of the sorted order, without sorting all.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel.h"
#include "key_order.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

// Calls body(row) for rows of `size` elements on the threads of a pool.
template <typename Body>
void ForRows(ffi::ThreadPool& pool, int64_t rows, int64_t size, const Body& body) {
  const int64_t parts = std::min(rows, PartsOf(pool, rows * size));
  ForNeighbours(pool, rows, parts, body);
}

// The number of rows along the last dimension.
int64_t RowsOf(const ffi::AnyBuffer& x) {
  const auto dimensions = x.dimensions();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < dimensions.size(); ++i) rows *= dimensions[i];
  return rows;
}

// ------------------------------------------------------------------------------ order statistics

// The element at a position of the order of a stable sort, whose key is known.
//
// Zeros of both signs have one key, and so have NaNs: those are looked for.
template <typename Bits>
Bits Restored(const Bits* from, int64_t size, Order<Bits> order, typename Order<Bits>::Int key,
              int64_t position) {
  if (order.kind != Kind::kFloat || (key != 0 && key != Order<Bits>::kNan)) return order.Decode(key);
  int64_t before = 0;
  for (int64_t i = 0; i < size; ++i) before += order.Encode(from[i]) < key;
  for (int64_t i = 0;; ++i) {
    if (order.Encode(from[i]) == key && before++ == position) return from[i];
  }
}

template <typename Bits>
void OrderStatisticsOfRow(ffi::ThreadPool* pool, const Bits* from, int64_t size, Order<Bits> order,
                          const int32_t* wanted, int64_t count, Bits* to) {
  using Int = std::conditional_t<sizeof(Bits) == 8, int64_t, int32_t>;
  std::vector<int64_t> positions(count);
  for (int64_t i = 0; i < count; ++i) {
    positions[i] = std::clamp<int64_t>(wanted[i], 0, size - 1);
  }
  std::sort(positions.begin(), positions.end());
  const auto keys = Uninitialized<Int>(size), spare = Uninitialized<Int>(size);
  ForRanges(pool, size, [&](int64_t begin, int64_t end) {
    EncodeAll(from + begin, keys.get() + begin, end - begin, order);
  });
  PlaceInOrder(keys.get(), spare.get(), size, positions);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = std::clamp<int64_t>(wanted[i], 0, size - 1);
    using Key = typename Order<Bits>::Int;
    to[i] = Restored(from, size, order, static_cast<Key>(keys[position]), position);
  }
}

// Elements of each row at positions of its sorted order, of all rows or of each.
ffi::Error OrderStatistics(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Buffer<ffi::S32> positions,
                           ffi::Result<ffi::AnyBuffer> out) {
  if (out->element_count() == 0) return ffi::Error::Success();
  const int64_t rows = RowsOf(x), size = x.dimensions().back();
  const int64_t count = positions.dimensions().back();
  const bool common = positions.dimensions().size() == 1;
  const ffi::DataType type = x.element_type();
  ByWidth(ffi::ByteWidth(type), [&](auto bits) {
    using Bits = decltype(bits);
    const auto* from = static_cast<const Bits*>(x.untyped_data());
    auto* to = static_cast<Bits*>(out->untyped_data());
    const Order<Bits> order = OrderOf<Bits>(type);
    ForRows(pool, rows, size, [&](int64_t row) {
      OrderStatisticsOfRow(rows == 1 ? &pool : nullptr, from + row * size, size, order,
                           positions.typed_data() + (common ? 0 : row * count), count,
                           to + row * count);
    });
  });
  return ffi::Error::Success();
}

// ----------------------------------------------------------------------------- largest elements

// Keys of 32 bits in descending order of elements: floats as their bits say, the signs of zeros and
// of NaNs included.
template <typename Bits>
struct Descending {
  using Int = std::make_signed_t<Bits>;
  static constexpr Bits kSign = Order<Bits>::kSign;
  Kind kind;

  Int operator()(Bits bits) const {
    Int key = Int(kind == Kind::kUnsigned ? Bits(bits ^ kSign) : bits);
    if (kind == Kind::kFloat && key < 0) key = Int(key ^ Int(~kSign));
    return Int(~key);
  }
};

// A key and the position of its element, in the order of keys and then of positions.
template <typename Int>
struct Candidate;

template <>
struct Candidate<int32_t> {
  using Type = int64_t;
  static Type Of(int32_t key, int64_t position) {
    return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(key)) << 32 |
                                static_cast<uint64_t>(position));
  }
  static int32_t KeyOf(Type x) { return static_cast<int32_t>(x >> 32); }
  static int64_t PositionOf(Type x) { return x & 0x7FFFFFFF; }
  static void SortFirst(Type* elements, Type* spare, int64_t size, int64_t count) {
    dovetail::SortFirst(elements, spare, size, count);
  }
};

template <>
struct Candidate<int64_t> {
  using Type = std::pair<int64_t, int64_t>;
  static Type Of(int64_t key, int64_t position) { return {key, position}; }
  static int64_t KeyOf(Type x) { return x.first; }
  static int64_t PositionOf(Type x) { return x.second; }
  static void SortFirst(Type* elements, Type*, int64_t size, int64_t count) {
    if (count < size) std::nth_element(elements, elements + count, elements + size);
    std::sort(elements, elements + count);
  }
};

// Writes the elements of a row that may be among its first `count`, and returns their number.
//
// Of as many blocks the least keys are no greater than the last of these: `count` elements at least,
// and all that are wanted. Of those that equal it the first are enough.
template <int64_t kBlock, typename Bits, typename Key, typename Type>
int64_t FindCandidates(const Bits* from, int64_t size, Descending<Bits> key_of, int64_t count,
                       Key bound, const Key* least, Type* kept) {
  int64_t found = 0, equal = 0;
  for (int64_t begin = 0; begin < size; begin += kBlock, ++least) {
    if (*least > bound || (*least == bound && equal == count)) continue;
    const int64_t end = std::min(begin + kBlock, size);
    for (int64_t i = begin; i < end; ++i) {
      const Key key = key_of(from[i]);
      const bool is_equal = key == bound && equal < count;
      kept[found] = Candidate<Key>::Of(key, i);
      found += key < bound || is_equal;
      equal += is_equal;
    }
  }
  return found;
}

template <int64_t kBlock, typename Bits>
void TopOfRow(const Bits* from, int64_t size, Descending<Bits> key_of, int64_t count, Bits* values,
              int32_t* places) {
  using Key = std::conditional_t<sizeof(Bits) == 8, int64_t, int32_t>;
  using Kept = Candidate<Key>;
  using Type = typename Kept::Type;
  int64_t room = size, found = size;
  std::unique_ptr<Type[]> kept;
  if constexpr (kBlock > 1) {
    const int64_t blocks = (size + kBlock - 1) / kBlock;
    const auto least = Uninitialized<Key>(blocks);
    for (int64_t block = 0; block < blocks; ++block) {
      const int64_t end = std::min((block + 1) * kBlock, size);
      Key key = std::numeric_limits<Key>::max();
      for (int64_t i = block * kBlock; i < end; ++i) key = std::min<Key>(key, key_of(from[i]));
      least[block] = key;
    }
    const auto ordered = Uninitialized<Key>(blocks), spare = Uninitialized<Key>(blocks);
    std::copy(least.get(), least.get() + blocks, ordered.get());
    PlaceInOrder(ordered.get(), spare.get(), blocks, {count - 1});
    const Key bound = ordered[count - 1];
    // Fewer than `count` blocks have elements before the bound, and as many that equal it are kept.
    room = (kBlock + 1) * count;
    kept = Uninitialized<Type>(room);
    found = FindCandidates<kBlock>(from, size, key_of, count, bound, least.get(), kept.get());
  } else {
    kept = Uninitialized<Type>(room);
    for (int64_t i = 0; i < size; ++i) kept[i] = Kept::Of(key_of(from[i]), i);
  }
  const auto spare = Uninitialized<Type>(found);
  Kept::SortFirst(kept.get(), spare.get(), found, count);
  for (int64_t j = 0; j < count; ++j) {
    const int64_t place = Kept::PositionOf(kept[j]);
    places[j] = static_cast<int32_t>(place);
    values[j] = from[place];
  }
}

// The largest elements of each row, the first of equal ones first, and their positions.
ffi::Error TopK(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> values,
                ffi::ResultBuffer<ffi::S32> places) {
  if (values->element_count() == 0) return ffi::Error::Success();
  const int64_t rows = RowsOf(x), size = x.dimensions().back();
  const int64_t count = values->dimensions().back();
  const ffi::DataType type = x.element_type();
  ByWidth(ffi::ByteWidth(type), [&](auto bits) {
    using Bits = decltype(bits);
    const auto* from = static_cast<const Bits*>(x.untyped_data());
    auto* to = static_cast<Bits*>(values->untyped_data());
    const auto run = [&](Descending<Bits> key_of) {
      // With few blocks for each wanted element nearly all of them would be gone through again.
      const auto top = 2 * 64 * count <= size   ? TopOfRow<64, Bits>
                       : 2 * 16 * count <= size ? TopOfRow<16, Bits>
                                                : TopOfRow<1, Bits>;
      ForRows(pool, rows, size, [&](int64_t row) {
        top(from + row * size, size, key_of, count, to + row * count,
            places->typed_data() + row * count);
      });
    };
    switch (OrderOf<Bits>(type).kind) {  // Constants, for the compiler.
      case Kind::kUnsigned:
        return run({Kind::kUnsigned});
      case Kind::kSigned:
        return run({Kind::kSigned});
      case Kind::kFloat:
        return run({Kind::kFloat});
    }
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_order_statistics, dovetail::OrderStatistics,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::Buffer<xla::ffi::S32>>()
                    .Ret<xla::ffi::AnyBuffer>());
DOVETAIL_KERNEL(dovetail_top_k, dovetail::TopK,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::Buffer<xla::ffi::S32>>());
#pragma GCC visibility pop
