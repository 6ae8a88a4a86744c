// The bytes reserved on one physical GPU, by all budgets of the process that stand for it. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/lock.h"
#include "runtime/base/options.h"

namespace xlog {

class GlobalDeviceBudget;

class DeviceLedger {
 public:
  constexpr DeviceLedger() = default;
  DeviceLedger(const DeviceLedger&) = delete;
  DeviceLedger& operator=(const DeviceLedger&) = delete;

  // The process's ledger of a GPU, whatever the number of runtimes that are composed for it.
  static DeviceLedger& of_device(int ordinal) noexcept;

  // In one step: false when `bytes` do not fit under `limit`, and nothing is changed.
  bool reserve(uint64_t bytes, uint64_t limit) noexcept {
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      if (used > limit || bytes > limit - used) {
        return false;
      }
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_acq_rel, std::memory_order_relaxed));
    return true;
  }
  void add(uint64_t bytes) noexcept { used_.fetch_add(bytes, std::memory_order_acq_rel); }
  void release(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_acq_rel); }
  [[nodiscard]] uint64_t reserved() const noexcept { return used_.load(std::memory_order_relaxed); }

  // Budgets that count here: what is pending in one of them may be what another waits for.
  void join(GlobalDeviceBudget& budget) noexcept;
  void leave(GlobalDeviceBudget& budget) noexcept;
  void settle_others(const GlobalDeviceBudget& asking) noexcept;

 private:
  std::atomic<uint64_t> used_{0};  // live, pending and promised bytes
  Lock lock_{};
  GlobalDeviceBudget* first_ = nullptr;
};

}  // namespace xlog
