// What is known of memory that no block stands for: what the driver has in use, looked at from time to time, and
// functions that make memory and were handed out unhooked.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime/base/lock.h"

namespace xlog {

// When a GPU's memory in use is looked at again: a look costs 7 us (measured), so there is one in 100 ms, and sooner where
// an allocation was refused.
class DriverUse {
 public:
  bool is_due(uint64_t now, bool refused) noexcept;

 private:
  std::atomic<uint64_t> last_{0};
};

// Names to be written to the log once there is one. Thread-safe.
class UnhookedNames {
 public:
  static constexpr size_t kMost = 16;
  static constexpr size_t kLength = 48;
  // A function of the driver whose name says that it makes device memory.
  static bool makes_memory(std::string_view name) noexcept;
  void add(std::string_view name) noexcept;
  // The next one that was not told yet.
  bool next(char (&name)[kLength]) noexcept;

 private:
  Lock lock_;
  std::atomic<uint32_t> count_;
  std::atomic<uint32_t> told_;
  char names_[kMost][kLength];
};

}  // namespace xlog
