// Copies of narrow numbers into the order in which tiles (`narrow_tiles.h`) use them.

#ifndef DOVETAIL_CPU_NARROW_PACKING_H_
#define DOVETAIL_CPU_NARROW_PACKING_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "bits.h"
#include "narrow_tiles.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

// Vectors are passed among functions that are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace dovetail {

// 64 bytes, as units of four.
typedef uint32_t Line __attribute__((vector_size(kStepBytes)));
// Lines of a half of a panel.
constexpr int64_t kLinesOfStep = kStepBytes / 4;

// So many bytes, and zeros.
inline Line FirstBytes(const void* from, int64_t bytes) {
#if defined(__AVX512BW__)
  const auto mask = static_cast<__mmask64>(bytes >= kStepBytes ? ~uint64_t{0}
                                                               : (uint64_t{1} << bytes) - 1);
  return As<Line>(_mm512_maskz_loadu_epi8(mask, from));
#else
  Line line = {};
  std::memcpy(&line, from, std::min(bytes, kStepBytes));
  return line;
#endif
}

// Of a line in each of 4 / sizeof(T) steps of the sums, with 32 numbers side by side, the lines of
// both halves of a panel.
template <typename T>
void Interleave(const Line (&steps)[4 / sizeof(T)], char* to) {
  char* const second = to + kPanelBytes / 2;
#if defined(__AVX512BW__)
  if constexpr (sizeof(T) == 2) {
    const __m512i a = As<__m512i>(steps[0]), b = As<__m512i>(steps[1]);
    const __m512i low = _mm512_unpacklo_epi16(a, b), high = _mm512_unpackhi_epi16(a, b);
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i last = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_storeu_si512(to, _mm512_permutex2var_epi64(low, first, high));
    _mm512_storeu_si512(second, _mm512_permutex2var_epi64(low, last, high));
  } else {
    __m256i rows[4];
    for (int i = 0; i < 4; ++i) rows[i] = _mm512_castsi512_si256(As<__m512i>(steps[i]));
    const __m256i low01 = _mm256_unpacklo_epi8(rows[0], rows[1]);
    const __m256i high01 = _mm256_unpackhi_epi8(rows[0], rows[1]);
    const __m256i low23 = _mm256_unpacklo_epi8(rows[2], rows[3]);
    const __m256i high23 = _mm256_unpackhi_epi8(rows[2], rows[3]);
    const __m256i a = _mm256_unpacklo_epi16(low01, low23);
    const __m256i b = _mm256_unpackhi_epi16(low01, low23);
    const __m256i c = _mm256_unpacklo_epi16(high01, high23);
    const __m256i d = _mm256_unpackhi_epi16(high01, high23);
    const auto store = [](char* at, __m256i x) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), x);
    };
    store(to, _mm256_permute2x128_si256(a, b, 0x20));
    store(to + 32, _mm256_permute2x128_si256(c, d, 0x20));
    store(second, _mm256_permute2x128_si256(a, b, 0x31));
    store(second + 32, _mm256_permute2x128_si256(c, d, 0x31));
  }
#else
  constexpr int64_t kOfUnit = 4 / sizeof(T);
  T numbers[kOfUnit][kStepBytes / sizeof(T)], half[kHalfSide][kOfUnit];
  std::memcpy(numbers, steps, sizeof(numbers));
  for (int64_t first = 0; first < kTileSide; first += kHalfSide) {
    for (int64_t j = 0; j < kHalfSide; ++j) {
      for (int64_t k = 0; k < kOfUnit; ++k) half[j][k] = numbers[k][first + j];
    }
    std::memcpy(first == 0 ? to : second, half, sizeof(half));
  }
#endif
}

#if defined(__AVX512BW__)
// Joins the units, or pairs of them, of two times eight lines.
template <int kDistance, typename Low, typename High>
void JoinLines(__m512i (&lines)[16], const Low& low, const High& high) {
  for (int i = 0; i < 16; ++i) {
    if (i & kDistance) continue;
    const __m512i a = lines[i], b = lines[i + kDistance];
    lines[i] = low(a, b), lines[i + kDistance] = high(a, b);
  }
}
#endif

