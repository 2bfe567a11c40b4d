// The positions of true elements.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "host_functions.h"
#include "kernel.h"
#include "parallel.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// For each mask of eight bits the places of those that are set, as wide as they are added: GCC
// widens bytes one by one.
template <typename Position>
struct PlacesOfBits {
  Position places[256][8];
  constexpr PlacesOfBits() : places() {
    for (int mask = 0; mask < 256; ++mask) {
      int next = 0;
      for (int bit = 0; bit < 8; ++bit) {
        if (mask >> bit & 1) places[mask][next++] = Position(bit);
      }
    }
  }
};
template <typename Position>
constexpr PlacesOfBits<Position> kPlacesOfBits;

int64_t CountTrue(const uint8_t* flags, int64_t size) {
  int64_t total = 0;
  for (int64_t i = 0; i < size;) {
    const int64_t end = std::min(size, i + 128);
    uint8_t found = 0;  // In bytes, of which a vector holds more.
    for (; i < end; ++i) found += flags[i];
    total += found;
  }
  return total;
}

// Writes the positions of the true elements from `begin` to `end`, and `offset` more, up to the
// place `stop`, and returns where they end.
template <typename Position>
Position* WritePositions(const uint8_t* flags, int64_t begin, int64_t end, Position* to,
                         const Position* stop, int64_t offset = 0) {
  constexpr int kLanes = std::min<int>(8, kVectorBytes / sizeof(Position));
  typedef Position Positions __attribute__((vector_size(kLanes * sizeof(Position))));
  int64_t i = begin;
  const auto write = [&](uint64_t eight, int64_t i) {
    // The product adds up bytes that are 0 or 1 as bits of the highest byte.
    const auto mask = static_cast<uint8_t>(eight * 0x0102040810204080 >> 56);
    const Position* const places = kPlacesOfBits<Position>.places[mask];
    for (int j = 0; j < 8; j += kLanes) {
      Positions some;
      std::memcpy(&some, places + j, sizeof(some));
      some += static_cast<Position>(i + offset);
      std::memcpy(to + j, &some, sizeof(some));
    }
    to += __builtin_popcount(mask);
  };
  // Eight positions are stored, whatever their number. Flags of which none is true are passed over.
  constexpr int kMany = 8;
  for (; i + 8 * kMany <= end && stop - to >= 8 * kMany; i += 8 * kMany) {
    uint64_t all[kMany], any = 0;
    std::memcpy(all, flags + i, sizeof(all));
    for (const uint64_t eight : all) any |= eight;
    if (any == 0) continue;
    for (int k = 0; k < kMany; ++k) write(all[k], i + 8 * k);
  }
  for (; i + 8 <= end && stop - to >= 8; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, flags + i, 8);
    write(eight, i);
  }
  for (; i < end && to < stop; ++i) {
    *to = static_cast<Position>(i + offset);
    to += flags[i];
  }
  return to;
}

// The positions of the true elements of a row; the size of the row for those that are missing.
template <typename Position>
void PositionsOfRow(ffi::ThreadPool* pool, const uint8_t* flags, int64_t size, Position* to,
                    int64_t wanted) {
  const int64_t parts = pool == nullptr ? 1 : PartsOf(*pool, size);
  const auto begin = [&](int64_t part) { return size * part / parts; };
  const auto for_parts = [&](const auto& body) {
    if (parts == 1) return body(0);
    ParallelFor(*pool, parts, body);
  };
  // Where the positions of each part begin, once counts are added up.
  std::vector<int64_t> places(parts + 1);
  for_parts([&](int64_t part) {
    places[part + 1] = CountTrue(flags + begin(part), begin(part + 1) - begin(part));
  });
  for (int64_t part = 0; part < parts; ++part) {
    places[part + 1] = std::min(wanted, places[part + 1] + places[part]);
  }
  for_parts([&](int64_t part) {
    WritePositions(flags, begin(part), begin(part + 1), to + places[part], to + places[part + 1]);
  });
  std::fill(to + places[parts], to + wanted, static_cast<Position>(size));
}

template <typename Position>
void PositionsOfRows(ffi::ThreadPool& pool, const uint8_t* flags, int64_t rows, int64_t size,
                     Position* to, int64_t wanted) {
  if (rows == 1) return PositionsOfRow(&pool, flags, size, to, wanted);
  const int64_t parts = std::min(rows, PartsOf(pool, rows * size));
  ForNeighbours(pool, rows, parts, [&](int64_t row) {
    PositionsOfRow(nullptr, flags + row * size, size, to + row * wanted, wanted);
  });
}

