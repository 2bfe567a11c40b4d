// What kernels of elementary functions share: vectors as wide as the processor has, and loops.

#ifndef DOVETAIL_CPU_ELEMENTARY_H_
#define DOVETAIL_CPU_ELEMENTARY_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "bits.h"
#include "host_functions.h"
#include "kernel.h"
#include "parallel.h"
#include "vector_width.h"
#include "vectors.h"
#include "xla/ffi/api/ffi.h"

// Vectors are passed among functions that are inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

#define DOVETAIL_INLINE inline __attribute__((always_inline))
#define DOVETAIL_LAMBDA __attribute__((always_inline))

namespace dovetail {

namespace ffi = xla::ffi;

// How many float64 a register holds: of wider vectors GCC makes scalars.
constexpr int kLanes = kVectorBytes / 8;
typedef float Single __attribute__((vector_size(4 * kLanes)));
typedef int32_t Bits32 __attribute__((vector_size(4 * kLanes)));
typedef float Singles __attribute__((vector_size(8 * kLanes)));
typedef int32_t AllBits32 __attribute__((vector_size(8 * kLanes)));
typedef double Double __attribute__((vector_size(8 * kLanes)));
typedef int64_t Bits64 __attribute__((vector_size(8 * kLanes)));
typedef uint32_t Naturals32 __attribute__((vector_size(4 * kLanes)));
typedef uint64_t Naturals64 __attribute__((vector_size(8 * kLanes)));
typedef uint16_t Halves __attribute__((vector_size(4 * kLanes)));
constexpr int kSingles = 2 * kLanes;

// Adding this to an integer of less than 2**51 puts it in the lowest bits of a float64.
constexpr double kShifter = 0x1.8p52;
constexpr double kPi = 0x1.921fb54442d18p1;
// Elements that are looked at together.
constexpr int64_t kBlock = 512;

#if defined(DOVETAIL_AVX512)
// GCC converts the halves of vectors.
DOVETAIL_INLINE Double Wide(Single x) { return (Double)_mm512_cvtps_pd((__m256)x); }
DOVETAIL_INLINE Double Wide(Bits32 x) { return (Double)_mm512_cvtepi32_pd((__m256i)x); }
DOVETAIL_INLINE Bits64 Widened(Bits32 x) { return (Bits64)_mm512_cvtepi32_epi64((__m256i)x); }
DOVETAIL_INLINE Bits32 Narrowed(Bits64 x) { return (Bits32)_mm512_cvtepi64_epi32((__m512i)x); }
// From 14 bits: with an error of e, 1 / (1 - e) is 1 + e + e**2 to 42 bits, and
// 1 / sqrt(1 - e) is 1 + e / 2 + 3 / 8 e**2 to 38.
DOVETAIL_INLINE Double Reciprocal(Double x) {
  const Double rough = (Double)_mm512_rcp14_pd((__m512d)x), rest = 1.0 - x * rough;
  return rough + rough * (rest + rest * rest);
}
DOVETAIL_INLINE Double Root(Double x) {
  const Double rough = (Double)_mm512_rsqrt14_pd((__m512d)(x + 1e-290)), root = x * rough;
  const Double rest = 1.0 - root * rough;
  return root + root * rest * (0.5 + 0.375 * rest);
}
#else
DOVETAIL_INLINE Double Reciprocal(Double x) { return 1.0 / x; }
DOVETAIL_INLINE Double Wide(Single x) { return __builtin_convertvector(x, Double); }
DOVETAIL_INLINE Double Wide(Bits32 x) { return __builtin_convertvector(x, Double); }
DOVETAIL_INLINE Bits64 Widened(Bits32 x) { return __builtin_convertvector(x, Bits64); }
DOVETAIL_INLINE Bits32 Narrowed(Bits64 x) { return __builtin_convertvector(x, Bits32); }
#if defined(DOVETAIL_AVX2)
DOVETAIL_INLINE Double Root(Double x) { return (Double)_mm256_sqrt_pd((__m256d)x); }
#else
DOVETAIL_INLINE Double Root(Double x) {
  for (int i = 0; i < kLanes; ++i) x[i] = std::sqrt(x[i]);
  return x;
}
#endif
#endif
DOVETAIL_INLINE Single Narrow(Double x) { return __builtin_convertvector(x, Single); }
DOVETAIL_INLINE Double Nearest(Double x) { return (x + kShifter) - kShifter; }

template <typename Vector, typename Number>
DOVETAIL_INLINE void Store(Vector x, Number* to) {
  std::memcpy(to, &x, sizeof(x));
}

// The same for a vector that is read, and one that is written.
template <typename From, typename To>
DOVETAIL_INLINE void FetchAhead(const From* from, To* to) {
  FetchAhead(from);
  FetchAhead(to);
}

// A polynomial, constant coefficient first.
template <typename Vector, typename Number, int kCount>
DOVETAIL_INLINE Vector Polynomial(Vector x, const Number (&coefficients)[kCount]) {
  Vector result = x * coefficients[kCount - 1] + coefficients[kCount - 2];
#pragma GCC unroll 16
  for (int i = kCount - 3; i >= 0; --i) result = result * x + coefficients[i];
  return result;
}

// `x` itself where the processor flushes it to zero.
DOVETAIL_INLINE Single IdentityAtZero(Single x, Double result) {
  return x == 0.0f ? x : Narrow(result);
}

DOVETAIL_INLINE Double Absolute(Single x) { return Wide(As<Single>(As<Bits32>(x) & INT32_MAX)); }

DOVETAIL_INLINE Singles WithSignOf(Singles size, Singles x) {
  return As<Singles>(As<AllBits32>(size) | (As<AllBits32>(x) & INT32_MIN));
}

DOVETAIL_INLINE Singles Magnitude(Singles x) { return As<Singles>(As<AllBits32>(x) & INT32_MAX); }

// NaN where `x` is.
DOVETAIL_INLINE Singles AtMost(Singles x, float most) {
#if defined(DOVETAIL_AVX2)
  // The second operand is the result if there is a NaN.
  return (Singles)_mm256_min_ps(_mm256_set1_ps(most), (__m256)x);
#else
  return x > most ? Singles{} + most : x;
#endif
}

// One of two by the sign bit of a number.
DOVETAIL_INLINE Singles BySign(Singles x, Singles negative, Singles positive) {
#if defined(DOVETAIL_AVX2)
  return (Singles)_mm256_blendv_ps((__m256)positive, (__m256)negative, (__m256)x);
#else
  return x < 0.0f ? negative : positive;
#endif
}

// Whether all are from 0 to below `limit`.
template <typename Integers, typename Integer>
DOVETAIL_INLINE bool AllBelow(Integers x, Integer limit) {
  const Integers outside = (x < 0) | (x >= limit);
#if defined(DOVETAIL_AVX512)
  if constexpr (sizeof(Integers) == 64 && sizeof(Integer) == 4) {
    return _mm512_cmplt_epu32_mask((__m512i)x, _mm512_set1_epi32(limit)) == 0xFFFF;
  } else if constexpr (sizeof(Integers) == 64) {
    return _mm512_cmplt_epu64_mask((__m512i)x, _mm512_set1_epi64(limit)) == 0xFF;
  } else {
    return _mm256_cmplt_epu32_mask((__m256i)x, _mm256_set1_epi32(limit)) == 0xFF;
  }
#elif defined(DOVETAIL_AVX2)
  if constexpr (sizeof(Integers) == 32) {
    return _mm256_testz_si256((__m256i)outside, (__m256i)outside);
  } else {
    return _mm_testz_si128((__m128i)outside, (__m128i)outside);
  }
#else
  Integer any = 0;
  for (size_t i = 0; i < sizeof(Integers) / sizeof(Integer); ++i) any |= outside[i];
  return any == 0;
#endif
}

#if defined(DOVETAIL_AVX512)
// From 14 bits by a step of Newton's method.
DOVETAIL_INLINE Singles ReciprocalOf(Singles x) {
  const Singles rough = (Singles)_mm512_rcp14_ps((__m512)x);
  return rough + rough * (1.0f - x * rough);
}
DOVETAIL_INLINE Singles RootOf(Singles x) {
  const Singles rough = (Singles)_mm512_rsqrt14_ps((__m512)(x + 1e-37f)), root = x * rough;
  return root + 0.5f * rough * (x - root * root);
}
#else
DOVETAIL_INLINE Singles ReciprocalOf(Singles x) { return 1.0f / x; }
#if defined(DOVETAIL_AVX2)
DOVETAIL_INLINE Singles RootOf(Singles x) { return (Singles)_mm256_sqrt_ps((__m256)x); }
#else
DOVETAIL_INLINE Singles RootOf(Singles x) {
  for (int i = 0; i < 2 * kLanes; ++i) x[i] = std::sqrt(x[i]);
  return x;
}
#endif
#endif
// a * b - c, rounded once.
DOVETAIL_INLINE Singles ProductLess(Singles a, Singles b, Singles c) {
#if defined(DOVETAIL_AVX512)
  return (Singles)_mm512_fmsub_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(DOVETAIL_AVX2)
  return (Singles)_mm256_fmsub_ps((__m256)a, (__m256)b, (__m256)c);
#else
  for (int i = 0; i < 2 * kLanes; ++i) a[i] = std::fma(a[i], b[i], -c[i]);
  return a;
#endif
}
DOVETAIL_INLINE Double ProductLess(Double a, Double b, Double c) {
#if defined(DOVETAIL_AVX512)
  return (Double)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(DOVETAIL_AVX2)
  return (Double)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)c);
