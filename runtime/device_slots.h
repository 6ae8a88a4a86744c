// The GPUs of a process by ordinal: a slot for each, in pages that are mapped when one of its sixteen is first used. Thread-safe; all
// zero is empty. More than kMost GPUs are more than any driver has shown.
#pragma once

#include <atomic>

#include "runtime/base/memory_map.h"
#include "runtime/driver_use.h"
#include "runtime/native_device.h"

namespace xlog {

class DeviceSlots {
 public:
  static constexpr int kMost = 1024;
  struct Slot {
    std::atomic<NativeDevice*> built;
    DriverUse use;
    alignas(NativeDevice) unsigned char storage[sizeof(NativeDevice)];
  };

  // nullptr for an ordinal that there cannot be, or without host memory.
  Slot* at(int ordinal) noexcept {
    if (ordinal < 0 || ordinal >= kMost) {
      return nullptr;
    }
    std::atomic<Slot*>& chunk = chunks_[ordinal / kChunk];
    Slot* slots = chunk.load(std::memory_order_acquire);
    if (slots == nullptr) {
      auto* fresh = static_cast<Slot*>(map_state(kChunk * sizeof(Slot)));
      if (fresh == nullptr || chunk.compare_exchange_strong(slots, fresh, std::memory_order_acq_rel)) {
        slots = fresh;
      } else {
        unmap_state(fresh, kChunk * sizeof(Slot));
      }
    }
    return slots != nullptr ? &slots[ordinal % kChunk] : nullptr;
  }

  // act(NativeDevice&) for each that was built.
  template <class Act>
  void each(Act act) noexcept {
    for (std::atomic<Slot*>& chunk : chunks_) {
      Slot* slots = chunk.load(std::memory_order_acquire);
      for (int i = 0; slots != nullptr && i < kChunk; ++i) {
        NativeDevice* device = slots[i].built.load(std::memory_order_acquire);
        if (device != nullptr) {
          act(*device);
        }
      }
    }
  }

 private:
  static constexpr int kChunk = 16;
  std::atomic<Slot*> chunks_[kMost / kChunk];
};

}  // namespace xlog
