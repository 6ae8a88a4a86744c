// The page by which `xlog log on|off PID` reaches a running process: NAME.control beside its log, mapped read-only here and
// written there, so that nothing is signalled, traced or started again. Thread-safe; all zero is a process that nobody can
// reach. A fork child does not have it: it opens its own with its own log.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

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
  // Makes NAME.control (0600, exclusively) and maps it. Without it the log stays as it began.
  void open(std::string_view stem, bool on) noexcept;
  [[nodiscard]] bool is_wanted(bool otherwise) const noexcept {
    const ControlPage* page = page_.load(std::memory_order_acquire);
    return page != nullptr ? page->wanted.load(std::memory_order_relaxed) != 0 : otherwise;
  }
  // Tells the command. Written as a file: on a full disk a store into a page could be fatal.
  void tell(bool on) const noexcept;
  // The process ends: the file goes, what is mapped stays.
  void remove() const noexcept;

 private:
  std::atomic<const ControlPage*> page_;
  char path_[1240];
};

}  // namespace xlog
