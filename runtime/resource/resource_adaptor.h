// What an adaptor is before it adds anything: every call goes to the resource below. An adaptor derives from this and
// overrides what it is for.
#pragma once

#include "runtime/resource/memory_resource.h"

namespace xlog {

class ResourceAdaptor : public DeviceMemoryResource {
 public:
  using DeviceMemoryResource::allocate, DeviceMemoryResource::deallocate, DeviceMemoryResource::reap_pending;
  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override { return inner_.allocate(request, out); }
  Status deallocate(DeviceBlock& block, const FreeRequest& request) noexcept override { return inner_.deallocate(block, request); }
  [[nodiscard]] int device_ordinal() const noexcept override { return inner_.device_ordinal(); }
  [[nodiscard]] uint64_t bytes_outstanding() const noexcept override { return inner_.bytes_outstanding(); }
  [[nodiscard]] uint64_t pending_bytes() const noexcept override { return inner_.pending_bytes(); }
  Status reap_pending(const ReapGoal& goal) noexcept override { return inner_.reap_pending(goal); }
  uint64_t take_released() noexcept override { return inner_.take_released(); }
  uint64_t take_pending(const AllocationRequest& request, uint64_t bytes) noexcept override { return inner_.take_pending(request, bytes); }
  void return_pending(const AllocationRequest& request, uint64_t bytes) noexcept override { inner_.return_pending(request, bytes); }
  CUresult judge(const AllocationRequest& request, uint64_t& ptr) noexcept override { return inner_.judge(request, ptr); }
  PoolReserves* pools() noexcept override { return inner_.pools(); }
  bool budget_snapshot(BudgetSnapshot& out) const noexcept override { return inner_.budget_snapshot(out); }
  Status reserve_memory(uint64_t bytes, MemoryReservation& out) noexcept override { return inner_.reserve_memory(bytes, out); }
  [[nodiscard]] bool supports_block_use_tracking() const noexcept override { return inner_.supports_block_use_tracking(); }
  Status prepare_block_use(const BlockId& id, StreamId use, Access access) noexcept override {
    return inner_.prepare_block_use(id, use, access);
  }
  Status finish_block_use(const BlockId& id, StreamId use, Access access) noexcept override {
    return inner_.finish_block_use(id, use, access);
  }
  Status record_block_use(const DeviceBlock& block, StreamId use) noexcept override { return inner_.record_block_use(block, use); }

 protected:
  explicit constexpr ResourceAdaptor(DeviceMemoryResource& inner) noexcept : inner_(inner) {}
  ~ResourceAdaptor() = default;

  DeviceMemoryResource& inner_;
};

}  // namespace xlog
