// Calls of LAPACK by the handlers that jaxlib has for it, with what stands around them.
//
// XLA takes as long to compile the copies between its order of rows and LAPACK's of columns as for
// hundreds of operations, and the NaN of failures is one more loop each. They are made here.
//
// A call has as many threads as its matrices are worth: OpenBLAS divides even small ones among the
// processors, and its threads then wait for each other for longer than they compute. The matrices
// of a batch are divided among the threads of XLA's pool instead. A handler gets its call frame
// with the dimensions and addresses of a part of the batch.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel.h"
#include "memory.h"
#include "parallel.h"
#include "transposition.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Products of numbers for which another thread is worth its while, of matrices of a batch.
constexpr int64_t kWorthAPart = 1 << 17;
// Bytes of matrices that are copied at once, at least one matrix.
constexpr int64_t kAtOnce = 1 << 17;

// The same for BLAS inside a routine; where it has few large products, threads gain early.
int64_t WorthBlasThreads(std::string_view handler) {
  const auto is = [&](const char* name) { return handler.find(name) != std::string_view::npos; };
  if (is("trsm")) return 1 << 23;
  return is("getrf") || is("potrf") ? 1 << 28 : 1 << 25;
}

using HandlersByName = std::map<std::string, XLA_FFI_Handler*, std::less<>>;

HandlersByName& Handlers() {
  static auto* handlers = new HandlersByName;
  return *handlers;
}

int (*read_blas_threads)() = nullptr;
void (*write_blas_threads)(int) = nullptr;

// While there are any of these, BLAS has one thread. The number is one for all of the process.
class OneBlasThread {
 public:
  OneBlasThread() {
    if (write_blas_threads == nullptr) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (count_++ > 0) return;
    before_ = read_blas_threads();
    if (before_ > 1) write_blas_threads(1);
  }
  ~OneBlasThread() {
    if (write_blas_threads == nullptr) return;
    std::lock_guard<std::mutex> lock(mutex_);
    if (--count_ == 0 && before_ > 1) write_blas_threads(before_);
  }
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;

 private:
  static std::mutex mutex_;
  static int count_;
  static int before_;
};
std::mutex OneBlasThread::mutex_;
int OneBlasThread::count_ = 0;
int OneBlasThread::before_ = 0;

// A copy of a structure whose later versions may be longer than that of our headers.
template <typename T>
class Copy {
 public:
  explicit Copy(const T& from) : words_((from.struct_size + 7) / 8) {
    std::memcpy(words_.data(), &from, from.struct_size);
  }
  T* get() { return reinterpret_cast<T*>(words_.data()); }

 private:
  std::vector<uint64_t> words_;
};

XLA_FFI_Error* Failure(const XLA_FFI_Api* api, const char* message,
                       XLA_FFI_Error_Code code = XLA_FFI_Error_Code_INTERNAL) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message, code};
  return api->XLA_FFI_Error_Create(&args);
}

XLA_FFI_Error* TellVersion(const XLA_FFI_CallFrame& frame) {
  auto* asked = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame.extension_start);
  asked->metadata->api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR,
                                  XLA_FFI_API_MINOR};
  asked->metadata->traits = 0;
  return nullptr;
}

// What is asked for, and the attributes that the handler knows.
struct Attributes {
  explicit Attributes(const XLA_FFI_Attrs& attrs) {
    for (int64_t i = 0; i < attrs.size; ++i) {
      const std::string_view name(attrs.names[i]->ptr, attrs.names[i]->len);
      if (name == "handler") {
        const auto* text = static_cast<const XLA_FFI_ByteSpan*>(attrs.attrs[i]);
        handler = std::string_view(text->ptr, text->len);
      } else if (name == "overwritten") {
        const auto* array = static_cast<const XLA_FFI_Array*>(attrs.attrs[i]);
        const auto* first = static_cast<const int64_t*>(array->data);
        overwritten.assign(first, first + array->size);
      } else if (int64_t* known = Known(name)) {
        std::memcpy(known, static_cast<const XLA_FFI_Scalar*>(attrs.attrs[i])->value, 8);
      } else {
        types.push_back(attrs.types[i]);
        names.push_back(attrs.names[i]);
        values.push_back(attrs.attrs[i]);
      }
    }
  }

