#include "runtime/base/thread.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "runtime/base/fork_age.h"

namespace xlog {

constinit thread_local ThreadLocal this_thread{};

uint32_t thread_id() noexcept {
  uint32_t age = fork_age();
  if (this_thread.tid == 0 || this_thread.fork_age != age) {
    this_thread.tid = static_cast<uint32_t>(syscall(SYS_gettid));
    this_thread.fork_age = age;
  }
  return this_thread.tid;
}

std::string_view thread_name() noexcept {
  if (this_thread.name_calls++ % 256 == 0) {
    char name[16] = {};
    prctl(PR_GET_NAME, name, 0, 0, 0);
    this_thread.name_size = static_cast<uint32_t>(strnlen(name, sizeof name));
    std::memcpy(this_thread.name, name, sizeof name);
  }
  return {this_thread.name, this_thread.name_size};
}

static uint64_t read_clock(clockid_t clock) noexcept;

// xorshift64*
uint64_t random_below(uint64_t bound) noexcept {
  uint64_t x = this_thread.random;
  if (x == 0) {
    x = read_clock(CLOCK_MONOTONIC) * 0x9E3779B97F4A7C15ULL ^ reinterpret_cast<uintptr_t>(&this_thread);
    x = x != 0 ? x : 1;
  }
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  this_thread.random = x;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(x * 0x2545F4914F6CDD1DULL) * bound >> 64);
}

static uint64_t read_clock(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t steady_time() noexcept { return read_clock(CLOCK_MONOTONIC); }

uint64_t coarse_time() noexcept { return read_clock(CLOCK_MONOTONIC_COARSE); }

uint64_t wall_time(uint64_t steady) noexcept {
  static constinit std::atomic<uint64_t> offset{0};
  uint64_t known = offset.load(std::memory_order_relaxed);
  if (known == 0) {
    uint64_t fresh = read_clock(CLOCK_REALTIME) - read_clock(CLOCK_MONOTONIC);
    known = offset.compare_exchange_strong(known, fresh, std::memory_order_relaxed) ? fresh : known;
  }
  return known + steady;
}

}  // namespace xlog