ffi::Error TruePositions(ffi::ThreadPool pool, ffi::Buffer<ffi::PRED> flags,
                         ffi::Result<ffi::AnyBuffer> out) {
  if (out->element_count() == 0) return ffi::Error::Success();
  const int64_t size = flags.dimensions().back(), wanted = out->dimensions().back();
  const int64_t rows = out->element_count() / wanted;
  const auto* from = reinterpret_cast<const uint8_t*>(flags.typed_data());
  if (out->element_type() == ffi::DataType::S64) {
    PositionsOfRows(pool, from, rows, size, static_cast<int64_t*>(out->untyped_data()), wanted);
  } else {
    PositionsOfRows(pool, from, rows, size, static_cast<int32_t*>(out->untyped_data()), wanted);
  }
  return ffi::Error::Success();
}

// Small arrays in the memory of the host. Numbers: rows, elements of each, and positions of each.
void PositionsOnHost(const void* const* operands, const ptrdiff_t* numbers, void* result,
                     ptrdiff_t) {
  const uint8_t* flags = static_cast<const uint8_t*>(operands[0]);
  int32_t* to = static_cast<int32_t*>(result);
  const ptrdiff_t size = numbers[1], wanted = numbers[2];
  for (ptrdiff_t row = 0; row < numbers[0]; ++row, flags += size, to += wanted) {
    const int32_t* const end = WritePositions(flags, 0, size, to, to + wanted);
    std::fill(to + (end - to), to + wanted, static_cast<int32_t>(size));
  }
}

const HostEntry kPositions = {"true_positions", "bool", PositionsOnHost, kMany};

// How many elements are before a pivot, and how many not after it. Before NaN comes what is none,
// after it nothing.
template <typename T>
std::array<int64_t, 2> CountParts(const T* x, T pivot, int64_t size) {
  using Count = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;  // as wide as comparisons
  Count less = 0, not_greater = 0;
  if (pivot != pivot) {
    for (int64_t i = 0; i < size; ++i) less += x[i] == x[i];
    return {int64_t(less), size};
  }
  for (int64_t i = 0; i < size; ++i) less += x[i] < pivot, not_greater += x[i] <= pivot;
  return {int64_t(less), int64_t(not_greater)};
}

// The flags of those that are less, equal and greater.
template <typename T>
void Classify(const T* x, T pivot, int64_t size, uint8_t* less, uint8_t* equal, uint8_t* greater) {
  if (pivot != pivot) {
    for (int64_t i = 0; i < size; ++i) less[i] = x[i] == x[i], equal[i] = x[i] != x[i];
    std::fill_n(greater, size, uint8_t{0});
    return;
  }
  for (int64_t i = 0; i < size; ++i) less[i] = x[i] < pivot;
  for (int64_t i = 0; i < size; ++i) greater[i] = !(x[i] <= pivot);
  for (int64_t i = 0; i < size; ++i) equal[i] = (less[i] | greater[i]) ^ 1;
}

#if defined(__AVX512F__)
// Writes the positions of those that are less, equal and greater, `first` and the following ones,
// each from its end on, which moves. Those of the second class are `size` greater, of the third
// twice that.
template <typename T>
void WriteClasses(const T* x, T pivot, int64_t count, int64_t first, int64_t size, int32_t* to,
                  const std::array<int64_t*, 3>& ends) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i positions = _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int32_t>(first)));
  const __m512i added = _mm512_set1_epi32(static_cast<int32_t>(size));
  int32_t* at[3] = {to + *ends[0], to + *ends[1], to + *ends[2]};
  // No more than there are: what follows belongs to the next class, or another thread.
  const auto write = [&](int k, __mmask16 mask, __m512i from) {
    const int found = __builtin_popcount(mask);
    const auto stored = static_cast<__mmask16>(~(0xFFFFu << found));
    _mm512_mask_storeu_epi32(at[k], stored, _mm512_maskz_compress_epi32(mask, from));
    at[k] += found;
  };
  for (int64_t i = 0; i < count; i += 16) {
    const auto here = static_cast<__mmask16>(~(0xFFFFu << std::min<int64_t>(16, count - i)));
    __mmask16 less, not_greater;
    if constexpr (std::is_same_v<T, float>) {
      const __m512 v = _mm512_maskz_loadu_ps(here, x + i), bound = _mm512_set1_ps(pivot);
      const bool is_nan = pivot != pivot;
      less = is_nan ? _mm512_cmp_ps_mask(v, v, _CMP_EQ_OQ)
                    : _mm512_cmp_ps_mask(v, bound, _CMP_LT_OQ);
      not_greater = is_nan ? here : _mm512_cmp_ps_mask(v, bound, _CMP_LE_OQ);
    } else {
      const __m512i v = _mm512_maskz_loadu_epi32(here, x + i), bound = _mm512_set1_epi32(pivot);
      less = _mm512_cmplt_epi32_mask(v, bound);
      not_greater = _mm512_cmple_epi32_mask(v, bound);
    }
    write(0, here & less, positions);
    // Few are equal, as a rule.
    const __mmask16 equal = here & not_greater & ~less;
    if (equal != 0) write(1, equal, _mm512_add_epi32(positions, added));
    const __m512i last = _mm512_add_epi32(positions, _mm512_slli_epi32(added, 1));
    write(2, here & ~not_greater, last);
    positions = _mm512_add_epi32(positions, _mm512_set1_epi32(16));
  }
  for (int k = 0; k < 3; ++k) *ends[k] = at[k] - to;
}
#endif

