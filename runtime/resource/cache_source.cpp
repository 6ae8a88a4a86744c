#include "runtime/resource/cache_source.h"

namespace xlog {

CUresult CacheSource::make(ContextLane&, size_t bytes, CUdeviceptr& ptr) noexcept { return driver_.cuMemAlloc_v2(&ptr, bytes); }

// The driver waits for all work of the context once more.
void CacheSource::unmake(ContextLane* lane, CUdeviceptr ptr, size_t) noexcept {
  if (lane != nullptr) {
    driver_.cuMemFree_v2(ptr);
  }
}

CUresult CacheSource::free_by_driver(const DeviceBlock& block, const FreeRequest& request) noexcept {
  if (!request.ordered) {
    return driver_.cuMemFree_v2(block.ptr);
  }
  return (request.stream_arg.per_thread_abi ? driver_.cuMemFreeAsync_ptsz : driver_.cuMemFreeAsync)(block.ptr, request.stream_arg.handle);
}

}  // namespace xlog