#else
  for (int i = 0; i < kLanes; ++i) a[i] = std::fma(a[i], b[i], -c[i]);
  return a;
#endif
}
// Numbers of a table by the last five bits of indices, which AVX-512 does by one instruction.
DOVETAIL_INLINE Singles LookedUp(const float (&row)[32], AllBits32 index) {
#if defined(DOVETAIL_AVX512)
  return (Singles)_mm512_permutex2var_ps(_mm512_load_ps(row), (__m512i)index,
                                         _mm512_load_ps(row + 16));
#else
  Singles result;
  for (int i = 0; i < kSingles; ++i) result[i] = row[index[i] & 31];
  return result;
#endif
}
#if defined(DOVETAIL_AVX512)
// The same of float64 by the last four bits.
DOVETAIL_INLINE Double WideLookedUp(const double (&row)[16], __m512i index) {
  return (Double)_mm512_permutex2var_pd(_mm512_load_pd(row), index, _mm512_load_pd(row + 8));
}
#endif
DOVETAIL_INLINE Singles Converted(AllBits32 x) { return __builtin_convertvector(x, Singles); }

constexpr int32_t kOne = 0x3f800000, kInfinity = 0x7f800000, kNormal = 0x00800000;
constexpr int64_t kWideOne = 0x3ff0000000000000, kWideInfinity = 0x7ff0000000000000;