  std::string_view handler;
  std::vector<int64_t> overwritten;  // For each operand, the result that it becomes, or -1.
  int64_t operands_by_rows = 0, results_by_rows = 0;  // A bit for each that is transposed.
  int64_t turned = 0;  // Whether matrices by rows are given as their transposes, as they lie.
  int64_t triangle = 0;  // 1 or 2: what is above or below the diagonal of the operand is zero.
  int64_t finite = 0;  // Whether a matrix that is not finite becomes zero, and its results NaN.
  int64_t scaled = 0;  // Whether matrices are divided by powers of two, the last result.
  int64_t triangular = 0;  // Whether results have this triangle even if they are NaN.
  int64_t reports = 0;  // Whether the handler's last result is not zero where others become NaN.

  std::vector<XLA_FFI_AttrType> types;
  std::vector<XLA_FFI_ByteSpan*> names;
  std::vector<void*> values;

 private:
  int64_t* Known(std::string_view name) {
    if (name == "operands_by_rows") return &operands_by_rows;
    if (name == "results_by_rows") return &results_by_rows;
    if (name == "turned") return &turned;
    if (name == "triangle") return &triangle;
    if (name == "finite") return &finite;
    if (name == "scaled") return &scaled;
    if (name == "triangular") return &triangular;
    return name == "reports" ? &reports : nullptr;
  }
};

// An operand or a result: for each of a batch an array, perhaps a matrix by rows.
struct Arrays {
  Arrays(const void* pointer, int64_t batch_dims, bool turned)
      : buffer(static_cast<const XLA_FFI_Buffer*>(pointer)),
        dims(buffer->dims + batch_dims - 1 + (batch_dims == 0), buffer->dims + buffer->rank) {
    const auto type = static_cast<ffi::DataType>(buffer->dtype);
    width = static_cast<int64_t>(ffi::ByteWidth(type));
    wide = type == ffi::DataType::F64 || type == ffi::DataType::C128;
    floats = wide || type == ffi::DataType::F32 || type == ffi::DataType::C64;
    if (batch_dims == 0) dims.insert(dims.begin(), 1);
    for (size_t d = 1; d < dims.size(); ++d) size *= dims[d];
    if (turned) std::swap(dims[1], dims.back());
    bytes = size * width;
    data = static_cast<char*>(buffer->data);
  }
  const XLA_FFI_Buffer* buffer;
  std::vector<int64_t> dims;  // Of which the first will be a number of arrays.
  int64_t width, size = 1, bytes;
  bool floats, wide;
  char* data;
};

// Transposes a square matrix where it lies: squares on both sides of its diagonal change places.
template <typename T>
void TransposeInPlace(T* x, int64_t size) {
  constexpr int64_t kSide = 32;
  T square[kSide * kSide];
  for (int64_t r = 0; r < size; r += kSide) {
    for (int64_t c = r; c < size; c += kSide) {
      const int64_t rows = std::min(kSide, size - r), columns = std::min(kSide, size - c);
      T *upper = x + r * size + c, *lower = x + c * size + r;
      Transpose(upper, size, rows, columns, square, rows);
      if (c > r) Transpose(lower, size, columns, rows, upper, size);
      for (int64_t k = 0; k < columns; ++k) {
        std::copy_n(square + k * rows, rows, lower + k * size);
      }
    }
  }
}

// Copies `count` matrices of [rows][columns] to [columns][rows], squares of up to 8 bytes perhaps
// to where they are.
void TransposeAll(const char* from, char* to, int64_t count, int64_t rows, int64_t columns,
                  int64_t width, ffi::ThreadPool* pool) {
  const auto each = [&](auto element) {
    using T = decltype(element);
    const auto* x = reinterpret_cast<const T*>(from);
    auto* y = reinterpret_cast<T*>(to);
    for (int64_t i = 0; i < count; ++i, x += rows * columns, y += rows * columns) {
      if (rows == 1 || columns == 1) {
        if (x != y) std::memcpy(y, x, rows * columns * width);
        continue;
      }
      if (x == y) {
        TransposeInPlace(y, rows);
        continue;
      }
      const int64_t parts = pool == nullptr ? 1 : std::min(rows, PartsOf(*pool, rows * columns));
      const auto part = [&](int64_t number) {
        const int64_t begin = rows * number / parts, end = rows * (number + 1) / parts;
        TransposeInSquares(x + begin * columns, columns, end - begin, columns, y + begin, rows);
      };
      if (parts == 1) {
        part(0);
      } else {
        ParallelFor(*pool, parts, part);
      }
    }
  };
  struct alignas(8) Wide {
    int64_t first, second;
    Wide() = default;
  };
  if (width == 4) {
    each(float{});
  } else if (width == 8) {
    each(double{});
  } else {  // Columns of squares of 8 elements, one after another.
    const auto* x = reinterpret_cast<const Wide*>(from);
    auto* y = reinterpret_cast<Wide*>(to);
    for (int64_t i = 0; i < count; ++i, x += rows * columns, y += rows * columns) {
      for (int64_t r = 0; r < rows; r += 8) {
        for (int64_t c = 0; c < columns; ++c) {
          for (int64_t k = r; k < std::min(rows, r + 8); ++k) y[c * rows + k] = x[k * columns + c];
        }
      }
    }
  }
}

