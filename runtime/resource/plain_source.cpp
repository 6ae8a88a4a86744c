#include "runtime/resource/plain_source.h"

#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

// Frees of so little never make the next one wait.
constexpr uint64_t kLeastPending = 256 << 20;

}  // namespace

bool PlainSource::allocate(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept {
  if (bytes == 0 || context == nullptr || is_exiting() || gate_.is_capturing() || declines()) {
    return false;
  }
  if (work_.queued_bytes() != 0) {
    settle({});
  }
  CUdeviceptr found = kept_.take(context, bytes);
  if (found != 0) {
    held_.remove(found);
  } else if (make_or_relieve(context, bytes, found) != CUDA_SUCCESS) {
    return false;  // the plain call says it again, in the program's own output
  }
  in_use(plain_taken(bytes));
  ptr = found;
  return true;
}

CUresult PlainSource::make_or_relieve(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept {
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, context, with_stream_);
  if (!lane) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  uint64_t after = used() + not_done() + plain_taken(bytes);
  shrink(settings_.limit == UINT64_MAX ? most_kept() : may_keep(after));
  CUresult result = make(*lane, bytes, ptr);
  return result == CUDA_ERROR_OUT_OF_MEMORY && relieve() ? make(*lane, bytes, ptr) : result;
}

CUresult PlainSource::free_by_driver(const DeviceBlock& block, const FreeRequest& request) noexcept {
  if (!request.ordered) {
    return driver_.cuMemFree_v2(block.ptr);
  }
  return (request.stream_arg.per_thread_abi ? driver_.cuMemFreeAsync_ptsz : driver_.cuMemFreeAsync)(block.ptr, request.stream_arg.handle);
}

// The free of no block tells whether the program may free here (and loses its capture if it may not); a plain block of
// our own, freed in the relaxed mode, then waits as the program's would.
CUresult PlainSource::wait_beside_captures() noexcept {
  CUresult allowed = driver_.cuMemFree_v2(kNoBlock);
  if (allowed != CUDA_ERROR_INVALID_VALUE) {
    return allowed;
  }
  RelaxedCapture relaxed(driver_);
  CUdeviceptr probe = 0;
  CUresult result = driver_.cuMemAlloc_v2(&probe, 1);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && relieve()) {
    result = driver_.cuMemAlloc_v2(&probe, 1);
  }
  return result == CUDA_SUCCESS ? driver_.cuMemFree_v2(probe) : result;
}

CUresult PlainSource::free(const DeviceBlock& block, const FreeRequest& request, bool& pending) noexcept {
  pending = false;
  bool plainly = is_exiting() || leaves_to_driver(block);
  ContextLanes::Use lane = plainly ? ContextLanes::Use(nullptr) : work_.lanes().find(block.context);
  KeptBlock* node = lane ? kept_.make(block.context, block.ptr, block.bytes, block.taken, block.shared) : nullptr;
  if (node == nullptr) {
    CUresult result = free_by_driver(block, request);
    not_in_use(result == CUDA_SUCCESS ? block.taken : 0);
    return result;
  }
  CUresult result = CUDA_SUCCESS;
  bool capturing = false;
  bool later = settings_.ordered || request.ordered;
  held_.add(block.ptr);
  if (later) {
    not_done_.fetch_add(block.taken, std::memory_order_relaxed);
    result = work_.queue(*lane, cost(block), node, most_pending(), capturing);
    pending = !capturing && result == CUDA_SUCCESS;
  } else {
    result = work_.wait(*lane, capturing);
  }
  if (!pending) {
    not_done_.fetch_sub(later ? block.taken : 0, std::memory_order_relaxed);
    if (!capturing && result == CUDA_SUCCESS) {
      RelaxedCapture relaxed(driver_);
      keep(&*lane, node);
    } else {
      kept_.drop(node);
      held_.remove(block.ptr);
    }
    if (capturing) {
      result = request.ordered ? free_by_driver(block, request) : free_while_capturing(*lane, block.ptr);
    }
  }
  if (result == CUDA_SUCCESS) {
    not_in_use(block.taken);
    shrink(most_kept());
    keep_within_bounds();
  }
  return result;
}

void PlainSource::keep(ContextLane* lane, KeptBlock* block) noexcept {
  if (keeps(block->taken, block->shared)) {
    kept_.keep(block);
    return;
  }
  held_.remove(block->ptr);
  unmake(lane, block->ptr);
  kept_.drop(block);
}

void PlainSource::work_is_done(ContextLane& lane, void* what) noexcept {
  auto* block = static_cast<KeptBlock*>(what);
  not_done_.fetch_sub(block->taken, std::memory_order_relaxed);
  keep(&lane, block);
}

// The oldest go first. Their work is done, whatever their context does now.
void PlainSource::shrink(uint64_t most) noexcept {
  KeptBlock oldest;
  while (kept_.bytes() > most && kept_.take_oldest(oldest)) {
    held_.remove(oldest.ptr);
    RelaxedCapture relaxed(driver_);
    ContextLanes::Use lane = work_.lanes().find(oldest.context);
    unmake(lane ? &*lane : nullptr, oldest.ptr);
  }
}

bool PlainSource::relieve() noexcept {
  if (is_exiting()) {
    return false;
  }
  settle({.patience_ns = 1});
  bool any = kept_.bytes() != 0;
  shrink(0);
  return release_idle() || any;
}

void PlainSource::settle(const ReapGoal& goal) noexcept {
  if (!is_exiting()) {
    work_.settle(goal);
  }
}

void PlainSource::finish_context_end(CUcontext context) noexcept {
  work_.close(context);
  give_back_kept(context, nullptr);
}

void PlainSource::give_back_kept(CUcontext context, ContextLane* lane) noexcept {
  RelaxedCapture relaxed(driver_);
  KeptBlock each;
  while (kept_.take_of(context, each)) {
    held_.remove(each.ptr);
    unmake(lane, each.ptr);
  }
}

uint64_t PlainSource::most_pending() const noexcept {
  if (settings_.most_pending != UINT64_MAX) {
    return settings_.most_pending;
  }
  uint64_t by_use = most_used_.load(std::memory_order_relaxed) / 4;
  by_use = by_use < kLeastPending ? kLeastPending : by_use;
  return by_use < settings_.most_pending_by_use ? by_use : settings_.most_pending_by_use;
}

void PlainSource::in_use(uint64_t bytes) noexcept {
  uint64_t now = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t most = most_used_.load(std::memory_order_relaxed);
  while (now > most && !most_used_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

uint64_t PlainSource::may_keep(uint64_t used) const noexcept {
  uint64_t below_limit = used < settings_.limit ? settings_.limit - used : 0;
  return settings_.keep < below_limit ? settings_.keep : below_limit;
}

}  // namespace xlog
