// Rows less their mean, divided by the root of their variance or mean square, and perhaps scaled
// and shifted; and logarithms of softmax.
//
// A row is read from memory once, and its result written at once.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "differences.h"
#include "kernel.h"
#include "parallel.h"
#include "row_parts.h"
#include "sums.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

// A function of numbers, less one.
template <typename F>
struct Less {
  using Type = float;
  const float* x;
  float shift;

  void FetchAhead(int64_t) const {}  // Rows are short, and have been read before.
  template <typename V>
  DOVETAIL_INLINE V At(int64_t i) const {
    return F::Of(Load<V>(x + i) - shift);
  }
};

template <typename Terms>
double SumOfBlock(const Terms& terms, int64_t size) {
  double sums[1];
  BlockResults<Plus, 1>({terms}, size, sums);
  return sums[0];
}

// Writes of(i) for each vector that begins at an element i; the last one may overlap.
template <typename Of>
DOVETAIL_INLINE void ForVectors(float* out, int64_t size, const Of& of) {
  int64_t i = 0;
  for (; i + 2 * kFloats <= size; i += 2 * kFloats) {
    Store(of(i), out + i);
    Store(of(i + kFloats), out + i + kFloats);
  }
  for (; i < size; i += kFloats) {
    const int64_t at = std::min(i, size - kFloats);
    Store(of(at), out + at);
  }
}

// What rows are multiplied by, and what is added, element by element; or null.
struct Affine {
  const float *scale, *shift;

  Affine operator+(int64_t offset) const {
    return {scale ? scale + offset : nullptr, shift ? shift + offset : nullptr};
  }
};

void Normalize(const float* x, float mean, const Factor& factor, const Affine& affine, float* out,
               int64_t size) {
  const float *const scales = affine.scale, *const shifts = affine.shift;
  const auto plain = [=](int64_t i) { return factor.Times(Load<Singles>(x + i) - mean); };
  if (scales != nullptr && shifts != nullptr) {
    ForVectors(out, size, [=](int64_t i) {
      return plain(i) * Load<Singles>(scales + i) + Load<Singles>(shifts + i);
    });
  } else if (scales != nullptr) {
    ForVectors(out, size, [=](int64_t i) { return plain(i) * Load<Singles>(scales + i); });
  } else if (shifts != nullptr) {
    ForVectors(out, size, [=](int64_t i) { return plain(i) + Load<Singles>(shifts + i); });
  } else {
    ForVectors(out, size, plain);
  }
}

// Rows, their results, and what is done to them. The variance is a sum divided by `divisor`, to
// which `epsilon` is added. Functions get the parts of a row, with their sums.
struct Normalization {
  const float* x;
  float* out;
  int64_t size;
  bool centered;
  float divisor, epsilon;
  Affine affine;

  template <typename Parts>
  float Mean(int64_t row, const Parts& parts) const {
    if (!centered) return 0;
    const double sum = parts.Sum([from = x + row * size](int64_t begin, int64_t count) {
      return SumOfBlock(Numbers<float>{from + begin}, count);
    });
    return static_cast<float>(sum / static_cast<double>(size));
  }
  template <typename Parts>
  Factor FactorOf(int64_t row, float mean, const Parts& parts) const {
    const double squares = parts.Sum([=, from = x + row * size](int64_t begin, int64_t count) {
      return SumOfBlock(Less<Square>{from + begin, mean}, count);
    });
    Factor factor(std::sqrt(squares / divisor + epsilon));
    if (std::isinf(factor.high)) factor.low = 0;
    return factor;
  }
  template <typename Parts>
  void Write(int64_t row, float mean, const Factor& factor, const Parts& parts) const {
    const int64_t at = row * size;
    parts.For([&](int64_t begin, int64_t count) {
      Normalize(x + at + begin, mean, factor, affine + begin, out + at + begin, count);
    });
  }
};

// A row that is one part.
struct Whole {
  int64_t size;

  template <typename Body>
  void For(const Body& body) const {
    body(0, size);
  }
  template <typename Body>
  double Sum(const Body& body) const {
    return body(0, size);
  }
};

