// The backend `async`: plain memory from a stream-ordered pool of our own. An allocation is made on a private stream and
// that stream is synchronised, so the pointer is valid on every stream; nothing on the stream ever waits for the program.
// A free waits for the context's work (wait), or the block waits in a queue until that work is known to be done
// (ordered); then it is freed on the private stream, and the pool may give it out on that stream at once. (Freed on a
// second stream behind the work's event, it is not found again in time: a training step then took all of the card.)
#pragma once

#include "runtime/base/diagnostics.h"
#include "runtime/resource/plain_source.h"

namespace xlog {

class PoolSource final : public PlainSource {
 public:
  PoolSource(const DriverApi& driver, int device, CaptureGate& gate, const PlainSettings& settings) noexcept
      : PlainSource(driver, gate, settings), device_(device) {}

  bool allocate(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept override;
  CUresult free(const DeviceBlock& block, bool& pending) noexcept override;
  void freed_in_stream(const DeviceBlock& block) noexcept override { not_in_use(block.taken); }
  bool relieve() noexcept override;
  uint64_t idle_bytes() noexcept override;
  void begin_context_end(CUcontext context, bool alive) noexcept override;
  void end_block(const DeviceBlock& block, bool alive) noexcept override;
  void finish_context_end(CUcontext context) noexcept override;

  // A context of device `reader` was given access to the memory of `owner`, a context of this device: the blocks that are
  // live get it too, and those to come are the driver's plain ones (CUDA.jl PR 3112: copies into granted pools that write
  // nothing). Both contexts are alive; `reader` is current.
  void grant_peer(CUcontext owner, CUcontext reader, int reader_device) noexcept;

 private:
  void memory_is_free(ContextLane& lane, void* what) noexcept override;
  CUmemoryPool pool() noexcept;
  [[nodiscard]] uint64_t reserved_now() noexcept;
  CUresult allocate_on(ContextLane& lane, size_t bytes, CUdeviceptr& ptr) noexcept;
  void note_growth(uint64_t used) noexcept;
  void keep_within_bounds() noexcept;
  void free_orphans() noexcept;
  void add_orphan(CUdeviceptr ptr) noexcept;
  bool peer_reads_pool(CUcontext owner, CUcontext reader) noexcept;

  const int device_;
  Lock lock_{};
  std::atomic<CUmemoryPool> pool_{nullptr};
  std::atomic<bool> unusable_{false};  // no pool could be made
  std::atomic<bool> peers_{false};     // another device reads this one's memory
  std::atomic<uint64_t> reserved_{0};  // by the pool, as last known
  // Blocks whose context ended before they could be given back.
  static constexpr size_t kOrphans = 4096;
  size_t orphans_ = 0;
  CUdeviceptr* orphan_ = nullptr;
};

}  // namespace xlog
