// Calls of LAPACK by the handlers that jaxlib has for it, with as many threads as the matrices are
// worth: OpenBLAS divides even small ones among the processors, and its threads then wait for each
// other for longer than they compute. The matrices of a batch are divided among the threads of
// XLA's pool instead.
//
// A handler gets its call frame with the dimensions and addresses of a part of the batch.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallel.h"
#include "xla/ffi/api/ffi.h"

namespace dovetail {
namespace {

namespace ffi = xla::ffi;

// Products of numbers for which another thread is worth its while, of matrices of a batch.
constexpr int64_t kWorthAPart = 1 << 17;

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

// The buffers of a call, reduced to a part of a batch.
class PartOfBatch {
 public:
  PartOfBatch(void* const* buffers, int64_t count, int64_t batch_dims, int64_t begin, int64_t end) {
    dims_.reserve(count);
    copies_.reserve(count);
    for (int64_t i = 0; i < count; ++i) {
      const auto& whole = *static_cast<const XLA_FFI_Buffer*>(buffers[i]);
      dims_.emplace_back(whole.dims + batch_dims - 1, whole.dims + whole.rank);
      dims_.back()[0] = end - begin;
      auto size = static_cast<int64_t>(ffi::ByteWidth(static_cast<ffi::DataType>(whole.dtype)));
      for (int64_t d = batch_dims; d < whole.rank; ++d) size *= whole.dims[d];
      copies_.emplace_back(whole);
      XLA_FFI_Buffer* part = copies_.back().get();
      part->data = static_cast<char*>(whole.data) + begin * size;
      part->rank = whole.rank - batch_dims + 1;
      part->dims = dims_.back().data();
      pointers_.push_back(part);
    }
  }
  void** pointers() { return pointers_.data(); }

 private:
  std::vector<std::vector<int64_t>> dims_;
  std::vector<Copy<XLA_FFI_Buffer>> copies_;
  std::vector<void*> pointers_;
};

XLA_FFI_Error* Failure(const XLA_FFI_Api* api, const char* message) {
  XLA_FFI_Error_Create_Args args = {XLA_FFI_Error_Create_Args_STRUCT_SIZE, nullptr, message,
                                    XLA_FFI_Error_Code_INTERNAL};
  return api->XLA_FFI_Error_Create(&args);
}

XLA_FFI_Error* TellVersion(const XLA_FFI_CallFrame& frame) {
  auto* asked = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame.extension_start);
  asked->metadata->api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr, XLA_FFI_API_MAJOR,
                                  XLA_FFI_API_MINOR};
  asked->metadata->traits = 0;
  return nullptr;
}

// The attributes of a call without the name of the handler, which it does not know.
struct Attributes {
  explicit Attributes(const XLA_FFI_Attrs& attrs) {
    for (int64_t i = 0; i < attrs.size; ++i) {
      const std::string_view name(attrs.names[i]->ptr, attrs.names[i]->len);
      if (name == "handler" && attrs.types[i] == XLA_FFI_AttrType_STRING) {
        const auto* text = static_cast<const XLA_FFI_ByteSpan*>(attrs.attrs[i]);
        handler = std::string_view(text->ptr, text->len);
        continue;
      }
      types.push_back(attrs.types[i]);
      names.push_back(attrs.names[i]);
      values.push_back(attrs.attrs[i]);
    }
  }
  std::string_view handler;
  std::vector<XLA_FFI_AttrType> types;
  std::vector<XLA_FFI_ByteSpan*> names;
  std::vector<void*> values;
};

XLA_FFI_Error* CallLapack(XLA_FFI_CallFrame* frame) {
  if (frame->extension_start != nullptr &&
      frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    return TellVersion(*frame);
  }
  Attributes attributes(frame->attrs);
  const auto found = Handlers().find(attributes.handler);
  if (found == Handlers().end()) return Failure(frame->api, "jaxlib has no such call of LAPACK");
  XLA_FFI_Handler* const handler = found->second;

  // The first operand with most dimensions is a matrix, and so is one of the largest.
  const XLA_FFI_Buffer* matrix = nullptr;
  int64_t largest = 0;
  for (int64_t i = 0; i < frame->args.size; ++i) {
    const auto* operand = static_cast<const XLA_FFI_Buffer*>(frame->args.args[i]);
    if (matrix == nullptr || operand->rank > matrix->rank) matrix = operand;
    int64_t size = 1;
    for (int64_t d = 0; d < operand->rank; ++d) size *= operand->dims[d];
    largest = std::max(largest, size);
  }
  const int64_t batch_dims = matrix->rank - 2;
  int64_t batch = 1;
  for (int64_t d = 0; d < batch_dims; ++d) batch *= matrix->dims[d];
  const int64_t side = std::min(matrix->dims[batch_dims], matrix->dims[batch_dims + 1]);
  const int64_t work = batch == 0 ? 0 : largest / batch * side;
  const bool large = work >= WorthBlasThreads(attributes.handler);

  const auto call = [&](void** args, void** rets) {
    Copy<XLA_FFI_CallFrame> copy(*frame);
    copy.get()->args.args = args;
    copy.get()->rets.rets = rets;
    copy.get()->attrs.size = static_cast<int64_t>(attributes.values.size());
    copy.get()->attrs.types = attributes.types.data();
    copy.get()->attrs.names = attributes.names.data();
    copy.get()->attrs.attrs = attributes.values.data();
    return handler(copy.get());
  };

  ffi::DiagnosticEngine diagnostic;
  auto pool = *ffi::CtxDecoding<ffi::ThreadPool>::Decode(frame->api, frame->ctx, diagnostic);
  const int64_t threads = batch > 1 ? ThreadsOf(pool) : 1;
  const int64_t parts = std::min({4 * threads, batch, batch * work / kWorthAPart});
  if (threads == 1 || parts <= 1 || (large && batch < threads)) {
    if (large) return call(frame->args.args, frame->rets.rets);
    OneBlasThread alone;
    return call(frame->args.args, frame->rets.rets);
  }
  OneBlasThread each;
  std::mutex mutex;
  XLA_FFI_Error* error = nullptr;
  ParallelFor(pool, parts, [&](int64_t part) {
    const int64_t begin = batch * part / parts, end = batch * (part + 1) / parts;
    PartOfBatch args(frame->args.args, frame->args.size, batch_dims, begin, end);
    PartOfBatch rets(frame->rets.rets, frame->rets.size, batch_dims, begin, end);
    XLA_FFI_Error* failed = call(args.pointers(), rets.pointers());
    if (failed == nullptr) return;
    std::lock_guard<std::mutex> lock(mutex);
    std::swap(error, failed);
    if (failed != nullptr) ffi::internal::DestroyError(frame->api, failed);
  });
  return error;
}

}  // namespace
}  // namespace dovetail

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
extern "C" XLA_FFI_Error* dovetail_lapack(XLA_FFI_CallFrame* frame) {
  try {
    return dovetail::CallLapack(frame);
  } catch (const std::bad_alloc&) {
    return dovetail::Failure(frame->api, "out of memory");
  }
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
