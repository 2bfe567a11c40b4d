/* A handler of XLA's typed FFI, in C: its result is three times its argument, of 32-bit floats.

   It says that it was written for version 0.FFI_MINOR of the interface. */

#include <stdint.h>

#include "xla/ffi/api/c_api.h"

__attribute__((visibility("default"))) XLA_FFI_Error *scale(XLA_FFI_CallFrame *frame) {
  if (frame->extension_start != NULL &&
      frame->extension_start->type == XLA_FFI_Extension_Metadata) {
    XLA_FFI_Metadata *metadata = ((XLA_FFI_Metadata_Extension *)frame->extension_start)->metadata;
    metadata->api_version.major_version = 0;
    metadata->api_version.minor_version = FFI_MINOR;
    metadata->traits = 0;
    return NULL;
  }
  if (frame->stage != XLA_FFI_ExecutionStage_EXECUTE) return NULL;
  const XLA_FFI_Buffer *x = frame->args.args[0];
  XLA_FFI_Buffer *y = frame->rets.rets[0];
  int64_t count = 1;
  for (int64_t i = 0; i < x->rank; ++i) count *= x->dims[i];
  for (int64_t i = 0; i < count; ++i) ((float *)y->data)[i] = 3 * ((const float *)x->data)[i];
  return NULL;
}
