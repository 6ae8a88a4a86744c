// Call stacks, each written once to NAME.stacks.csv, before the first row that names it. Looking a known stack up takes
// no lock; a new one is described (module, build id, offset) outside any lock. Thread-safe. All zero is empty.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/lock.h"

namespace xlog {

class StackTable {
 public:
  // Number of the stack, from 1; kNone when it is empty, when the file could not be written or when the table is full.
  uint64_t id(const uintptr_t* frames, size_t count, uint32_t module_epoch, const char* path) noexcept;

 private:
  struct Slot {
    std::atomic<uint64_t> hash;
    std::atomic<uint64_t> id;
  };
  static constexpr size_t kSlots = 1 << 20;

  Slot* table() noexcept;
  uint64_t add(Slot& slot, const uintptr_t* frames, size_t count, const char* path) noexcept;

  std::atomic<Slot*> table_;
  std::atomic<uint64_t> used_;
  Lock file_lock_;
  bool has_file_;
  uint64_t last_id_;
};

}  // namespace xlog
