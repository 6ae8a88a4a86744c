// Some of the loaded files, and which of them are gone: a question that costs a walk over the loaded files, so it is asked
// only when a file was unloaded at all. Thread-safe; no lock, no allocation; all zero is a valid, empty set.
#pragma once

#include <link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace xlog {

// How many files were unloaded since the process began. Costs no walk.
uint64_t unloaded_files() noexcept;

class FileSet {
 public:
  static constexpr size_t kMost = 64;

  // False when the set is full: the caller then cannot know whether this file is still there.
  bool add(const dl_phdr_info& file) noexcept;
  [[nodiscard]] bool empty() const noexcept { return files_[0].headers.load(std::memory_order_acquire) == nullptr; }
  // Calls `gone` with the addresses from `begin` to before `end` of each file that is no longer loaded, and forgets it.
  using Gone = void (*)(uintptr_t begin, uintptr_t end, void* context);
  void forget_unloaded(Gone gone, void* context) noexcept;

 private:
  // A file is known by where its headers lie and by its name: another may be loaded at the same address later.
  struct File {
    std::atomic<const void*> headers;
    std::atomic<uint64_t> name;  // 0 while it is being added
    std::atomic<uintptr_t> begin;
    std::atomic<uintptr_t> end;
  };
  struct Walk;
  File files_[kMost];
};

}  // namespace xlog
