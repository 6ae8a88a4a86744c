// The kernels that a program launches: how many, and what the last ones are called. Thread-safe; all zero is empty.
#pragma once

#include <atomic>

#include "runtime/base/driver_api.h"
#include "runtime/base/lock.h"
#include "runtime/base/text.h"

namespace xlog {

struct Launch {
  uint64_t number = 0;   // of all launches of the process, from 1
  uint64_t of_name = 0;  // of those of kernels of this name, from 1; 0: there were too many names to count them
  char name[104] = {};   // as the driver has it (mangled), cut; `graph` for a graph's

  [[nodiscard]] std::string_view text() const noexcept { return name; }
  // Name and numbers may be passed to tools that look at this one launch alone.
  [[nodiscard]] bool is_kernel() const noexcept;
};

class Launches {
 public:
  // A kernel was launched; nullptr: a graph.
  Launch note(const DriverApi& driver, CUfunction function) noexcept;
  // Copies of the last ones, newest first; returns how many.
  static constexpr size_t kLast = 8;
  size_t last(Launch (&out)[kLast]) noexcept;

 private:
  static constexpr size_t kNames = 4096;
  struct Name {
    std::atomic<uint64_t> hash;  // 0: free
    std::atomic<uint64_t> count;
  };
  uint64_t count_name(std::string_view name) noexcept;

  Lock lock_{};
  uint64_t count_ = 0;
  Launch last_[kLast]{};
  Name names_[kNames]{};
};

}  // namespace xlog
