// Plain memory from the raw driver: one cuMemAlloc_v2 an allocation, one cuMemFree_v2 a free; nothing is pooled.
// Specification, section 3. The free waits for all work of the context, so a block may be used on any stream and its
// own stream is only noted; use tracking is therefore unsupported, as the specification fixes.
#pragma once

#include <atomic>

#include "runtime/resource/device_context.h"
#include "runtime/resource/live_block.h"
#include "runtime/resource/memory_resource.h"

namespace xlog {

class DirectCudaResource final : public DeviceMemoryResource {
 public:
  explicit DirectCudaResource(const DeviceContext& context) noexcept : context_(context) {}
  // What is still live stays allocated; see bytes_outstanding().
  ~DirectCudaResource() { live_.release(); }

  using DeviceMemoryResource::allocate, DeviceMemoryResource::deallocate, DeviceMemoryResource::reap_pending;
  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(DeviceBlock& block, const FreeRequest& request) noexcept override;
  [[nodiscard]] int device_ordinal() const noexcept override { return context_.ordinal(); }
  [[nodiscard]] uint64_t bytes_outstanding() const noexcept override { return live_bytes_.load(std::memory_order_relaxed); }

 private:
  const DeviceContext& context_;
  std::atomic<uint64_t> live_bytes_{0};
  AddressMap<LiveBlock> live_{};
};

}  // namespace xlog
