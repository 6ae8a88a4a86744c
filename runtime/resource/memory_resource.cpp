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

}  // namespace xlog
