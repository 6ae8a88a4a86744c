// The bottom of the shim's default stack: each call goes to the driver's call of its own kind, so that the program gets
// the memory that it asked for, and frees it the way that it calls for; plain calls go to a source of plain memory where
// there is one (the backends `async` and `cache`), and each block is freed where it was made. It serves one device, by
// requests that say where they come from; it keeps no table of blocks (the caller has one), so nothing is checked here
// but by the driver.
#pragma once

#include <atomic>

#include "runtime/base/options.h"
#include "runtime/resource/fence_source.h"
#include "runtime/resource/memory_resource.h"
#include "runtime/resource/pending_frees.h"
#include "runtime/resource/plain_source.h"
#include "runtime/resource/pool_reserves.h"

namespace xlog {

class NativeResource final : public DeviceMemoryResource {
 public:
  // `limited`: a budget stands above. Then a free in the order of a stream counts until it is known to be done, and pools
  // are charged by what they have reserved. `count` says what counts of other memory.
  constexpr NativeResource(const DriverApi& driver, int device, bool limited, BudgetCount count, CaptureGate* gate = nullptr) noexcept
      : driver_(driver), device_(device), limited_(limited), count_(count), pending_(driver, gate), pools_(driver) {}
  // Before the first call. The source outlives this.
  void set_source(PlainSource& source, Maker maker) noexcept {
    source_ = &source;
    maker_ = maker;
  }
  [[nodiscard]] PlainSource* source() noexcept { return source_; }
  void set_fence(FenceSource& fence) noexcept { fence_ = &fence; }

  using DeviceMemoryResource::allocate, DeviceMemoryResource::deallocate, DeviceMemoryResource::reap_pending;
  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(DeviceBlock& block, const FreeRequest& request) noexcept override;
  [[nodiscard]] int device_ordinal() const noexcept override { return device_; }
  [[nodiscard]] uint64_t bytes_outstanding() const noexcept override { return outstanding_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t pending_bytes() const noexcept override;
  Status reap_pending(const ReapGoal& goal) noexcept override;
  uint64_t take_released() noexcept override;
  CUresult judge(const AllocationRequest& request, uint64_t& ptr) noexcept override;
  PoolReserves* pools() noexcept override { return limited_ && driver_.cuMemPoolGetAttribute != nullptr ? &pools_ : nullptr; }

  // A block ended without a call that comes through here.
  void forget(const DeviceBlock& block) noexcept {
    outstanding_.fetch_sub(cost(block), std::memory_order_relaxed);
    leave_pool(block, nullptr);
  }
  // A context ends: before the driver's call (`alive`) or after it, and then when it is known whether it has ended.
  void begin_context_end(CUcontext context, bool alive) noexcept { pending_.begin_context_end(context, alive); }
  void finish_context_end(CUcontext context, bool ended) noexcept { settled(pending_.finish_context_end(context, ended)); }
  // The program destroys a pool: around the call. What was freed to it may still be in use, so what a pool without blocks
  // has reserved counts until the work is done that the current context has now.
  uint64_t begin_pool_end(CUmemoryPool pool) noexcept { return limited_ ? pools_.begin_end(pool) : 0; }
  void finish_pool_end(uint64_t number, CUmemoryPool pool, bool destroyed) noexcept;

 private:
  [[nodiscard]] uint64_t cost(const DeviceBlock& block) const noexcept { return count_ == BudgetCount::bytes ? block.bytes : block.taken; }
  CUresult call_driver(const AllocationRequest& request, CUdeviceptr& ptr) noexcept;
  CUresult allocate_ordered(const AllocationRequest& request, CUdeviceptr& ptr) noexcept;
  bool relieve() noexcept;
  bool allocate_from_source(const AllocationRequest& request, CUdeviceptr& ptr, Maker& maker) noexcept;
  void settled(uint64_t bytes) noexcept;
  void leave_pool(const DeviceBlock& block, const FreeRequest* ordered) noexcept;

  const DriverApi& driver_;
  const int device_;
  const bool limited_;
  const BudgetCount count_;
  std::atomic<uint64_t> outstanding_{0};
  std::atomic<uint64_t> released_{0};
  PendingFrees pending_;
  PoolReserves pools_;
  Lock settling_{};
  PlainSource* source_ = nullptr;
  FenceSource* fence_ = nullptr;
  Maker maker_ = Maker::driver;
};

}  // namespace xlog
