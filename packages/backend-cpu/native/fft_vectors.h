// Vectors of complex numbers, real and imaginary parts apart, and their transforms of small sizes.

#ifndef DOVETAIL_CPU_FFT_VECTORS_H_
#define DOVETAIL_CPU_FFT_VECTORS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "vector_width.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace dovetail {

template <typename T>
struct Lanes {
  static constexpr int kCount = kVectorBytes / sizeof(T);
  typedef T Type __attribute__((vector_size(kVectorBytes)));
  typedef std::conditional_t<sizeof(T) == 4, int32_t, int64_t> Int;
  typedef Int Indices __attribute__((vector_size(kVectorBytes)));
};

// As many complex numbers as a vector has lanes.
template <typename T>
struct Complexes {
  using V = typename Lanes<T>::Type;
  V re, im;

  friend Complexes operator+(Complexes a, Complexes b) { return {a.re + b.re, a.im + b.im}; }
  friend Complexes operator-(Complexes a, Complexes b) { return {a.re - b.re, a.im - b.im}; }
  friend Complexes operator*(Complexes a, Complexes b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  friend Complexes operator*(Complexes a, T b) { return {a.re * b, a.im * b}; }
  // Times re + i im.
  Complexes Times(T wr, T wi) const { return {re * wr - im * wi, re * wi + im * wr}; }
  // Times -i.
  Complexes Turned() const { return {im, -re}; }
};

// Lanes of two vectors, numbered as one after the other.
template <typename T, int... I>
inline typename Lanes<T>::Type Picked(typename Lanes<T>::Type a, typename Lanes<T>::Type b,
                                      std::integer_sequence<int, I...>) {
#if defined(__clang__)
  return __builtin_shufflevector(a, b, I...);
#else
  return __builtin_shuffle(a, b, typename Lanes<T>::Indices{I...});
#endif
}

// Sequences of lanes: `Index::At(i)` for each lane i.
template <typename Index, int... I>
constexpr auto MapLanes(std::integer_sequence<int, I...>) {
  return std::integer_sequence<int, Index::At(I)...>();
}
template <typename Index, int kCount>
using LaneMap = decltype(MapLanes<Index>(std::make_integer_sequence<int, kCount>()));

template <int kFirst>
struct EverySecond {
  static constexpr int At(int i) { return 2 * i + kFirst; }
};
// Of two vectors, lanes in turn: the first or second half of all.
template <int kCount, int kHalf>
struct InTurn {
  static constexpr int At(int i) {
    return (i + kHalf * kCount) / 2 + (i % 2) * kCount;
  }
};
// The same for each 16 bytes by themselves, between which nothing needs to go.
template <int kCount, int kPart, int kFirst>
struct EverySecondOfParts {
  static constexpr int At(int i) {
    const int place = i % kPart * 2;
    return i - i % kPart + place % kPart + kFirst + (place < kPart ? 0 : kCount);
  }
};
template <int kCount, int kPart, int kHalf>
struct InTurnOfParts {
  static constexpr int At(int i) {
    return i - i % kPart + (i % kPart + kHalf * kPart) / 2 + (i % 2) * kCount;
  }
};
// Changes the order of pairs of lanes from that of parts to that of all.
template <int kCount, int kPart>
struct PairsOfParts {
  static constexpr int At(int i) {
    const int half = kPart / 2, group = i / half, groups = kCount / half;
    return group % (groups / 2) * kPart + group / (groups / 2) * half + i % half;
  }
};
// The same from the last to the first of what is read, and to write.
template <int kCount, int kFirst>
struct EverySecondBackwards {
  static constexpr int At(int i) { return 2 * (kCount - 1 - i) + kFirst; }
};
template <int kCount, int kHalf>
struct InTurnBackwards {
  static constexpr int At(int i) {
    return kCount - 1 - (i + kHalf * kCount) / 2 + (i % 2) * kCount;
  }
};
template <int kCount>
struct Backwards {
  static constexpr int At(int i) { return kCount - 1 - i; }
};
// A step of a transposition: groups of kGroup lanes change places between two vectors.
template <int kCount, int kGroup, int kSecond>
struct Exchanged {
  static constexpr int At(int i) {
    const bool odd = i & kGroup;
    if (kSecond == 0) return odd ? kCount + i - kGroup : i;
    return odd ? kCount + i : i + kGroup;
  }
};

template <typename T>
inline typename Lanes<T>::Type Load(const T* from) {
  typename Lanes<T>::Type v;
  std::memcpy(&v, from, sizeof(v));
  return v;
}

template <typename T>
inline void Store(T* to, typename Lanes<T>::Type v) {
  std::memcpy(to, &v, sizeof(v));
}

// Complex numbers from memory, where both parts of each are side by side.
template <typename T>
inline Complexes<T> LoadPairs(const T* from) {
  constexpr int kCount = Lanes<T>::kCount;
  const auto a = Load(from), b = Load(from + kCount);
#if defined(__AVX__) && !defined(__AVX512F__)  // No instruction picks from all of two vectors.
  constexpr int kPart = 16 / sizeof(T);
  const auto re = Picked<T>(a, b, LaneMap<EverySecondOfParts<kCount, kPart, 0>, kCount>());
  const auto im = Picked<T>(a, b, LaneMap<EverySecondOfParts<kCount, kPart, 1>, kCount>());
  using Order = LaneMap<PairsOfParts<kCount, kPart>, kCount>;
  return {Picked<T>(re, re, Order()), Picked<T>(im, im, Order())};
#else
  return {Picked<T>(a, b, LaneMap<EverySecond<0>, kCount>()),
          Picked<T>(a, b, LaneMap<EverySecond<1>, kCount>())};
#endif
}

template <typename T>
inline void StorePairs(T* to, Complexes<T> x) {
  constexpr int kCount = Lanes<T>::kCount;
  Store(to, Picked<T>(x.re, x.im, LaneMap<InTurn<kCount, 0>, kCount>()));
  Store(to + kCount, Picked<T>(x.re, x.im, LaneMap<InTurn<kCount, 1>, kCount>()));
}

// The first `count` of them, and zeros.
template <typename T>
__attribute__((noinline)) Complexes<T> LoadSomePairs(const T* from, int64_t count) {
  T pairs[2 * Lanes<T>::kCount] = {};
  std::memcpy(pairs, from, 2 * count * sizeof(T));
  return LoadPairs<T>(pairs);
}

template <typename T>
__attribute__((noinline)) void StoreSomePairs(T* to, Complexes<T> x, int64_t count) {
  T pairs[2 * Lanes<T>::kCount];
  StorePairs<T>(pairs, x);
  std::memcpy(to, pairs, 2 * count * sizeof(T));
}

template <typename T>
inline Complexes<T> LoadPairs(const T* from, int64_t count) {
  return count >= Lanes<T>::kCount ? LoadPairs(from) : LoadSomePairs(from, count);
}

template <typename T>
inline void StorePairs(T* to, Complexes<T> x, int64_t count) {
  if (count >= Lanes<T>::kCount) return StorePairs(to, x);
  StoreSomePairs(to, x, count);
}

// The first `count` lanes, and zeros.
template <typename T>
inline typename Lanes<T>::Type Load(const T* from, int64_t count) {
  if (count >= Lanes<T>::kCount) return Load(from);
  typename Lanes<T>::Type v{};
  std::memcpy(&v, from, count * sizeof(T));
  return v;
}

template <typename T>
inline void Store(T* to, typename Lanes<T>::Type v, int64_t count) {
  if (count >= Lanes<T>::kCount) return Store(to, v);
  std::memcpy(to, &v, count * sizeof(T));
}

template <typename T>
inline Complexes<T> Reversed(Complexes<T> x) {
  constexpr int kCount = Lanes<T>::kCount;
  using Map = LaneMap<Backwards<kCount>, kCount>;
  return {Picked<T>(x.re, x.re, Map()), Picked<T>(x.im, x.im, Map())};
}

// From memory and to it, where the first lane has the last number.
template <typename T>
inline Complexes<T> LoadPairsBackwards(const T* from) {
#if defined(__AVX512F__)
  constexpr int kCount = Lanes<T>::kCount;
  const auto a = Load(from), b = Load(from + kCount);
  return {Picked<T>(a, b, LaneMap<EverySecondBackwards<kCount, 0>, kCount>()),
          Picked<T>(a, b, LaneMap<EverySecondBackwards<kCount, 1>, kCount>())};
#else
  return Reversed<T>(LoadPairs<T>(from));
#endif
}

template <typename T>
inline void StorePairsBackwards(T* to, Complexes<T> x) {
#if defined(__AVX512F__)
  constexpr int kCount = Lanes<T>::kCount;
  Store(to, Picked<T>(x.re, x.im, LaneMap<InTurnBackwards<kCount, 0>, kCount>()));
  Store(to + kCount, Picked<T>(x.re, x.im, LaneMap<InTurnBackwards<kCount, 1>, kCount>()));
#else
  StorePairs<T>(to, Reversed<T>(x));
#endif
}

template <typename T, int kGroup>
inline void ExchangeGroups(typename Lanes<T>::Type* rows) {
  constexpr int kCount = Lanes<T>::kCount;
  if constexpr (kGroup < kCount) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount; ++i) {
      if (i & kGroup) continue;
      const auto a = rows[i], b = rows[i + kGroup];
      rows[i] = Picked<T>(a, b, LaneMap<Exchanged<kCount, kGroup, 0>, kCount>());
      rows[i + kGroup] = Picked<T>(a, b, LaneMap<Exchanged<kCount, kGroup, 1>, kCount>());
    }
    ExchangeGroups<T, 2 * kGroup>(rows);
  }
}

