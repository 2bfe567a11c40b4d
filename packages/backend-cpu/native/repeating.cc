// Arrays whose elements, rows or blocks are repeated.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernel.h"
#include "parallel.h"
#include "vector_width.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

template <int kBytes>
struct alignas(kBytes) Block {
  typedef uint8_t Bytes __attribute__((vector_size(kBytes)));
  Bytes bytes;

  static Block At(const char* from) {
    Block block;
    std::memcpy(&block, from, kBytes);
    return block;
  }

  // One word in all places.
  template <typename Word>
  static Block Of(const char* from) {
    if constexpr (sizeof(Word) <= 8) {
      typedef Word Words __attribute__((vector_size(kBytes)));
      Word word;
      std::memcpy(&word, from, sizeof(word));
      const Words words = Words{} + word;
      return At(reinterpret_cast<const char*>(&words));
    } else {
      Block block;
      for (int i = 0; i < kBytes; i += sizeof(Word)) {
        std::memcpy(reinterpret_cast<char*>(&block) + i, from, sizeof(Word));
      }
      return block;
    }
  }

  void Store(char* to) const { std::memcpy(to, &bytes, kBytes); }
};

// Bytes until the next vector begins.
int64_t ToVector(const char* to) { return -reinterpret_cast<intptr_t>(to) & (kVectorBytes - 1); }

// Calls of the C library may copy bytes one by one in microcode, which is slow for odd places.
void Copy(const char* from, int64_t bytes, char* to) {
  using Vector = Block<kVectorBytes>;
  if (bytes < kVectorBytes) return static_cast<void>(std::memcpy(to, from, bytes));
  Vector::At(from).Store(to);
  for (int64_t i = ToVector(to); i + kVectorBytes <= bytes; i += kVectorBytes) {
    Vector::At(from + i).Store(to + i);
  }
  const int64_t last = bytes - kVectorBytes;
  Vector::At(from + last).Store(to + last);
}

// Each of `count` words a known number of times, for which compilers know how to shuffle vectors.
template <int kTimes, typename Word>
void RepeatKnown(const char* from, int64_t count, char* to) {
  const Word* const words = reinterpret_cast<const Word*>(from);
  Word* __restrict out = reinterpret_cast<Word*>(to);
  for (int64_t i = 0; i < count; ++i) {
    for (int k = 0; k < kTimes; ++k) out[i * kTimes + k] = words[i];
  }
}

// Each of `count` words so often that it takes `each` bytes, fewer than a block: the next words are
// written over the rest of it.
template <typename Word>
void RepeatFew(const char* from, int64_t count, int64_t each, char* to) {
  constexpr int kBytes = 16;
  const int64_t sure = std::max<int64_t>(0, count - (kBytes + each - 1) / each);
  int64_t i = 0;
  for (; i < sure; ++i, to += each) {
    Block<kBytes>::template Of<Word>(from + i * sizeof(Word)).Store(to);
  }
  for (; i < count; ++i) {
    for (int64_t k = 0; k < each; k += sizeof(Word), to += sizeof(Word)) {
      std::memcpy(to, from + i * sizeof(Word), sizeof(Word));
    }
  }
}

// The same if it takes a block or more, of which the last one may lie over the one before.
template <int kBytes, typename Word>
void RepeatMany(const char* from, int64_t count, int64_t each, char* to) {
  for (int64_t i = 0; i < count; ++i, to += each) {
    const auto block = Block<kBytes>::template Of<Word>(from + i * sizeof(Word));
    block.Store(to);
    int64_t k = kBytes == kVectorBytes ? ToVector(to) : kBytes;
    for (; k < each - kBytes; k += kBytes) block.Store(to + k);
    block.Store(to + each - kBytes);
  }
}

template <typename Word>
void Repeat(const char* from, int64_t count, int64_t times, char* to) {
  const int64_t each = times * static_cast<int64_t>(sizeof(Word));
  if (times == 2) return RepeatKnown<2, Word>(from, count, to);
  if (times == 4) return RepeatKnown<4, Word>(from, count, to);
  if (each < 16) return RepeatFew<Word>(from, count, each, to);
  if (each < 32 || kVectorBytes < 32) return RepeatMany<16, Word>(from, count, each, to);
  if (each < 64 || kVectorBytes < 64) return RepeatMany<32, Word>(from, count, each, to);
  return RepeatMany<64, Word>(from, count, each, to);
}

using Repeating = void (*)(const char* from, int64_t count, int64_t times, char* to);

