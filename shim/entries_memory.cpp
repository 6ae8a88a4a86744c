// Routed calls: device memory made and freed.
#include "shim/entry.h"

using xlog::AllocationRequest;
using xlog::Entry;
using xlog::FreeRequest;
using xlog::Kind;
using xlog::Row;

extern "C" {

XLOG_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytes) {
  Entry entry(Row::cuMemAlloc_v2);
  if (entry.refused()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!entry.serves()) {
    return entry.forward<xlog::cuMemAlloc_v2_t>(dptr, bytes);
  }
  AllocationRequest request{.bytes = bytes, .caller = XLOG_CALLER, .kind = Kind::plain, .api = "cuMemAlloc_v2"};
  return entry.runtime().allocate(request, dptr);
}

XLOG_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pitch, size_t width, size_t height, unsigned element) {
  Entry entry(Row::cuMemAllocPitch_v2);
  if (entry.refused()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!entry.serves()) {
    return entry.forward<xlog::cuMemAllocPitch_v2_t>(dptr, pitch, width, height, element);
  }
  AllocationRequest request{.bytes = xlog::least_pitched(width, height),
                            .caller = XLOG_CALLER,
                            .kind = Kind::pitch,
                            .api = "cuMemAllocPitch_v2",
                            .width_bytes = width,
                            .height = height,
                            .element_bytes = element,
                            .pitch_out = pitch};
  return entry.runtime().allocate(request, dptr);
}

XLOG_EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr) {
  Entry entry(Row::cuMemFree_v2);
  if (!entry.serves()) {
    return entry.forward<xlog::cuMemFree_v2_t>(dptr);
  }
  FreeRequest request{.caller = XLOG_CALLER, .api = "cuMemFree_v2"};
  return entry.runtime().free(dptr, request);
}

// The `_ptsz` twins differ in what handle 0 means, and in nothing else.
#define XLOG_ORDERED_TRIO(suffix, per_thread)                                                                                              \
  XLOG_EXPORT CUresult cuMemAllocAsync##suffix(CUdeviceptr* dptr, size_t bytes, CUstream stream) {                                         \
    Entry entry(Row::cuMemAllocAsync##suffix);                                                                                             \
    if (entry.refused()) {                                                                                                                 \
      return CUDA_ERROR_INVALID_VALUE;                                                                                                     \
    }                                                                                                                                      \
    if (!entry.serves()) {                                                                                                                 \
      return entry.forward<xlog::cuMemAllocAsync_t>(dptr, bytes, stream);                                                                  \
    }                                                                                                                                      \
    AllocationRequest request{                                                                                                             \
        .bytes = bytes, .caller = XLOG_CALLER, .kind = Kind::async, .api = "cuMemAllocAsync" #suffix, .stream_arg = {stream, per_thread}}; \
    return entry.runtime().allocate(request, dptr);                                                                                        \
  }                                                                                                                                        \
  XLOG_EXPORT CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr* dptr, size_t bytes, CUmemoryPool pool, CUstream stream) {              \
    Entry entry(Row::cuMemAllocFromPoolAsync##suffix);                                                                                     \
    if (entry.refused()) {                                                                                                                 \
      return CUDA_ERROR_INVALID_VALUE;                                                                                                     \
    }                                                                                                                                      \
    if (!entry.serves()) {                                                                                                                 \
      return entry.forward<xlog::cuMemAllocFromPoolAsync_t>(dptr, bytes, pool, stream);                                                    \
    }                                                                                                                                      \
    AllocationRequest request{.bytes = bytes,                                                                                              \
                              .caller = XLOG_CALLER,                                                                                       \
                              .kind = Kind::pool,                                                                                          \
                              .api = "cuMemAllocFromPoolAsync" #suffix,                                                                    \
                              .stream_arg = {stream, per_thread},                                                                          \
                              .pool = pool};                                                                                               \
    return entry.runtime().allocate(request, dptr);                                                                                        \
  }                                                                                                                                        \
  XLOG_EXPORT CUresult cuMemFreeAsync##suffix(CUdeviceptr dptr, CUstream stream) {                                                         \
    Entry entry(Row::cuMemFreeAsync##suffix);                                                                                              \
    if (!entry.serves()) {                                                                                                                 \
      return entry.forward<xlog::cuMemFreeAsync_t>(dptr, stream);                                                                          \
    }                                                                                                                                      \
    FreeRequest request{.caller = XLOG_CALLER, .api = "cuMemFreeAsync" #suffix, .ordered = true, .stream_arg = {stream, per_thread}};      \
    return entry.runtime().free(dptr, request);                                                                                            \
  }

XLOG_ORDERED_TRIO(, false)
XLOG_ORDERED_TRIO(_ptsz, true)

}  // extern "C"
