// Vectors of signed integers of 32 and 64 bits, where the instruction set has what sorting needs.

#ifndef DOVETAIL_CPU_VECTORS_H_
#define DOVETAIL_CPU_VECTORS_H_

#include <cstdint>

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define DOVETAIL_AVX512 1
#include <immintrin.h>
#elif defined(__AVX2__)
#define DOVETAIL_AVX2 1
#include <immintrin.h>
#endif

namespace dovetail {

#if defined(DOVETAIL_AVX512) || defined(DOVETAIL_AVX2)
#define DOVETAIL_VECTORS 1

// For each lane the lane that it changes places with, lane ^ X, in words of `kWords` a lane.
template <int kLanes, int kWords, typename Word, int X>
struct SwappedLanes {
  alignas(64) Word index[kLanes * kWords];
  constexpr SwappedLanes() : index() {
    for (int i = 0; i < kLanes * kWords; ++i) {
      index[i] = Word(((i / kWords) ^ X) * kWords + i % kWords);
    }
  }
};

// The words of lanes whose number has a bit, as a mask.
template <int kLanes, int kWords, int kBit>
constexpr unsigned LanesWithBit() {
  unsigned mask = 0;
  for (int i = 0; i < kLanes * kWords; ++i) mask |= (i / kWords & kBit) ? 1u << i : 0u;
  return mask;
}
#endif

// Lanes, loads and stores of any address, and:
//   LoadFirst(from, count, rest), StoreFirst(to, count, v): so many lanes, none or all of them;
//   Swap<X>(v): lane i of the result is lane i ^ X;
//   Either<B>(a, b): the less of a and b, in lanes whose number has the bit B the greater, or the
//   other way round;
//   Min(a, b), Max(a, b, least): the greater by what the less is, for which processors have more
//   units than for comparisons;
//   Less(a, b), Count(mask);
//   First(count): the mask of so many lanes;
//   Transpose(v): makes lane i of vector j lane j of vector i;
//   MaxWhere(mask, a, v), MinUnless(mask, a, v): the greatest and the least, of lanes of the mask,
//   or of the others (without AVX-512);
//   FloatBits(v): those of floats whose keys are in v, as in key_order.h;
//   StoreParts(mask, count, v, first, last): the lanes of the mask at the start of the vector
//   `first`, the others at the end of the vector `last`; the rest of both may be overwritten.
// kHasMasks says whether instructions take masks of lanes, and move lanes anywhere at no more cost.
template <typename T>
struct Vector;

#if defined(DOVETAIL_AVX512)

// Quarter j of to[i * step] becomes quarter i of the vector j.
inline void TransposeQuarters(__m512i a, __m512i b, __m512i c, __m512i d, __m512i* to, int step) {
  const __m512i front = _mm512_shuffle_i64x2(a, b, 0x44), rear = _mm512_shuffle_i64x2(a, b, 0xEE);
  const __m512i next = _mm512_shuffle_i64x2(c, d, 0x44), last = _mm512_shuffle_i64x2(c, d, 0xEE);
  to[0] = _mm512_shuffle_i64x2(front, next, 0x88);
  to[step] = _mm512_shuffle_i64x2(front, next, 0xDD);
  to[2 * step] = _mm512_shuffle_i64x2(rear, last, 0x88);
  to[3 * step] = _mm512_shuffle_i64x2(rear, last, 0xDD);
}

// For each mask its lanes first, then the others, four bits each.
struct PartedLanes {
  int64_t index[256];
  constexpr PartedLanes() : index() {
    for (int mask = 0; mask < 256; ++mask) {
      int next = 0;
      for (int wanted = 1; wanted >= 0; --wanted) {
        for (int lane = 0; lane < 8; ++lane) {
          if (((mask >> lane) & 1) == wanted) index[mask] |= int64_t{lane} << 4 * next++;
        }
      }
    }
  }
};

template <>
struct Vector<int32_t> {
  using Type = __m512i;
  using Mask = __mmask16;
  static constexpr bool kHasMasks = true;
  static constexpr int kLanes = 16;
  // How many vectors a network of comparisons sorts in registers.
  static constexpr int kInRegisters = 32;

