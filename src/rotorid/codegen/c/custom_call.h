/* What functions in C need to be custom calls of XLA: its frames, and how many filters a call is for (all axes of `vmap`).

   Every operand and result has those axes first. */
#ifndef ROTORID_CUSTOM_CALL_H
#define ROTORID_CUSTOM_CALL_H
#include <stdint.h>

#include "xla/ffi/api/c_api.h"

#define SEEN __attribute__((visibility("default")))

typedef XLA_FFI_CallFrame frame;

/* Whether XLA only asks what this function was built for. */
static int asked(frame *f) {
  if (!f->extension_start || f->extension_start->type != XLA_FFI_Extension_Metadata) return 0;
  XLA_FFI_Metadata *about = ((XLA_FFI_Metadata_Extension *)f->extension_start)->metadata;
  about->api_version.major_version = XLA_FFI_API_MAJOR;
  about->api_version.minor_version = XLA_FFI_API_MINOR;
  return 1;
}

static XLA_FFI_Error *no_memory(frame *f) {
  XLA_FFI_Error_Create_Args args = {
      XLA_FFI_Error_Create_Args_STRUCT_SIZE, 0, "no memory for particles", XLA_FFI_Error_Code_RESOURCE_EXHAUSTED};
  return f->api->XLA_FFI_Error_Create(&args);
}

static XLA_FFI_Buffer *argument(frame *f, int i) { return f->args.args[i]; }
static XLA_FFI_Buffer *result(frame *f, int i) { return f->rets.rets[i]; }

/* Product of all dimensions but the last so many. */
static int64_t leading(const XLA_FFI_Buffer *b, int last) {
  int64_t n = 1;
  for (int64_t k = 0; k < b->rank - last; k++) n *= b->dims[k];
  return n;
}

static int64_t size_of(const XLA_FFI_Buffer *b, int axis_from_the_end) {
  return b->dims[b->rank - axis_from_the_end];
}

#endif
