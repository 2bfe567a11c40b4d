// Products of narrow numbers in tiles.

#include "narrow_tiles.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "bits.h"
#include "narrow_floats.h"

#if defined(__x86_64__) && defined(__linux__) && defined(__AVX512BW__)
#define DOVETAIL_TILES 1
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

// Vectors are passed among functions that are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace dovetail {
namespace {

// Whether tiles are used where the processor has them.
std::atomic<bool> wanted{true};

// By vectors, for processors without tiles.
typedef uint32_t Units __attribute__((vector_size(kStepBytes)));
typedef int32_t SignedUnits __attribute__((vector_size(kStepBytes)));
typedef float FloatUnits __attribute__((vector_size(kStepBytes)));

template <bool kIsSigned>
Units ByteOf(Units x, int byte) {
  const Units moved = x << (24 - 8 * byte);
  return kIsSigned ? As<Units>(As<SignedUnits>(moved) >> 24) : moved >> 24;
}

template <Narrow kKind>
void AddUnits(Units left, Units right, Units& sums) {
  if constexpr (kKind == Narrow::kBFloat16) {
    const auto low = [](Units x) { return As<FloatUnits>(x << 16); };
    const auto high = [](Units x) { return As<FloatUnits>(x & 0xffff0000); };
    sums = As<Units>(As<FloatUnits>(sums) + low(left) * low(right) + high(left) * high(right));
  } else {
    constexpr bool kLeft = kKind == Narrow::kSigned || kKind == Narrow::kSignedByUnsigned;
    constexpr bool kRight = kKind == Narrow::kSigned || kKind == Narrow::kUnsignedBySigned;
    for (int byte = 0; byte < 4; ++byte) {
      sums += ByteOf<kLeft>(left, byte) * ByteOf<kRight>(right, byte);
    }
  }
}

template <Narrow kKind, int kRows, int kColumns>
void MultiplyByVectors(const TileProduct& p, char* sums, int64_t row, bool add) {
  constexpr int kLines = kStepBytes / 4;
  for (int64_t i = 0; i < kRows * kHalfSide; ++i, sums += row) {
    Units totals[kColumns] = {};
    if (add) std::memcpy(totals, sums, sizeof(totals));
    for (int64_t step = 0; step < p.count; ++step) {
      const char* left = p.left + p.steps[step] + i / kHalfSide * p.left_half +
                         i % kHalfSide * p.left_row;
      const char* panel = p.panel + step * kPanelBytes;
      for (int line = 0; line < kLines; ++line) {
        const Units one = Units{} + Load<uint32_t>(left + 4 * line);
        for (int half = 0; half < kColumns; ++half) {
          const char* at = panel + half * kPanelBytes / 2 + line * kStepBytes;
          AddUnits<kKind>(one, Load<Units>(at), totals[half]);
        }
      }
    }
    std::memcpy(sums, totals, sizeof(totals));
  }
}

void RoundByVectors(const float* sums, int64_t rows, int64_t columns, uint16_t* to,
                    int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i, sums += kTileSide, to += to_row) {
    NarrowToBFloat16(sums, columns, to);
  }
}

#if defined(DOVETAIL_TILES)

// Asks the processor, and the system for leave to use tiles, once for the process: their registers
// are larger than what it saves of a thread otherwise.
bool HasTiles() {
  static const bool has = [] {
    unsigned a, b, c, d;
    constexpr unsigned kTiles = 1u << 24, kTilesOfBFloat16 = 1u << 22, kTilesOfBytes = 1u << 25;
    constexpr unsigned kAll = kTiles | kTilesOfBFloat16 | kTilesOfBytes;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kAll) != kAll) return false;
    if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || (a & 1u << 5) == 0) return false;
    constexpr long kAskForState = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
  }();
  return has;
}

#define DOVETAIL_WITH_TILES __attribute__((target("amx-tile,amx-bf16,amx-int8")))

// Eight registers of 16 rows with 64 bytes each.
struct alignas(64) Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr Configuration kConfiguration;

DOVETAIL_WITH_TILES void TakeTiles() { _tile_loadconfig(&kConfiguration); }
DOVETAIL_WITH_TILES void GiveBackTiles() { _tile_release(); }

// Registers have to be named by literals.
#define DOVETAIL_ADD_PRODUCT(sums, left, right)                  \
  do {                                                           \
    if constexpr (kKind == Narrow::kBFloat16) {                  \
      _tile_dpbf16ps(sums, left, right);                         \
    } else if constexpr (kKind == Narrow::kSigned) {             \
      _tile_dpbssd(sums, left, right);                           \
    } else if constexpr (kKind == Narrow::kSignedByUnsigned) {   \
      _tile_dpbsud(sums, left, right);                           \
    } else if constexpr (kKind == Narrow::kUnsignedBySigned) {   \
      _tile_dpbusd(sums, left, right);                           \
    } else {                                                     \
      _tile_dpbuud(sums, left, right);                           \
    }                                                            \
  } while (false)

