// Call stacks, each written once to NAME.stacks.csv, before the first row that names it. Looking a known stack up takes
// no lock; a new one is described (module, build id, offset) outside any lock. Thread-safe. All zero is empty.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/lock.h"
#include "runtime/base/python_frames.h"
#include "runtime/record/file_io.h"

namespace xlog {

// Innermost first. Python frames stand for those native frames that are the interpreter's.
struct CallStack {
  const uintptr_t* frames = nullptr;
  size_t count = 0;
  const PythonFrame* python = nullptr;
  size_t python_count = 0;
};

class StackTable {
 public:
  // Number of the stack, from 1; kNone when it is empty, when the file could not be written or when the table is full.
  uint64_t id(const CallStack& stack, const PythonFrames& interpreter, uint32_t generation, const char* path) noexcept;

 private:
  struct Slot {
    std::atomic<uint64_t> hash;
    std::atomic<uint64_t> id;
  };
  static constexpr size_t kSlots = 1 << 20;

  Slot* table() noexcept;
  uint64_t add(Slot& slot, const CallStack& stack, const PythonFrames& interpreter, const char* path) noexcept;

  std::atomic<Slot*> table_;
  std::atomic<uint64_t> used_;
  Lock file_lock_;
  bool has_file_;
  bool said_;
  FileIdentity file_;
  uint64_t last_id_;
};

}  // namespace xlog
