#include "runtime/resource/direct_cuda_resource.h"

#include "runtime/base/driver_api.h"

namespace xlog {

Status LiveBlock::check(const LiveBlock* entry, const DeviceBlock& block) noexcept {
  if (entry == nullptr || entry->generation != block.generation) {
    return Status::use_after_free(block.generation);
  }
  if (entry->bytes != block.bytes || entry->stream != block.alloc_stream) {
    return Status::stream_misuse("the block's size or stream is not the one it was allocated with");
  }
  return {};
}

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
  LiveBlock entry{.ptr = ptr, .bytes = request.bytes, .generation = Generation::next(), .stream = request.stream};
  LiveBlock ended;
  Generation generation = entry.generation;
  if (live_.insert(std::move(entry), ended)) {
    if (ended.generation == generation) {
      DeviceContext::Scope scope(context_);
      context_.driver().cuMemFree_v2(ptr);
      return Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
    }
    live_bytes_.fetch_sub(ended.bytes, std::memory_order_relaxed);  // its address came back: it was freed out of our sight
  }
  live_bytes_.fetch_add(request.bytes, std::memory_order_relaxed);
  out = DeviceBlock();
  out.ptr = ptr;
  out.bytes = request.bytes;
  out.taken = plain_taken(request.bytes);
  out.align = kDriverAlign;
  out.generation = generation;
  out.tag = request.tag;
  out.context = context_.handle();
  out.alloc_stream = request.stream;
  out.device = static_cast<int16_t>(context_.ordinal());
  out.kind = Kind::plain;
  return {};
}

Status DirectCudaResource::deallocate(DeviceBlock& block, const FreeRequest&) noexcept {
  if (block.device != context_.ordinal()) {
    return Status::from(CUDA_ERROR_INVALID_DEVICE, "the block is another device's");
  }
  Status status;
  LiveBlock entry;
  live_.visit(block.ptr, [&](LiveBlock* found) {
    status = LiveBlock::check(found, block);
    if (status.ok()) {
      entry = *found;
    }
    return status.ok();
  });
  if (!status.ok()) {
    return status;
  }
  DeviceContext::Scope scope(context_);
  CUresult result = context_.driver().cuMemFree_v2(block.ptr);
  if (result != CUDA_SUCCESS) {
    LiveBlock ended;
    live_.insert(std::move(entry), ended);
    return Status::from(result);
  }
  live_bytes_.fetch_sub(block.bytes, std::memory_order_relaxed);
  block.state = BlockState::freed;
  return {};
}

}  // namespace xlog
