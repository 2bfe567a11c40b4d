// The width of vectors that the compiler is asked for, and how far ahead they are fetched.

#ifndef DOVETAIL_CPU_VECTOR_WIDTH_H_
#define DOVETAIL_CPU_VECTOR_WIDTH_H_

#include <type_traits>

namespace dovetail {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

// Asks for the memory of a later vector, which is written to if it is not constant: a processor with
// long vectors asks for less by itself than it can wait for. Where results are as large as operands,
// some places in memory are slower if it is asked for from twice as far on.
template <int kBytes = 1024, typename T>
inline void FetchAhead(T* x) {
  if constexpr (kVectorBytes == 64) {
    __builtin_prefetch(reinterpret_cast<const char*>(x) + kBytes, !std::is_const_v<T>);
  }
}

}  // namespace dovetail

#endif  // DOVETAIL_CPU_VECTOR_WIDTH_H_
