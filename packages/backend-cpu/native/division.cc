// Exact remainders of floats.
//
// x - n y, with n the quotient rounded to an integer, is a float if n has no more digits than its
// mantissa. So one multiplication and subtraction without rounding between them gives the remainder,
// or y less than that, where the quotient was rounded up.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "host_functions.h"
#include "kernel.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Elements of which all are treated alike.
constexpr int64_t kBlock = 64;

template <typename T>
struct Parts {
  using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  static constexpr int kDigits = std::numeric_limits<T>::digits;
  static constexpr Bits kSize = std::numeric_limits<Bits>::max();
  static constexpr Bits kInfinity = (kSize >> (kDigits - 1)) << (kDigits - 1);
  // The bits of a number whose remainders are no subnormal numbers, which the processor may take for
  // zeros.
  static constexpr Bits kTiny = Bits(kDigits + 1) << (kDigits - 1);
  // Added to a smaller number, it leaves no digits behind the point.
  static constexpr T kRounder = T(int64_t{1} << (kDigits - 1));
};

template <typename To, typename From>
inline To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof(to));
  return to;
}

// The remainder of any two sizes, by their bits.
inline int64_t SlowRemainder(int64_t x, int64_t y) {
  return BitCast<int64_t>(std::fmod(BitCast<double>(x), BitCast<double>(y)));
}

inline int32_t SlowRemainder(int32_t x, int32_t y) {
  using P = Parts<float>;
  constexpr double kUnit = 0x1p-149;
  // Float64 has all of these numbers, subnormal ones by their bits.
  const auto wide = [](int32_t bits) {
    return bits < 1 << (P::kDigits - 1) ? bits * kUnit : double{BitCast<float>(bits)};
  };
  const double size = wide(x), divisor = wide(y), quotient = size / divisor;
  double rest;
  if (quotient < 0x1p28) {
    rest = size - std::floor(quotient) * divisor;
    if (rest < 0) rest += divisor;
  } else {
    rest = std::fmod(size, divisor);
  }
  if (rest < std::numeric_limits<float>::min()) return static_cast<int32_t>(rest / kUnit);
  return BitCast<int32_t>(static_cast<float>(rest));
}

// Remainders of a block; of all elements by `y` itself if `kStep` is 0.
template <typename T, int kStep>
void Block(const T* x, const T* y, T* to, int64_t size) {
  using P = Parts<T>;
  using Bits = typename P::Bits;
  Bits unusual = 0;
  T rests[kBlock];
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
  const Bits rounder = BitCast<Bits>(P::kRounder);
  for (int64_t i = 0; i < size; ++i) {
    const Bits a = BitCast<Bits>(x[i]) & P::kSize, b = BitCast<Bits>(y[i * kStep]) & P::kSize;
    const T dividend = BitCast<T>(a), divisor = BitCast<T>(b);
    const T quotient = dividend / divisor;
    const T nearest = (quotient + P::kRounder) - P::kRounder;
    const T rest = std::fma(-nearest, divisor, dividend);
    // Without branches, or compilers would make no vectors of it.
    const Bits negative = BitCast<Bits>(rest) >> (8 * sizeof(T) - 1);
    rests[i] = rest + BitCast<T>(b & negative);
    unusual |= Bits(a < P::kTiny) & Bits(a != 0);
    unusual |= Bits(b < P::kTiny) | Bits(a >= P::kInfinity) | Bits(b >= P::kInfinity);
    unusual |= Bits(BitCast<Bits>(quotient) >= rounder);
  }
#else
  unusual = 1;
#endif
  if (unusual == 0) {
    for (int64_t i = 0; i < size; ++i) to[i] = std::copysign(rests[i], x[i]);
    return;
  }
  for (int64_t i = 0; i < size; ++i) {
    const Bits bits = BitCast<Bits>(x[i]);
    const Bits a = bits & P::kSize, b = BitCast<Bits>(y[i * kStep]) & P::kSize;
    if (a >= P::kInfinity || b > P::kInfinity || b == 0) {
      to[i] = std::numeric_limits<T>::quiet_NaN();
    } else {
      to[i] = BitCast<T>(Bits((a < b ? a : SlowRemainder(a, b)) | (bits & ~P::kSize)));
    }
  }
}

template <typename T>
void Remainders(ffi::ThreadPool& pool, const void* x, const void* y, void* to, int64_t size,
                bool by_one) {
  const T* dividend = static_cast<const T*>(x);
  const T* divisor = static_cast<const T*>(y);
  T* result = static_cast<T*>(to);
  ForRanges(&pool, size, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; at += kBlock) {
      const int64_t count = std::min(kBlock, end - at);
      if (by_one) {
        Block<T, 0>(dividend + at, divisor, result + at, count);
      } else {
        Block<T, 1>(dividend + at, divisor + at, result + at, count);
      }
    }
  });
}

// Remainders with the sign of the dividend, of an array by an array or by one number.
ffi::Error Remainder(ffi::ThreadPool pool, ffi::AnyBuffer x, ffi::AnyBuffer y,
                     ffi::Result<ffi::AnyBuffer> out) {
  const int64_t size = static_cast<int64_t>(x.element_count());
  const auto remainders =
      x.element_type() == ffi::DataType::F32 ? Remainders<float> : Remainders<double>;
  remainders(pool, x.untyped_data(), y.untyped_data(), out->untyped_data(), size,
             y.element_count() == 1);
  return ffi::Error::Success();
}

// The same on the host, where denormal numbers are what they are.
template <typename T>
void OnHost(const void* const* operands, const ptrdiff_t* steps, void* result, ptrdiff_t count) {
  const T* dividend = static_cast<const T*>(operands[0]);
  const T* divisor = static_cast<const T*>(operands[1]);
  T repeated[kBlock];
  std::fill_n(repeated, count > 0 && steps[0] == 0 ? kBlock : 0, *dividend);
  for (ptrdiff_t at = 0; at < count; at += kBlock) {
    const T* from = steps[0] == 0 ? repeated : dividend + at;
    T* to = static_cast<T*>(result) + at;
    const ptrdiff_t size = std::min<ptrdiff_t>(kBlock, count - at);
    if (steps[1] == 0) {
      Block<T, 0>(from, divisor, to, size);
    } else {
      Block<T, 1>(from, divisor + at, to, size);
    }
  }
}

const HostEntry kEntries[] = {
    {"rem", "float32", OnHost<float>, kSeveral},
    {"rem", "float64", OnHost<double>, kSome},
};

}  // namespace

const HostEntry* RemainderFunctions(size_t* count) {
  *count = sizeof(kEntries) / sizeof(kEntries[0]);
  return kEntries;
}

}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_remainder, dovetail::Remainder,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>());
#pragma GCC visibility pop
