#include "runtime/resource/native_resource.h"

#include <time.h>

#include "runtime/base/driver_api.h"
#include "runtime/base/system_calls.h"
#include "runtime/base/thread.h"

namespace xlog {

CUresult NativeResource::allocate_ordered(const AllocationRequest& request, CUdeviceptr& ptr) noexcept {
  CUstream stream = request.stream_arg.handle;
  if (request.kind == Kind::pool) {
    auto call = request.stream_arg.per_thread_abi ? driver_.cuMemAllocFromPoolAsync_ptsz : driver_.cuMemAllocFromPoolAsync;
    return call(&ptr, request.bytes, request.pool, stream);
  }
  auto call = request.stream_arg.per_thread_abi ? driver_.cuMemAllocAsync_ptsz : driver_.cuMemAllocAsync;
  return call(&ptr, request.bytes, stream);
}

CUresult NativeResource::call_driver(const AllocationRequest& request, CUdeviceptr& ptr) noexcept {
  if (request.own != nullptr) {
    uint64_t made = ptr;
    CUresult result = (*request.own)(made);
    ptr = made;
    return result;
  }
  if (request.is_ordered()) {
    return allocate_ordered(request, ptr);
  }
  return request.kind == Kind::pitch
             ? driver_.cuMemAllocPitch_v2(&ptr, request.pitch_out, request.width_bytes, request.height, request.element_bytes)
             : driver_.cuMemAlloc_v2(&ptr, request.bytes);
}

bool NativeResource::allocate_from_source(const AllocationRequest& request, CUdeviceptr& ptr, Maker& maker) noexcept {
  maker = Maker::driver;
  if (request.fenced && fence_ != nullptr && fence_->allocate(request.context, request.bytes, ptr)) {
    maker = Maker::fence;
  } else if (source_ != nullptr && request.kind == Kind::plain && request.own == nullptr &&
             source_->allocate(request.context, request.bytes, ptr)) {
    maker = maker_;
  }
  return maker != Maker::driver;
}

// 4 bytes times 2^64 - 1 is such a request for memory with a pitch: its size does not wrap (measured).
CUresult NativeResource::judge(const AllocationRequest& request, uint64_t& ptr) noexcept {
  AllocationRequest asked = request;
  CUdeviceptr left = ptr;
  size_t pitch = 0;
  if (request.own != nullptr) {
    return request.never != nullptr ? (*request.never)(ptr) : CUDA_ERROR_OUT_OF_MEMORY;
  }
  asked.bytes = kNeverServed;
  asked.width_bytes = 4;
  asked.height = SIZE_MAX;
  asked.pitch_out = &pitch;
  CUresult result = call_driver(asked, left);
  if (result != CUDA_SUCCESS) {
    ptr = left;
    return result;
  }
  driver_.cuMemFree_v2(left);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

bool NativeResource::relieve() noexcept {
  bool any = source_ != nullptr && source_->relieve();
  return (fence_ != nullptr && fence_->relieve()) || any;
}

Status NativeResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  CUdeviceptr ptr = out.ptr;
  bool ordered = request.is_ordered();
  Maker maker = Maker::driver;
  CUresult result = allocate_from_source(request, ptr, maker) ? CUDA_SUCCESS : call_driver(request, ptr);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && relieve()) {
    result = call_driver(request, ptr);
  }
  out.ptr = ptr;
  if (result == CUDA_SUCCESS) {
    out.bytes = request.kind == Kind::pitch ? *request.pitch_out * request.height : request.bytes;
    out.taken = maker == Maker::fence ? FenceSource::taken(out.bytes) : taken_by(request.kind, out.bytes);
    out.align = kDriverAlign;
    out.generation = Generation::next();
    out.tag = request.tag;
    out.context = request.context;
    out.pool = ordered ? request.pool : nullptr;
    out.pool_number = ordered && maker == Maker::driver ? request.pool_number : 0;
    if (out.pool_number != 0) {
      pools_.block_made(out.pool_number);
    }
    out.alloc_stream = request.stream;
    out.device = static_cast<int16_t>(request.device);
    out.kind = request.kind == Kind::async && !ordered ? Kind::plain : request.kind;
    out.state = BlockState::live;
    out.maker = maker;
    out.guard_bytes = 0;
    out.guard = nullptr;
    out.shared = false;
    outstanding_.fetch_add(cost(out), std::memory_order_relaxed);
  }
  return Status::from(result);
}

