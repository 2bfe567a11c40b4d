// Extremes and sums of windows, and what is added to the elements that windows select.
//
// An array is [outer][depth][height][width][inner], with windows along the three in the middle. The
// rows that a row of windows sees are combined to one, in pieces that stay in the nearest cache,
// and then the places of the window along it.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "extremes.h"
#include "kernel.h"
#include "memory.h"
#include "parallel.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

constexpr int kWindowed = 3;
// Bytes of a combined row that are kept at once.
constexpr int64_t kPieceBytes = 1 << 14;
// Elements that are combined at once, at most, where several lie side by side.
constexpr int64_t kAtOnce = 9;
// Rows and places that a window has at most, as in `lowerings/window_kernels.py`.
constexpr int64_t kMostRows = 16, kMostPlaces = 32;

struct Windowed {
  int64_t size, count;                  // Of elements; of windows.
  int64_t window, step, low, distance;  // Places of a window; its step, padding and dilation.

  // Where a place of a window is.
  int64_t At(int64_t index, int64_t place) const { return index * step + place * distance - low; }
  bool Has(int64_t at) const { return at >= 0 && at < size; }
};

struct Windows {
  int64_t outer, inner;
  Windowed along[kWindowed];
};

static_assert(sizeof(Windows) == 20 * sizeof(int64_t), "it is copied from an array");

template <typename T>
constexpr int64_t kLanesOf = kVectorBytes / sizeof(T);

// Of numbers and of vectors; where either is NaN the extreme is.
template <typename T, bool kLargest>
struct Extreme {
  static constexpr T kNone = Order<T, kLargest>::kFirst;
  template <typename V>
  static V Of(V a, V b) {
    const V beyond = Order<T, kLargest>::Of(a, b);
    if constexpr (std::is_integral_v<T>) return beyond;
    return b != b ? b : beyond;
  }
};

template <typename T>
struct Sum {
  static constexpr T kNone = T(0);
  template <typename V>
  static V Of(V a, V b) {
    if constexpr (std::is_same_v<V, int32_t>) {  // Wraps around.
      return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
    } else {
      return a + b;
    }
  }
};

template <typename V, typename T>
V Load(const T* from) {
  V value;
  std::memcpy(&value, from, sizeof(V));
  return value;
}

// to[i] = what parts[0][i], parts[1][i], ... come to.
template <typename T, typename Op, int kParts>
void Join(const T* const* parts, int64_t count, T* to) {
  using V = VectorOf<T>;
  const T* from[kParts];
  std::copy_n(parts, kParts, from);
  const auto all = [&](auto zero, int64_t i) {
    using Value = decltype(zero);
    Value value = Load<Value>(from[0] + i);
#pragma GCC unroll 4
    for (int k = 1; k < kParts; ++k) value = Op::Of(value, Load<Value>(from[k] + i));
    std::memcpy(to + i, &value, sizeof(Value));
  };
  int64_t i = 0;
  for (; i + kLanesOf<T> <= count; i += kLanesOf<T>) all(V{}, i);
  for (; i < count; ++i) all(T(), i);
}

template <typename T, typename Op>
void JoinAny(const T** parts, int64_t number, int64_t count, T* to) {
  using Function = void (*)(const T* const*, int64_t, T*);
  static constexpr Function kJoins[] = {Join<T, Op, 1>, Join<T, Op, 2>, Join<T, Op, 3>,
                                        Join<T, Op, 4>};
  for (int64_t first = 0;;) {
    const int64_t some = std::min<int64_t>(4, number - first);
    kJoins[some - 1](parts + first, count, to);
    first += some;
    if (first == number) return;
    parts[--first] = to;
  }
}

