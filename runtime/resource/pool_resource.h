// The performance tier: a sub-allocator over big blocks of its upstream. Stream-ordered: each stream has an arena of its
// own, so what is freed on a stream is at once the next allocation's there, and threads on different streams share
// nothing. Other streams get a chunk of which nothing is in use, once its work is done; under pressure they wait for it on
// the GPU. Chunks that are not used go back to the upstream when an allocation would fail, and at trim(). Uses on other
// streams are tracked as in AsyncCudaResource.
//
// A chunk of the upstream must be usable on the stream that it was allocated for, and its free may be called only when
// the GPU is done with it: the pool sees to that itself, so any resource will do as upstream. A block occupies
// a multiple of kRangeStep, which its `taken` says; what is pending is told as requested, so a budget that counts
// `taken` belongs below a pool.
#pragma once

#include "runtime/resource/pool_arena.h"
#include "runtime/resource/tracked_resource.h"

namespace xlog {

struct PoolOptions {
  size_t chunk_bytes = size_t{64} << 20;  // least that is asked of the upstream, where it has that much
};

class PoolResource final : public TrackedResource {
 public:
  PoolResource(DeviceMemoryResource& upstream, StreamPool& streams, const PoolOptions& options = {}) noexcept;
  // Waits for the work on its chunks and gives them back, live blocks and all; see bytes_outstanding() before.
  ~PoolResource();

  using DeviceMemoryResource::allocate, DeviceMemoryResource::deallocate, DeviceMemoryResource::reap_pending;
  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(DeviceBlock& block, const FreeRequest& request) noexcept override;
  [[nodiscard]] uint64_t bytes_outstanding() const noexcept override;
  [[nodiscard]] uint64_t pending_bytes() const noexcept override;
  Status reap_pending(const ReapGoal& goal) noexcept override;
  uint64_t take_released() noexcept override { return released_.exchange(0, std::memory_order_acq_rel); }
  bool budget_snapshot(BudgetSnapshot& out) const noexcept override { return upstream_.budget_snapshot(out); }

  // Gives unused chunks back, those whose work is done or comes to be within the patience. Returns their bytes.
  uint64_t trim(uint64_t patience_ns = 0) noexcept;
  // Bytes that the pool holds of its upstream.
  [[nodiscard]] uint64_t held_bytes() const noexcept { return held_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] PoolArena& arena(StreamId id) const noexcept { return arenas_[id.index()]; }
  bool take_own(const AllocationRequest& request, size_t bytes, DeviceBlock& out) noexcept;
  bool make_live(PoolArena& own, Range* range, const AllocationRequest& request, DeviceBlock& out) noexcept;
  bool adopt_unused(StreamId to, size_t bytes, bool wait_on_gpu) noexcept;
  Status grow(const AllocationRequest& request, size_t bytes) noexcept;
  Status allocate_under_pressure(const AllocationRequest& request, size_t bytes, DeviceBlock& out) noexcept;
  bool has_spare(PoolArena& own) noexcept;
  uint64_t settle_waiting(PoolArena& own, StreamId id, size_t most) noexcept;
  uint64_t settle_all() noexcept;
  uint64_t give_back_unused(PoolArena& from, StreamId id, uint64_t deadline) noexcept;
  void with_uses(const BlockId& id, UsesVisitor& visitor) noexcept override;

  DeviceMemoryResource& upstream_;
  const PoolOptions options_;
  const size_t count_;
  PoolArena* arenas_;
  std::atomic<uint64_t> held_{0};
  std::atomic<uint64_t> released_{0};
  Slab<Range> ranges_{};
  Slab<Chunk> chunks_{};
};

}  // namespace xlog