#if defined(__AVX512F__)
// The steps of a transposition by instructions that need no vector of places. Of two vectors: the
// first or second numbers of each pair in turn, for numbers of the size of W; and the first or
// second of each pair of 16 bytes, of one vector and then the other.
template <typename W, int kHalf>
inline __m512 UnpackedPairs(__m512 a, __m512 b) {
  if constexpr (sizeof(W) == 4) {
    return kHalf == 0 ? _mm512_unpacklo_ps(a, b) : _mm512_unpackhi_ps(a, b);
  } else {
    const __m512d c = _mm512_castps_pd(a), d = _mm512_castps_pd(b);
    return _mm512_castpd_ps(kHalf == 0 ? _mm512_unpacklo_pd(c, d) : _mm512_unpackhi_pd(c, d));
  }
}
template <int kHalf>
inline __m512 EverySecondPart(__m512 a, __m512 b) {
  return _mm512_shuffle_f32x4(a, b, kHalf == 0 ? 0x88 : 0xdd);
}
#endif

// Transposes as many vectors as each has lanes.
template <typename T>
[[gnu::always_inline]] inline void Transpose(typename Lanes<T>::Type* rows) {
#if defined(__AVX512F__)
  using V = typename Lanes<T>::Type;
  constexpr int kCount = Lanes<T>::kCount, kPart = 16 / sizeof(T);
  __m512 x[kCount];
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) x[i] = (__m512)rows[i];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; i += 2) {
    const __m512 a = x[i], b = x[i + 1];
    x[i] = UnpackedPairs<T, 0>(a, b);
    x[i + 1] = UnpackedPairs<T, 1>(a, b);
  }
  if constexpr (kPart == 4) {
#pragma GCC unroll 4
    for (int i = 0; i < kCount; i += 4) {
      const __m512 a = x[i], b = x[i + 1], c = x[i + 2], d = x[i + 3];
      x[i] = UnpackedPairs<double, 0>(a, c);
      x[i + 1] = UnpackedPairs<double, 1>(a, c);
      x[i + 2] = UnpackedPairs<double, 0>(b, d);
      x[i + 3] = UnpackedPairs<double, 1>(b, d);
    }
  }
  // Now 16 bytes have neighbours of one column: those at place i of each group of kPart vectors.