// The same at `count` places, of `inner` elements, that see such `step` farther than those before.
// Of parts that lie one below another, `kDown` each, each column is joined first, as elsewhere.
template <typename T, typename Op, int kParts, int kDown = kParts>
void JoinInSteps(const T* const* parts, int64_t step, int64_t inner, int64_t count, T* to) {
  using V = VectorOf<T>;
  const T* from[kParts];
  std::copy_n(parts, kParts, from);
  for (; count > 0; --count, to += inner) {
    const auto all = [&](auto zero, int64_t i) {
      using Value = decltype(zero);
      const auto column = [&](int k) {
        Value joined = Load<Value>(from[k] + i);
#pragma GCC unroll 16
        for (int j = 1; j < kDown; ++j) joined = Op::Of(joined, Load<Value>(from[k + j] + i));
        return joined;
      };
      Value value = column(0);
#pragma GCC unroll 4
      for (int k = kDown; k < kParts; k += kDown) value = Op::Of(value, column(k));
      std::memcpy(to + i, &value, sizeof(Value));
    };
    int64_t i = 0;
    for (; i + kLanesOf<T> <= inner; i += kLanesOf<T>) all(V{}, i);
    for (; i < inner; ++i) all(T(), i);
#pragma GCC unroll 16
    for (int k = 0; k < kParts; ++k) from[k] += step;
  }
}

// Every second lane of two vectors, from the first on or from the second. They are in order within
// 16 bytes, of the first vector and then of the second, for which processors have an instruction.
template <typename T, int kFirst, typename V, int... kLane>
V SecondLanes(V a, V b, std::integer_sequence<int, kLane...>) {
  constexpr int kWithin = 16 / sizeof(T), kHalf = kWithin / 2;
  return __builtin_shufflevector(
      a, b,
      (kLane / kWithin * kWithin + kLane % kHalf * 2 + kFirst +
       (kLane % kWithin < kHalf ? 0 : int{sizeof...(kLane)}))...);
}

// What that made of two vectors, in order.
template <typename T, typename V, int... kLane>
V InOrder(V v, std::integer_sequence<int, kLane...>) {
  constexpr int kWithin = 16 / sizeof(T), kHalf = kWithin / 2, kLanes = sizeof...(kLane);
  return __builtin_shufflevector(
      v, v,
      (kLane % (kLanes / 2) / kHalf * kWithin + kLane % kHalf +
       (kLane < kLanes / 2 ? 0 : kHalf))...);
}

// Windows of `kRows` rows and three neighbours that are single elements, two apart.
template <typename T, typename Op, int kRows>
void JoinSecond(const T* const* rows, int64_t count, T* to) {
  using V = VectorOf<T>;
  constexpr std::make_integer_sequence<int, kLanesOf<T>> kAll;
  const T* from[kRows];
  std::copy_n(rows, kRows, from);
  const auto joined = [&](auto zero, int64_t at) {
    using Value = decltype(zero);
    Value value = Load<Value>(from[0] + at);
#pragma GCC unroll 3
    for (int row = 1; row < kRows; ++row) value = Op::Of(value, Load<Value>(from[row] + at));
    return value;
  };
  if (count < kLanesOf<T>) {
    for (int64_t i = 0; i < count; ++i) {
      T value = joined(T(), 2 * i);
      for (int k = 1; k < 3; ++k) value = Op::Of(value, joined(T(), 2 * i + k));
      to[i] = value;
    }
    return;
  }
  for (int64_t next = 0; next < count; next += kLanesOf<T>) {
    const int64_t i = std::min(next, count - kLanesOf<T>);  // Some of the last are computed twice.
    const V a = joined(V{}, 2 * i), b = joined(V{}, 2 * i + kLanesOf<T>);
    V value = Op::Of(SecondLanes<T, 0>(a, b, kAll), SecondLanes<T, 1>(a, b, kAll));
    const V c = joined(V{}, 2 * i + 1), d = joined(V{}, 2 * i + 1 + kLanesOf<T>);
    value = InOrder<T>(Op::Of(value, SecondLanes<T, 1>(c, d, kAll)), kAll);
    std::memcpy(to + i, &value, sizeof(V));
  }
}

