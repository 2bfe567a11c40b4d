// Rows that are gone through several times, in parts that stay in the nearest caches.

#ifndef DOVETAIL_CPU_ROW_PARTS_H_
#define DOVETAIL_CPU_ROW_PARTS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {

// The parts of a row: they go to several threads, or one after the other on this one.
template <typename Each>
struct RowParts {
  int64_t size, parts;
  double* found;  // A number for each part.
  const Each& each;

  // Calls body(begin, count) for each part.
  template <typename Body>
  void For(const Body& body) const {
    each([&](int64_t i) { body(Begin(i), Begin(i + 1) - Begin(i)); });
  }
  // The sum of what body(begin, count) returns for each part, or the largest of it.
  template <typename Body>
  double Sum(const Body& body) const {
    Find(body);
    double sum = 0;
    for (int64_t i = 0; i < parts; ++i) sum += found[i];
    return sum;
  }
  template <typename Body>
  double Largest(const Body& body) const {
    Find(body);
    return *std::max_element(found, found + parts);
  }

 private:
  int64_t Begin(int64_t i) const { return size * i / parts; }
  template <typename Body>
  void Find(const Body& body) const {
    each([&](int64_t i) { found[i] = body(Begin(i), Begin(i + 1) - Begin(i)); });
  }
};

// The most elements of a part.
constexpr int64_t kRowPart = 4096;

// Calls body(row, parts) for each row, on all threads.
template <typename Body>
void ForRowsInParts(xla::ffi::ThreadPool& pool, int64_t rows, int64_t size, const Body& body) {
  const int64_t parts = (size + kRowPart - 1) / kRowPart;
  if (rows < ThreadsOf(pool) && size >= 2 * kPerThread) {
    std::vector<double> found(parts);
    const auto each = [&](const auto& part) {
      ForNeighbours(pool, parts, PartsOf(pool, size), part);
    };
    for (int64_t row = 0; row < rows; ++row) {
      body(row, RowParts<decltype(each)>{size, parts, found.data(), each});
    }
    return;
  }
  const auto each = [parts](const auto& part) {
    for (int64_t i = 0; i < parts; ++i) part(i);
  };
  const int64_t shares = std::min(rows, PartsOf(pool, rows * size));
  ParallelFor(pool, shares, [&](int64_t share) {
    std::vector<double> found(parts);
    for (int64_t row = rows * share / shares; row < rows * (share + 1) / shares; ++row) {
      if (row % 64 == 0 || parts > 64) EndIfInterrupted();
      body(row, RowParts<decltype(each)>{size, parts, found.data(), each});
    }
  });
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_ROW_PARTS_H_
