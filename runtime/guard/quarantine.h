// Freed blocks that are held back, filled with a pattern, oldest first. Thread-safe.
#pragma once

#include "runtime/guard/guard_record.h"
#include "runtime/resource/held_addresses.h"

namespace xlog {

class Quarantine {
 public:
  struct Held {
    DeviceBlock block;  // its guard's record is with it
    Held* next = nullptr;
  };

  // Takes the block over; false, and it is as before, when there is no host memory for it.
  bool add(DeviceBlock& block) noexcept;
  // The oldest, when more than `most` bytes are held. The caller frees it, then calls gone().
  bool take_oldest(uint64_t most, DeviceBlock& out) noexcept;
  bool take_of(CUcontext context, DeviceBlock& out) noexcept;
  void gone(CUdeviceptr ptr) noexcept { addresses_.remove(ptr); }

  [[nodiscard]] bool holds(CUdeviceptr base) noexcept { return bytes() != 0 && addresses_.contains(base); }
  bool find(CUdeviceptr ptr, GuardRecord& out) noexcept;
  // What the driver has taken for what is held; and what the budget counts for it.
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  template <class Match>
  bool take_first(Match match, DeviceBlock& out) noexcept;

  Lock lock_{};
  std::atomic<uint64_t> bytes_{0};
  Held* oldest_ = nullptr;
  Held* newest_ = nullptr;
  HeldAddresses addresses_{};
  Slab<Held> nodes_;
};

}  // namespace xlog
