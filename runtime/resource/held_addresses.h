// Blocks that the program has freed and that the driver still takes for blocks. A second free of one is not the driver's to answer,
// and neither is a question about an address in one. Thread-safe; all zero is empty.
//
// may_cover() is asked at each copy, so it costs one read: a counter for each 2 MiB of addresses, many addresses to a counter, says
// that no held block is there. Only where one may be is the driver asked for the block at an address.
#pragma once

#include <atomic>

#include "runtime/resource/address_table.h"

namespace xlog {

class HeldAddresses {
 public:
  void add(CUdeviceptr ptr, size_t bytes) noexcept {
    count(ptr, bytes, 1);
    Block replaced{};
    if (blocks_.insert({.ptr = ptr, .bytes = bytes}, replaced)) {
      count(replaced.ptr, replaced.bytes, UINT32_MAX);
    }
  }
  void remove(CUdeviceptr ptr) noexcept {
    Block found{};
    if (blocks_.take(ptr, found)) {
      count(ptr, found.bytes, UINT32_MAX);
    }
  }
  bool contains(CUdeviceptr ptr) noexcept {
    bool held = false;
    blocks_.visit(ptr, [&](Block* found) {
      held = found != nullptr;
      return false;
    });
    return held;
  }
  // False: `ptr` is in no held block.
  [[nodiscard]] bool may_cover(CUdeviceptr ptr) const noexcept {
    return large_.load(std::memory_order_relaxed) != 0 || granules_[ptr / kGranule % kCounters].load(std::memory_order_relaxed) != 0;
  }

 private:
  static constexpr size_t kGranule = 2 << 20;
  static constexpr size_t kCounters = 1 << 14;
  static constexpr size_t kLarge = size_t{1} << 30;  // counted as everywhere, instead of in each of its granules
  struct Block {
    uint64_t ptr = 0;
    size_t bytes = 0;
  };
  void count(CUdeviceptr ptr, size_t bytes, uint32_t change) noexcept {
    if (bytes > kLarge) {
      large_.fetch_add(change, std::memory_order_relaxed);
      return;
    }
    for (uint64_t i = ptr / kGranule; i <= (ptr + (bytes != 0 ? bytes - 1 : 0)) / kGranule; ++i) {
      granules_[i % kCounters].fetch_add(change, std::memory_order_relaxed);
    }
  }

  AddressMap<Block> blocks_{};
  std::atomic<uint32_t> large_{0};
  std::atomic<uint32_t> granules_[kCounters] = {};
};

}  // namespace xlog
