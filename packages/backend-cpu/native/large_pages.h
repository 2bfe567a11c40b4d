// Memory that is written to in many places at once.

#ifndef DOVETAIL_CPU_LARGE_PAGES_H_
#define DOVETAIL_CPU_LARGE_PAGES_H_

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace dovetail {

// Memory for which the system is asked to use large pages: of small ones a processor keeps too few
// at hand. Throws std::bad_alloc.
template <typename T>
class LargePages {
 public:
  explicit LargePages(int64_t size)
      : bytes_((std::max<size_t>(1, size) * sizeof(T) + kPage - 1) / kPage * kPage),
        first_(static_cast<T*>(::operator new(bytes_, kAligned))) {
#if defined(MADV_HUGEPAGE)
    madvise(first_, bytes_, MADV_HUGEPAGE);  // If it will not, pages are small.
#endif
  }
  LargePages(const LargePages&) = delete;
  LargePages& operator=(const LargePages&) = delete;
  ~LargePages() { ::operator delete(first_, kAligned); }
  T* get() const { return first_; }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kPage = size_t{1} << 21;
  static constexpr std::align_val_t kAligned{kPage};
  size_t bytes_;
  T* first_;
};

// The same, of which the process keeps the last ones: the system clears pages that it gives, which
// takes as long as to write to them.
template <typename T>
class KeptPages {
 public:
  explicit KeptPages(int64_t size) : pages_(Kept().exchange(nullptr)) {
    if (pages_ && pages_->bytes() >= size * sizeof(T)) return;
    pages_.reset();
    pages_ = std::make_unique<LargePages<T>>(size);
  }
  ~KeptPages() {
    if (pages_->bytes() <= kMost) pages_.reset(Kept().exchange(pages_.release()));
  }
  KeptPages(const KeptPages&) = delete;
  KeptPages& operator=(const KeptPages&) = delete;
  T* get() const { return pages_->get(); }

 private:
  static constexpr size_t kMost = size_t{32} << 20;
  static std::atomic<LargePages<T>*>& Kept() {
    static std::atomic<LargePages<T>*> kept{nullptr};
    return kept;
  }
  std::unique_ptr<LargePages<T>> pages_;
};

}  // namespace dovetail

#endif  // DOVETAIL_CPU_LARGE_PAGES_H_
