// A lock whose unlocked state is all zero bits, so that it may live in memory that the kernel wipes in a fork child
// (base/memory_map.h): the child finds it free whoever held it in the parent. Held for a few instructions at a time;
// never across a driver call that can block, and never while unwinding.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "runtime/base/system_calls.h"

namespace xlog {

class Lock {
 public:
  void lock() noexcept {
    uint32_t state = kFree;
    if (word_.compare_exchange_strong(state, kHeld, std::memory_order_acquire)) {
      return;
    }
    for (int spin = 0; spin < 64; ++spin) {
      state = kFree;
      if (word_.load(std::memory_order_relaxed) == kFree && word_.compare_exchange_weak(state, kHeld, std::memory_order_acquire)) {
        return;
      }
      __builtin_ia32_pause();
    }
    while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
      syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, kContended, nullptr, nullptr, 0);
    }
  }

  bool try_lock() noexcept {
    uint32_t state = kFree;
    return word_.compare_exchange_strong(state, kHeld, std::memory_order_acquire);
  }

  // False when it is not free within about so many milliseconds: for the end of the program, which must not wait for a
  // thread that a signal handler's exit() stopped.
  bool try_lock_for(unsigned milliseconds) noexcept {
    for (; !try_lock(); --milliseconds) {
      if (milliseconds == 0) {
        return false;
      }
      kernel::sleep(1'000'000);
    }
    return true;
  }

  void unlock() noexcept {
    if (word_.exchange(kFree, std::memory_order_release) == kContended) {
      syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
  }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kContended = 2;
  std::atomic<uint32_t> word_{kFree};
};

class LockGuard {
 public:
  explicit LockGuard(Lock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~LockGuard() { lock_.unlock(); }
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;

 private:
  Lock& lock_;
};

}  // namespace xlog
