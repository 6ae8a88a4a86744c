// Stream-ordered memory from a pool of its own, with the order of uses kept across streams. Specification, section 4.
//
// A block may be used on its own stream at once. Elsewhere a use is prepared before and finished after its work is
// enqueued; the free then waits for it. The free waits on the host's side: a block whose uses on other streams are not
// known to be done is set aside and freed, on its own stream, by a later call that finds them done. So neither stream
// ever waits for a free, and a slow consumer delays nothing but the memory it uses.
#pragma once

#include <atomic>

#include "runtime/base/options.h"
#include "runtime/resource/live_block.h"
#include "runtime/resource/ordered_frees.h"
#include "runtime/resource/tracked_resource.h"
#include "runtime/resource/waiting_queue.h"

namespace xlog {

struct AsyncOptions {
  // Bytes that the pool keeps for itself when all is quiet; what it keeps is given back when an allocation fails.
  uint64_t release_threshold = UINT64_MAX;
  BudgetCount count = BudgetCount::bytes;  // what pending bytes are told in
};

class AsyncCudaResource final : public TrackedResource {
 public:
  explicit AsyncCudaResource(StreamPool& streams, const AsyncOptions& options = {}) noexcept
      : TrackedResource(streams), options_(options) {}
  // Shuts down, with kShutdownPatience.
  ~AsyncCudaResource();

  using DeviceMemoryResource::allocate, DeviceMemoryResource::deallocate, DeviceMemoryResource::reap_pending;
  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(DeviceBlock& block, const FreeRequest& request) noexcept override;
  [[nodiscard]] uint64_t bytes_outstanding() const noexcept override { return outstanding_.load(std::memory_order_acquire); }
  [[nodiscard]] uint64_t pending_bytes() const noexcept override {
    return frees_.total() + deferred_bytes_.load(std::memory_order_acquire);
  }
  Status reap_pending(const ReapGoal& goal) noexcept override;
  uint64_t take_released() noexcept override { return released_.exchange(0, std::memory_order_acq_rel); }
  uint64_t take_pending(const AllocationRequest& request, uint64_t bytes) noexcept override;
  void return_pending(const AllocationRequest& request, uint64_t bytes) noexcept override;

  struct Leaks {
    size_t blocks = 0;             // live when the resource was shut down
    uint64_t bytes = 0;            // of these
    uint64_t unsettled_bytes = 0;  // whose free did not come due within the patience
  };
  // Refuses allocations from now on, frees what is live after its uses, and waits for the frees. The first call does it;
  // later ones answer the same.
  Leaks shutdown(uint64_t patience_ns) noexcept;
  static constexpr uint64_t kShutdownPatience = 10'000'000'000;

  // Streams, beside its own, whose uses of a block are kept; -1 when it is not live. For tests.
  [[nodiscard]] int pending_use_count(uint64_t ptr) noexcept;

 private:
  struct Live : LiveBlock {
    BlockUses uses;
  };
  // A block that waits for uses on other streams.
  struct Deferred {
    uint64_t ptr;
    uint64_t cost;
    StreamId stream;
    StreamUse* uses;
    Deferred* next;
  };

  [[nodiscard]] uint64_t cost(size_t bytes) const noexcept { return options_.count == BudgetCount::bytes ? bytes : plain_taken(bytes); }
  Status ready() noexcept;
  Status make_pool() noexcept;
  void with_uses(const BlockId& id, UsesVisitor& visitor) noexcept override;
  CUresult allocate_memory(size_t bytes, CUstream stream, CUdeviceptr& ptr) noexcept;
  void forget_unseen(const Live& ended) noexcept;
  CUresult free_now(uint64_t ptr, StreamId stream, uint64_t bytes) noexcept;
  Status release(uint64_t ptr, StreamId stream, uint64_t bytes, StreamUse* uses) noexcept;
  Status free_deferred(size_t most) noexcept;
  void collect_frees(uint64_t& freed) noexcept;

  const AsyncOptions options_;
  std::atomic<bool> closed_{false};
  std::atomic<CUmemoryPool> pool_{nullptr};
  Lock pool_lock_{};
  std::atomic<uint64_t> outstanding_{0};
  std::atomic<uint64_t> released_{0};
  AddressMap<Live> live_{};
  OrderedFrees frees_{streams_};
  Slab<Deferred> deferred_nodes_{};
  WaitingQueue<Deferred> deferred_{};
  std::atomic<uint64_t> deferred_bytes_{0};
  Leaks leaks_{};
};

}  // namespace xlog