#pragma GCC unroll 4
  for (int i = 0; i < kPart; ++i) {
    const __m512 a = x[i], b = x[i + kPart], c = x[i + 2 * kPart], d = x[i + 3 * kPart];
    const __m512 even_ab = EverySecondPart<0>(a, b), odd_ab = EverySecondPart<1>(a, b);
    const __m512 even_cd = EverySecondPart<0>(c, d), odd_cd = EverySecondPart<1>(c, d);
    rows[i] = (V)EverySecondPart<0>(even_ab, even_cd);
    rows[i + kPart] = (V)EverySecondPart<0>(odd_ab, odd_cd);
    rows[i + 2 * kPart] = (V)EverySecondPart<1>(even_ab, even_cd);
    rows[i + 3 * kPart] = (V)EverySecondPart<1>(odd_ab, odd_cd);
  }
#else
  ExchangeGroups<T, 1>(rows);
#endif
}

// Transposes numbers of two lanes each, half as many as a vector has lanes, of as many rows.
template <typename T, int kGroup = 2>
[[gnu::always_inline]] inline void TransposePairs(typename Lanes<T>::Type* rows) {
  constexpr int kCount = Lanes<T>::kCount;
  if constexpr (kGroup < kCount) {
#pragma GCC unroll 16
    for (int i = 0; i < kCount / 2; ++i) {
      if (i & (kGroup / 2)) continue;
      const auto a = rows[i], b = rows[i + kGroup / 2];
      rows[i] = Picked<T>(a, b, LaneMap<Exchanged<kCount, kGroup, 0>, kCount>());
      rows[i + kGroup / 2] = Picked<T>(a, b, LaneMap<Exchanged<kCount, kGroup, 1>, kCount>());
    }
    TransposePairs<T, 2 * kGroup>(rows);
  }
}

