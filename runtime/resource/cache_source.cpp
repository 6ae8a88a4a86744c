#include "runtime/resource/cache_source.h"

#include "runtime/resource/relaxed_capture.h"

namespace xlog {

void CacheSource::memory_is_free(ContextLane&, void* what) noexcept {
  auto* block = static_cast<KeptBlock*>(what);
  queued_.fetch_sub(block->taken, std::memory_order_relaxed);
  kept_.keep(block);
}

// What is given back was done when it was kept, but the driver waits for all work of its context.
void CacheSource::free_down_to(uint64_t bytes) noexcept {
  while (kept_.bytes() > bytes) {
    CUdeviceptr oldest = kept_.take_oldest();
    if (oldest == 0) {
      return;
    }
    held_.remove(oldest);
    RelaxedCapture relaxed(driver_);
    driver_.cuMemFree_v2(oldest);
  }
}

bool CacheSource::allocate(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept {
  if (bytes == 0 || context == nullptr || is_exiting() || gate_.is_capturing()) {
    return false;
  }
  CUdeviceptr found = kept_.take(context, bytes);
  if (found == 0 && not_done() != 0) {
    settle({});
    found = kept_.take(context, bytes);
  }
  if (found != 0) {
    held_.remove(found);
  } else {
    {
      RelaxedCapture relaxed(driver_);
      if (!lanes_.open(driver_, context, false)) {
        return false;
      }
    }
    uint64_t after = used() + plain_taken(bytes) + queued_.load(std::memory_order_relaxed);
    free_down_to(may_keep(after));
    CUresult result = driver_.cuMemAlloc_v2(&found, bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && relieve()) {
      result = driver_.cuMemAlloc_v2(&found, bytes);
    }
    if (result != CUDA_SUCCESS) {
      return false;  // the plain call says it again, in the program's own output
    }
  }
  in_use(plain_taken(bytes));
  ptr = found;
  return true;
}

CUresult CacheSource::free(const DeviceBlock& block, bool& pending) noexcept {
  pending = false;
  ContextLanes::Use lane = is_exiting() || block.shared || gate_.is_capturing() ? ContextLanes::Use(nullptr) : lanes_.find(block.context);
  KeptBlock* node = lane ? kept_.make(block.context, block.ptr, block.bytes, block.taken) : nullptr;
  if (node == nullptr) {
    CUresult plain = driver_.cuMemFree_v2(block.ptr);
    if (plain == CUDA_SUCCESS) {
      not_in_use(block.taken);
    }
    return plain;
  }
  CUresult result = CUDA_SUCCESS;
  bool capturing = false;
  held_.add(block.ptr);
  if (settings_.ordered) {
    queued_.fetch_add(block.taken, std::memory_order_relaxed);
    result = free_in_order(*lane, cost(block), node, capturing);
    pending = !capturing && result == CUDA_SUCCESS;
    if (!pending) {
      queued_.fetch_sub(block.taken, std::memory_order_relaxed);
    }
  } else {
    result = wait_for_context(*lane, capturing);
  }
  if (capturing || result != CUDA_SUCCESS) {
    kept_.drop(node);
    held_.remove(block.ptr);
    result = capturing ? driver_.cuMemFree_v2(block.ptr) : result;
  } else if (!pending) {
    kept_.keep(node);
  }
  if (result == CUDA_SUCCESS) {
    not_in_use(block.taken);
    free_down_to(may_keep(used() + queued_.load(std::memory_order_relaxed)));
  }
  return result;
}

bool CacheSource::relieve() noexcept {
  if (is_exiting()) {
    return false;
  }
  settle({.patience_ns = 1});
  uint64_t before = kept_.bytes();
  free_down_to(0);
  return before != 0;
}

uint64_t CacheSource::idle_bytes() noexcept { return kept_.bytes() + queued_.load(std::memory_order_relaxed); }

void CacheSource::finish_context_end(CUcontext context) noexcept {
  close_lane(context);
  for (CUdeviceptr ptr = kept_.take_of(context); ptr != 0; ptr = kept_.take_of(context)) {
    held_.remove(ptr);  // the driver has freed it
  }
}

}  // namespace xlog