  static Type Load(const int32_t* from) { return _mm512_loadu_si512(from); }
  static void Store(int32_t* to, Type v) { _mm512_storeu_si512(to, v); }
  static Type LoadFirst(const int32_t* from, int count, int32_t rest) {
    return _mm512_mask_loadu_epi32(Of(rest), First(count), from);
  }
  static void StoreFirst(int32_t* to, int count, Type v) {
    _mm512_mask_storeu_epi32(to, First(count), v);
  }
  static Type Of(int32_t x) { return _mm512_set1_epi32(x); }
  static Type Min(Type a, Type b) { return _mm512_min_epi32(a, b); }
  static Type Max(Type a, Type b, Type least) {
    return _mm512_ternarylogic_epi32(a, b, least, 0x96);
  }
  template <int X>
  static Type Swap(Type v) {
    static constexpr SwappedLanes<16, 1, int32_t, X> kTable;
    return _mm512_permutexvar_epi32(_mm512_load_si512(kTable.index), v);
  }
  template <int B, bool kTurned = false>
  static Type Either(Type a, Type b) {
    constexpr unsigned kGreater = LanesWithBit<16, 1, B>() ^ (kTurned ? 0xFFFFu : 0u);
    return _mm512_mask_ternarylogic_epi32(Min(a, b), kGreater, a, b, 0x96);
  }
  static void Transpose(Type* v) {
    Type pairs[16];
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
      pairs[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
    }
    // Quarter q of quads[4 * j + i] has lane 4 * q + i of vectors 4 * j to 4 * j + 3.
    Type quads[16];
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
      quads[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
      quads[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
      quads[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
      quads[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      TransposeQuarters(quads[i], quads[i + 4], quads[i + 8], quads[i + 12], v + i, 4);
    }
  }
  static Mask Less(Type a, Type b) { return _mm512_cmplt_epi32_mask(a, b); }
  static Type FloatBits(Type v) {
    return _mm512_xor_si512(v, _mm512_srli_epi32(_mm512_srai_epi32(v, 31), 1));
  }
  static Mask First(int count) { return Mask(~(0xFFFFu << count)); }
  static int Count(Mask mask) { return __builtin_popcount(mask); }
  static void StoreParts(Mask mask, int count, Type v, int32_t* first, int32_t* last) {
    StoreParts(mask, Mask(~mask), v, first, last + count, kLanes - count);
  }
  // In registers: to compress to memory takes some processors a hundred cycles.
  static void StoreParts(Mask mask, Mask others, Type v, int32_t* first, int32_t* last, int rest) {
    _mm512_storeu_si512(first, _mm512_maskz_compress_epi32(mask, v));
    StoreFirst(last, rest, _mm512_maskz_compress_epi32(others, v));
  }
};

template <>
struct Vector<int64_t> {
  using Type = __m512i;
  using Mask = __mmask8;
  static constexpr bool kHasMasks = true;
  static constexpr int kLanes = 8;
  static constexpr int kInRegisters = 32;

  static Type Load(const int64_t* from) { return _mm512_loadu_si512(from); }
  static void Store(int64_t* to, Type v) { _mm512_storeu_si512(to, v); }
  static Type LoadFirst(const int64_t* from, int count, int64_t rest) {
    return _mm512_mask_loadu_epi64(Of(rest), First(count), from);
  }
  static void StoreFirst(int64_t* to, int count, Type v) {
    _mm512_mask_storeu_epi64(to, First(count), v);
  }
  static Type Of(int64_t x) { return _mm512_set1_epi64(x); }
  static Type Min(Type a, Type b) { return _mm512_min_epi64(a, b); }
  static Type Max(Type a, Type b, Type least) {
    return _mm512_ternarylogic_epi64(a, b, least, 0x96);
  }
  template <int X>
  static Type Swap(Type v) {
    static constexpr SwappedLanes<8, 1, int64_t, X> kTable;
    return _mm512_permutexvar_epi64(_mm512_load_si512(kTable.index), v);
  }
  template <int B, bool kTurned = false>
  static Type Either(Type a, Type b) {
    constexpr unsigned kGreater = LanesWithBit<8, 1, B>() ^ (kTurned ? 0xFFu : 0u);
    return _mm512_mask_ternarylogic_epi64(Min(a, b), kGreater, a, b, 0x96);
  }
  static void Transpose(Type* v) {
    Type pairs[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm512_unpacklo_epi64(v[i], v[i + 1]);
      pairs[i + 1] = _mm512_unpackhi_epi64(v[i], v[i + 1]);
    }
    TransposeQuarters(pairs[0], pairs[2], pairs[4], pairs[6], v, 2);
    TransposeQuarters(pairs[1], pairs[3], pairs[5], pairs[7], v + 1, 2);
  }
  static Mask Less(Type a, Type b) { return _mm512_cmplt_epi64_mask(a, b); }
  static Type FloatBits(Type v) {
    return _mm512_xor_si512(v, _mm512_srli_epi64(_mm512_srai_epi64(v, 63), 1));
  }
  static Mask First(int count) { return Mask(~(0xFFu << count)); }
  static int Count(Mask mask) { return __builtin_popcount(mask); }
  static void StoreParts(Mask mask, int, Type v, int64_t* first, int64_t* last) {
    static constexpr PartedLanes kTable;
    const Type shifts = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
    const Type order = _mm512_srlv_epi64(Of(kTable.index[mask]), shifts);
    const Type parted = _mm512_permutexvar_epi64(order, v);
    _mm512_storeu_si512(first, parted);
    _mm512_storeu_si512(last, parted);
  }
  // In registers: to compress to memory takes some processors a hundred cycles.
  static void StoreParts(Mask mask, Mask others, Type v, int64_t* first, int64_t* last, int rest) {
    _mm512_storeu_si512(first, _mm512_maskz_compress_epi64(mask, v));
    StoreFirst(last, rest, _mm512_maskz_compress_epi64(others, v));
  }
};

#elif defined(DOVETAIL_AVX2)

// For each mask the 32-bit words of its lanes first, then the others.
template <int kLanes>
struct PartedLanes {
  static constexpr int kWords = 8 / kLanes;
  alignas(64) uint8_t index[1 << kLanes][8];
  constexpr PartedLanes() : index() {
    for (int mask = 0; mask < 1 << kLanes; ++mask) {
      int next = 0;
      for (int wanted = 1; wanted >= 0; --wanted) {
        for (int lane = 0; lane < kLanes; ++lane) {
          if (((mask >> lane) & 1) != wanted) continue;
          for (int word = 0; word < kWords; ++word) {
            index[mask][next++] = uint8_t(lane * kWords + word);
          }
        }
      }
    }
  }
};

template <int kLanes>
__m256i PartWords(int mask, __m256i v) {
  static constexpr PartedLanes<kLanes> kTable;
  const auto* bytes = reinterpret_cast<const __m128i*>(kTable.index[mask]);
  return _mm256_permutevar8x32_epi32(v, _mm256_cvtepu8_epi32(_mm_loadl_epi64(bytes)));
}

// Word i of the result is word i ^ X: within halves and between them, at half the cost of any order.
template <int X>
__m256i SwapWords(__m256i v) {
  constexpr int kOrder = X % 4 | (X % 4 ^ 1) << 2 | (X % 4 ^ 2) << 4 | (X % 4 ^ 3) << 6;
  if constexpr (X >= 4) v = _mm256_permute2x128_si256(v, v, 1);
  if constexpr (X % 4 != 0) v = _mm256_shuffle_epi32(v, kOrder);
  return v;
}

template <>
struct Vector<int32_t> {
  using Type = __m256i;
  using Mask = __m256i;
  static constexpr bool kHasMasks = false;
  static constexpr int kLanes = 8;
  static constexpr int kInRegisters = 16;

  static Type Load(const int32_t* p) { return _mm256_loadu_si256((const __m256i*)p); }
  static void Store(int32_t* p, Type v) { _mm256_storeu_si256((__m256i*)p, v); }
  static Type LoadFirst(const int32_t* from, int count, int32_t rest) {
    const Type mask = First(count);
    return _mm256_blendv_epi8(Of(rest), _mm256_maskload_epi32((const int*)from, mask), mask);
  }
  static void StoreFirst(int32_t* to, int count, Type v) {
    _mm256_maskstore_epi32((int*)to, First(count), v);
  }
  static Type Of(int32_t x) { return _mm256_set1_epi32(x); }
  static Type Min(Type a, Type b) { return _mm256_min_epi32(a, b); }
  static Type Max(Type a, Type b, Type) { return _mm256_max_epi32(a, b); }
  template <int X>
  static Type Swap(Type v) {
    return SwapWords<X>(v);
  }
  template <int B, bool kTurned = false>
  static Type Either(Type a, Type b) {
    const Type least = Min(a, b);
    constexpr int kGreater = LanesWithBit<8, 1, B>() ^ (kTurned ? 0xFF : 0);
    return _mm256_blend_epi32(least, Max(a, b, least), kGreater);
  }
  static void Transpose(Type* v) {
    Type pairs[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      pairs[i] = _mm256_unpacklo_epi32(v[i], v[i + 1]);
      pairs[i + 1] = _mm256_unpackhi_epi32(v[i], v[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Type low = pairs[i / 2], low_next = pairs[i / 2 + 2];
      const Type high = pairs[i / 2 + 4], high_next = pairs[i / 2 + 6];
      const Type first = i % 2 == 0 ? _mm256_unpacklo_epi64(low, low_next)
                                    : _mm256_unpackhi_epi64(low, low_next);
      const Type last = i % 2 == 0 ? _mm256_unpacklo_epi64(high, high_next)
                                   : _mm256_unpackhi_epi64(high, high_next);
      v[i] = _mm256_permute2x128_si256(first, last, 0x20);
      v[i + 4] = _mm256_permute2x128_si256(first, last, 0x31);
    }
  }
  static Type FloatBits(Type v) {
    return _mm256_xor_si256(v, _mm256_srli_epi32(_mm256_srai_epi32(v, 31), 1));
  }
  static Mask Less(Type a, Type b) { return _mm256_cmpgt_epi32(b, a); }
  static Type Select(Mask mask, Type yes, Type no) { return _mm256_blendv_epi8(no, yes, mask); }
  static int Count(Mask mask) { return __builtin_popcount(Bits(mask)); }
  static Type MaxWhere(Mask mask, Type a, Type v) {
    return Select(Less(a, v) & mask, v, a);
  }
  static Type MinUnless(Mask mask, Type a, Type v) {
    return Min(a, _mm256_blendv_epi8(v, a, mask));
  }
  static void StoreParts(Mask mask, int, Type v, int32_t* first, int32_t* last) {
    const Type parted = PartWords<8>(Bits(mask), v);
    Store(first, parted);
    Store(last, parted);
  }

  static Mask First(int count) {
    return Less(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), Of(count));
  }

 private:
  static int Bits(Mask mask) { return _mm256_movemask_ps(_mm256_castsi256_ps(mask)); }
};

template <>
struct Vector<int64_t> {
  using Type = __m256i;
  using Mask = __m256i;
  static constexpr bool kHasMasks = false;
  static constexpr int kLanes = 4;
  static constexpr int kInRegisters = 16;

  static Type Load(const int64_t* p) { return _mm256_loadu_si256((const __m256i*)p); }
  static void Store(int64_t* p, Type v) { _mm256_storeu_si256((__m256i*)p, v); }
  static Type LoadFirst(const int64_t* from, int count, int64_t rest) {
    const Type mask = First(count);
    return _mm256_blendv_epi8(Of(rest), _mm256_maskload_epi64((const long long*)from, mask), mask);
  }
  static void StoreFirst(int64_t* to, int count, Type v) {
    _mm256_maskstore_epi64((long long*)to, First(count), v);
  }
  static Type Of(int64_t x) { return _mm256_set1_epi64x(x); }
  static Type Min(Type a, Type b) { return Select(Less(a, b), a, b); }
  static Type Max(Type a, Type b, Type) { return Select(Less(a, b), b, a); }
  template <int X>
  static Type Swap(Type v) {
    return SwapWords<2 * X>(v);
  }
  template <int B, bool kTurned = false>
  static Type Either(Type a, Type b) {
    const Type least = Min(a, b);
    constexpr int kGreater = LanesWithBit<4, 2, B>() ^ (kTurned ? 0xFF : 0);
    return _mm256_blend_epi32(least, Max(a, b, least), kGreater);
  }
  static void Transpose(Type* v) {
    const Type a = _mm256_unpacklo_epi64(v[0], v[1]), b = _mm256_unpackhi_epi64(v[0], v[1]);
    const Type c = _mm256_unpacklo_epi64(v[2], v[3]), d = _mm256_unpackhi_epi64(v[2], v[3]);
    v[0] = _mm256_permute2x128_si256(a, c, 0x20);
    v[1] = _mm256_permute2x128_si256(b, d, 0x20);
    v[2] = _mm256_permute2x128_si256(a, c, 0x31);
    v[3] = _mm256_permute2x128_si256(b, d, 0x31);
  }
  static Type FloatBits(Type v) {
    return _mm256_xor_si256(v, _mm256_srli_epi64(Less(v, Of(0)), 1));
  }
  static Mask Less(Type a, Type b) { return _mm256_cmpgt_epi64(b, a); }
  static Type Select(Mask mask, Type yes, Type no) { return _mm256_blendv_epi8(no, yes, mask); }
  static int Count(Mask mask) { return __builtin_popcount(Bits(mask)); }
  static Type MaxWhere(Mask mask, Type a, Type v) {
    return Select(Less(a, v) & mask, v, a);
  }
  static Type MinUnless(Mask mask, Type a, Type v) {
    return Min(a, _mm256_blendv_epi8(v, a, mask));
  }
  static void StoreParts(Mask mask, int, Type v, int64_t* first, int64_t* last) {
    const Type parted = PartWords<4>(Bits(mask), v);
    Store(first, parted);
    Store(last, parted);
  }
  static Mask First(int count) { return Less(_mm256_setr_epi64x(0, 1, 2, 3), Of(count)); }

 private:
  static int Bits(Mask mask) { return _mm256_movemask_pd(_mm256_castsi256_pd(mask)); }
};

#endif

}  // namespace dovetail

#endif  // DOVETAIL_CPU_VECTORS_H_
