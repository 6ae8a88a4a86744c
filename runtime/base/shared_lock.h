// A lock that many threads may share or one thread may own, whose unlocked state is all zero bits (see base/lock.h for why). An
// owner that waits keeps new sharers out, so it gets its turn. Unlike Lock it may be held across a driver call: it orders the calls
// that begin or end a context, which are rare, and nothing else ever waits for it.
#pragma once

#include "runtime/base/lock.h"

namespace xlog {

class SharedLock {
 public:
  void lock_shared() noexcept {
    for (;;) {
      uint32_t state = state_.load(std::memory_order_relaxed);
      if ((state & kOwned) == 0) {
        if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire)) {
          return;
        }
      } else {
        wait_while(state);
      }
    }
  }
  void unlock_shared() noexcept {
    if (state_.fetch_sub(1, std::memory_order_release) == (kOwned | 1)) {
      wake();
    }
  }
  void lock() noexcept {
    for (;;) {
      uint32_t state = state_.load(std::memory_order_relaxed);
      if ((state & kOwned) != 0) {
        wait_while(state);
      } else if (state_.compare_exchange_weak(state, state | kOwned, std::memory_order_acquire)) {
        break;
      }
    }
    for (uint32_t state = state_.load(std::memory_order_acquire); state != kOwned; state = state_.load(std::memory_order_acquire)) {
      wait_while(state);
    }
  }
  void unlock() noexcept {
    state_.store(0, std::memory_order_release);
    wake();
  }

 private:
  static constexpr uint32_t kOwned = 1U << 31;  // the rest counts the threads that share
  void wait_while(uint32_t state) noexcept { syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, state, nullptr, nullptr, 0); }
  void wake() noexcept { syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0); }
  std::atomic<uint32_t> state_{0};
};

class SharedGuard {
 public:
  explicit SharedGuard(SharedLock& lock) noexcept : lock_(lock) { lock_.lock_shared(); }
  ~SharedGuard() { lock_.unlock_shared(); }
  SharedGuard(const SharedGuard&) = delete;
  SharedGuard& operator=(const SharedGuard&) = delete;

 private:
  SharedLock& lock_;
};

class OwnerGuard {
 public:
  explicit OwnerGuard(SharedLock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~OwnerGuard() { lock_.unlock(); }
  OwnerGuard(const OwnerGuard&) = delete;
  OwnerGuard& operator=(const OwnerGuard&) = delete;

 private:
  SharedLock& lock_;
};

}  // namespace xlog