Repeating RepeatingOf(int64_t width) {
  switch (width) {
    case 1:
      return Repeat<uint8_t>;
    case 2:
      return Repeat<uint16_t>;
    case 4:
      return Repeat<uint32_t>;
    case 8:
      return Repeat<uint64_t>;
    default:
      return Repeat<std::array<uint64_t, 2>>;
  }
}

// A result in pieces, each a part of a row: of the neighbours of the last dimension, or, if that is
// repeated, of the one before, which are repeated one by one.
class Pieces {
 public:
  Pieces(ffi::AnyBuffer x, ffi::AnyBuffer out, ffi::Span<const int64_t> sizes, bool is_each)
      : from_(static_cast<const char*>(x.untyped_data())),
        to_(static_cast<char*>(out.untyped_data())),
        width_(static_cast<int64_t>(ffi::ByteWidth(x.element_type()))),
        repeating_(RepeatingOf(width_)),
        outer_(sizes.begin(), sizes.end()) {
    if (is_each) {
      times_ = outer_.back();
      outer_.pop_back();
    }
    size_ = outer_.back();
    outer_.pop_back();
    rows_ = 1;
    for (const int64_t n : outer_) rows_ *= n;
    together_ = std::clamp<int64_t>(kTogether / times_, 1, size_);
    in_row_ = (size_ + together_ - 1) / together_;
  }

  int64_t count() const { return rows_ * in_row_; }

  void Write(int64_t begin, int64_t end) const {
    int64_t row = begin / in_row_, first = begin % in_row_;
    Place place(outer_, row);
    for (; begin < end; ++row, first = 0, place.Advance()) {
      const int64_t next = std::min(in_row_, first + end - begin);
      const char* const from = from_ + place.source() * size_ * width_;
      char* const to = to_ + row * size_ * times_ * width_;
      for (int64_t piece = first; piece < next; ++piece) {
        EndIfInterrupted();
        const int64_t start = piece * together_, count = std::min(together_, size_ - start);
        const char* const source = from + start * width_;
        char* const target = to + start * times_ * width_;
        if (times_ == 1) {
          Copy(source, count * width_, target);
        } else {
          repeating_(source, count, times_, target);
        }
      }
      begin += next - first;
    }
  }

 private:
  // Elements of a piece of the result.
  static constexpr int64_t kTogether = 1 << 14;

  // Where a row of the result comes from. Of the dimensions before rows, the last one is repeated,
  // and then every other one.
  class Place {
   public:
    Place(const std::vector<int64_t>& sizes, int64_t row) : sizes_(sizes), numbers_(sizes.size()) {
      int64_t step = 1;
      for (int64_t d = last(); d >= 0; row /= sizes_[d], --d) {
        numbers_[d] = row % sizes_[d];
        if (IsRepeated(d)) continue;
        source_ += numbers_[d] * step;
        step *= sizes_[d];
      }
    }

    int64_t source() const { return source_; }

    void Advance() {
      int64_t step = 1;
      for (int64_t d = last(); d >= 0; --d) {
        const bool is_within = ++numbers_[d] < sizes_[d];
        if (!IsRepeated(d)) {
          source_ += is_within ? step : step * (1 - sizes_[d]);
          step *= sizes_[d];
        }
        if (is_within) return;
        numbers_[d] = 0;
      }
    }

   private:
    int64_t last() const { return static_cast<int64_t>(sizes_.size()) - 1; }
    bool IsRepeated(int64_t d) const { return (last() - d) % 2 == 0; }

    const std::vector<int64_t>& sizes_;
    std::vector<int64_t> numbers_;
    int64_t source_ = 0;
  };

  const char* from_;
  char* to_;
  int64_t width_;
  Repeating repeating_;
  std::vector<int64_t> outer_;
  int64_t times_ = 1, size_, rows_, together_, in_row_;
};

// Every other dimension of the result is one of the operand, the others repeat what follows: the
// last one single elements, if `each` is not 0.
ffi::Error RepeatParts(ffi::ThreadPool pool, ffi::Span<const int64_t> sizes, int64_t each,
                       ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> out) {
  const auto size = static_cast<int64_t>(out->element_count());
  if (size == 0) return ffi::Error::Success();
  const Pieces pieces(x, *out, sizes, each != 0);
  // Parts of elements are those of pieces.
  const auto piece = [&](int64_t element) {
    return static_cast<int64_t>(static_cast<double>(element) / size * pieces.count());
  };
  ForRanges(&pool, size, [&](int64_t begin, int64_t end) {
    pieces.Write(piece(begin), end == size ? pieces.count() : piece(end));
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_repeat, dovetail::RepeatParts,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Attr<xla::ffi::Span<const int64_t>>("sizes")
                    .Attr<int64_t>("each")
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>());
#pragma GCC visibility pop
