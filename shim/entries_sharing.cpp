// Calls that give others access to a block, and calls that may need the memory that a backend holds.
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

XLOG_EXPORT CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  Entry entry(Row::cuCtxFromGreenCtx);
  CUresult result = entry.forward<decltype(&::cuCtxFromGreenCtx)>(context, green);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().green_context_made(*context);
  }
  return result;
}

XLOG_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr dptr) {
  Entry entry(Row::cuIpcGetMemHandle);
  CUresult result = entry.forward<decltype(&::cuIpcGetMemHandle)>(handle, dptr);
  if (entry.serves()) {
    entry.runtime().shared_out(dptr, "cuIpcGetMemHandle", result);
  }
  return result;
}

XLOG_EXPORT CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr dptr, size_t size, CUmemRangeHandleType type,
                                                   unsigned long long flags) {
  Entry entry(Row::cuMemGetHandleForAddressRange);
  CUresult result = entry.forward<decltype(&::cuMemGetHandleForAddressRange)>(handle, dptr, size, type, flags);
  if (entry.serves()) {
    entry.runtime().shared_out(dptr, "cuMemGetHandleForAddressRange", result);
  }
  return result;
}

XLOG_EXPORT CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr dptr) {
  Entry entry(Row::cuPointerSetAttribute);
  CUresult result = entry.forward<decltype(&::cuPointerSetAttribute)>(value, attribute, dptr);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().shared_out(dptr, "cuPointerSetAttribute", result);
  }
  return result;
}

#define XLOG_RETRIED(name, parameters, ...)                                               \
  XLOG_EXPORT CUresult name parameters {                                                  \
    Entry entry(Row::name);                                                               \
    auto call = [&]() noexcept { return entry.forward<decltype(&::name)>(__VA_ARGS__); }; \
    return entry.serves() ? entry.runtime().retry(call) : call();                         \
  }
XLOG_RETRIED(cuMemCreate, (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp* prop, unsigned long long flags),
             handle, size, prop, flags)
XLOG_RETRIED(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytes, unsigned flags), dptr, bytes, flags)
XLOG_RETRIED(cuArrayCreate_v2, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR* descriptor), array, descriptor)
XLOG_RETRIED(cuArray3DCreate_v2, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor), array, descriptor)
XLOG_RETRIED(cuMipmappedArrayCreate, (CUmipmappedArray * array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor, unsigned levels), array,
             descriptor, levels)

}  // extern "C"