// Makes units of lines lines of units: a square of 16 times 16.
inline void TransposeLines(const Line (&from)[kLinesOfStep], char* to, int64_t to_row) {
#if defined(__AVX512BW__)
  __m512i lines[16];
  for (int i = 0; i < 16; ++i) lines[i] = As<__m512i>(from[i]);
  JoinLines<1>(lines, [](__m512i a, __m512i b) { return _mm512_unpacklo_epi32(a, b); },
               [](__m512i a, __m512i b) { return _mm512_unpackhi_epi32(a, b); });
  JoinLines<2>(lines, [](__m512i a, __m512i b) { return _mm512_unpacklo_epi64(a, b); },
               [](__m512i a, __m512i b) { return _mm512_unpackhi_epi64(a, b); });
  JoinLines<4>(lines, [](__m512i a, __m512i b) { return _mm512_shuffle_i32x4(a, b, 0x88); },
               [](__m512i a, __m512i b) { return _mm512_shuffle_i32x4(a, b, 0xdd); });
  JoinLines<8>(lines, [](__m512i a, __m512i b) { return _mm512_shuffle_i32x4(a, b, 0x88); },
               [](__m512i a, __m512i b) { return _mm512_shuffle_i32x4(a, b, 0xdd); });
  // After these steps, of the number of a line, the bits of units 1 and 2 have changed places.
  for (int i = 0; i < 16; ++i) {
    const int line = (i & 12) | (i & 1) << 1 | (i & 2) >> 1;
    _mm512_storeu_si512(to + line * to_row, lines[i]);
  }
#else
  for (int64_t i = 0; i < kLinesOfStep; ++i) {
    uint32_t line[kLinesOfStep];
    for (int64_t j = 0; j < kLinesOfStep; ++j) line[j] = from[j][i];
    std::memcpy(to + i * to_row, line, sizeof(line));
  }
#endif
}

// The panel of one step, of `columns` columns and `count` of their numbers, with zeros beyond. A
// column is `column` elements from the next one, a number `step`; one of both is 1.
template <typename T>
void PackColumns(const T* from, int64_t step, int64_t column, int64_t count, int64_t columns,
                 char* to) {
  constexpr int64_t kOfUnit = 4 / sizeof(T);
  if (column == 1) {
    const auto bytes = std::min(columns, kTileSide) * int64_t{sizeof(T)};
    for (int64_t line = 0; line < kLinesOfStep; ++line, to += kStepBytes) {
      Line steps[kOfUnit] = {};
      for (int64_t k = 0; k < kOfUnit && line * kOfUnit + k < count; ++k) {
        steps[k] = FirstBytes(from + (line * kOfUnit + k) * step, bytes);
      }
      Interleave<T>(steps, to);
    }
    return;
  }
  const auto bytes = std::min<int64_t>(count * sizeof(T), kStepBytes);
  for (int64_t half = 0; half < 2; ++half, to += kPanelBytes / 2) {
    Line lines[kLinesOfStep] = {};
    for (int64_t j = half * kHalfSide; j < std::min(columns, (half + 1) * kHalfSide); ++j) {
      lines[j - half * kHalfSide] = FirstBytes(from + j * column, bytes);
    }
    TransposeLines(lines, to, kStepBytes);
  }
}

// Rows of one step, of 64 bytes each behind each other, likewise.
template <typename T>
void PackRows(const T* from, int64_t row, int64_t step, int64_t rows, int64_t count, char* to) {
  if (step == 1) {
    const auto bytes = std::min<int64_t>(count * sizeof(T), kStepBytes);
    for (int64_t i = 0; i < kTileSide; ++i, to += kStepBytes) {
      const Line line = i < rows ? FirstBytes(from + i * row, bytes) : Line{};
      std::memcpy(to, &line, sizeof(line));
    }
    return;
  }
  Line panel[kPanelBytes / kStepBytes];
  PackColumns(from, step, row, count, rows, reinterpret_cast<char*>(panel));
  for (int64_t half = 0; half < 2; ++half, to += kPanelBytes / 2) {
    Line lines[kLinesOfStep];
    std::copy_n(panel + half * kLinesOfStep, kLinesOfStep, lines);
    TransposeLines(lines, to, kStepBytes);
  }
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_NARROW_PACKING_H_
