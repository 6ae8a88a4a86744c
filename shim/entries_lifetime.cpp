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
  xlog::driver_answered(result == CUDA_SUCCESS);
  xlog::DriverApi driver;
  if (result == CUDA_SUCCESS && entry.serves() && xlog::refill_driver_api(driver)) {
    entry.runtime().use_driver(driver);
  }
  if (result == CUDA_SUCCESS && entry.serves()) {
    if (!entry.runtime().check_budget_keys()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (entry.runtime().begin()) {
      xlog::check_routes();
      if (entry.runtime().options().budget.count != 0) {
        xlog::check_front();
      }
      xlog::check_at_exit(entry.runtime());
    }
  }
  return result;
}

// The first form makes a context for the calls with 32-bit sizes.
XLOG_EXPORT CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  Entry entry(Row::cuCtxCreate);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuCtxCreate)>(context, flags, device); };
  if (!entry.serves()) {
    return call();
  }
  CUresult result = entry.runtime().begin_context(context, call);
  if (result == CUDA_SUCCESS) {
    entry.runtime().first_context_made();
  }
  return result;
}

#define XLOG_CONTEXT_CREATE(name, parameters, ...)                                        \
  XLOG_EXPORT CUresult name parameters {                                                  \
    Entry entry(Row::name);                                                               \
    auto call = [&]() noexcept { return entry.forward<decltype(&::name)>(__VA_ARGS__); }; \
    return entry.serves() ? entry.runtime().begin_context(context, call) : call();        \
  }
XLOG_CONTEXT_CREATE(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device), context, flags, device)
XLOG_CONTEXT_CREATE(cuCtxCreate_v3, (CUcontext * context, CUexecAffinityParam* affinity, int count, unsigned flags, CUdevice device),
                    context, affinity, count, flags, device)
XLOG_CONTEXT_CREATE(cuCtxCreate_v4, (CUcontext * context, CUctxCreateParams* parameters, unsigned flags, CUdevice device), context,
                    parameters, flags, device)

XLOG_EXPORT CUresult cuCtxAttach(CUcontext* context, unsigned flags) {
  Entry entry(Row::cuCtxAttach);
  auto call = [&]() noexcept { return entry.forward<CUresult (*)(CUcontext*, unsigned)>(context, flags); };
  return entry.serves() ? entry.runtime().attach_context(context, call) : call();
}

// `end` is what the runtime does around the driver's call.
#define XLOG_CONTEXT_END(name, type, argument, end)                                                      \
  XLOG_EXPORT CUresult name(type argument) {                                                             \
    Entry entry(Row::name);                                                                              \
    auto call = [&](uint64_t&) noexcept { return entry.forward<CUresult (*)(type)>(argument); };         \
    uint64_t unused = 0;                                                                                 \
    return entry.serves() ? entry.runtime().end(argument, #name, xlog::DriverCall(call)) : call(unused); \
  }
XLOG_CONTEXT_END(cuCtxDestroy, CUcontext, context, destroy_context)
XLOG_CONTEXT_END(cuCtxDestroy_v2, CUcontext, context, destroy_context)
XLOG_CONTEXT_END(cuCtxDetach, CUcontext, context, detach_context)
XLOG_CONTEXT_END(cuDevicePrimaryCtxReset, CUdevice, device, reset_primary)
XLOG_CONTEXT_END(cuDevicePrimaryCtxReset_v2, CUdevice, device, reset_primary)
XLOG_CONTEXT_END(cuDevicePrimaryCtxRelease, CUdevice, device, release_primary)
XLOG_CONTEXT_END(cuDevicePrimaryCtxRelease_v2, CUdevice, device, release_primary)
XLOG_CONTEXT_END(cuGreenCtxDestroy, CUgreenCtx, green, destroy_green)

XLOG_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  Entry entry(Row::cuDevicePrimaryCtxRetain);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuDevicePrimaryCtxRetain)>(context, device); };
  return entry.serves() ? entry.runtime().retain_primary(device, context, call) : call();
}

XLOG_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx* green, CUdevResourceDesc resources, CUdevice device, unsigned flags) {
  Entry entry(Row::cuGreenCtxCreate);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuGreenCtxCreate)>(green, resources, device, flags); };
  return entry.serves() ? entry.runtime().begin_green(green, device, call) : call();
}

XLOG_EXPORT CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  Entry entry(Row::cuCtxFromGreenCtx);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuCtxFromGreenCtx)>(context, green); };
  return entry.serves() ? entry.runtime().name_green(context, green, call) : call();
}

#define XLOG_STREAM_DESTROY(name)                                                                  \
  XLOG_EXPORT CUresult name(CUstream stream) {                                                     \
    Entry entry(Row::name);                                                                        \
    auto call = [&]() noexcept { return entry.forward<decltype(&::cuStreamDestroy_v2)>(stream); }; \
    return entry.serves() ? entry.runtime().destroy_stream(stream, call) : call();                 \
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
