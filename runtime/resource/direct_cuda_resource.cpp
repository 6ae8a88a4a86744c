#include "runtime/resource/direct_cuda_resource.h"

namespace xlog {

Status DirectCudaResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  CUdeviceptr ptr = out.ptr;
  CUresult result = CUDA_SUCCESS;
  size_t bytes = request.bytes;
  if (request.kind == Kind::pitch) {
    result = driver_.cuMemAllocPitch_v2(&ptr, request.pitch_out, request.width_bytes, request.height, request.element_bytes);
    if (result == CUDA_SUCCESS) {
      bytes = *request.pitch_out * request.height;
    }
  } else {
    result = driver_.cuMemAlloc_v2(&ptr, request.bytes);
  }
  out.ptr = ptr;
  if (result == CUDA_SUCCESS) {
    out.bytes = bytes;
    out.taken = plain_taken(bytes);
    out.generation = next_generation();
    out.context = request.context;
    out.pool = nullptr;
    out.device = static_cast<int16_t>(request.device);
    out.kind = request.kind == Kind::pitch ? Kind::pitch : Kind::plain;
  }
  return Status::from(result);
}

Status DirectCudaResource::deallocate(const DeviceBlock& block, const FreeRequest&) noexcept {
  return Status::from(driver_.cuMemFree_v2(block.ptr));
}

}  // namespace xlog
