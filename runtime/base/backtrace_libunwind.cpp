#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "runtime/base/backtrace.h"
#include "runtime/base/fork_age.h"
#include "runtime/base/thread.h"

// Read by libunwind, which is built into the library (runtime/base/libunwind.sed).
extern "C" {
// Bumped when a library was unloaded: a thread's cached frames are then dropped.
__attribute__((visibility("hidden"))) unsigned xlog_unwind_epoch = 0;

// Whether 8 bytes at `address` can be read. libunwind's own way keeps a pipe and writes into it, and takes over
// descriptors that the program reused (libunwind issues 274, 291); this asks the kernel and keeps nothing. Only reached
// for frames without unwind information.
__attribute__((visibility("hidden"))) int xlog_is_readable(unsigned long address) {
  unsigned long word = 0;
  iovec local{&word, sizeof word};
  iovec remote{reinterpret_cast<void*>(address), sizeof word};
  int saved = errno;
  ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  errno = saved;
  return n == static_cast<ssize_t>(sizeof word);
}
}

namespace xlog {

namespace {

std::atomic<bool> in_use{false};
std::atomic<uint32_t> home_age{0};

// A fork child of a process that had begun to unwind: another thread may have held the unwinder's locks.
bool is_inherited() noexcept {
  if (!in_use.load(std::memory_order_acquire)) {
    home_age.store(fork_age(), std::memory_order_relaxed);
    in_use.store(true, std::memory_order_release);
    return false;
  }
  return home_age.load(std::memory_order_relaxed) != fork_age();
}

}  // namespace

void forget_modules() noexcept { __atomic_fetch_add(&xlog_unwind_epoch, 1U, __ATOMIC_ACQ_REL); }

size_t take_backtrace(uintptr_t* out, size_t depth, const void* caller) noexcept {
  if (depth == 0 || is_inherited()) {
    return 0;
  }
  uint32_t epoch = __atomic_load_n(&xlog_unwind_epoch, __ATOMIC_ACQUIRE);
  if (this_thread.unwind_epoch != epoch) {
    unw_flush_cache(unw_local_addr_space, 0, 0);
    this_thread.unwind_epoch = epoch;
  }
  constexpr size_t kOwnFrames = 10;  // between here and the program: six, and room for what is not inlined at -O0
  void* frames[kMaxDepth + kOwnFrames];
  int found = unw_backtrace(frames, static_cast<int>(depth + kOwnFrames));
  size_t count = found > 0 ? static_cast<size_t>(found) : 0;
  size_t first = 0;
  while (first < count && frames[first] != caller) {
    ++first;
  }
  if (first == count) {
    first = 0;
  }
  size_t n = 0;
  for (; first < count && n < depth && frames[first] != nullptr; ++first) {
    out[n++] = reinterpret_cast<uintptr_t>(frames[first]) - 1;
  }
  return n;
}

void warm_backtrace() noexcept {
  uintptr_t frames[kMaxDepth];
  take_backtrace(frames, kMaxDepth, nullptr);
}

}  // namespace xlog