DOVETAIL_INLINE Double Magnitude(Double x) { return As<Double>(As<Bits64>(x) & INT64_MAX); }

DOVETAIL_INLINE Double WithSignOf(Double size, Double x) {
  return As<Double>(As<Bits64>(size) | (As<Bits64>(x) & INT64_MIN));
}

DOVETAIL_INLINE Double SizeOf(Single x) {
  const Bits32 bits = As<Bits32>(x) & INT32_MAX;
  const Double small = Wide(bits) * 0x1p-149;
  return Widened(bits) < kNormal ? small : Wide(As<Single>(bits));
}

// A positive number with a sign. What would be subnormal, the processor would round to zero.
DOVETAIL_INLINE Single SignedSingle(Double size, Bits32 sign) {
  constexpr int64_t kSmallest = kWideOne - (126ll << 52);
  const Bits32 normal = As<Bits32>(Narrow(size)), bits = normal | sign;
  if (__builtin_expect(AllBelow(As<Bits64>(size) - kSmallest, kWideInfinity - kSmallest), 1)) {
    return As<Single>(bits);
  }
  const Bits32 counted = Narrowed(As<Bits64>(size * 0x1p149 + kShifter)) & 0xffffff;
  return As<Single>(Narrowed(size < 0x1p-126) ? counted | sign : bits);
}

