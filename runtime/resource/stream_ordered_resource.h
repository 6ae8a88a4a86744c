// Stream-ordered memory, served on the caller's own stream and pool: the program's call, as it made it.
#pragma once

#include "runtime/resource/memory_resource.h"

namespace xlog {

class StreamOrderedResource final : public MemoryResource {
 public:
  explicit constexpr StreamOrderedResource(const DriverApi& driver) noexcept : driver_(driver) {}

  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  // Any block, plain ones too: the driver frees both kinds by either call.
  Status deallocate(const DeviceBlock& block, const FreeRequest& request) noexcept override;

 private:
  const DriverApi& driver_;
};

}  // namespace xlog
