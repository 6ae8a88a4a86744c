// Bytes that a budget has promised for several allocations together: the allocations that name it in their request take
// from it, and what it still holds when it ends goes back. Move-only; one thread at a time may end or move it, any number
// may allocate from it. It must not outlive its budget.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/resource/device_ledger.h"

namespace xlog {

class MemoryReservation {
 public:
  MemoryReservation() noexcept = default;
  MemoryReservation(MemoryReservation&& other) noexcept { *this = static_cast<MemoryReservation&&>(other); }
  MemoryReservation& operator=(MemoryReservation&& other) noexcept {
    if (this != &other) {
      cancel();
      ledger_ = other.ledger_;
      total_ = other.total_;
      left_.store(other.left_.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
      other.ledger_ = nullptr;
    }
    return *this;
  }
  MemoryReservation(const MemoryReservation&) = delete;
  MemoryReservation& operator=(const MemoryReservation&) = delete;
  ~MemoryReservation() { cancel(); }

  [[nodiscard]] uint64_t total() const noexcept { return total_; }
  [[nodiscard]] uint64_t remaining() const noexcept { return left_.load(std::memory_order_relaxed); }
  // Gives back what is left.
  void cancel() noexcept {
    uint64_t left = left_.exchange(0, std::memory_order_acq_rel);
    if (ledger_ != nullptr) {
      ledger_->release(left);
    }
  }

 private:
  friend class GlobalDeviceBudget;
  bool take(uint64_t bytes) noexcept {
    uint64_t left = left_.load(std::memory_order_relaxed);
    do {
      if (bytes > left) {
        return false;
      }
    } while (!left_.compare_exchange_weak(left, left - bytes, std::memory_order_acq_rel, std::memory_order_relaxed));
    return true;
  }
  void give(uint64_t bytes) noexcept { left_.fetch_add(bytes, std::memory_order_acq_rel); }

  DeviceLedger* ledger_ = nullptr;
  uint64_t total_ = 0;
  std::atomic<uint64_t> left_{0};
};

}  // namespace xlog