// The bits of a size, from those of the smallest normal number on; large for smaller ones.
DOVETAIL_INLINE Naturals32 FromNormal(Single x) {
  return As<Naturals32>((As<Bits32>(x) & INT32_MAX) - kNormal);
}

DOVETAIL_INLINE Naturals32 Larger(Naturals32 a, Naturals32 b) { return a > b ? a : b; }

// Floats of 16 bits, which functions of float32 compute in float32.
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

DOVETAIL_INLINE Singles LoadSingles(const float* from) { return Load<Singles>(from); }
DOVETAIL_INLINE void StoreSingles(Singles x, float* to) { Store(x, to); }

DOVETAIL_INLINE Singles LoadSingles(const BFloat16* from) {
  const Halves bits = Load<Halves>(from);
#if defined(DOVETAIL_AVX512)
  return As<Singles>((AllBits32)_mm512_cvtepu16_epi32((__m256i)bits) << 16);
#elif defined(DOVETAIL_AVX2)
  return As<Singles>((AllBits32)_mm256_cvtepu16_epi32((__m128i)bits) << 16);
#else
  return As<Singles>(__builtin_convertvector(bits, AllBits32) << 16);
#endif
}

DOVETAIL_INLINE void StoreSingles(Singles x, BFloat16* to) {
  const AllBits32 bits = As<AllBits32>(x), odd = (bits >> 16) & 1;
  const AllBits32 rounded = (bits + (odd + 0x7fff)) >> 16;
  const AllBits32 kept = x == x ? rounded : (bits >> 16) | 0x40;
#if defined(DOVETAIL_AVX512)
  Store(_mm512_cvtepi32_epi16((__m512i)kept), to);
#else
  Store(__builtin_convertvector(kept, Halves), to);
#endif
}

DOVETAIL_INLINE Singles LoadSingles(const Float16* from) {
#if defined(DOVETAIL_AVX512)
  return (Singles)_mm512_cvtph_ps((__m256i)Load<Halves>(from));
#elif defined(DOVETAIL_AVX2)
  return (Singles)_mm256_cvtph_ps((__m128i)Load<Halves>(from));
#else
  Singles result;
  for (int i = 0; i < 2 * kLanes; ++i) result[i] = float(As<__fp16>(from[i]));
  return result;
#endif
}

DOVETAIL_INLINE void StoreSingles(Singles x, Float16* to) {
#if defined(DOVETAIL_AVX512)
  Store(_mm512_cvtps_ph((__m512)x, _MM_FROUND_TO_NEAREST_INT), to);
#elif defined(DOVETAIL_AVX2)
  Store(_mm256_cvtps_ph((__m256)x, _MM_FROUND_TO_NEAREST_INT), to);
#else
  for (int i = 0; i < 2 * kLanes; ++i) to[i] = As<Float16>(__fp16(x[i]));
#endif
}

// How many elements functions of the host compute while a program starts. With long vectors they are
// those which on one thread need no program for any number.
#if defined(DOVETAIL_AVX512)
constexpr ptrdiff_t kQuick = 2 * kSome;
#else
constexpr ptrdiff_t kQuick = kSome;
#endif

