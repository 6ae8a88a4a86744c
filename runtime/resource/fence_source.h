// Fenced blocks (XLOG_GUARD=fence): each in a mapping of its own, with unmapped address space on either side, so that the
// GPU itself faults on an access past the end, or after the free. The block ends where the mapping ends, or begins where it
// begins. A block's memory and its addresses go back to the driver when its work is done. Thread-safe.
#pragma once

#include "runtime/resource/address_table.h"
#include "runtime/resource/plain_source.h"
#include "runtime/resource/spare_memory.h"

namespace xlog {

class FenceSource final : public PlainSource {
 public:
  FenceSource(const DriverApi& driver, int device, CaptureGate& gate, const PlainSettings& settings, bool before) noexcept
      : PlainSource(driver, gate, settings, false), device_(device), before_(before) {}

  // What a block of that many bytes takes.
  static size_t taken(size_t bytes) noexcept { return (bytes + kGranule - 1) / kGranule * kGranule; }

  void end_block(const DeviceBlock& block) noexcept override;

  // The block in the mapping that begins at `base`; 0 when it is none of ours.
  CUdeviceptr block_in(CUdeviceptr base) noexcept;
  // Blocks that are live and blocks to come can be used by another device.
  void grant_peer(int reader) noexcept;

 private:
  static constexpr size_t kGranule = 2 << 20;

  struct Mapping {
    uint64_t ptr;  // where it begins
    uint64_t block;
    size_t bytes;
    CUmemGenericAllocationHandle memory;
  };

  bool declines() noexcept override { return granularity() != kGranule; }
  CUresult make(ContextLane& lane, size_t bytes, CUdeviceptr& ptr) noexcept override;
  void unmake(ContextLane* lane, CUdeviceptr ptr, size_t bytes) noexcept override;
  CUdeviceptr block_at(CUdeviceptr base) noexcept override { return block_in(base); }
  CUresult give_back(CUdeviceptr ptr) noexcept override { return unmap(ptr); }
  CUresult free_by_driver(const DeviceBlock& block, const FreeRequest&) noexcept override { return free_after_waiting(block); }
  uint64_t most_kept() noexcept override { return 0; }
  bool keeps(size_t, bool) noexcept override { return false; }
  bool leaves_to_driver(const DeviceBlock&) noexcept override { return false; }
  bool release_idle() noexcept override { return spare_.release_all(driver_); }
  void keep_within_bounds() noexcept override {}
  uint64_t idle() noexcept override { return not_done() + spare_.bytes(); }

  size_t granularity() noexcept;
  CUresult take_memory(size_t bytes, CUmemGenericAllocationHandle& out) noexcept;
  CUresult map(size_t bytes, Mapping& out) noexcept;
  CUresult set_access(const Mapping& mapping, int device) noexcept;
  // For the readers from number `first` on, and how many there are then.
  CUresult give_to_readers(const Mapping& mapping, size_t first, size_t& count) noexcept;
  CUresult unmap(CUdeviceptr ptr) noexcept;
  void retire(CUdeviceptr reserved, size_t bytes) noexcept;

  const int device_;
  const bool before_;
  std::atomic<size_t> granularity_{0};
  std::atomic<int> rdma_{-1};  // memory may be registered with network cards, as plain memory may
  Lock readers_lock_{};
  GrowingList<int> readers_;  // other devices
  AddressMap<Mapping> mappings_{};
  SpareMemory spare_{};
  // Addresses of blocks that were freed last: given back late, so that a use after the free does not meet a new block.
  static constexpr size_t kRetired = 1024;
  static constexpr uint64_t kMostRetired = uint64_t{4} << 40;  // bytes; a process has 128 TiB of addresses
  struct Range {
    CUdeviceptr at;
    size_t bytes;
  };
  Lock retired_lock_{};
  Range retired_[kRetired] = {};
  uint64_t retired_first_ = 0;  // numbers of the oldest and of the next
  uint64_t retired_next_ = 0;
  uint64_t retired_bytes_ = 0;
};

}  // namespace xlog