// The sums of one row, what they come to of another, and the results of a third do not wait for one
// another.
void NormalizeSome(const Normalization& rows, int64_t begin, int64_t end) {
  const Whole all{rows.size};
  float mean = rows.Mean(begin, all);
  Factor factor = rows.FactorOf(begin, mean, all);
  float next = begin + 1 < end ? rows.Mean(begin + 1, all) : 0;
  for (int64_t row = begin; row < end; ++row) {
    if (row % 64 == 0) EndIfInterrupted();
    const float own = mean;
    const Factor by = factor;
    mean = next;
    if (row + 2 < end) next = rows.Mean(row + 2, all);
    if (row + 1 < end) factor = rows.FactorOf(row + 1, mean, all);
    rows.Write(row, own, by, all);
  }
}

ffi::Error NormalizeRows(ffi::ThreadPool pool, bool centered, bool scaled, int64_t count,
                         ffi::Buffer<ffi::F32> x, ffi::BufferR0<ffi::F32> divisor,
                         ffi::BufferR0<ffi::F32> epsilon, ffi::RemainingArgs affine,
                         ffi::Result<ffi::Buffer<ffi::F32>> out) {
  const Sizes s(x.dimensions(), count, 0);
  if (s.size < kFloats) {
    return {ffi::ErrorCode::kInvalidArgument, "no kernel normalizes rows of so few numbers"};
  }
  const float* given[2] = {nullptr, nullptr};
  for (size_t i = 0; i < affine.size(); ++i) {
    const auto buffer = affine.get<ffi::Buffer<ffi::F32>>(i);
    if (buffer.has_error()) return buffer.error();
    if (static_cast<int64_t>(buffer->element_count()) != s.size) {
      return {ffi::ErrorCode::kInvalidArgument, "a factor for each number of a row is needed"};
    }
    given[scaled ? i : 1] = buffer->typed_data();
  }
  const Normalization rows{x.typed_data(),        out->typed_data(),     s.size, centered,
                           *divisor.typed_data(), *epsilon.typed_data(), {given[0], given[1]}};
  if (s.size <= kRowPart) {
    const int64_t shares = std::min(s.outer, PartsOf(pool, s.outer * s.size));
    ParallelFor(pool, shares, [&](int64_t share) {
      NormalizeSome(rows, s.outer * share / shares, s.outer * (share + 1) / shares);
    });
    return ffi::Error::Success();
  }
  ForRowsInParts(pool, s.outer, s.size, [&](int64_t row, const auto& parts) {
    const float mean = rows.Mean(row, parts);
    rows.Write(row, mean, rows.FactorOf(row, mean, parts), parts);
  });
  return ffi::Error::Success();
}

ffi::Error LogSoftmax(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x,
                      ffi::Result<ffi::Buffer<ffi::F32>> out, int64_t count) {
  const Sizes s(x.dimensions(), count, 0);
  if (s.size < kFloats) {
    return {ffi::ErrorCode::kInvalidArgument, "no kernel takes a softmax of so few numbers"};
  }
  ForRowsInParts(pool, s.outer, s.size, [&](int64_t row, const auto& parts) {
    const float* const from = x.typed_data() + row * s.size;
    float* const to = out->typed_data() + row * s.size;
    const auto largest = static_cast<float>(parts.Largest(
        [&](int64_t begin, int64_t count) { return LargestOf(from + begin, count); }));
    const auto logarithm = static_cast<float>(std::log(parts.Sum([&](int64_t begin, int64_t count) {
      return SumOfBlock(Less<Power>{from + begin, largest}, count);
    })));
    parts.For([&](int64_t begin, int64_t count) {
      ForVectors(to + begin, count, [=](int64_t i) {
        return (Load<Singles>(from + begin + i) - largest) - logarithm;
      });
    });
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_normalize_rows, dovetail::NormalizeRows,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Attr<bool>("centered")
                    .Attr<bool>("scaled")
                    .Attr<int64_t>("count")
                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Arg<xla::ffi::BufferR0<xla::ffi::F32>>()
                    .Arg<xla::ffi::BufferR0<xla::ffi::F32>>()
                    .RemainingArgs()
                    .Ret<xla::ffi::Buffer<xla::ffi::F32>>());
DOVETAIL_KERNEL(dovetail_log_softmax, dovetail::LogSoftmax,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Arg<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Ret<xla::ffi::Buffer<xla::ffi::F32>>()
                    .Attr<int64_t>("count"));
#pragma GCC visibility pop
