// Memory for what is computed on the way.

#ifndef DOVETAIL_CPU_MEMORY_H_
#define DOVETAIL_CPU_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
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

// Memory of this thread, one for each use. It keeps that of a few megabytes: mapping it anew would
// take longer than small products.
template <typename T, int kUse = 0>
class OwnMemory {
 public:
  explicit OwnMemory(int64_t size) {
    static thread_local std::unique_ptr<Memory<T>> kept;
    static thread_local int64_t has = 0;
    if (size > kMost) {
      own_ = std::make_unique<Memory<T>>(size);
    } else if (size > has || !kept) {
      has = 0;
      kept = std::make_unique<Memory<T>>(size);
      has = size;
    }
    first_ = own_ ? own_->get() : kept->get();
  }
  T* get() const { return first_; }

 private:
  static constexpr int64_t kMost = (int64_t{4} << 20) / sizeof(T);
  std::unique_ptr<Memory<T>> own_;
  T* first_;
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_MEMORY_H_
