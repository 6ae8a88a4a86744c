#include "runtime/resource/plain_source.h"

#include "runtime/resource/current_context.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

// Frees of so little never make the next one wait.
constexpr uint64_t kLeastPending = 256 << 20;

}  // namespace

bool PlainSource::allocate(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept {
  if (bytes == 0 || context == nullptr || gate_.is_capturing() || declines()) {
    return false;
  }
  if (work_.queued_bytes() != 0) {
    settle({});
  }
  CUdeviceptr found = take_kept(context, bytes);
  if (found != 0) {
    held_.remove(found);
  } else if (make_or_relieve(context, bytes, found) != CUDA_SUCCESS) {
    return false;  // the plain call says it again, in the program's own output
  }
  in_use(plain_taken(bytes));
  ptr = found;
  return true;
}

CUdeviceptr PlainSource::take_kept(CUcontext context, size_t bytes) noexcept {
  ContextLanes::Use lane = kept_.bytes() != 0 ? work_.lanes().find(context) : ContextLanes::Use(nullptr);
  return lane ? kept_.take(lane.incarnation(), bytes) : 0;
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

// The free of no block shows whether the program may free here (and loses its capture if it may not); a plain block of our own,
// freed in the relaxed mode, then waits as the program's would. Both in the block's context: the program's call needs none, and a
// free waits for the context of its block, whatever context is current.
CUresult PlainSource::wait_as_plain_free(CUcontext context) noexcept {
  CurrentContext current(driver_, context);
  if (current.result() != CUDA_SUCCESS) {
    return current.result();
  }
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

// What the driver says of a free in this stream, without a block to free: whether there is such a stream, and whether a capture
// forbids the call.
CUresult PlainSource::ask_about_stream(const StreamArg& stream) noexcept {
  CUresult answer = (stream.per_thread_abi ? driver_.cuMemFreeAsync_ptsz : driver_.cuMemFreeAsync)(kNoBlock, stream.handle);
  return answer == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : answer;
}

CUresult PlainSource::free(const DeviceBlock& block, const FreeRequest& request, bool& pending) noexcept {
  pending = false;
  CUresult result = CUDA_SUCCESS;
  if (leaves_to_driver(block)) {
    result = free_by_driver(block, request);
  } else {
    result = request.ordered ? ask_about_stream(request.stream_arg) : CUDA_SUCCESS;
    result = result == CUDA_SUCCESS ? free_here(block, request, pending) : result;
  }
  if (result == CUDA_SUCCESS) {
    uint64_t leaving = pending ? 0 : cost(block);
    leaving_.fetch_add(leaving, std::memory_order_relaxed);
    not_in_use(block.taken);
    shrink(most_kept());
    keep_within_bounds();
    leaving_.fetch_sub(leaving, std::memory_order_relaxed);
  }
  return result;
}

CUresult PlainSource::free_here(const DeviceBlock& block, const FreeRequest& request, bool& pending) noexcept {
  ContextLanes::Use lane = work_.lanes().find(block.context);
  KeptBlock fresh{.ptr = block.ptr, .bytes = block.bytes, .taken = block.taken, .context = block.context, .shared = block.shared};
  fresh.queued.bytes = cost(block);
  fresh.incarnation = lane ? lane.incarnation() : 0;
  KeptBlock* node = lane ? kept_.make(fresh) : nullptr;
  if (node == nullptr) {
    return free_after_waiting(block);
  }
  held_.add(block.ptr, block.bytes);
  WaitResult waited = settings_.ordered || request.ordered ? free_later(*lane, node, request) : work_.wait(*lane);
  if (waited.is_done()) {
    pending = settings_.ordered || request.ordered;
    if (!pending) {
      RelaxedCapture relaxed(driver_);
      keep(*lane, node);
    }
    return CUDA_SUCCESS;
  }
  kept_.drop(node);
  held_.remove(block.ptr);  // first: the driver may give the address out again at once
  return waited.is_fault_of_the_work() ? waited.code() : free_after_waiting(block);
}

// Unless it is done, nothing has changed. A free in stream order is never refused for want of an event and never waits: it is parked
// until the event can be recorded.
WaitResult PlainSource::free_later(ContextLane& lane, KeptBlock* node, const FreeRequest& request) noexcept {
  not_done_.fetch_add(node->taken, std::memory_order_relaxed);
  WaitResult result = work_.queue(lane, node->queued);
  if (!result.is_done() && request.ordered) {
    work_.park(lane, node->queued);
    return WaitResult::done();
  }
  if (!result.is_done()) {
    not_done_.fetch_sub(node->taken, std::memory_order_relaxed);
  } else if (!request.ordered) {
    work_.settle_down_to(lane, most_pending());
  }
  return result;
}

CUresult PlainSource::free_after_waiting(const DeviceBlock& block) noexcept {
  CUresult result = wait_as_plain_free(block.context);
  RelaxedCapture relaxed(driver_);
  return result == CUDA_SUCCESS ? give_back(block.ptr) : result;
}

void PlainSource::keep(ContextLane& lane, KeptBlock* block) noexcept {
  bool alive = !lane.ended;
  if (alive && keeps(block->taken, block->shared)) {
    kept_.keep(block);
    return;
  }
  if (alive || !ends_with_context()) {
    held_.remove(block->ptr);
  }
  unmake(alive ? &lane : nullptr, block->ptr, block->bytes);
  kept_.drop(block);
}

void PlainSource::work_is_done(ContextLane& lane, void* what) noexcept {
  auto* block = static_cast<KeptBlock*>(what);
  not_done_.fetch_sub(block->taken, std::memory_order_relaxed);
  keep(lane, block);
}

// The oldest go first. Their work is done, whatever their context does now.
void PlainSource::shrink(uint64_t most) noexcept {
  KeptBlock oldest;
  auto unhold_block = [this](const KeptBlock& block) { held_.remove(block.ptr); };
  while (kept_.bytes() > most && kept_.take_oldest(oldest, unhold_block)) {
    RelaxedCapture relaxed(driver_);
    ContextLanes::Use lane = work_.lanes().find(oldest.context);
    unmake(lane && lane.incarnation() == oldest.incarnation ? &*lane : nullptr, oldest.ptr, oldest.bytes);
  }
}

bool PlainSource::hides(CUdeviceptr ptr) noexcept {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  return held_.may_cover(ptr) && driver_.cuMemGetAddressRange_v2(&base, &bytes, ptr) == CUDA_SUCCESS && held_.contains(block_at(base));
}

bool PlainSource::relieve() noexcept {
  settle({.patience_ns = 1});
  bool any = kept_.bytes() != 0;
  shrink(0);
  return release_idle() || any;
}

void PlainSource::settle(const ReapGoal& goal) noexcept { work_.settle(goal); }

void PlainSource::hold_all_of(ContextLane& lane, bool on) noexcept {
  auto act = [this, on](const KeptBlock& block) {
    if (on) {
      held_.add(block.ptr, block.bytes);
    } else {
      held_.remove(block.ptr);
    }
  };
  if (ends_with_context()) {
    kept_.each_of(lane.incarnation.load(std::memory_order_relaxed), act);
    lane.frees.each([&](const QueuedFree& free) { act(*static_cast<const KeptBlock*>(free.what)); });
  }
}

void PlainSource::begin_context_end(CUcontext context) noexcept {
  work_.lanes().suspend(context, [this](ContextLane& lane) { hold_all_of(lane, false); });
}

void PlainSource::context_stays(CUcontext context) noexcept {
  work_.lanes().resume(context, [this](ContextLane& lane) { hold_all_of(lane, true); });
}

void PlainSource::context_ended(CUcontext context) noexcept {
  RelaxedCapture relaxed(driver_);
  work_.close(context, [this](ContextLane& lane) {
    kept_.drop_all_of(lane.incarnation.load(std::memory_order_relaxed), [this](const KeptBlock& each) {
      if (!ends_with_context()) {
        held_.remove(each.ptr);
      }
      unmake(nullptr, each.ptr, each.bytes);
    });
  });
  release_orphans();
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

// Pools of the program, and memory of other kinds, take their part of the limit. What is known to be free, and still
// counts, is none.
uint64_t PlainSource::may_keep(uint64_t used) const noexcept {
  uint64_t counted = settings_.ledger != nullptr ? settings_.ledger->reserved() : 0;
  uint64_t free = work_.settled_bytes() + leaving_.load(std::memory_order_relaxed);
  counted = counted > free ? counted - free : 0;
  uint64_t taken = counted > used ? counted : used;
  uint64_t below_limit = taken < settings_.limit ? settings_.limit - taken : 0;
  return settings_.keep < below_limit ? settings_.keep : below_limit;
}

}  // namespace xlog
