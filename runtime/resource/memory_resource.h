// The interface of the stack: a leaf resource talks to the driver, an adaptor adds one concern to the resource below it.
// A resource serves exactly one device. Thread-safe; never throws. Contract: the stack's specification, section 2.
#pragma once

#include "runtime/resource/block.h"
#include "runtime/resource/status.h"

namespace xlog {

struct BudgetSnapshot {
  uint64_t limit = UINT64_MAX;
  uint64_t reserved = 0;
  [[nodiscard]] uint64_t remaining() const noexcept { return reserved < limit ? limit - reserved : 0; }
};

class MemoryResource {
 public:
  MemoryResource(const MemoryResource&) = delete;
  MemoryResource& operator=(const MemoryResource&) = delete;

  // On success `out` is the block and the driver's outputs are written. On failure nothing is charged; out.ptr is what
  // the driver left there (it writes the output on failure), or 0 for a refusal of ours.
  virtual Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept = 0;

  // On failure the block is the caller's as before.
  virtual Status deallocate(const DeviceBlock& block, const FreeRequest& request) noexcept = 0;

  // Settles pending frees whose work is done; never waits.
  virtual Status reap_pending() noexcept { return {}; }

  // Limit and reserved bytes of the nearest budget below; false without one.
  virtual bool budget_snapshot(BudgetSnapshot&) const noexcept { return false; }

 protected:
  constexpr MemoryResource() = default;
  ~MemoryResource() = default;  // resources are never destroyed through this interface, and never in the shim
};

}  // namespace xlog