// Sets what is above the diagonal of a matrix of [columns][rows] to zero, or what is below.
void KeepTriangle(char* matrix, int64_t rows, int64_t columns, int64_t width, bool lower) {
  for (int64_t c = 0; c < columns; ++c) {
    char* column = matrix + c * rows * width;
    const int64_t edge = std::min(rows, lower ? c : c + 1);
    std::memset(lower ? column : column + edge * width, 0, (lower ? edge : rows - edge) * width);
  }
}

// Whether numbers are finite; if not they become zero. They are divided by a power of two, if asked
// for the one of the largest: powers of other bases would round.
template <typename T>
bool MakeFinite(T* x, int64_t size, T* power) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  constexpr Bits kSize = static_cast<Bits>(-1) >> 1;
  constexpr Bits kInfinity = sizeof(T) == 4 ? Bits(0x7f800000) : Bits(0x7ff0000000000000);
  Bits largest = 0;  // The bits of sizes are in the order of the sizes.
  for (int64_t j = 0; j < size; ++j) {
    Bits bits;
    std::memcpy(&bits, x + j, sizeof(T));
    largest = std::max(largest, Bits(bits & kSize));
  }
  if (power != nullptr) *power = 1;
  if (largest >= kInfinity) {
    std::fill(x, x + size, T(0));
    return false;
  }
  const Bits exponent = largest & kInfinity;
  if (power == nullptr || exponent == 0) return true;
  std::memcpy(power, &exponent, sizeof(T));
  const T divisor = *power;
  for (int64_t j = 0; j < size; ++j) x[j] /= divisor;
  return true;
}

class LapackCall {
 public:
  LapackCall(XLA_FFI_CallFrame* frame, const Attributes& attributes, XLA_FFI_Handler* handler)
      : frame_(frame), attributes_(attributes), handler_(handler) {
    // The operands with most dimensions are matrices.
    int64_t rank = 0;
    for (int64_t i = 0; i < frame->args.size; ++i) {
      rank = std::max(rank, static_cast<const XLA_FFI_Buffer*>(frame->args.args[i])->rank);
    }
    const int64_t batch_dims = rank - 2;
    const auto* first = static_cast<const XLA_FFI_Buffer*>(frame->args.args[0]);
    for (int64_t d = 0; d < batch_dims; ++d) batch_ *= first->dims[d];
    for (int64_t i = 0; i < frame->args.size; ++i) {
      operands_.emplace_back(frame->args.args[i], batch_dims, attributes.turned != 0);
    }
    for (int64_t i = 0; i < frame->rets.size; ++i) {
      results_.emplace_back(frame->rets.rets[i], batch_dims, attributes.turned != 0);
    }
    if (attributes.scaled != 0) {
      powers_ = results_.back().data;
      results_.pop_back();
    }
  }