// Calls put(i, x) for i below kCount, where lanes of x have number i of a row each, in the order
// of StoreColumns; the rows are `step` apart and have `size` numbers. What is beyond either is
// zero.
template <typename T, typename Put>
[[gnu::always_inline]] inline void LoadColumns(const T* from, int64_t step, int64_t rows,
                                               int64_t size, const Put& put) {
  constexpr int kCount = Lanes<T>::kCount, kHalf = kCount / 2, kPart = 16 / sizeof(T);
  using V = typename Lanes<T>::Type;
  const auto turn = [&](int half, const auto& row) __attribute__((always_inline)) {
    V x[kCount];
#pragma GCC unroll 16
    for (int k = 0; k < kCount; ++k) x[k] = row(k);
    TransposePairs<T>(x);
    TransposePairs<T>(x + kHalf);
#pragma GCC unroll 8
    for (int i = 0; i < kHalf; ++i) {
      const auto a = x[i], b = x[i + kHalf];
      using Re = LaneMap<EverySecondOfParts<kCount, kPart, 0>, kCount>;
      using Im = LaneMap<EverySecondOfParts<kCount, kPart, 1>, kCount>;
      put(half * kHalf + i, Complexes<T>{Picked<T>(a, b, Re()), Picked<T>(a, b, Im())});
    }
  };
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    const T* first = from + half * kCount;
    const int64_t count = 2 * (size - half * kHalf);
    if (rows >= kCount && count >= kCount) {
      turn(half, [=](int k) { return Load<T>(first + k * step); });
    } else {
      turn(half, [=](int k) {
        return k >= rows || count <= 0 ? V{} : Load<T>(first + k * step, count);
      });
    }
  }
}

