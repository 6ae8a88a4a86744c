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
  // The oldest, when more than `most` bytes are held. Until one of the calls below it counts as being given up.
  bool take_oldest(uint64_t most, DeviceBlock& out) noexcept;
  bool take_of(CUcontext context, DeviceBlock& out) noexcept;
  // What becomes of a block that was taken. Its address is forgotten before it is freed, because the driver may give it out again at
  // once. A block that the driver did not take is held again, as the oldest; one that was only looked at, as the youngest.
  void begin_free(const DeviceBlock& block) noexcept { addresses_.remove(block.ptr); }
  void freed() noexcept;
  void put_back(DeviceBlock& block) noexcept;
  void put_last(DeviceBlock& block) noexcept;

  // How many were freed; and waits until no other thread is about to free one. One that does not come back, because exit() was called
  // in a signal handler that interrupted it, is not waited for longer than a second.
  [[nodiscard]] uint64_t given_up() const noexcept { return given_up_.load(std::memory_order_acquire); }
  void wait_for_others() const noexcept;

  [[nodiscard]] bool holds(CUdeviceptr base) noexcept { return addresses_.may_cover(base) && addresses_.contains(base); }
  bool find(CUdeviceptr ptr, GuardRecord& out) noexcept;
  // What the driver has taken for what is held; and what the budget counts for it.
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] size_t count() noexcept;

 private:
  template <class Match>
  bool take_first(Match match, DeviceBlock& out) noexcept;

  void link(Held& node, bool first) noexcept;

  Lock lock_{};
  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint32_t> leaving_{0};  // taken, and not yet freed or back
  std::atomic<uint64_t> given_up_{0};
  size_t count_ = 0;
  Held* oldest_ = nullptr;
  Held* newest_ = nullptr;
  HeldAddresses addresses_{};
  Held* spare_ = nullptr;  // nodes of what was taken, so that it can be put back without host memory
  Slab<Held> nodes_;
};

}  // namespace xlog
