// The width of vectors that the compiler is asked for.

#ifndef DOVETAIL_CPU_VECTOR_WIDTH_H_
#define DOVETAIL_CPU_VECTOR_WIDTH_H_

namespace dovetail {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

}  // namespace dovetail

#endif  // DOVETAIL_CPU_VECTOR_WIDTH_H_