// The other way around: get(i) has number i of all rows.
template <typename T, typename Get>
[[gnu::always_inline]] inline void StoreColumns(T* to, int64_t step, int64_t rows, int64_t size,
                                                const Get& get) {
  constexpr int kCount = Lanes<T>::kCount, kHalf = kCount / 2, kPart = 16 / sizeof(T);
  const auto turn = [&](int half, const auto& put) __attribute__((always_inline)) {
    typename Lanes<T>::Type x[kCount];
#pragma GCC unroll 8
    for (int i = 0; i < kHalf; ++i) {
      const Complexes<T> y = get(half * kHalf + i);
      x[i] = Picked<T>(y.re, y.im, LaneMap<InTurnOfParts<kCount, kPart, 0>, kCount>());
      x[i + kHalf] = Picked<T>(y.re, y.im, LaneMap<InTurnOfParts<kCount, kPart, 1>, kCount>());
    }
    TransposePairs<T>(x);
    TransposePairs<T>(x + kHalf);
#pragma GCC unroll 16
    for (int k = 0; k < kCount; ++k) put(k, x[k]);
  };
#pragma GCC unroll 2
  for (int half = 0; half < 2; ++half) {
    T* first = to + half * kCount;
    const int64_t count = 2 * (size - half * kHalf);
    if (rows >= kCount && count >= kCount) {
      turn(half, [=](int k, auto x) { Store<T>(first + k * step, x); });
    } else {
      turn(half, [=](int k, auto x) {
        if (k < rows && count > 0) Store<T>(first + k * step, x, count);
      });
    }
  }
}

// Asks for memory that is read or written soon. What goes through memory in steps, or is done with
// before the processor has seen where it is going, waits for it otherwise.
template <typename T>
inline void Prefetch(const T* from, int64_t size) {
  for (int64_t i = 0; i < size; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(from + i, 0, 2);
}
template <typename T>
inline void PrefetchToWrite(const T* to, int64_t size) {
  for (int64_t i = 0; i < size; i += 64 / int64_t(sizeof(T))) __builtin_prefetch(to + i, 1, 2);
}

constexpr long double kPi = 3.141592653589793238462643383279502884L;

// Sine and cosine of a constant below pi.
constexpr long double ConstantSine(long double x) {
  long double term = x, sum = x;
  for (int i = 1; i < 20; ++i) sum += term *= -x * x / ((2 * i) * (2 * i + 1));
  return sum;
}
constexpr long double ConstantCosine(long double x) { return ConstantSine(kPi / 2 - x); }

// Transforms of R complex numbers in each lane, with exp(-2 pi i / R).
template <int R>
struct Butterfly;

template <>
struct Butterfly<2> {
  template <typename C>
  [[gnu::always_inline]] static void Apply(C* x) {
    const C a = x[0], b = x[1];
    x[0] = a + b;
    x[1] = a - b;
  }
};

template <>
struct Butterfly<4> {
  template <typename C>
  [[gnu::always_inline]] static void Apply(C* x) { Apply(x[0], x[1], x[2], x[3]); }
  template <typename C>
  [[gnu::always_inline]] static void Apply(C& x0, C& x1, C& x2, C& x3) {
    const C a = x0 + x2, b = x0 - x2, c = x1 + x3, d = (x1 - x3).Turned();
    x0 = a + c;
    x1 = b + d;
    x2 = a - c;
    x3 = b - d;
  }
};

template <>
struct Butterfly<8> {
  template <typename C>
  [[gnu::always_inline]] static void Apply(C* x) {
    using T = std::remove_cv_t<std::remove_reference_t<decltype(x->re[0])>>;
    constexpr T kHalf = T(0.707106781186547524400844362104849039);
    Butterfly<4>::Apply(x[0], x[2], x[4], x[6]);
    Butterfly<4>::Apply(x[1], x[3], x[5], x[7]);
    const C a = x[3], b = x[7];
    const C odd[4] = {x[1],
                      {(a.re + a.im) * kHalf, (a.im - a.re) * kHalf},
                      x[5].Turned(),
                      {(b.im - b.re) * kHalf, (b.re + b.im) * -kHalf}};
    const C even[4] = {x[0], x[2], x[4], x[6]};
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      x[k] = even[k] + odd[k];
      x[k + 4] = even[k] - odd[k];
    }
  }
};

