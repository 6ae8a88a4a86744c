// The file by which `xlog log on|off PID` reaches a running process: NAME.control beside its log, read here and written there,
// so that nothing is signalled, traced or started again. It is mapped, since the command finds it in the list of what a
// process has mapped, and read through a descriptor, at most every few milliseconds: to read memory that somebody cut off
// the file would end the program. Thread-safe; all zero is a process that nobody can reach. A fork child does not have it: it
// opens its own with its own log.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime/base/thread.h"
#include "runtime/record/file_io.h"

namespace xlog {

struct ControlPage {
  static constexpr std::string_view kMagic = "xlogctl1";
  static constexpr std::string_view kSuffix = ".control";

  char magic[8];
  std::atomic<uint32_t> wanted;   // 1: rows are wanted; the command's word
  std::atomic<uint32_t> serving;  // 1: rows are written; the process's word
};

class LogSwitch {
 public:
  // Makes NAME.control (0600, exclusively) and maps it; 0 or errno. Without it the log stays as it began.
  int open(std::string_view stem, bool on) noexcept;
  [[nodiscard]] bool is_wanted(bool otherwise) noexcept {
    if (!is_open_.load(std::memory_order_acquire)) {
      return otherwise;
    }
    uint64_t now = coarse_time();
    if (now >= next_look_.load(std::memory_order_relaxed)) {
      look(now);
    }
    return wanted_.load(std::memory_order_relaxed);
  }
  // Tells the command. Written as a file: on a full disk a store into memory could be fatal.
  void tell(bool on) const noexcept;
  // The process ends: the file goes, what is mapped stays.
  void remove() const noexcept;

 private:
  void look(uint64_t now) noexcept;

  std::atomic<bool> is_open_;
  std::atomic<bool> wanted_;  // as it was read
  std::atomic<uint64_t> next_look_;
  std::atomic<int> descriptor_;  // -1: none can be kept
  FileIdentity identity_;
  char path_[1240];
};

}  // namespace xlog
