// Binary search in sorted rows.

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "host_functions.h"
#include "kernel.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Adds `step` to the places of a number of values where the element at the place, counted from
// `from`, comes before the value.
template <bool kRight, int64_t kCount, typename T, typename Place>
void Advance(const T* from, const T* values, Place step, Place* places) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4 && sizeof(Place) == 4) {
    // GCC 12 loads the elements one by one.
    constexpr int kLanes = 16;
    static_assert(kCount % kLanes == 0);
#pragma GCC unroll 4
    for (int64_t j = 0; j < kCount; j += kLanes) {
      const __m512i at = _mm512_loadu_si512(places + j);
      __mmask16 before;
      if constexpr (std::is_same_v<T, float>) {
        const __m512 elements = _mm512_i32gather_ps(at, from, 4);
        const __m512 value = _mm512_loadu_ps(values + j);
        before = _mm512_cmp_ps_mask(elements, value, kRight ? _CMP_LE_OQ : _CMP_LT_OQ);
      } else {
        const __m512i elements = _mm512_i32gather_epi32(at, from, 4);
        const __m512i value = _mm512_loadu_si512(values + j);
        constexpr auto kOrder = kRight ? _MM_CMPINT_LE : _MM_CMPINT_LT;
        before = std::is_signed_v<T> ? _mm512_cmp_epi32_mask(elements, value, kOrder)
                                     : _mm512_cmp_epu32_mask(elements, value, kOrder);
      }
      const __m512i steps = _mm512_set1_epi32(step);
      _mm512_storeu_si512(places + j, _mm512_mask_add_epi32(at, before, at, steps));
    }
    return;
  }
#endif
  // By arithmetic: branches would be mispredicted.
  for (int64_t j = 0; j < kCount; ++j) {
    const T element = from[places[j]];
    places[j] += step & -Place(kRight ? element <= values[j] : element < values[j]);
  }
}

// The places of values in a sorted row, where NaN is the last and zeros of both signs are equal.
//
// Values are looked up many at a time: each waits for memory by itself. `Place` is as wide as `T`,
// so that loops become vectors, unless it could not hold the size.
template <typename T, typename Place, typename Count, bool kRight>
void Search(const T* sorted, Place size, const T* values, int64_t count, Count* out) {
  constexpr int64_t kTogether = 64;
  Place numbers = size;  // Elements that are no NaN.
  if (sorted[size - 1] != sorted[size - 1]) {
    numbers = std::partition_point(sorted, sorted + size, [](T x) { return x == x; }) - sorted;
  }
  for (int64_t begin = 0; begin < count; begin += kTogether) {
    const int64_t together = std::min(kTogether, count - begin);
    T value[kTogether] = {};
    Place found[kTogether] = {};
    std::copy(values + begin, values + begin + together, value);
    Place left = size;
    for (; left > 1; left -= left / 2) {
      // As many elements before half of those left as come before the value.
      const Place half = left / 2;
      Advance<kRight, kTogether>(sorted + half - 1, value, half, found);
    }
    Advance<kRight, kTogether>(sorted, value, Place(1), found);
    for (int64_t j = 0; j < together; ++j) {
      const bool is_nan = value[j] != value[j];
      out[begin + j] = static_cast<Count>(is_nan ? (kRight ? size : numbers) : found[j]);
    }
  }
}

// The places of all integers from the first of a sorted row to the one after the last.
template <typename T, typename Count>
struct PlacesOfAll {
  using Unsigned = std::make_unsigned_t<T>;
  // More would not stay in the caches of one processor.
  static constexpr Unsigned kMost = 1 << 18;

  static Unsigned Range(const T* sorted, int64_t size) {
    return static_cast<Unsigned>(sorted[size - 1]) - static_cast<Unsigned>(sorted[0]);
  }

  PlacesOfAll(const T* sorted, int64_t size, bool right)
      : first(sorted[0]), range(Range(sorted, size)), places(range + 2) {
    for (int64_t i = 0; i < size; ++i) ++places[From(sorted[i]) + (right ? 0 : 1)];
    for (Unsigned i = 0; i <= range; ++i) places[i + 1] += places[i];
  }

  Unsigned From(T x) const { return static_cast<Unsigned>(x) - static_cast<Unsigned>(first); }

  void Find(const T* values, int64_t count, Count* out) const {
    for (int64_t i = 0; i < count; ++i) {
      const Count place = places[std::min<Unsigned>(From(values[i]), range + 1)];
      out[i] = values[i] < first ? 0 : place;
    }
  }

  T first;
  Unsigned range;
  std::vector<Count> places;
};

