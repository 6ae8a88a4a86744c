// The interface of the stack: a leaf resource talks to the driver, an adaptor adds one concern to the resource below it.
// A resource serves exactly one device. Thread-safe; never throws. Contract: the stack's specification, section 2.
#pragma once

#include "runtime/resource/block.h"
#include "runtime/resource/status.h"

namespace xlog {

class PoolReserves;

struct BudgetSnapshot {
  uint64_t limit = UINT64_MAX;
  uint64_t reserved = 0;
  [[nodiscard]] uint64_t remaining() const noexcept { return reserved < limit ? limit - reserved : 0; }
};

// What reap_pending is asked for.
struct ReapGoal {
  uint64_t bytes = UINT64_MAX;  // enough when this many have become known to be free
  uint64_t patience_ns = 0;     // how long it may wait for them; 0 looks once
};

// All virtual functions of a class that a program may derive from are inline: the runtime is built without run-time
// types, and a program that has them makes its own.
class DeviceMemoryResource {
 public:
  DeviceMemoryResource(const DeviceMemoryResource&) = delete;
  DeviceMemoryResource& operator=(const DeviceMemoryResource&) = delete;

  // On success `out` is a live block of `request.bytes` (more than 0), usable on `request.stream` at once and on other
  // streams after prepare_block_use. On failure nothing is charged; out.ptr is what the driver left there (it writes the
  // output on failure), or 0 for a refusal of ours.
  virtual Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept = 0;

  // Ordered on block.alloc_stream. On success block.state is freed, or retired until the free is known to be done; on
  // failure the block is the caller's as before. Succeeds at most once for a block.
  virtual Status deallocate(DeviceBlock& block, const FreeRequest& request) noexcept = 0;

  [[nodiscard]] virtual int device_ordinal() const noexcept = 0;
  // Live bytes and those whose free is not known to be done.
  [[nodiscard]] virtual uint64_t bytes_outstanding() const noexcept = 0;
  [[nodiscard]] virtual uint64_t pending_bytes() const noexcept { return 0; }

  // Settles pending frees whose work is done. Every stream and every free is looked at; the first error is returned.
  virtual Status reap_pending(const ReapGoal&) noexcept { return {}; }
  Status reap_pending() noexcept { return reap_pending(ReapGoal{}); }

  // For the budget above. Bytes of retired blocks that have become free since the last call: each is told once.
  virtual uint64_t take_released() noexcept { return 0; }
  // Up to `bytes` of what is pending on the request's own stream change hands: they count for the caller from now on, and
  // are not told again.
  virtual uint64_t take_pending(const AllocationRequest&, uint64_t) noexcept { return 0; }
  // The reverse, when the allocation that they were taken for failed.
  virtual void return_pending(const AllocationRequest&, uint64_t) noexcept {}

  // What the driver would say of a request that a limit refuses, if it had the memory: its code for another reason, or
  // CUDA_ERROR_OUT_OF_MEMORY. `ptr` as the driver leaves it.
  virtual CUresult judge(const AllocationRequest&, uint64_t&) noexcept { return CUDA_ERROR_OUT_OF_MEMORY; }

  // The pools of the program whose reserved memory is charged in place of their blocks; nullptr where there are none.
  virtual PoolReserves* pools() noexcept { return nullptr; }

  // Limit and reserved bytes of the nearest budget below; false without one.
  virtual bool budget_snapshot(BudgetSnapshot&) const noexcept { return false; }
  // Promises `bytes` for allocations to come.
  virtual Status reserve_memory(uint64_t, MemoryReservation&) noexcept {
    return Status::from(CUDA_ERROR_NOT_SUPPORTED, "no budget in this stack");
  }

  // Uses on other streams than the block's own. prepare: before the work is enqueued on `use`, makes that stream wait for
  // what the work depends on. finish: after it was enqueued, so that later uses and the free wait for it. A resource
  // that cannot do this fails: silence would be false safety. Not inside a stream capture.
  [[nodiscard]] virtual bool supports_block_use_tracking() const noexcept { return false; }
  virtual Status prepare_block_use(const BlockId&, StreamId, Access) noexcept { return unsupported(); }
  virtual Status finish_block_use(const BlockId&, StreamId, Access) noexcept { return unsupported(); }
  // Work that touches the block was enqueued on `use`; nothing was prepared for it, so only the free is ordered.
  virtual Status record_block_use(const DeviceBlock&, StreamId) noexcept { return unsupported(); }

  // Shorter, for C++ programs.
  ResourceResult<DeviceBlock> allocate(size_t bytes, StreamId stream = kDefaultStream, AllocTag tag = kUntagged) noexcept;
  Status deallocate(DeviceBlock& block) noexcept { return deallocate(block, FreeRequest{.caller = __builtin_return_address(0)}); }

 protected:
  constexpr DeviceMemoryResource() = default;
  ~DeviceMemoryResource() = default;  // never destroyed through this interface
  static Status unsupported() noexcept { return Status::stream_misuse("use tracking is unsupported by this resource"); }
};

}  // namespace xlog