// The driver frees any block by either call; a source frees its own.
Status NativeResource::deallocate(DeviceBlock& block, const FreeRequest& request) noexcept {
  CUresult result = CUDA_SUCCESS;
  bool pending = false;
  bool plainly = block.maker == Maker::driver;
  if (request.own != nullptr) {
    uint64_t ended = block.ptr;
    result = (*request.own)(ended);
  } else if (!plainly) {
    PlainSource* source = block.maker == Maker::fence ? fence_ : source_;
    result = source->free(block, request, pending);
  } else if (request.ordered) {
    auto call = request.stream_arg.per_thread_abi ? driver_.cuMemFreeAsync_ptsz : driver_.cuMemFreeAsync;
    result = call(block.ptr, request.stream_arg.handle);
  } else {
    result = driver_.cuMemFree_v2(block.ptr);
  }
  if (result != CUDA_SUCCESS) {
    return Status::from(result);
  }
  uint64_t bytes = cost(block);
  bool in_order = plainly && request.ordered;
  if (block.pool_number != 0) {
    leave_pool(block, in_order ? &request : nullptr);
  } else if (in_order && limited_) {
    pending = true;  // also where it cannot be remembered: then it counts for ever
    static_cast<void>(pending_.add(request.stream_arg, bytes));
  }
  block.state = pending ? BlockState::retired : BlockState::freed;
  if (!pending) {
    outstanding_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  return {};
}

// The last block of a destroyed pool takes along what the pool had reserved.
void NativeResource::leave_pool(const DeviceBlock& block, const FreeRequest* ordered) noexcept {
  uint64_t charged = block.pool_number != 0 ? pools_.block_ended(block.pool_number) : 0;
  if (charged != 0) {
    outstanding_.fetch_add(charged, std::memory_order_relaxed);
    if (ordered == nullptr) {
      settled(charged);
    } else {
      static_cast<void>(pending_.add(ordered->stream_arg, charged));
    }
  }
}

void NativeResource::finish_pool_end(uint64_t number, CUmemoryPool pool, bool destroyed) noexcept {
  uint64_t charged = number != 0 ? pools_.finish_end(number, pool, destroyed) : 0;
  if (charged != 0) {
    outstanding_.fetch_add(charged, std::memory_order_relaxed);
    if (!pending_.add_behind_context(charged)) {
      settled(charged);
    }
  }
}

uint64_t NativeResource::pending_bytes() const noexcept {
  return pending_.total() + (source_ != nullptr ? source_->pending_bytes() : 0) + (fence_ != nullptr ? fence_->pending_bytes() : 0);
}

uint64_t NativeResource::take_released() noexcept {
  if (source_ != nullptr) {
    settled(source_->take_settled());
  }
  if (fence_ != nullptr) {
    settled(fence_->take_settled());
  }
  return released_.exchange(0, std::memory_order_acq_rel);
}

void NativeResource::settled(uint64_t bytes) noexcept {
  if (bytes != 0) {
    outstanding_.fetch_sub(bytes, std::memory_order_relaxed);
    released_.fetch_add(bytes, std::memory_order_acq_rel);
  }
}

Status NativeResource::reap_pending(const ReapGoal& goal) noexcept {
  uint64_t start = steady_time();
  uint64_t freed = 0;
  if (source_ != nullptr) {
    source_->settle(goal);
    freed = source_->settled_bytes();  // take_released() hands them on
  }
  if (fence_ != nullptr) {
    fence_->settle(goal);
    freed += fence_->settled_bytes();
  }
  for (timespec nap{.tv_sec = 0, .tv_nsec = 20'000};;) {
    uint64_t now = steady_time();
    freed += pending_.settle({outstanding_, released_});
    if (freed >= goal.bytes || pending_.empty() || now - start >= goal.patience_ns) {
      return {};
    }
    kernel::sleep(nap);
    nap.tv_nsec = nap.tv_nsec < 1'000'000 ? nap.tv_nsec * 2 : nap.tv_nsec;
  }
}

}  // namespace xlog
