// The backend `async`: plain memory from a stream-ordered pool of our own. An allocation is made on a private stream and
// that stream is synchronised, so the pointer is valid on every stream; nothing on the stream ever waits for the program.
// A block whose work is done is kept for a while when it is small, then freed on the private stream: the pool may give it
// out there at once. (Freed on a second stream, behind the work's event, it is not found again in time: a training step
// then took all of the card.)
#pragma once

#include "runtime/base/diagnostics.h"
#include "runtime/resource/growing_list.h"
#include "runtime/resource/plain_source.h"

namespace xlog {

class PoolSource final : public PlainSource {
 public:
  PoolSource(const DriverApi& driver, int device, CaptureGate& gate, const PlainSettings& settings) noexcept
      : PlainSource(driver, gate, settings, true), device_(device) {}

  void end_block(const DeviceBlock& block) noexcept override;

  // A context of device `reader` was given access to the memory of `owner`, a context of this device: the blocks that are
  // live get it too, and those to come are the driver's plain ones (CUDA.jl PR 3112: copies into granted pools that write
  // nothing). Both contexts are alive; `reader` is current.
  void grant_peer(CUcontext owner, CUcontext reader, int reader_device) noexcept;

 private:
  bool declines() noexcept override { return peers_.load(std::memory_order_relaxed) || pool() == nullptr; }
  CUresult make(ContextLane& lane, size_t bytes, CUdeviceptr& ptr) noexcept override;
  void unmake(ContextLane* lane, CUdeviceptr ptr, size_t bytes) noexcept override;
  CUresult give_back(CUdeviceptr ptr) noexcept override;
  CUresult free_by_driver(const DeviceBlock& block, const FreeRequest&) noexcept override { return free_after_waiting(block); }
  void release_orphans() noexcept override;
  uint64_t most_kept() noexcept override;
  bool keeps(size_t taken, bool shared) noexcept override;
  bool leaves_to_driver(const DeviceBlock&) noexcept override { return false; }
  bool release_idle() noexcept override;
  void keep_within_bounds() noexcept override;
  uint64_t idle() noexcept override;

  CUmemoryPool pool() noexcept;
  [[nodiscard]] uint64_t reserved_now() noexcept;
  void note_growth(size_t bytes) noexcept;
  struct Orphan {
    CUdeviceptr ptr;
    size_t bytes;
  };
  void add_orphan(const Orphan& orphan) noexcept;
  bool peer_reads_pool(CUcontext owner, CUcontext reader) noexcept;

  const int device_;
  Lock lock_{};
  std::atomic<CUmemoryPool> pool_{nullptr};
  std::atomic<bool> unusable_{false};  // no pool could be made
  std::atomic<bool> peers_{false};     // another device reads this one's memory
  std::atomic<uint64_t> reserved_{0};  // by the pool, as last known
  // Blocks whose context ended before they were given back, and which the driver has not taken back yet.
  std::atomic<size_t> orphan_count_{0};
  GrowingList<Orphan> orphans_;
};

}  // namespace xlog
