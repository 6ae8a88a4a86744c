// One-line messages to the user, on stderr. The program's stderr is the program's: a message says something that the
// user must know, once. A message is dropped rather than that it harms the program: it never waits for a reader, raises no
// signal, and goes nowhere but to what was stderr when the program began. Any thread; preserves errno; no allocation.
#pragma once

#include <atomic>
#include <string_view>

#include "runtime/base/system_calls.h"

namespace xlog {

// Writes "xlog: " + text + newline, as one line: control characters in the text become '?'.
void say(std::string_view text) noexcept;

// What descriptor 2 was when the program began. A program may close it, and what it opens next then has its number.
struct FirstStderr {
  enum class Known : unsigned char { no, closed, open };
  Known known;
  dev_t device;
  ino_t inode;
};
extern FirstStderr first_stderr;

// For the library's constructor, so it calls nothing (start_environment.h). Where it never runs, as in a program that links
// the runtime, descriptor 2 is taken for stderr.
[[gnu::always_inline]] inline void note_stderr() noexcept {
  struct stat info;
  bool open = kernel::status(2, info) == 0;
  first_stderr.known = open ? FirstStderr::Known::open : FirstStderr::Known::closed;
  first_stderr.device = info.st_dev;
  first_stderr.inode = info.st_ino;
}

// The same, for a message that may recur: only the first call with the given flag writes.
class Once {
 public:
  bool first() noexcept { return !done_.exchange(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> done_{false};
};

}  // namespace xlog
