#include "runtime/resource/stream_ordered_resource.h"

namespace xlog {

Status StreamOrderedResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  CUdeviceptr ptr = out.ptr;
  CUresult result = CUDA_SUCCESS;
  CUstream stream = request.stream.handle;
  if (request.kind == Kind::pool) {
    auto call = request.stream.per_thread_abi ? driver_.cuMemAllocFromPoolAsync_ptsz : driver_.cuMemAllocFromPoolAsync;
    result = call(&ptr, request.bytes, request.pool, stream);
  } else {
    auto call = request.stream.per_thread_abi ? driver_.cuMemAllocAsync_ptsz : driver_.cuMemAllocAsync;
    result = call(&ptr, request.bytes, stream);
  }
  out.ptr = ptr;
  if (result == CUDA_SUCCESS) {
    out.bytes = request.bytes;
    out.taken = plain_taken(request.bytes);
    out.generation = next_generation();
    out.context = request.context;
    out.pool = request.pool;
    out.device = static_cast<int16_t>(request.device);
    out.kind = request.kind;
  }
  return Status::from(result);
}

Status StreamOrderedResource::deallocate(const DeviceBlock& block, const FreeRequest& request) noexcept {
  auto call = request.stream.per_thread_abi ? driver_.cuMemFreeAsync_ptsz : driver_.cuMemFreeAsync;
  return Status::from(call(block.ptr, request.stream.handle));
}

}  // namespace xlog
