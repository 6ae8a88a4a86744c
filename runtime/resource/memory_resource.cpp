#include "runtime/resource/memory_resource.h"

namespace xlog {

ResourceResult<DeviceBlock> DeviceMemoryResource::allocate(size_t bytes, StreamId stream, AllocTag tag) noexcept {
  DeviceBlock block;
  Status status = allocate({.bytes = bytes, .stream = stream, .tag = tag, .caller = __builtin_return_address(0)}, block);
  if (!status.ok()) {
    return status;
  }
  return block;
}

Status DeviceMemoryResource::reserve_memory(uint64_t, MemoryReservation&) noexcept {
  return Status::from(CUDA_ERROR_NOT_SUPPORTED, "no budget in this stack");
}

}  // namespace xlog
