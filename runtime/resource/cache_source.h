// The backend `cache`: plain blocks from cuMemAlloc that are kept when they are freed. The memory stays the driver's plain
// memory, so what it is (IPC, RDMA, attributes, ranges, its end with the context) is as natively.
#pragma once

#include "runtime/resource/plain_source.h"

namespace xlog {

class CacheSource final : public PlainSource {
 public:
  CacheSource(const DriverApi& driver, CaptureGate& gate, const PlainSettings& settings) noexcept
      : PlainSource(driver, gate, settings, false) {}

  // The driver has freed it with its context.
  void end_block(const DeviceBlock& block) noexcept override { not_in_use(block.taken); }

 private:
  bool declines() noexcept override { return false; }
  CUresult make(ContextLane&, size_t bytes, CUdeviceptr& ptr) noexcept override;
  void unmake(ContextLane* lane, CUdeviceptr ptr, size_t bytes) noexcept override;
  [[nodiscard]] bool ends_with_context() const noexcept override { return true; }
  CUresult give_back(CUdeviceptr ptr) noexcept override { return driver_.cuMemFree_v2(ptr); }
  CUresult free_by_driver(const DeviceBlock& block, const FreeRequest& request) noexcept override;
  // The driver's call does both.
  CUresult free_after_waiting(const DeviceBlock& block) noexcept override { return driver_.cuMemFree_v2(block.ptr); }
  uint64_t most_kept() noexcept override { return may_keep(used() + not_done()); }
  bool keeps(size_t, bool) noexcept override { return true; }
  // Another process may have it mapped until it is really freed.
  bool leaves_to_driver(const DeviceBlock& block) noexcept override { return block.shared; }
  bool release_idle() noexcept override { return false; }
  void keep_within_bounds() noexcept override {}
  uint64_t idle() noexcept override { return kept() + not_done(); }
};

}  // namespace xlog
