// Programs of elementwise functions, step by step for a block of elements, whose intermediate
// results stay in the nearest cache. The steps are functions of small arrays.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "host_functions.h"
#include "kernel.h"
#include "narrow_floats.h"
#include "parallel.h"
#include "xla/ffi/api/ffi.h"

extern "C" const void* dovetail_host_functions(size_t* count);

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Elements of a block.
constexpr int64_t kTogether = 1024;
constexpr int64_t kMostOperands = 3;

// float32 with fewer digits, ties to even, as numbers[1] says; exponents are those of float32.
void Reduced(const void* const* operands, const ptrdiff_t* numbers, void* result,
             ptrdiff_t count) {
  const auto* x = static_cast<const uint32_t*>(operands[0]);
  auto* __restrict out = static_cast<uint32_t*>(result);
  const auto lost = static_cast<uint32_t>(23 - numbers[1]);
  if (lost == 0) return static_cast<void>(std::copy_n(x, count, out));
  const uint32_t half = (1u << lost) / 2, mask = ~((1u << lost) - 1);
  for (ptrdiff_t i = 0; i < count; ++i) {
    const uint32_t bits = x[i], odd = bits >> lost & 1;
    const uint32_t rounded = (bits + (half - 1 + odd)) & mask;
    out[i] = (bits & 0x7fffffff) > 0x7f800000 ? bits : rounded;
  }
}

// By primitive and dtype.
HostFunction Found(std::string_view name) {
  static const auto functions = [] {
    std::unordered_map<std::string, HostFunction> all;
    const auto add = [&](const HostEntry* entries, size_t count) {
      for (const HostEntry* one = entries; one < entries + count; ++one) {
        all.emplace(std::string(one->primitive) + "/" + one->dtype, one->function);
      }
    };
    size_t count;
    const void* const entries = dovetail_host_functions(&count);
    add(static_cast<const HostEntry*>(entries), count);
    const HostEntry* const steps = NarrowSteps(&count);
    add(steps, count);
    all.emplace("reduce_precision/float32", Reduced);
    return all;
  }();
  const auto found = functions.find(std::string(name));
  return found == functions.end() ? nullptr : found->second;
}

struct Step {
  HostFunction function;
  std::array<int64_t, kMostOperands> operands;  // Values, or negative: a number.
  int64_t slot;                                 // Where a block of its results is kept.
};

struct alignas(64) Slot {
  double elements[kTogether];
};

// A value: where its first element lies, and in bytes how far it is from one to the next, which is
// nowhere if all are one. Of a view, by dimension of the result.
struct Known {
  const char* from;
  int64_t width;
  std::vector<int64_t> strides;
};

class Expression {
 public:
  Expression(const std::vector<Step>& steps, const std::vector<Known>& known,
             const std::vector<int64_t>& sizes, int64_t slots)
      : steps_(steps), known_(known), sizes_(sizes), slots_(slots) {}

  // Computes elements from `begin` to `end`, which all views see along the last dimension as
  // neighbours, or as one.
  void Evaluate(int64_t begin, int64_t end, char* to, int64_t width) const {
    std::vector<Slot> slots(slots_);
    std::vector<const char*> rows(known_.size());
    while (begin < end) {
      const int64_t row = begin / sizes_.back(), first = begin % sizes_.back();
      const int64_t last = std::min(sizes_.back(), first + end - begin);
      for (size_t i = 0; i < rows.size(); ++i) rows[i] = Row(known_[i], row);
      for (int64_t column = first; column < last; column += kTogether) {
        const int64_t count = std::min(kTogether, last - column);
        Together(rows, column, count, slots, to + (begin - first + column) * width);
      }
      begin += last - first;
    }
  }

 private:
  // Where a value has a row of the last dimension.
  const char* Row(const Known& known, int64_t row) const {
    if (known.strides.empty()) return known.from + row * sizes_.back() * known.width;
    const char* from = known.from;
    for (auto d = static_cast<int64_t>(sizes_.size()) - 2; d >= 0; row /= sizes_[d], --d) {
      from += row % sizes_[d] * known.strides[d];
    }
    return from;
  }

