// Observed calls: the driver's, with the stack told of what begins and ends.
#include "shim/entry.h"
#include "shim/self_check.h"

using xlog::Entry;
using xlog::Row;

extern "C" {

XLOG_EXPORT CUresult cuInit(unsigned flags) {
  Entry entry(Row::cuInit);
  if (entry.refused()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult result = entry.forward<decltype(&::cuInit)>(flags);
  if (result == CUDA_SUCCESS && entry.serves()) {
    if (!entry.runtime().check_budget_keys()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (entry.runtime().begin()) {
      xlog::check_routes();
      xlog::check_at_exit(entry.runtime());
    }
  }
  return result;
}

XLOG_EXPORT CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  Entry entry(Row::cuCtxCreate);
  CUresult result = entry.forward<decltype(&::cuCtxCreate)>(context, flags, device);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().first_context_made();
  }
  return result;
}

#define XLOG_CONTEXT_DESTROY(name)                                                               \
  XLOG_EXPORT CUresult name(CUcontext context) {                                                 \
    Entry entry(Row::name);                                                                      \
    auto call = [&]() noexcept { return entry.forward<decltype(&::cuCtxDestroy_v2)>(context); }; \
    bool ends = entry.serves() && !entry.runtime().is_primary(context);                          \
    return ends ? entry.runtime().end_context(context, #name, call) : call();                    \
  }
XLOG_CONTEXT_DESTROY(cuCtxDestroy)
XLOG_CONTEXT_DESTROY(cuCtxDestroy_v2)

#define XLOG_PRIMARY_RESET(name)                                                                                \
  XLOG_EXPORT CUresult name(CUdevice device) {                                                                  \
    Entry entry(Row::name);                                                                                     \
    auto call = [&]() noexcept { return entry.forward<decltype(&::cuDevicePrimaryCtxReset_v2)>(device); };      \
    return entry.serves() ? entry.runtime().end_context(entry.runtime().primary(device), #name, call) : call(); \
  }
XLOG_PRIMARY_RESET(cuDevicePrimaryCtxReset)
XLOG_PRIMARY_RESET(cuDevicePrimaryCtxReset_v2)

#define XLOG_PRIMARY_RELEASE(name)                                                      \
  XLOG_EXPORT CUresult name(CUdevice device) {                                          \
    Entry entry(Row::name);                                                             \
    CUresult result = entry.forward<decltype(&::cuDevicePrimaryCtxRelease_v2)>(device); \
    if (result == CUDA_SUCCESS && entry.serves()) {                                     \
      entry.runtime().primary_released(device, #name);                                  \
    }                                                                                   \
    return result;                                                                      \
  }
XLOG_PRIMARY_RELEASE(cuDevicePrimaryCtxRelease)
XLOG_PRIMARY_RELEASE(cuDevicePrimaryCtxRelease_v2)

XLOG_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  Entry entry(Row::cuDevicePrimaryCtxRetain);
  CUresult result = entry.forward<decltype(&::cuDevicePrimaryCtxRetain)>(context, device);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().primary_retained(device, *context);
  }
  return result;
}

#define XLOG_STREAM_DESTROY(name)                                             \
  XLOG_EXPORT CUresult name(CUstream stream) {                                \
    Entry entry(Row::name);                                                   \
    CUresult result = entry.forward<decltype(&::cuStreamDestroy_v2)>(stream); \
    if (result == CUDA_SUCCESS && entry.serves()) {                           \
      entry.runtime().stream_destroyed(stream);                               \
    }                                                                         \
    return result;                                                            \
  }
XLOG_STREAM_DESTROY(cuStreamDestroy)
XLOG_STREAM_DESTROY(cuStreamDestroy_v2)

XLOG_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  Entry entry(Row::cuMemPoolCreate);
  CUresult result = entry.forward<decltype(&::cuMemPoolCreate)>(pool, properties);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().pool_created(*pool, properties);
  }
  return result;
}

XLOG_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  Entry entry(Row::cuMemPoolDestroy);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemPoolDestroy)>(pool); };
  return entry.serves() ? entry.runtime().end_pool(pool, call) : call();
}

}  // extern "C"
