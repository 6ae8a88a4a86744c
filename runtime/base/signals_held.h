// While an object of this class lives, no signal handler runs in the calling thread, and the thread is not cancelled: both
// wait. For the rare and slow parts of the library that hold a lock: a handler may call exit() or jump out (POSIX allows
// both in a program), and would leave the lock taken for ever.
//
// The signals of faults are not held back. The kernel ends a program whose own fault finds them blocked, and a sandbox
// answers system calls by SIGSYS.
#pragma once

#include <cerrno>

#include "runtime/base/system_calls.h"

namespace xlog {

class SignalsHeld {
 public:
  SignalsHeld() noexcept { failed_ = kernel::set_signals(kHeld, before_) != 0; }
  ~SignalsHeld() {
    if (!failed_) {
      kernel::Signals ours = 0;
      kernel::set_signals(before_, ours);
    }
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  static constexpr kernel::Signals kFaults = kernel::signal_bit(SIGSEGV) | kernel::signal_bit(SIGBUS) | kernel::signal_bit(SIGILL) |
                                             kernel::signal_bit(SIGFPE) | kernel::signal_bit(SIGTRAP) | kernel::signal_bit(SIGSYS);
  static constexpr kernel::Signals kHeld = ~kFaults;  // with the two that the C library uses itself: its cancellation is one
  kernel::Signals before_ = 0;
  bool failed_ = false;
};

// The signals that the kernel sends to a thread for what it writes are held back while an object of this class lives, and
// taken back where `forget` was called: a closed pipe, a file beyond its limit, a terminal of another job.
class WriteSignalsHeld {
 public:
  WriteSignalsHeld() noexcept { was_pending_ = kernel::pending_signals() & kSent; }
  void forget(long result) const noexcept {
    kernel::Signals sent = result == -EPIPE ? kernel::signal_bit(SIGPIPE) : result == -EFBIG ? kernel::signal_bit(SIGXFSZ) : 0;
    if ((sent & ~was_pending_) != 0) {
      kernel::take_signal(sent);
    }
  }

 private:
  static constexpr kernel::Signals kSent = kernel::signal_bit(SIGPIPE) | kernel::signal_bit(SIGXFSZ);
  SignalsHeld held_;
  kernel::Signals was_pending_;
};

}  // namespace xlog