// The windows along a row of `count` results.
template <typename T, typename Op>
void JoinAlong(const Windowed& across, int64_t inner, const T* from, int64_t count, T* to) {
  const int64_t apart = across.distance * inner;
  if (across.step == 1) {
    const T* parts[kMostRows];
    for (int64_t k = 0; k < across.window; ++k) parts[k] = from + k * apart;
    return JoinAny<T, Op>(parts, across.window, count * inner, to);
  }
  const int64_t step = across.step * inner;
  if (step == 2 && apart == 1 && across.window == 3) return JoinSecond<T, Op, 1>(&from, count, to);
  for (; count > 0; --count, from += step, to += inner) {
    if (inner >= kLanesOf<T>) {
      const T* parts[kMostRows];
      for (int64_t k = 0; k < across.window; ++k) parts[k] = from + k * apart;
      JoinAny<T, Op>(parts, across.window, inner, to);
      continue;
    }
    for (int64_t i = 0; i < inner; ++i) {
      T value = from[i];
      for (int64_t k = 1; k < across.window; ++k) value = Op::Of(value, from[k * apart + i]);
      to[i] = value;
    }
  }
}

// The windows along a row of results that see no padding, at once; whether it is done.
template <typename T, typename Op>
bool JoinAtOnce(const Windowed& across, int64_t inner, const T* const* rows, int64_t number,
                int64_t count, T* to) {
  const int64_t all = number * across.window, step = across.step * inner;
  if (inner == 1 && step == 2 && across.distance == 1 && across.window == 3 && number == 3) {
    JoinSecond<T, Op, 3>(rows, count, to);
    return true;
  }
  if (inner < kLanesOf<T> || all > kAtOnce) return false;
  const T* parts[kAtOnce];
  for (int64_t i = 0; i < all; ++i) {
    parts[i] = rows[i % number] + i / number * across.distance * inner;
  }
  if (number > 1 && across.window > 1) {
    switch (all * 10 + number) {
      case 42:
        JoinInSteps<T, Op, 4, 2>(parts, step, inner, count, to);
        return true;
      case 62:
        JoinInSteps<T, Op, 6, 2>(parts, step, inner, count, to);
        return true;
      case 63:
        JoinInSteps<T, Op, 6, 3>(parts, step, inner, count, to);
        return true;
      case 93:
        JoinInSteps<T, Op, 9, 3>(parts, step, inner, count, to);
        return true;
      default:
        return false;
    }
  }
  switch (all) {
    case 2:
      JoinInSteps<T, Op, 2>(parts, step, inner, count, to);
      return true;
    case 3:
      JoinInSteps<T, Op, 3>(parts, step, inner, count, to);
      return true;
    case 4:
      JoinInSteps<T, Op, 4>(parts, step, inner, count, to);
      return true;
    default:
      return false;
  }
}

template <typename T>
void Divide(T* numbers, int64_t count, int64_t divisor) {
  if (divisor == 1) return;
  if ((divisor & (divisor - 1)) == 0) {  // Exact, and faster.
    for (int64_t i = 0; i < count; ++i) numbers[i] *= T(1) / T(divisor);
  } else {
    for (int64_t i = 0; i < count; ++i) numbers[i] /= T(divisor);
  }
}