// The positions of each class in turn, those of the second and third as if their flags followed
// those of the classes before.
template <typename T, typename Position>
void PartRow(ffi::ThreadPool* pool, const T* x, T pivot, int64_t size, Position* to) {
  constexpr int kClasses = 3;
  constexpr int64_t kBlock = 4096;
  const int64_t parts = pool == nullptr ? 1 : PartsOf(*pool, size);
  const auto for_blocks = [&](const auto& body) {
    const auto of_part = [&](int64_t part) {
      const int64_t begin = size * part / parts, end = size * (part + 1) / parts;
      for (int64_t i = begin; i < end; i += kBlock) {
        EndIfInterrupted();
        body(part, i, std::min(kBlock, end - i));
      }
    };
    if (parts == 1) return of_part(0);
    ParallelFor(*pool, parts, of_part);
  };
  // Where the positions of each class begin for each part, and where they end.
  std::array<std::vector<int64_t>, kClasses> begins;
  for (auto& of_class : begins) of_class.assign(parts + 1, 0);
  for_blocks([&](int64_t part, int64_t i, int64_t count) {
    const auto [less, not_greater] = CountParts(x + i, pivot, count);
    begins[0][part] += less;
    begins[1][part] += not_greater - less;
    begins[2][part] += count - not_greater;
  });
  int64_t place = 0;
  for (auto& of_class : begins) {
    for (int64_t part = 0; part < parts; ++part) place += std::exchange(of_class[part], place);
    of_class[parts] = place;
  }
  auto ends = begins;
  for_blocks([&](int64_t part, int64_t i, int64_t count) {
#if defined(__AVX512F__)
    if constexpr (sizeof(T) == 4 && sizeof(Position) == 4) {
      return WriteClasses(x + i, pivot, count, i, size, to,
                          {&ends[0][part], &ends[1][part], &ends[2][part]});
    }
#endif
    uint8_t flags[kClasses][kBlock];
    Classify(x + i, pivot, count, flags[0], flags[1], flags[2]);
    for (int k = 0; k < kClasses; ++k) {
      int64_t& end = ends[k][part];
      end = WritePositions(flags[k], 0, count, to + end, to + begins[k][part + 1], size * k + i) -
            to;
    }
  });
}

ffi::Error PartingPositions(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer pivots,
                            ffi::Result<ffi::AnyBuffer> out) {
  if (out->element_count() == 0) return ffi::Error::Success();
  const int64_t size = x.dimensions().back(), rows = x.element_count() / size;
  const auto part = [&](auto number, auto position) {
    using T = decltype(number);
    using Position = decltype(position);
    const T* const from = static_cast<const T*>(x.untyped_data());
    const T* const pivot = static_cast<const T*>(pivots.untyped_data());
    Position* const to = static_cast<Position*>(out->untyped_data());
    if (rows == 1) return PartRow(&pool, from, *pivot, size, to);
    ForNeighbours(pool, rows, std::min(rows, PartsOf(pool, rows * size)), [&](int64_t row) {
      PartRow<T, Position>(nullptr, from + row * size, pivot[row], size, to + row * size);
    });
  };
  const auto part_of = [&](auto number) {
    if (out->element_type() == ffi::DataType::S64) {
      part(number, int64_t());
    } else {
      part(number, int32_t());
    }
    return ffi::Error::Success();
  };
  switch (x.element_type()) {
    case ffi::F32:
      return part_of(float());
    case ffi::F64:
      return part_of(double());
    case ffi::S32:
      return part_of(int32_t());
    case ffi::S64:
      return part_of(int64_t());
    default:
      return ffi::Error::InvalidArgument("a partition of another dtype");
  }
}

}  // namespace

const HostEntry* PositionFunctions(size_t* count) {
  *count = 1;
  return &kPositions;
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_true_positions, dovetail::TruePositions,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::Buffer<xla::ffi::PRED>>()
                    .Ret<xla::ffi::AnyBuffer>());
DOVETAIL_KERNEL(dovetail_parting_positions, dovetail::PartingPositions,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>());
#pragma GCC visibility pop
