// Memory for what is computed on the way.

#ifndef DOVETAIL_CPU_MEMORY_H_
#define DOVETAIL_CPU_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>

namespace dovetail {

// Memory at the start of cache lines: a vector that lies in two takes twice the time to load. Throws
// std::bad_alloc.
template <typename Element>
class Memory {
 public:
  explicit Memory(int64_t size)
      : first_(static_cast<Element*>(
            ::operator new(std::max<size_t>(1, size) * sizeof(Element), kAligned))) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete(first_, kAligned); }
  Element* get() const { return first_; }

 private:
  static constexpr std::align_val_t kAligned{64};
  Element* first_;
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_MEMORY_H_