  XLA_FFI_Error* Run() {
    int64_t side = std::numeric_limits<int64_t>::max(), largest = 0;
    for (const Arrays& operand : operands_) {
      largest = std::max(largest, operand.size);
      if (operand.dims.size() == 3) {
        side = std::min({side, operand.dims[1], operand.dims[2]});
      }
    }
    const int64_t work = largest * side;
    const bool large = work >= WorthBlasThreads(attributes_.handler);
    ffi::DiagnosticEngine diagnostic;
    auto pool = *ffi::CtxDecoding<ffi::ThreadPool>::Decode(frame_->api, frame_->ctx, diagnostic);
    const int64_t threads = batch_ > 1 ? ThreadsOf(pool) : 1;
    const int64_t parts = std::min({4 * threads, batch_, batch_ * work / kWorthAPart});
    if (threads == 1 || parts <= 1 || (large && batch_ < threads)) {
      if (large) return RunPart(0, batch_, &pool);
      OneBlasThread alone;
      return RunPart(0, batch_, &pool);
    }
    OneBlasThread each;
    std::mutex mutex;
    XLA_FFI_Error* error = nullptr;
    ParallelFor(pool, parts, [&](int64_t part) {
      XLA_FFI_Error* failed =
          RunPart(batch_ * part / parts, batch_ * (part + 1) / parts, nullptr);
      if (failed == nullptr) return;
      std::lock_guard<std::mutex> lock(mutex);
      std::swap(error, failed);
      if (failed != nullptr) ffi::internal::DestroyError(frame_->api, failed);
    });
    return error;
  }

 private:
  // Some of the batch; `pool` helps to copy.
  XLA_FFI_Error* RunPart(int64_t begin, int64_t end, ffi::ThreadPool* pool) const {
    int64_t bytes = 0;
    for (const Arrays& operand : operands_) bytes += operand.bytes;
    const bool copies = (attributes_.operands_by_rows | attributes_.results_by_rows) != 0;
    const int64_t most = copies ? std::max<int64_t>(1, kAtOnce / std::max<int64_t>(1, bytes))
                                : std::max<int64_t>(1, end - begin);
    for (int64_t i = begin; i < end; i += most) {
      EndIfInterrupted();
      if (XLA_FFI_Error* error = RunAtOnce(i, std::min(most, end - i), pool)) return error;
    }
    return nullptr;
  }

  XLA_FFI_Error* RunAtOnce(int64_t begin, int64_t count, ffi::ThreadPool* pool) const {
    std::vector<std::vector<int64_t>> dims;
    std::vector<Copy<XLA_FFI_Buffer>> copies;
    std::deque<Memory<char>> memory;  // Whose elements cannot move.
    dims.reserve(operands_.size() + results_.size());
    copies.reserve(operands_.size() + results_.size());
    const auto lent = [&](const Arrays& arrays, bool copied) {
      dims.push_back(arrays.dims);
      dims.back()[0] = count;
      copies.emplace_back(*arrays.buffer);
      XLA_FFI_Buffer* part = copies.back().get();
      part->data = arrays.data + begin * arrays.bytes;
      if (copied) part->data = memory.emplace_back(count * arrays.bytes).get();
      part->rank = static_cast<int64_t>(dims.back().size());
      part->dims = dims.back().data();
      return static_cast<void*>(part);
    };
    std::vector<void*> rets, args;
    for (size_t i = 0; i < results_.size(); ++i) {
      const Arrays& result = results_[i];
      const bool by_rows = (attributes_.results_by_rows >> i & 1) != 0;
      const bool where_it_is = by_rows && result.dims[1] == result.dims[2] && result.width <= 8;
      rets.push_back(lent(result, by_rows && !where_it_is));
    }
    std::vector<bool> broken(count, false);
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Arrays& operand = operands_[i];
      const bool by_rows = (attributes_.operands_by_rows >> i & 1) != 0;
      const int64_t becomes = attributes_.overwritten[i];
      args.push_back(becomes >= 0 ? rets[becomes] : lent(operand, by_rows));
      const char* from = operand.data + begin * operand.bytes;
      char* to = DataOf(args.back());
      if (by_rows) {
        TransposeAll(from, to, count, operand.dims[1], operand.dims[2], operand.width, pool);
      } else if (from != to) {
        std::memcpy(to, from, count * operand.bytes);
      }
      if (i == 0) PrepareMatrices(begin, to, &broken);
    }
    Copy<XLA_FFI_CallFrame> copy(*frame_);
    XLA_FFI_CallFrame* frame = copy.get();
    frame->args.args = args.data();
    frame->rets.size = static_cast<int64_t>(rets.size());
    frame->rets.rets = rets.data();
    frame->attrs.size = static_cast<int64_t>(attributes_.values.size());
    frame->attrs.types = const_cast<XLA_FFI_AttrType*>(attributes_.types.data());
    frame->attrs.names = const_cast<XLA_FFI_ByteSpan**>(attributes_.names.data());
    frame->attrs.attrs = const_cast<void**>(attributes_.values.data());
    if (XLA_FFI_Error* error = handler_(frame)) return error;

