// The limit of one GPU. Bytes are reserved in one step before the driver is asked and given back when it refuses, so that
// the sum of live bytes never passes the limit whatever the number of threads; there is no lock. Specification, section
// 5: a request above the limit is refused at once; one that does not fit waits once for what is pending, then is
// refused. What pools of the program hold counts as what they have reserved (pool_reserves.h): known by an upper bound as
// long as that fits, and read before anything is refused.
#pragma once

#include "runtime/base/options.h"
#include "runtime/resource/device_ledger.h"
#include "runtime/resource/memory_reservation.h"
#include "runtime/resource/pool_reserves.h"
#include "runtime/resource/resource_adaptor.h"

namespace xlog {

class GlobalDeviceBudget final : public ResourceAdaptor {
 public:
  // Counts in `ledger`, together with every other budget that does; its own limit is what it holds its callers to.
  // `count`: requested bytes, or what the driver takes for them; the resource below must count the same.
  GlobalDeviceBudget(DeviceMemoryResource& inner, uint64_t limit, DeviceLedger& ledger, BudgetCount count = BudgetCount::bytes) noexcept;
  // The same, in the process's ledger of that GPU.
  GlobalDeviceBudget(DeviceMemoryResource& inner, uint64_t limit) noexcept
      : GlobalDeviceBudget(inner, limit, DeviceLedger::of_device(inner.device_ordinal())) {}
  // Gives back what the resource below still has outstanding.
  ~GlobalDeviceBudget();

  using ResourceAdaptor::allocate, ResourceAdaptor::deallocate, ResourceAdaptor::reap_pending;
  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(DeviceBlock& block, const FreeRequest& request) noexcept override;
  Status reap_pending(const ReapGoal& goal) noexcept override { return settle(goal); }
  bool budget_snapshot(BudgetSnapshot& out) const noexcept override;
  Status reserve_memory(uint64_t bytes, MemoryReservation& out) noexcept override;
  // For a budget above this one: told again, and what changes hands there counts here no longer.
  uint64_t take_released() noexcept override { return settled_.exchange(0, std::memory_order_acq_rel); }
  uint64_t take_pending(const AllocationRequest& request, uint64_t bytes) noexcept override;
  void return_pending(const AllocationRequest& request, uint64_t bytes) noexcept override;
  PoolReserves* pools() noexcept override { return nullptr; }  // they are charged here

  // A block ended without a call of its own (its context was destroyed).
  void credit(const DeviceBlock& block) noexcept { ledger_.release(charged(block)); }
  // Bytes that the driver has while no block stands for them.
  void hold(uint64_t bytes) noexcept { ledger_.add(bytes); }
  void let_go(uint64_t bytes) noexcept { ledger_.release(bytes); }
  // Reads what pools have reserved, so that what is told of the limit is exact.
  void measure() noexcept;
  void give_back_idle_pools() noexcept;
  // Takes over what the resource below has settled, and settles what it can.
  Status settle(const ReapGoal& goal) noexcept;

  [[nodiscard]] uint64_t limit() const noexcept { return limit_; }
  [[nodiscard]] uint64_t reserved_bytes() const noexcept { return ledger_.reserved(); }

 private:
  friend class DeviceLedger;
  [[nodiscard]] uint64_t cost(size_t bytes, size_t taken) const noexcept { return count_ == BudgetCount::bytes ? bytes : taken; }
  [[nodiscard]] uint64_t charged(const DeviceBlock& block) const noexcept {
    return pools_ != nullptr && block.pool_number != 0 ? 0 : cost(block.bytes, block.taken);
  }
  Status refuse(const AllocationRequest& request, const Status& status, DeviceBlock& out) noexcept;
  struct PoolRequest;
  Status allocate_from_pool(PoolReserves& pools, const AllocationRequest& request, DeviceBlock& out) noexcept;
  bool allocate_within(const PoolRequest& wanted, DeviceBlock& out, Status& status) noexcept;
  void give_back_excess(const PoolRequest& wanted) noexcept;
  bool is_worth_waiting(const PoolRequest& wanted, uint64_t idle, uint64_t waited) noexcept;
  bool try_pool(const PoolRequest& wanted, DeviceBlock& out, Status& status) noexcept;
  bool acquire(const AllocationRequest& request, uint64_t bytes, uint64_t& from_pending) noexcept;
  Status acquire_or_refuse(const AllocationRequest& request, uint64_t bytes, uint64_t& from_pending) noexcept;
  Status allocate_promised(const AllocationRequest& request, DeviceBlock& out) noexcept;
  Status charge_difference(uint64_t reserved, DeviceBlock& out) noexcept;

  DeviceLedger& ledger_;
  const uint64_t limit_;
  const BudgetCount count_;
  std::atomic<uint64_t> settled_{0};
  Lock settling_{};
  GlobalDeviceBudget* next_member_ = nullptr;
  PoolReserves* pools_ = nullptr;  // of the resource below
};

}  // namespace xlog