template <typename T, typename Op>
void Reduce(ffi::ThreadPool& pool, const Windows& windows, const T* x, int64_t divisor, T* y) {
  const Windowed &deep = windows.along[0], &down = windows.along[1], &across = windows.along[2];
  const int64_t inner = windows.inner, row = across.size * inner;
  const int64_t room = kPieceBytes / int64_t{sizeof(T)} / inner;
  const int64_t reach = (across.window - 1) * across.distance + 1;
  const int64_t piece = std::clamp<int64_t>((room - reach) / across.step + 1, 1, across.count);
  const int64_t pieces = (across.count + piece - 1) / piece;
  const int64_t tasks = windows.outer * deep.count * down.count * pieces;
  const int64_t work = windows.outer * deep.size * down.size * row;
  const int64_t parts = std::min(tasks, PartsOf(pool, work));
  ParallelFor(pool, parts, [&](int64_t part) {
    const Memory<T> seen(((piece - 1) * across.step + reach) * inner);
    const int64_t start = tasks * part / parts;
    int64_t line = start / pieces, begin = start % pieces * piece;
    int64_t h = line % down.count, d = line / down.count % deep.count;
    const T* plane = x + line / down.count / deep.count * deep.size * down.size * row;
    const auto move_on = [&] {  // To the next task, without divisions.
      if ((begin += piece) < across.count) return;
      begin = 0;
      ++line;
      if (++h < down.count) return;
      h = 0;
      if (++d < deep.count) return;
      d = 0;
      plane += deep.size * down.size * row;
    };
    for (int64_t task = start; task < tasks * (part + 1) / parts; ++task, move_on()) {
      EndIfInterrupted();
      const int64_t count = std::min(piece, across.count - begin);
      // The part of the rows that is seen, of which some may be padding.
      const int64_t first = across.At(begin, 0), end = first + (count - 1) * across.step + reach;
      const int64_t left = std::clamp<int64_t>(0, first, end);
      const int64_t right = std::clamp(across.size, left, end);
      const T* rows[kMostRows] = {};
      int64_t number = 0;
      for (int64_t i = 0; i < deep.window; ++i) {
        for (int64_t j = 0; j < down.window; ++j) {
          const int64_t depth = deep.At(d, i), height = down.At(h, j);
          if (deep.Has(depth) && down.Has(height)) {
            rows[number++] = plane + (depth * down.size + height) * row + left * inner;
          }
        }
      }
      T* const to = y + (line * across.count + begin) * inner;
      const bool whole = left == first && right == end;
      if (!whole || !JoinAtOnce<T, Op>(across, inner, rows, number, count, to)) {
        const T* from = rows[0];
        if (number != 1 || !whole) {
          T* const all = seen.get();
          const int64_t none = number == 0 ? end : left;
          std::fill(all, all + (none - first) * inner, Op::kNone);
          std::fill(all + (std::max(none, right) - first) * inner, all + (end - first) * inner,
                    Op::kNone);
          if (number > 0 && left < right) {
            JoinAny<T, Op>(rows, number, (right - left) * inner, all + (left - first) * inner);
          }
          from = all;
        }
        JoinAlong<T, Op>(across, inner, from, count, to);
      }
      if constexpr (std::is_floating_point_v<T>) Divide(to, count * inner, divisor);
    }
  });
}

// Adds what each window is given to the first of its best elements, or to the first NaN.
template <typename T, bool kLargest>
class Selection {
 public:
  Selection(const Windows& windows, const T* given, int64_t given_step, const T* x, T* y)
      : windows_(windows), given_(given), given_step_(given_step), x_(x), y_(y) {
    once_ = true;
    for (const Windowed& along : windows_.along) {
      once_ &= along.window == along.step && along.low == 0 &&
               along.count * along.step == along.size && along.distance == 1;
    }
  }

  void Run(ffi::ThreadPool& pool) const {
    // Windows that share elements are a thread's, in order: sums are rounded as they ever were.
    const Windowed &deep = windows_.along[0], &down = windows_.along[1];
    const Windowed& across = windows_.along[2];
    const int64_t plane = deep.size * down.size * across.size * windows_.inner;
    const int64_t sides = once_ ? deep.count * down.count : 1;
    const int64_t tasks = windows_.outer * sides;
    const int64_t parts = std::min(tasks, PartsOf(pool, windows_.outer * plane));
    ForNeighbours(pool, tasks, parts, [&](int64_t task) {
      const int64_t outer = task / sides;
      if (once_) return Row(outer, task % sides / down.count, task % down.count);
      std::fill_n(y_ + outer * plane, plane, T(0));
      for (int64_t d = 0; d < deep.count; ++d) {
        for (int64_t h = 0; h < down.count; ++h) {
          EndIfInterrupted();
          Row(outer, d, h);
        }
      }
    });
  }