    if (attributes_.reports != 0) {
      const auto* report = reinterpret_cast<const int32_t*>(DataOf(rets.back()));
      for (int64_t j = 0; j < count; ++j) broken[j] = broken[j] || report[j] != 0;
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      const Arrays& result = results_[i];
      char* to = result.data + begin * result.bytes;
      if ((attributes_.results_by_rows >> i & 1) != 0) {
        TransposeAll(DataOf(rets[i]), to, count, result.dims[2], result.dims[1], result.width,
                     pool);
      }
      for (int64_t j = 0; j < count; ++j, to += result.bytes) {
        if (!broken[j] || !result.floats) continue;
        FillWithNan(to, result);
        if (attributes_.triangular != 0) {  // By rows it is the other one.
          KeepTriangle(to, result.dims[2], result.dims[1], result.width,
                       attributes_.triangle == 2);
        }
      }
    }
    return nullptr;
  }

  // The triangle, finite numbers and their scale, for matrices of the first operand.
  void PrepareMatrices(int64_t begin, char* matrices, std::vector<bool>* broken) const {
    const Arrays& operand = operands_[0];
    for (size_t j = 0; j < broken->size(); ++j, matrices += operand.bytes) {
      if (attributes_.triangle != 0) {
        KeepTriangle(matrices, operand.dims[1], operand.dims[2], operand.width,
                     attributes_.triangle == 1);
      }
      if (attributes_.finite == 0) continue;
      const auto make = [&](auto* numbers) {
        auto* power = reinterpret_cast<decltype(numbers)>(powers_);
        const auto width = static_cast<int64_t>(sizeof(*numbers));
        return MakeFinite(numbers, operand.bytes / width,
                          power == nullptr ? nullptr : power + begin + j);
      };
      (*broken)[j] = operand.wide ? !make(reinterpret_cast<double*>(matrices))
                                  : !make(reinterpret_cast<float*>(matrices));
    }
  }

  static char* DataOf(void* buffer) {
    return static_cast<char*>(static_cast<XLA_FFI_Buffer*>(buffer)->data);
  }

  static void FillWithNan(char* to, const Arrays& result) {
    if (result.wide) {
      std::fill_n(reinterpret_cast<double*>(to), result.bytes / 8,
                  std::numeric_limits<double>::quiet_NaN());
    } else {
      std::fill_n(reinterpret_cast<float*>(to), result.bytes / 4,
                  std::numeric_limits<float>::quiet_NaN());
    }
  }

  XLA_FFI_CallFrame* frame_;
  const Attributes& attributes_;
  XLA_FFI_Handler* handler_;
  int64_t batch_ = 1;
  std::vector<Arrays> operands_, results_;
  char* powers_ = nullptr;
};

XLA_FFI_Error* CallLapack(XLA_FFI_CallFrame* frame) {
  const Attributes attributes(frame->attrs);
  const auto found = Handlers().find(attributes.handler);
  if (found == Handlers().end()) return Failure(frame->api, "jaxlib has no such call of LAPACK");
  return LapackCall(frame, attributes, found->second).Run();
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
extern "C" XLA_FFI_Error* dovetail_lapack(XLA_FFI_CallFrame* frame) {
  if (frame->extension_start != nullptr &&
      frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    return dovetail::TellVersion(*frame);
  }
  xla::ffi::DiagnosticEngine diagnostic;
  const auto run =
      *xla::ffi::CtxDecoding<xla::ffi::RunId>::Decode(frame->api, frame->ctx, diagnostic);
  return dovetail::RunKernel(
      run, [=] { return dovetail::CallLapack(frame); },
      [=](XLA_FFI_Error_Code code, const char* text) {
        return dovetail::Failure(frame->api, text, code);
      });
}

// Before any call, on one thread: a handler of jaxlib's by its name, which must stay in memory.
extern "C" void dovetail_lapack_handler(const char* name, void* handler) {
  dovetail::Handlers()[name] = reinterpret_cast<XLA_FFI_Handler*>(handler);
}

// The functions that read and write the number of BLAS's threads.
extern "C" void dovetail_lapack_threads(void* read, void* write) {
  dovetail::read_blas_threads = reinterpret_cast<int (*)()>(read);
  dovetail::write_blas_threads = reinterpret_cast<void (*)(int)>(write);
}
#pragma GCC visibility pop