template <>
struct Butterfly<16> {
  template <typename C>
  [[gnu::always_inline]] static void Apply(C* x) {
    Open<0>(x);
    Open<1>(x);
    Open<2>(x);
    Open<3>(x);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) Close(x, i);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 4
      for (int j = i + 1; j < 4; ++j) std::swap(x[4 * i + j], x[4 * j + i]);
    }
  }

  // Four steps, of x[I], x[I + 4] and so on.
  template <int I, typename C>
  [[gnu::always_inline]] static void Open(C* x) {
    using T = std::remove_cv_t<std::remove_reference_t<decltype(x->re[0])>>;
    constexpr T kHalf = T(0.707106781186547524400844362104849039);
    constexpr T kC = T(0.923879532511286756128183189396788287);  // cos(pi / 8)
    constexpr T kS = T(0.382683432365089771728459984030398866);
    C &a = x[I + 4], &b = x[I + 8], &c = x[I + 12];
    Butterfly<4>::Apply(x[I], a, b, c);
    const auto eighth = [=](C y) { return C{(y.re + y.im) * kHalf, (y.im - y.re) * kHalf}; };
    const auto three_eighths = [=](C y) {
      return C{(y.im - y.re) * kHalf, (y.re + y.im) * -kHalf};
    };
    if constexpr (I == 1) {
      a = a.Times(kC, -kS);
      b = eighth(b);
      c = c.Times(kS, -kC);
    } else if constexpr (I == 2) {
      a = eighth(a);
      b = b.Turned();
      c = three_eighths(c);
    } else if constexpr (I == 3) {
      a = a.Times(kS, -kC);
      b = three_eighths(b);
      c = c.Times(-kC, kS);
    }
  }
  // Four more, after which x[4 i + j] is the result i + 4 j.
  template <typename C>
  [[gnu::always_inline]] static void Close(C* x, int i) {
    Butterfly<4>::Apply(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]);
  }
};

// Odd sizes, by sums and differences of numbers at both ends.
template <int R>
struct Butterfly {
  static_assert(R % 2 == 1);
  static constexpr int kPairs = R / 2;

  struct Table {
    long double cosine[R], sine[R];
    constexpr Table() : cosine(), sine() {
      for (int i = 0; i < R; ++i) {
        const int j = 2 * i < R ? i : R - i;
        cosine[i] = ConstantCosine(2 * kPi * j / R);
        sine[i] = (2 * i < R ? 1 : -1) * ConstantSine(2 * kPi * j / R);
      }
    }
  };

  template <typename C>
  [[gnu::always_inline]] static void Apply(C* x) {
    using T = std::remove_cv_t<std::remove_reference_t<decltype(x->re[0])>>;
    constexpr Table kTable;
    C sums[kPairs], differences[kPairs];
    C total = x[0];
#pragma GCC unroll 8
    for (int j = 0; j < kPairs; ++j) {
      sums[j] = x[j + 1] + x[R - 1 - j];
      differences[j] = (x[j + 1] - x[R - 1 - j]).Turned();
      total = total + sums[j];
    }
    const C first = x[0];
    x[0] = total;
#pragma GCC unroll 8
    for (int k = 1; k <= kPairs; ++k) {
      // The first sine is left to the last additions, which multiply for nothing.
      C even = first + sums[0] * T(kTable.cosine[k]);
      C odd = differences[0];
#pragma GCC unroll 8
      for (int j = 1; j < kPairs; ++j) {
        even = even + sums[j] * T(kTable.cosine[(j + 1) * k % R]);
        odd = odd + differences[j] * T(kTable.sine[(j + 1) * k % R] / kTable.sine[k]);
      }
      x[k] = even + odd * T(kTable.sine[k]);
      x[R - k] = even - odd * T(kTable.sine[k]);
    }
  }
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_FFT_VECTORS_H_