 private:
  void Row(int64_t outer, int64_t d, int64_t h) const {
    const Windowed &deep = windows_.along[0], &down = windows_.along[1];
    const Windowed& across = windows_.along[2];
    const int64_t inner = windows_.inner, row = across.size * inner;
    int64_t lines[kMostPlaces], places[kMostPlaces], number = 0;
    for (int64_t i = 0; i < deep.window; ++i) {
      for (int64_t j = 0; j < down.window; ++j) {
        const int64_t depth = deep.At(d, i), height = down.At(h, j);
        if (deep.Has(depth) && down.Has(height)) {
          lines[number++] = ((outer * deep.size + depth) * down.size + height) * row;
        }
      }
    }
    const int64_t line = (outer * deep.count + d) * down.count + h;
    const T* given = given_ + line * across.count * inner * given_step_;
    for (int64_t w = 0; w < across.count; ++w, given += inner * given_step_) {
      int64_t found = 0;
      for (int64_t i = 0; i < number; ++i) {
        for (int64_t k = 0; k < across.window; ++k) {
          const int64_t at = across.At(w, k);
          if (across.Has(at)) places[found++] = lines[i] + at * inner;
        }
      }
      if (found > 0) Window(places, found, given);
    }
  }

  void Window(const int64_t* places, int64_t found, const T* given) const {
    using V = VectorOf<T>;
    int64_t lane = 0;
    for (; lane + kLanesOf<T> <= windows_.inner; lane += kLanesOf<T>) {
      const V gift = given_step_ == 0 ? *given - V{} : Load<V>(given + lane);
      switch (found) {
        case 4:
          Lanes<4>(places, found, lane, gift);
          break;
        default:
          Lanes<0>(places, found, lane, gift);
      }
    }
    for (; lane < windows_.inner; ++lane) {
      int64_t chosen = places[0];
      T best = x_[chosen + lane];
      for (int64_t k = 1; k < found; ++k) {
        const T later = x_[places[k] + lane];
        const bool stays = (kLargest ? best >= later : best <= later) | (best != best);
        best = stays ? best : later;
        chosen = stays ? chosen : places[k];
      }
      const T gift = given[lane * given_step_];
      if (once_) {
        for (int64_t k = 0; k < found; ++k) y_[places[k] + lane] = T(0);
      }
      y_[chosen + lane] = y_[chosen + lane] + gift;
    }
  }

  // `kFound` places, if that is not 0.
  template <int kFound, typename V>
  void Lanes(const int64_t* places, int64_t found, int64_t lane, V gift) const {
    using Mask = decltype(gift == gift);
    using Lane = std::remove_reference_t<decltype(Mask{}[0])>;
    if constexpr (kFound > 0) found = kFound;
    V best = Load<V>(x_ + places[0] + lane);
    Mask chosen = {};
#pragma GCC unroll 4
    for (int64_t k = 1; k < found; ++k) {
      const V later = Load<V>(x_ + places[k] + lane);
      const Mask stays = (kLargest ? best >= later : best <= later) | (best != best);
      best = stays ? best : later;
      chosen = stays ? chosen : Mask{} + static_cast<Lane>(k);
    }
#pragma GCC unroll 4
    for (int64_t k = 0; k < found; ++k) {
      T* const to = y_ + places[k] + lane;
      V sum = chosen == Mask{} + static_cast<Lane>(k) ? gift : V{};
      if (!once_) sum += Load<V>(to);
      std::memcpy(to, &sum, sizeof(V));
    }
  }

  const Windows windows_;
  const T* given_;
  int64_t given_step_;
  const T* x_;
  T* y_;
  bool once_;
};

