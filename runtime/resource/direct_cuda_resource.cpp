#include "runtime/resource/direct_cuda_resource.h"

#include "runtime/base/driver_api.h"

namespace xlog {

Status DirectCudaResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  out.ptr = 0;
  if (request.bytes == 0) {
    return Status::from(CUDA_ERROR_INVALID_VALUE, "zero bytes");
  }
  CUdeviceptr ptr = 0;
  CUresult result = CUDA_SUCCESS;
  {
    DeviceContext::Scope scope(context_);
    result = context_.driver().cuMemAlloc_v2(&ptr, request.bytes);
  }
  if (result != CUDA_SUCCESS) {
    return Status::from(result);
  }
  const LiveBlock entry{.ptr = ptr, .bytes = request.bytes, .generation = Generation::next(), .stream = request.stream};
  LiveBlock ended;
  if (live_.insert(LiveBlock(entry), ended)) {
    if (ended.generation == entry.generation) {
      DeviceContext::Scope scope(context_);
      context_.driver().cuMemFree_v2(ptr);
      return Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
    }
    live_bytes_.fetch_sub(ended.bytes, std::memory_order_relaxed);  // its address came back: it was freed out of our sight
  }
  live_bytes_.fetch_add(request.bytes, std::memory_order_relaxed);
  hand_out(out, request, entry, context_.ordinal(), Kind::plain);
  out.context = context_.handle();
  return {};
}

Status DirectCudaResource::deallocate(DeviceBlock& block, const FreeRequest&) noexcept {
  if (block.device != context_.ordinal()) {
    return Status::from(CUDA_ERROR_INVALID_DEVICE, "the block is another device's");
  }
  LiveBlock entry;
  Status status = take_live(live_, block, entry);
  if (!status.ok()) {
    return status;
  }
  DeviceContext::Scope scope(context_);
  CUresult result = context_.driver().cuMemFree_v2(block.ptr);
  if (result != CUDA_SUCCESS) {
    LiveBlock ended;
    live_.insert(LiveBlock(entry), ended);
    return Status::from(result);
  }
  live_bytes_.fetch_sub(block.bytes, std::memory_order_relaxed);
  block.state = BlockState::freed;
  return {};
}

}  // namespace xlog