template <Narrow kKind, int kRows, int kColumns>
DOVETAIL_WITH_TILES void MultiplyByTiles(const TileProduct& p, char* sums, int64_t row, bool add) {
  // The compiler does not know that tiles read memory.
  asm volatile("" ::: "memory");
  char* const lower = sums + kHalfSide * row;
  if (add) {
    _tile_loadd(0, sums, row);
    if constexpr (kColumns > 1) _tile_loadd(1, sums + kStepBytes, row);
    if constexpr (kRows > 1) _tile_loadd(2, lower, row);
    if constexpr (kRows > 1 && kColumns > 1) _tile_loadd(3, lower + kStepBytes, row);
  } else {
    _tile_zero(0);
    if constexpr (kColumns > 1) _tile_zero(1);
    if constexpr (kRows > 1) _tile_zero(2);
    if constexpr (kRows > 1 && kColumns > 1) _tile_zero(3);
  }
  const char* panel = p.panel;
  for (int64_t step = 0; step < p.count; ++step, panel += kPanelBytes) {
    const char* left = p.left + p.steps[step];
    _tile_loadd(6, panel, kStepBytes);
    _tile_loadd(4, left, p.left_row);
    DOVETAIL_ADD_PRODUCT(0, 4, 6);
    if constexpr (kColumns > 1) {
      _tile_loadd(7, panel + kPanelBytes / 2, kStepBytes);
      DOVETAIL_ADD_PRODUCT(1, 4, 7);
    }
    if constexpr (kRows > 1) {
      _tile_loadd(5, left + p.left_half, p.left_row);
      DOVETAIL_ADD_PRODUCT(2, 5, 6);
      if constexpr (kColumns > 1) DOVETAIL_ADD_PRODUCT(3, 5, 7);
    }
  }
  _tile_stored(0, sums, row);
  if constexpr (kColumns > 1) _tile_stored(1, sums + kStepBytes, row);
  if constexpr (kRows > 1) _tile_stored(2, lower, row);
  if constexpr (kRows > 1 && kColumns > 1) _tile_stored(3, lower + kStepBytes, row);
}

// Processors with tiles also round 32 numbers by one instruction.
__attribute__((target("avx512bf16,avx512bw"))) void RoundAtOnce(const float* sums, int64_t rows,
                                                                int64_t columns, uint16_t* to,
                                                                int64_t to_row) {
  const auto mask = static_cast<__mmask32>((uint64_t{1} << columns) - 1);
  for (int64_t i = 0; i < rows; ++i, sums += kTileSide, to += to_row) {
    const __m512bh rounded =
        _mm512_cvtne2ps_pbh(_mm512_loadu_ps(sums + kHalfSide), _mm512_loadu_ps(sums));
    _mm512_mask_storeu_epi16(to, mask, As<__m512i>(rounded));
  }
}

#else

bool HasTiles() { return false; }

#endif

}  // namespace

template <Narrow kKind>
void NarrowTiles::Choose() {
#if defined(DOVETAIL_TILES)
  if (of_processor_) {
    multiply_[0][0] = MultiplyByTiles<kKind, 1, 1>;
    multiply_[0][1] = MultiplyByTiles<kKind, 1, 2>;
    multiply_[1][0] = MultiplyByTiles<kKind, 2, 1>;
    multiply_[1][1] = MultiplyByTiles<kKind, 2, 2>;
    round_ = RoundAtOnce;
    return TakeTiles();
  }
#endif
  multiply_[0][0] = MultiplyByVectors<kKind, 1, 1>;
  multiply_[0][1] = MultiplyByVectors<kKind, 1, 2>;
  multiply_[1][0] = MultiplyByVectors<kKind, 2, 1>;
  multiply_[1][1] = MultiplyByVectors<kKind, 2, 2>;
  round_ = RoundByVectors;
}

NarrowTiles::NarrowTiles(Narrow kind)
    : of_processor_(HasTiles() && wanted.load(std::memory_order_relaxed)) {
  if (kind == Narrow::kBFloat16) Choose<Narrow::kBFloat16>();
  if (kind == Narrow::kSigned) Choose<Narrow::kSigned>();
  if (kind == Narrow::kSignedByUnsigned) Choose<Narrow::kSignedByUnsigned>();
  if (kind == Narrow::kUnsignedBySigned) Choose<Narrow::kUnsignedBySigned>();
  if (kind == Narrow::kUnsigned) Choose<Narrow::kUnsigned>();
}

NarrowTiles::~NarrowTiles() {
#if defined(DOVETAIL_TILES)
  if (of_processor_) GiveBackTiles();
#endif
}

void NarrowTiles::Put(const char* sums, int64_t rows, int64_t columns, char* to, int64_t to_row,
                      int64_t size) const {
  if (size == 2) {
    return round_(reinterpret_cast<const float*>(sums), rows, columns,
                  reinterpret_cast<uint16_t*>(to), to_row);
  }
  for (int64_t i = 0; i < rows; ++i, sums += 4 * kTileSide, to += to_row * size) {
    if (size == 4) {
      std::memcpy(to, sums, 4 * columns);
    } else {
      uint32_t line[kTileSide];
      std::memcpy(line, sums, sizeof(line));
      for (int64_t j = 0; j < columns; ++j) to[j] = static_cast<char>(line[j]);
    }
  }
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
// Whether tiles are used from now on, where the processor has them; says whether it does.
extern "C" int32_t dovetail_use_tiles(int32_t use) {
  dovetail::wanted = use != 0;
  return dovetail::HasTiles();
}
#pragma GCC visibility pop
