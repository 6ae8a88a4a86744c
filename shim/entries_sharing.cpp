// Calls that give others access to a block, calls that not every sort of memory supports, and calls that may need the
// memory that a backend holds.
#include "shim/entry.h"

using xlog::Entry;
using xlog::Row;

extern "C" {

XLOG_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  Entry entry(Row::cuCtxEnablePeerAccess);
  CUresult result = entry.forward<decltype(&::cuCtxEnablePeerAccess)>(peer, flags);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().peer_enabled(peer);
  }
  return result;
}

// The driver may refuse them for memory from a pool, or for mapped memory.
#define XLOG_SHARED(name, parameters, ...)                           \
  XLOG_EXPORT CUresult name parameters {                             \
    Entry entry(Row::name);                                          \
    if (entry.serves() && entry.runtime().is_gone(dptr)) {           \
      return CUDA_ERROR_INVALID_VALUE;                               \
    }                                                                \
    CUresult result = entry.forward<decltype(&::name)>(__VA_ARGS__); \
    if (entry.serves() && result == CUDA_SUCCESS) {                  \
      entry.runtime().shared_out(dptr);                              \
    } else if (entry.serves()) {                                     \
      entry.runtime().not_supported(dptr, #name, result);            \
    }                                                                \
    return result;                                                   \
  }
XLOG_SHARED(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr dptr), handle, dptr)
XLOG_SHARED(cuMemGetHandleForAddressRange,
            (void* handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType type, unsigned long long flags), handle, dptr, size, type,
            flags)
XLOG_SHARED(cuPointerSetAttribute, (const void* value, CUpointer_attribute attribute, CUdeviceptr dptr), value, attribute, dptr)

// The driver refuses them for memory from a pool.
#define XLOG_VALUE(name, type, value_type)                                                         \
  XLOG_EXPORT CUresult name(CUstream stream, CUdeviceptr dptr, value_type value, unsigned flags) { \
    Entry entry(Row::name);                                                                        \
    CUresult result = entry.forward<type>(stream, dptr, value, flags);                             \
    if (result != CUDA_SUCCESS && entry.serves()) {                                                \
      entry.runtime().not_supported(dptr, #name, result);                                          \
    }                                                                                              \
    return result;                                                                                 \
  }
#define XLOG_VALUES(suffix)                                                                                                 \
  XLOG_VALUE(cuStreamWaitValue32_v2##suffix, decltype(&::cuStreamWaitValue32_v2), cuuint32_t)                               \
  XLOG_VALUE(cuStreamWaitValue64_v2##suffix, decltype(&::cuStreamWaitValue64_v2), cuuint64_t)                               \
  XLOG_VALUE(cuStreamWriteValue32_v2##suffix, decltype(&::cuStreamWriteValue32_v2), cuuint32_t)                             \
  XLOG_VALUE(cuStreamWriteValue64_v2##suffix, decltype(&::cuStreamWriteValue64_v2), cuuint64_t)                             \
  XLOG_EXPORT CUresult cuStreamBatchMemOp_v2##suffix(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations, \
                                                     unsigned flags) {                                                      \
    Entry entry(Row::cuStreamBatchMemOp_v2##suffix);                                                                        \
    CUresult result = entry.forward<decltype(&::cuStreamBatchMemOp_v2)>(stream, count, operations, flags);                  \
    for (unsigned i = 0; result != CUDA_SUCCESS && operations != nullptr && i < count && entry.serves(); ++i) {             \
      entry.runtime().not_supported(operations[i].waitValue.address, "cuStreamBatchMemOp_v2" #suffix, result);              \
    }                                                                                                                       \
    return result;                                                                                                          \
  }
XLOG_VALUES()
XLOG_VALUES(_ptsz)

}  // extern "C"
