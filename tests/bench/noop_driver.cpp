// A libcuda.so.1 whose allocation does nothing: what a call costs with the library preloaded, minus what it costs
// without, is what the library adds.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <atomic>
#include <cstring>

#define NOOP_EXPORT extern "C" __attribute__((visibility("default")))

namespace {
std::atomic<unsigned long long> next_address{0x7000'0000'0000ULL};
int context_object;
}  // namespace

NOOP_EXPORT CUresult cuInit(unsigned) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuDriverGetVersion(int* v) { return *v = 13000, CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuDeviceGetCount(int* n) { return *n = 1, CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuDeviceGetName(char* name, int, CUdevice) { return std::strcpy(name, "No-op"), CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* id, CUdevice) { return std::memset(id, 7, sizeof *id), CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuDeviceTotalMem_v2(size_t* n, CUdevice) { return *n = size_t{80} << 30, CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuCtxGetDevice(CUdevice* d) { return *d = 0, CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuCtxGetCurrent(CUcontext* c) { return *c = reinterpret_cast<CUcontext>(&context_object), CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* c, CUdevice) { return cuCtxGetCurrent(c); }
NOOP_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuDeviceGetAttribute(int* v, CUdevice_attribute, CUdevice) { return *v = 1, CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* c) { return cuCtxGetCurrent(c); }
NOOP_EXPORT CUresult cuStreamCreate(CUstream* s, unsigned) { return *s = reinterpret_cast<CUstream>(&context_object), CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuStreamDestroy_v2(CUstream) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuEventCreate(CUevent* e, unsigned) { return *e = reinterpret_cast<CUevent>(&context_object), CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuEventRecord(CUevent, CUstream) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuEventQuery(CUevent) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuEventDestroy_v2(CUevent) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* p, size_t) {
  return *p = next_address.fetch_add(512, std::memory_order_relaxed), CUDA_SUCCESS;
}
NOOP_EXPORT CUresult cuMemFree_v2(CUdeviceptr) { return CUDA_SUCCESS; }
// A pool gives the same few addresses out again.
NOOP_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr* p, size_t, CUmemoryPool, CUstream) {
  return *p = 0x7100'0000'0000ULL + next_address.fetch_add(512, std::memory_order_relaxed) % 4096, CUDA_SUCCESS;
}
NOOP_EXPORT CUresult cuMemAllocAsync(CUdeviceptr* p, size_t n, CUstream s) { return cuMemAllocFromPoolAsync(p, n, nullptr, s); }
NOOP_EXPORT CUresult cuMemFreeAsync(CUdeviceptr, CUstream) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* p, const CUmemPoolProps*) {
  return *p = reinterpret_cast<CUmemoryPool>(&context_object), CUDA_SUCCESS;
}
NOOP_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool, CUmemPool_attribute, void*) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool, size_t) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuStreamSynchronize(CUstream) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuStreamQuery(CUstream) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuMemGetInfo_v2(size_t*, size_t*) { return CUDA_SUCCESS; }
NOOP_EXPORT CUresult cuGetProcAddress_v2(const char*, void** fn, int, cuuint64_t, CUdriverProcAddressQueryResult*) {
  return *fn = nullptr, CUDA_SUCCESS;
}
