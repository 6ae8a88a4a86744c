// Plain memory from the raw driver: one cuMemAlloc_v2 (or cuMemAllocPitch_v2) an allocation, one cuMemFree_v2 a free.
// Specification, section 3.
#pragma once

#include "runtime/resource/memory_resource.h"

namespace xlog {

class DirectCudaResource final : public MemoryResource {
 public:
  explicit constexpr DirectCudaResource(const DriverApi& driver) noexcept : driver_(driver) {}

  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(const DeviceBlock& block, const FreeRequest& request) noexcept override;

 private:
  const DriverApi& driver_;
};

}  // namespace xlog
