// One-line messages to the user, on stderr. The program's stderr is the program's: a message says something that the
// user must know, once. Any thread; preserves errno; one write(2), no allocation.
#pragma once

#include <atomic>
#include <string_view>

namespace xlog {

// Writes "xlog: " + text + newline.
void say(std::string_view text) noexcept;

// The same, for a message that may recur: only the first call with the given flag writes.
class Once {
 public:
  bool first() noexcept { return !done_.exchange(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> done_{false};
};

}  // namespace xlog