// Calls body(x, count, out) for `size` elements as whole vectors, the last of them filled up.
template <typename Vector, typename Number, typename Body>
void ForWholeVectors(const Number* x, int64_t size, Number* out, const Body& body) {
  constexpr int64_t kStep = sizeof(Vector) / sizeof(Vector{}[0]);
  const int64_t whole = size / kStep * kStep;
  if (whole > 0) body(x, whole / kStep, out);
  if (whole == size) return;
  Number last[kStep] = {};
  std::memcpy(last, x + whole, sizeof(Number) * (size - whole));
  body(last, 1, last);
  std::memcpy(out + whole, last, sizeof(Number) * (size - whole));
}

// Writes Function::Of(x) for whole vectors. It is inlined, so that its constants stay in registers.
template <typename Function, typename Vector, typename Number>
void Apply(const Number* x, int64_t count, Number* out) {
  constexpr int64_t kStep = sizeof(Vector) / sizeof(Number);
  for (int64_t i = 0; i < count * kStep; i += kStep) {
    FetchAhead(x + i, out + i);
    Store(Function::Of(Load<Vector>(x + i)), out + i);
  }
}

// The same for float32 and narrower floats.
template <typename Function>
struct AtOnce {
  template <typename Number>
  static void Apply(const Number* x, int64_t count, Number* out) {
    for (int64_t i = 0; i < count * kSingles; i += kSingles) {
      FetchAhead(x + i, out + i);
      StoreSingles(Function::Of(LoadSingles(x + i)), out + i);
    }
  }
};

// Of functions with many operations in a row, each half is a loop: so the processor works on
// several vectors at once.
template <typename Function>
struct InHalves {
  template <typename Number>
  static void Apply(const Number* x, int64_t count, Number* out) {
    constexpr int64_t kVectors = kBlock / kSingles;
    typename Function::Half halves[kVectors];
    for (int64_t begin = 0; begin < count; begin += kVectors) {
      const int64_t vectors = std::min(kVectors, count - begin);
      const Number* from = x + begin * kSingles;
      Number* to = out + begin * kSingles;
      for (int64_t i = 0; i < vectors; ++i) {
        FetchAhead(from + i * kSingles, to + i * kSingles);
        halves[i] = Function::First(LoadSingles(from + i * kSingles));
      }
      for (int64_t i = 0; i < vectors; ++i) {
        const Singles result = Function::Second(LoadSingles(from + i * kSingles), halves[i]);
        StoreSingles(result, to + i * kSingles);
      }
    }
  }
};

// How functions whose arguments are reduced see a number.
template <typename Number>
struct Form;

template <>
struct Form<float> {
  using Vector = Single;
  using Bits = uint32_t;
  static constexpr auto kType = ffi::F32;
  // From here on, numbers count as large: 2**20.
  static constexpr Bits kLarge = 0x49800000;
};

template <>
struct Form<double> {
  using Vector = Double;
  using Bits = uint64_t;
  static constexpr auto kType = ffi::F64;
  static constexpr Bits kLarge = 0x4130000000000000;
};

template <typename Number>
using Operand = ffi::Buffer<Form<Number>::kType>;

template <typename Function, typename Vector = Single, typename Number = float>
ffi::Error Unary(ffi::ThreadPool pool, Operand<Number> x, ffi::Result<Operand<Number>> out) {
  const Number* from = x.typed_data();
  Number* to = out->typed_data();
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    ForWholeVectors<Vector>(from + begin, end - begin, to + begin,
                            Apply<Function, Vector, Number>);
  });
  return ffi::Error::Success();
}

// Calls body(x, count, out) for whole vectors of float32 or narrower floats.
template <typename Number, typename Body>
void ForSingles(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, ffi::AnyBuffer& out,
                const Body& body) {
  const auto* from = static_cast<const Number*>(x.untyped_data());
  auto* to = static_cast<Number*>(out.untyped_data());
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    ForWholeVectors<Singles>(from + begin, end - begin, to + begin, body);
  });
}