  // Computes a block of a row.
  void Together(const std::vector<const char*>& rows, int64_t column, int64_t count,
                std::vector<Slot>& slots, char* to) const {
    const auto last = static_cast<int64_t>(known_.size());
    for (const Step& step : steps_) {
      const void* operands[kMostOperands];
      ptrdiff_t numbers[kMostOperands];
      for (int64_t k = 0; k < kMostOperands; ++k) {
        const int64_t value = step.operands[k];
        if (value < 0) {
          operands[k] = nullptr, numbers[k] = -value;
        } else if (value < last) {
          const int64_t width = known_[value].width;
          operands[k] = rows[value] + column * width, numbers[k] = width != 0;
        } else {
          operands[k] = &slots[steps_[value - last].slot], numbers[k] = 1;
        }
      }
      const bool is_last = &step == &steps_.back();
      step.function(operands, numbers, is_last ? to : static_cast<void*>(&slots[step.slot]), count);
    }
  }

  const std::vector<Step>& steps_;
  const std::vector<Known>& known_;
  const std::vector<int64_t>& sizes_;
  int64_t slots_;
};

// Values are the arguments, then views of them, then constants by their bits, then the results of the
// steps, of which the last are those of the program. An argument of one element is the same for all.
// A view is the number of an argument, the element at which it begins, and how many elements lie
// between neighbours along each dimension of `sizes`, of which the last one is 0 or 1.
ffi::Error Evaluate(ffi::ThreadPool pool, std::string_view names, ffi::Span<const int64_t> values,
                    ffi::Span<const int64_t> slots, ffi::Span<const int64_t> constants,
                    ffi::Span<const int64_t> dimensions, ffi::Span<const int64_t> views,
                    ffi::RemainingArgs arguments, ffi::Result<ffi::AnyBuffer> out) {
  std::vector<Known> known;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto argument = arguments.get<ffi::AnyBuffer>(i);
    if (argument.has_error()) return argument.error();
    const bool is_one = argument->element_count() == 1;
    const auto width = static_cast<int64_t>(ffi::ByteWidth(argument->element_type()));
    known.push_back({static_cast<const char*>(argument->untyped_data()), is_one ? 0 : width, {}});
  }
  const std::vector<int64_t> sizes(dimensions.begin(), dimensions.end());
  for (const int64_t* view = views.begin(); view != views.end(); view += 2 + sizes.size()) {
    const auto argument = arguments.get<ffi::AnyBuffer>(view[0]);
    if (argument.has_error()) return argument.error();
    const auto width = static_cast<int64_t>(ffi::ByteWidth(argument->element_type()));
    const char* const from = static_cast<const char*>(argument->untyped_data()) + view[1] * width;
    std::vector<int64_t> strides(view + 2, view + 2 + sizes.size());
    for (int64_t& stride : strides) stride *= width;
    known.push_back({from, strides.back(), strides});
  }
  for (const int64_t& constant : constants) {
    known.push_back({reinterpret_cast<const char*>(&constant), 0, {}});
  }
  std::vector<Step> steps;
  for (size_t i = 0; i < slots.size(); ++i) {
    const size_t end = std::min(names.size(), names.find(' '));
    const HostFunction function = Found(names.substr(0, end));
    if (function == nullptr) {
      return ffi::Error::InvalidArgument("the kernel of expressions lacks a function");
    }
    names.remove_prefix(std::min(names.size(), end + 1));
    const int64_t* const from = values.begin() + i * kMostOperands;
    steps.push_back({function, {from[0], from[1], from[2]}, slots[i]});
  }
  const int64_t most = *std::max_element(slots.begin(), slots.end());
  const Expression expression(steps, known, sizes, most + 1);
  char* const to = static_cast<char*>(out->untyped_data());
  const auto width = static_cast<int64_t>(ffi::ByteWidth(out->element_type()));
  ForRanges(&pool, static_cast<int64_t>(out->element_count()), [&](int64_t begin, int64_t end) {
    expression.Evaluate(begin, end, to, width);
  });
  return ffi::Error::Success();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
DOVETAIL_KERNEL(dovetail_expression, dovetail::Evaluate,
                xla::ffi::Ffi::Bind()
                    .Ctx<xla::ffi::ThreadPool>()
                    .Attr<std::string_view>("names")
                    .Attr<xla::ffi::Span<const int64_t>>("values")
                    .Attr<xla::ffi::Span<const int64_t>>("slots")
                    .Attr<xla::ffi::Span<const int64_t>>("constants")
                    .Attr<xla::ffi::Span<const int64_t>>("sizes")
                    .Attr<xla::ffi::Span<const int64_t>>("views")
                    .RemainingArgs()
                    .Ret<xla::ffi::AnyBuffer>());
#pragma GCC visibility pop
