// The bottom of the default stack: each call goes to the driver's call of its own kind, so that the program gets the
// memory that it asked for, and frees it the way that it calls for.
#pragma once

#include "runtime/resource/direct_cuda_resource.h"
#include "runtime/resource/stream_ordered_resource.h"

namespace xlog {

class NativeResource final : public MemoryResource {
 public:
  explicit constexpr NativeResource(const DriverApi& driver) noexcept : direct_(driver), ordered_(driver) {}

  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override {
    bool ordered = (request.kind == Kind::async && !request.as_plain) || request.kind == Kind::pool;
    return ordered ? ordered_.allocate(request, out) : direct_.allocate(request, out);
  }

  Status deallocate(const DeviceBlock& block, const FreeRequest& request) noexcept override {
    return request.ordered ? ordered_.deallocate(block, request) : direct_.deallocate(block, request);
  }

 private:
  DirectCudaResource direct_;
  StreamOrderedResource ordered_;
};

}  // namespace xlog