template <typename T, typename Count>
void SearchRows(ffi::ThreadPool& pool, const T* sorted, int64_t size, const T* values,
                int64_t count, int64_t rows, bool right, Count* out) {
  const int64_t total = rows * count;
  if constexpr (std::is_integral_v<T>) {
    using Places = PlacesOfAll<T, Count>;
    const auto range = Places::Range(sorted, size);
    if (rows == 1 && range < Places::kMost && static_cast<int64_t>(range) < count) {
      const Places places(sorted, size, right);
      return ForRanges(&pool, count, [&](int64_t begin, int64_t end) {
        places.Find(values + begin, end - begin, out + begin);
      });
    }
  }
  // Each value takes as long as some elements of other kernels.
  constexpr int64_t kSteps = 8;
  const int64_t parts = std::min(total, PartsOf(pool, total * kSteps));
  ParallelFor(pool, parts, [&](int64_t part) {
    int64_t next = total * part / parts;
    const int64_t end = total * (part + 1) / parts;
    constexpr int64_t kPiece = 1 << 16;
    while (next < end) {
      EndIfInterrupted();
      const int64_t row = next / count;
      const int64_t stop = std::min({end, (row + 1) * count, next + kPiece});
      const T* in = sorted + row * size;
      const auto search = [&](auto place) {
        using Place = decltype(place);
        const auto run = right ? Search<T, Place, Count, true> : Search<T, Place, Count, false>;
        run(in, static_cast<Place>(size), values + next, stop - next, out + next);
      };
      if (sizeof(T) == 8 || sizeof(Count) == 8) {
        search(int64_t());
      } else {
        search(int32_t());
      }
      next = stop;
    }
  });
}

template <typename Count>
ffi::Error SearchAs(ffi::ThreadPool& pool, const ffi::AnyBuffer& sorted,
                    const ffi::AnyBuffer& values, Count* out, bool right) {
  const int64_t size = sorted.dimensions().back(), count = values.dimensions().back();
  const int64_t rows = values.element_count() / count;
  const auto run = [&](auto number) {
    using T = decltype(number);
    SearchRows(pool, static_cast<const T*>(sorted.untyped_data()), size,
               static_cast<const T*>(values.untyped_data()), count, rows, right, out);
    return ffi::Error::Success();
  };
  switch (sorted.element_type()) {
    case ffi::DataType::S32:
      return run(int32_t());
    case ffi::DataType::U32:
      return run(uint32_t());
    case ffi::DataType::S64:
      return run(int64_t());
    case ffi::DataType::U64:
      return run(uint64_t());
    case ffi::DataType::F32:
      return run(float());
    case ffi::DataType::F64:
      return run(double());
    default:
      return ffi::Error::InvalidArgument("no numbers of 32 or 64 bits are searched");
  }
}

// The places of values in sorted rows, before equal elements or after them. There are some of both.
ffi::Error SearchSorted(ffi::ThreadPool pool, ffi::AnyBuffer sorted, ffi::AnyBuffer values,
                        ffi::Result<ffi::AnyBuffer> out, int64_t right) {
  if (out->element_type() == ffi::DataType::S64) {
    return SearchAs(pool, sorted, values, static_cast<int64_t*>(out->untyped_data()), right != 0);
  }
  return SearchAs(pool, sorted, values, static_cast<int32_t*>(out->untyped_data()), right != 0);
}

// Small arrays in the memory of the host. Numbers: rows, elements and values of each, and whether
// after equal elements.
template <typename T>
void SearchOnHost(const void* const* operands, const ptrdiff_t* numbers, void* result, ptrdiff_t) {
  const T* sorted = static_cast<const T*>(operands[0]);
  const T* values = static_cast<const T*>(operands[1]);
  int32_t* out = static_cast<int32_t*>(result);
  const ptrdiff_t size = numbers[1], count = numbers[2];
  const auto run = numbers[3] ? Search<T, int32_t, int32_t, true> : Search<T, int32_t, int32_t, false>;
  for (ptrdiff_t row = 0; row < numbers[0]; ++row) {
    run(sorted + row * size, int32_t(size), values + row * count, count, out + row * count);
  }
}

const HostEntry kSearch[] = {
    {"searchsorted", "float32", SearchOnHost<float>, kMany},
    {"searchsorted", "int32", SearchOnHost<int32_t>, kMany},
};

}  // namespace

const HostEntry* SearchFunctions(size_t* count) {
  *count = sizeof(kSearch) / sizeof(kSearch[0]);
  return kSearch;
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_searchsorted, dovetail::SearchSorted,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>()
                    .Attr<int64_t>("right"));
#pragma GCC visibility pop