enum Operation : int64_t { kLargest, kSmallest, kSum };

template <typename T>
ffi::Error ReduceAs(ffi::ThreadPool& pool, const Windows& windows, const void* x, void* y,
                    int64_t operation, int64_t divisor) {
  const T* const from = static_cast<const T*>(x);
  T* const to = static_cast<T*>(y);
  if (operation == kSum) Reduce<T, Sum<T>>(pool, windows, from, divisor, to);
  if (operation == kLargest) Reduce<T, Extreme<T, true>>(pool, windows, from, 1, to);
  if (operation == kSmallest) Reduce<T, Extreme<T, false>>(pool, windows, from, 1, to);
  return ffi::Error::Success();
}

bool Fits(ffi::Span<const int64_t> sizes, Windows& windows) {
  if (sizes.size() * sizeof(int64_t) != sizeof(Windows)) return false;
  std::memcpy(&windows, sizes.begin(), sizeof(Windows));
  const Windowed &deep = windows.along[0], &down = windows.along[1], &across = windows.along[2];
  return deep.window * down.window <= kMostRows && across.window <= kMostRows;
}

const ffi::Error kUnfit(ffi::ErrorCode::kInvalidArgument, "windows have another dtype or size");

ffi::Error ReduceWindows(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y,
                         ffi::Span<const int64_t> sizes, int64_t operation, int64_t divisor) {
  Windows windows;
  if (!Fits(sizes, windows)) return kUnfit;
  const void* const from = x.untyped_data();
  switch (x.element_type()) {
    case ffi::DataType::F32:
      return ReduceAs<float>(pool, windows, from, y->untyped_data(), operation, divisor);
    case ffi::DataType::F64:
      return ReduceAs<double>(pool, windows, from, y->untyped_data(), operation, divisor);
    case ffi::DataType::S32:
      return ReduceAs<int32_t>(pool, windows, from, y->untyped_data(), operation, divisor);
    default:
      return kUnfit;
  }
}

template <typename T>
ffi::Error AddAs(ffi::ThreadPool& pool, const Windows& windows, const ffi::AnyBuffer& given,
                 const void* x, void* y, bool largest) {
  const auto select = [&](auto which) {
    Selection<T, decltype(which)::value>(windows, static_cast<const T*>(given.untyped_data()),
                                         given.dimensions().size() == 0 ? 0 : 1,
                                         static_cast<const T*>(x), static_cast<T*>(y))
        .Run(pool);
  };
  largest ? select(std::true_type()) : select(std::false_type());
  return ffi::Error::Success();
}

// `given` is an element for each window, or one for all.
ffi::Error AddToSelected(ffi::ThreadPool pool, ffi::AnyBuffer given, ffi::AnyBuffer x,
                         ffi::Result<ffi::AnyBuffer> y, ffi::Span<const int64_t> sizes,
                         int64_t largest) {
  Windows windows;
  if (!Fits(sizes, windows)) return kUnfit;
  const Windowed &deep = windows.along[0], &down = windows.along[1], &across = windows.along[2];
  if (deep.window * down.window * across.window > kMostPlaces) return kUnfit;
  const void* const from = x.untyped_data();
  switch (x.element_type()) {
    case ffi::DataType::F32:
      return AddAs<float>(pool, windows, given, from, y->untyped_data(), largest != 0);
    case ffi::DataType::F64:
      return AddAs<double>(pool, windows, given, from, y->untyped_data(), largest != 0);
    default:
      return kUnfit;
  }
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_reduce_windows, dovetail::ReduceWindows,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<xla::ffi::Span<const int64_t>>("sizes")
                    .Attr<int64_t>("operation")
                    .Attr<int64_t>("divisor"));
DOVETAIL_KERNEL(dovetail_add_to_selected, dovetail::AddToSelected,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<xla::ffi::Span<const int64_t>>("sizes")
                    .Attr<int64_t>("largest"));
#pragma GCC visibility pop
