// Physical memory that is kept for the next request of its size, within bounds, oldest given back first: to make it and to
// give it back is a third of what a small fenced block costs, and more of a large one. Thread-safe; all zero is empty.
#pragma once

#include <atomic>

#include "runtime/base/driver_api.h"
#include "runtime/base/lock.h"

namespace xlog {

class SpareMemory {
 public:
  // False: none of that size is kept.
  bool take(size_t bytes, CUmemGenericAllocationHandle& out) noexcept;
  // Keeps it, or gives it back to the driver.
  void give(const DriverApi& driver, size_t bytes, CUmemGenericAllocationHandle memory) noexcept;
  // Gives back all of it; false when there was nothing.
  bool release_all(const DriverApi& driver) noexcept { return release(driver, 0, 0); }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kMost = 32;
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  struct Spare {
    size_t bytes;
    CUmemGenericAllocationHandle memory;
  };
  Spare remove(size_t index) noexcept;  // under the lock
  bool release(const DriverApi& driver, uint64_t most_bytes, size_t most) noexcept;

  Lock lock_{};
  std::atomic<uint64_t> bytes_{0};
  size_t count_ = 0;
  Spare all_[kMost] = {};  // oldest first
};

}  // namespace xlog