template <typename Body>
ffi::Error OfEachFloat(ffi::ThreadPool& pool, const ffi::AnyBuffer& x, ffi::AnyBuffer& out,
                       const Body& body) {
  switch (x.element_type()) {
    case ffi::F32:
      ForSingles<float>(pool, x, out, body);
      break;
    case ffi::BF16:
      ForSingles<BFloat16>(pool, x, out, body);
      break;
    case ffi::F16:
      ForSingles<Float16>(pool, x, out, body);
      break;
    default:
      return ffi::Error::InvalidArgument("an elementary function of another dtype");
  }
  return ffi::Error::Success();
}

template <typename Loop>
ffi::Error OfFloats(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) {
  return OfEachFloat(pool, x, *out, [](const auto* from, int64_t count, auto* to) {
    Loop::Apply(from, count, to);
  });
}

// Writes body(x, y) of vectors.
template <typename Body>
void ForPairs(ffi::ThreadPool& pool, Operand<float> x, Operand<float> y,
              ffi::Result<Operand<float>> out, const Body& body) {
  const float *first = x.typed_data(), *second = y.typed_data();
  float* results = out->typed_data();
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    const auto apply = [&](const float* from, const float* also, int64_t count, float* to) {
      for (int64_t i = 0; i < count; i += kSingles) {
        FetchAhead(from + i, to + i);
        Store(body(Load<Singles>(from + i), Load<Singles>(also + i)), to + i);
      }
    };
    const int64_t whole = begin + (end - begin) / kSingles * kSingles;
    apply(first + begin, second + begin, whole - begin, results + begin);
    if (whole == end) return;
    float last[2][kSingles] = {};
    std::copy(first + whole, first + end, last[0]);
    std::copy(second + whole, second + end, last[1]);
    apply(last[0], last[1], kSingles, last[0]);
    std::copy(last[0], last[0] + (end - whole), results + whole);
  });
}

// factor * y times Function::Of(scale * x).
template <typename Function>
ffi::Error Gate(ffi::ThreadPool pool, float scale, float factor, Operand<float> x,
                Operand<float> y, ffi::Result<Operand<float>> out) {
  ForPairs(pool, x, y, out, [scale, factor](Singles a, Singles b) DOVETAIL_LAMBDA {
    return factor * b * Function::Of(a * scale);
  });
  return ffi::Error::Success();
}

// Functions of two numbers, an even number of vectors at once, by Function::Plain where all of a
// block are normal and finite, and so are the results.
template <typename Function>
void OfPairs(const float* first, const float* second, int64_t size, float* to) {
  for (int64_t begin = 0; begin < size; begin += kBlock) {
    const int64_t count = std::min(kBlock, size - begin);
    const int64_t vectors = (count + kSingles - 1) / kSingles * 2;
    const float *from = first + begin, *also = second + begin;
    float padded[kBlock], others[kBlock], results[kBlock], *results_at = to + begin;
    if (count % kSingles != 0) {
      std::fill(std::copy(from, from + count, padded), padded + vectors * kLanes, 1.0f);
      std::fill(std::copy(also, also + count, others), others + vectors * kLanes, 1.0f);
      from = padded, also = others, results_at = results;
    }
    if (!Function::Plain(from, also, vectors, results_at)) {
      for (int64_t i = 0; i < vectors * kLanes; i += kLanes) {
        Store(Function::Any(Load<Single>(from + i), Load<Single>(also + i)), results_at + i);
      }
    }
    if (results_at == results) std::copy(results, results + count, to + begin);
  }
}

template <typename Function>
ffi::Error Binary(ffi::ThreadPool pool, Operand<float> x, Operand<float> y,
                  ffi::Result<Operand<float>> out) {
  const float *first = x.typed_data(), *second = y.typed_data();
  float* to = out->typed_data();
  ForRanges(&pool, static_cast<int64_t>(x.element_count()), [=](int64_t begin, int64_t end) {
    OfPairs<Function>(first + begin, second + begin, end - begin, to + begin);
  });
  return ffi::Error::Success();
}

