// The limit of one GPU. Bytes are reserved in one step before the driver is asked and given back when it refuses, so that
// the sum of live bytes never passes the limit whatever the number of threads. Specification, section 5: a request above
// the limit is refused at once; one that does not fit waits once for what is pending, then is refused.
#pragma once

#include <atomic>

#include "runtime/base/options.h"
#include "runtime/resource/memory_resource.h"
#include "runtime/resource/pending_frees.h"

namespace xlog {

class GlobalDeviceBudget final : public MemoryResource {
 public:
  constexpr GlobalDeviceBudget(MemoryResource& inner, const DriverApi& driver, uint64_t limit, BudgetCount count) noexcept
      : inner_(inner), driver_(driver), limit_(limit), count_(count) {}

  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(const DeviceBlock& block, const FreeRequest& request) noexcept override;
  Status reap_pending() noexcept override;
  bool budget_snapshot(BudgetSnapshot& out) const noexcept override;

  // A block ended without a call of its own (its context was destroyed).
  void credit(const DeviceBlock& block) noexcept { release(cost(block.bytes, block.taken)); }
  void stream_destroyed(CUstream stream) noexcept { release(pending_.forget_stream(stream)); }
  void context_destroyed(CUcontext context) noexcept { release(pending_.forget_context(context)); }
  void pool_destroyed(CUmemoryPool pool) noexcept { pending_.forget_pool(pool); }

  [[nodiscard]] uint64_t limit() const noexcept { return limit_; }
  [[nodiscard]] uint64_t reserved_bytes() const noexcept { return used_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] uint64_t cost(size_t bytes, size_t taken) const noexcept { return count_ == BudgetCount::bytes ? bytes : taken; }
  bool reserve(uint64_t bytes) noexcept;
  void release(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_acq_rel); }
  bool acquire(const AllocationRequest& request, uint64_t bytes, uint64_t& from_pending) noexcept;
  bool acquire_after_wait(const AllocationRequest& request, uint64_t bytes, uint64_t& from_pending) noexcept;
  void put_back(const AllocationRequest& request, uint64_t from_pending) noexcept;

  MemoryResource& inner_;
  const DriverApi& driver_;
  const uint64_t limit_;
  const BudgetCount count_;
  std::atomic<uint64_t> used_{0};  // live and pending bytes
  PendingFrees pending_{};
};

}  // namespace xlog
