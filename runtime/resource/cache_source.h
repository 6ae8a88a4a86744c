// The backend `cache`: plain blocks that were freed are kept and given out again for requests of exactly their size in
// the same context. The memory stays the driver's plain memory, so what it is (IPC, RDMA, attributes, ranges, its end
// with the context) is as natively. A free waits for the context's work (wait), or the block is given out only once that
// work is done (ordered).
#pragma once

#include "runtime/resource/kept_blocks.h"
#include "runtime/resource/plain_source.h"

namespace xlog {

class CacheSource final : public PlainSource {
 public:
  CacheSource(const DriverApi& driver, CaptureGate& gate, const PlainSettings& settings) noexcept : PlainSource(driver, gate, settings) {}

  bool allocate(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept override;
  CUresult free(const DeviceBlock& block, bool& pending) noexcept override;
  void freed_in_stream(const DeviceBlock& block) noexcept override { not_in_use(block.taken); }
  bool relieve() noexcept override;
  uint64_t idle_bytes() noexcept override;
  // The driver frees the blocks with their context.
  void begin_context_end(CUcontext, bool) noexcept override {}
  void end_block(const DeviceBlock& block, bool) noexcept override { not_in_use(block.taken); }
  void finish_context_end(CUcontext context) noexcept override;

 private:
  void memory_is_free(ContextLane& lane, void* what) noexcept override;
  void free_down_to(uint64_t bytes) noexcept;

  std::atomic<uint64_t> queued_{0};  // taken by blocks that are not free yet
  KeptBlocks kept_;
};

}  // namespace xlog
