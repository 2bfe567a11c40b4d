// Arrays made of boxes of another one, and of a number elsewhere: what is rolled or padded.

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

// How many elements a box has along each dimension, and where it begins in both arrays.
struct Box {
  const int64_t *sizes, *from, *to;
};

void Fill(char* to, int64_t bytes, const void* element, int64_t width) {
  const auto fill = [&](auto word) {
    using Word = decltype(word);
    std::memcpy(&word, element, sizeof(word));
    for (int64_t i = 0; i < bytes; i += sizeof(word)) std::memcpy(to + i, &word, sizeof(Word));
  };
  switch (width) {
    case 1:
      return fill(uint8_t());
    case 2:
      return fill(uint16_t());
    case 4:
      return fill(uint32_t());
    case 8:
      return fill(uint64_t());
    default:
      return fill(std::array<uint64_t, 2>());
  }
}

// Calls of the C library may copy bytes one by one in microcode, which is slow for odd places.
void Copy(char* to, const char* from, int64_t bytes) {
  typedef uint8_t Bytes __attribute__((vector_size(kVectorBytes)));
  int64_t i = 0;
  for (; i + kVectorBytes <= bytes; i += kVectorBytes) {
    Bytes some;
    std::memcpy(&some, from + i, sizeof(some));
    std::memcpy(to + i, &some, sizeof(some));
  }
  std::memcpy(to + i, from + i, bytes - i);
}

class Rows {
 public:
  Rows(ffi::AnyBuffer x, ffi::AnyBuffer element, ffi::AnyBuffer out,
       ffi::Span<const int64_t> boxes)
      : from_(static_cast<const char*>(x.untyped_data())),
        to_(static_cast<char*>(out.untyped_data())),
        element_(element.untyped_data()),
        width_(static_cast<int64_t>(ffi::ByteWidth(x.element_type()))),
        sizes_(x.dimensions().begin(), x.dimensions().end()),
        wanted_(out.dimensions().begin(), out.dimensions().end()),
        last_(static_cast<int64_t>(wanted_.size()) - 1) {
    const int64_t rank = last_ + 1;
    for (const int64_t* box = boxes.begin(); box != boxes.end(); box += 3 * rank) {
      boxes_.push_back({box, box + rank, box + 2 * rank});
    }
    std::sort(boxes_.begin(), boxes_.end(),
              [&](const Box& a, const Box& b) { return a.to[last_] < b.to[last_]; });
  }

  int64_t count() const {
    int64_t rows = 1;
    for (int64_t d = 0; d < last_; ++d) rows *= wanted_[d];
    return rows;
  }

  // Writes rows along the last dimension, each from its begin to its end.
  void Write(int64_t begin, int64_t end) const {
    std::vector<int64_t> place(last_ + 1);
    for (int64_t d = last_ - 1, rest = begin; d >= 0; --d) {
      place[d] = rest % wanted_[d];
      rest /= wanted_[d];
    }
    const int64_t bytes = wanted_[last_] * width_;
    for (int64_t row = begin; row < end; ++row) {
      char *next = to_ + row * bytes, *const start = next;
      for (const Box& box : boxes_) {
        const char* const from = Source(box, place);
        if (from == nullptr) continue;
        char* const to = start + box.to[last_] * width_;
        Fill(next, to - next, element_, width_);
        Copy(to, from, box.sizes[last_] * width_);
        next = to + box.sizes[last_] * width_;
      }
      Fill(next, start + bytes - next, element_, width_);
      for (int64_t d = last_ - 1; d >= 0 && ++place[d] == wanted_[d]; --d) place[d] = 0;
    }
  }

 private:
  // What a box has for the row at a place; null if it has none.
  const char* Source(const Box& box, const std::vector<int64_t>& place) const {
    int64_t offset = 0;
    for (int64_t d = 0; d < last_; ++d) {
      const int64_t inside = place[d] - box.to[d];
      if (inside < 0 || inside >= box.sizes[d]) return nullptr;
      offset = offset * sizes_[d] + box.from[d] + inside;
    }
    return from_ + (offset * sizes_[last_] + box.from[last_]) * width_;
  }

  const char* from_;
  char* to_;
  const void* element_;
  int64_t width_;
  std::vector<int64_t> sizes_, wanted_;
  int64_t last_;
  std::vector<Box> boxes_;
};

// Boxes do not overlap.
ffi::Error CopyBoxes(ffi::ThreadPool pool, ffi::Span<const int64_t> boxes, ffi::AnyBuffer x,
                     ffi::AnyBuffer element, ffi::Result<ffi::AnyBuffer> out) {
  const Rows rows(x, element, *out, boxes);
  const int64_t count = rows.count();
  const int64_t parts =
      std::min(count, PartsOf(pool, static_cast<int64_t>(out->element_count())));
  ParallelFor(pool, parts, [&](int64_t part) {
    InPieces(count * part / parts, count * (part + 1) / parts,
             [&](int64_t begin, int64_t end) { rows.Write(begin, end); });
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_copy_boxes, dovetail::CopyBoxes,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Attr<xla::ffi::Span<const int64_t>>("boxes")
                    .Arg<xla::ffi::AnyBuffer>()
                    .Arg<xla::ffi::AnyBuffer>()
                    .Ret<xla::ffi::AnyBuffer>());
#pragma GCC visibility pop