// The same functions of small arrays in the memory of the host, whose numbers are steps.
template <typename Number, void (*kCompute)(const Number*, int64_t, Number*)>
void PartOnHost(const void* const* operands, const ptrdiff_t* steps, void* result,
                ptrdiff_t count) {
  FlushDenormals flush;
  Number* out = static_cast<Number*>(result);
  const ptrdiff_t different = steps[0] == 0 ? std::min<ptrdiff_t>(count, 1) : count;
  kCompute(static_cast<const Number*>(operands[0]), different, out);
  if (different < count) std::fill(out + different, out + count, *out);
}

template <typename Number, void (*kCompute)(const Number*, int64_t, Number*)>
constexpr HostFunction OnHost = Divided<PartOnHost<Number, kCompute>, Number, Number>;

template <typename Loop>
void OfSingles(const float* x, int64_t size, float* out) {
  ForWholeVectors<Singles>(x, size, out, Loop::template Apply<float>);
}

template <typename Function>
constexpr HostFunction kSingly = OnHost<float, OfSingles<AtOnce<Function>>>;

template <typename Function, typename Vector, typename Number>
void OfVectors(const Number* x, int64_t size, Number* out) {
  ForWholeVectors<Vector>(x, size, out, Apply<Function, Vector, Number>);
}

template <typename Function>
void PartOfPairsOnHost(const void* const* operands, const ptrdiff_t* steps, void* result,
                       ptrdiff_t count) {
  FlushDenormals flush;
  float* out = static_cast<float*>(result);
  float repeated[2][kBlock];
  for (ptrdiff_t begin = 0; begin < count; begin += kBlock) {
    const ptrdiff_t some = std::min<ptrdiff_t>(kBlock, count - begin);
    const float* from[2];
    for (int k = 0; k < 2; ++k) {
      const float* x = static_cast<const float*>(operands[k]);
      from[k] = steps[k] == 0 ? repeated[k] : x + begin;
      if (steps[k] == 0 && begin == 0) std::fill(repeated[k], repeated[k] + some, *x);
    }
    OfPairs<Function>(from[0], from[1], some, out + begin);
  }
}

template <typename Function>
constexpr HostFunction PairsOnHost = Divided<PartOfPairsOnHost<Function>, float, float, float>;

}  // namespace dovetail

#define DOVETAIL_UNARY(name, number, ...)               \
  DOVETAIL_KERNEL(name, (__VA_ARGS__),                  \
                  xla::ffi::Ffi::Bind()                 \
                      .Ctx<xla::ffi::ThreadPool>()      \
                      .Arg<dovetail::Operand<number>>() \
                      .Ret<dovetail::Operand<number>>())
#define DOVETAIL_OF_FLOATS(name, ...)                  \
  DOVETAIL_KERNEL(name, (dovetail::OfFloats<__VA_ARGS__>), \
                  xla::ffi::Ffi::Bind()                \
                      .Ctx<xla::ffi::ThreadPool>()     \
                      .Arg<xla::ffi::AnyBuffer>()      \
                      .Ret<xla::ffi::AnyBuffer>())
#define DOVETAIL_GATE(name, ...)                         \
  DOVETAIL_KERNEL(name, (dovetail::Gate<__VA_ARGS__>),   \
                  xla::ffi::Ffi::Bind()                  \
                      .Ctx<xla::ffi::ThreadPool>()       \
                      .Attr<float>("scale")              \
                      .Attr<float>("factor")             \
                      .Arg<dovetail::Operand<float>>()   \
                      .Arg<dovetail::Operand<float>>()   \
                      .Ret<dovetail::Operand<float>>())
#define DOVETAIL_BINARY(name, ...)                     \
  DOVETAIL_KERNEL(name, (__VA_ARGS__),                 \
                  xla::ffi::Ffi::Bind()                \
                      .Ctx<xla::ffi::ThreadPool>()     \
                      .Arg<dovetail::Operand<float>>() \
                      .Arg<dovetail::Operand<float>>() \
                      .Ret<dovetail::Operand<float>>())

#endif  // DOVETAIL_CPU_ELEMENTARY_H_
