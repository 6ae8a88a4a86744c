// What the library knows of the calling thread. The thread-local part is small and initial-exec, so that reading it
// never allocates and never enters the loader.
#pragma once

#include <cstdint>
#include <string_view>

namespace xlog {

struct TagStack;

struct ThreadLocal {
  uint32_t depth;         // of nested entries into the library; above 1 a call is forwarded untouched
  uint32_t tid;           // kernel's thread id, 0 until asked for
  uint32_t fork_age;      // of the process in which `tid` was read
  uint32_t name_calls;    // calls since `name` was read
  uint32_t unwind_epoch;  // of the loaded modules, when the unwinder's cache was last known good
  uint32_t name_size;
  char name[16];
  uint64_t random;  // state of random_below
  TagStack* tags;   // ranges that it is in (base/thread_tags.h); nullptr outside
};

extern constinit thread_local ThreadLocal this_thread __attribute__((tls_model("initial-exec")));

// Kernel thread id; asked once a thread.
uint32_t thread_id() noexcept;
// The name that the program gave the thread (pthread_setname_np). Read again every 256 calls.
std::string_view thread_name() noexcept;
// A number below `bound`, which is not 0; of the thread's own generator.
uint64_t random_below(uint64_t bound) noexcept;
// Nanoseconds of a steady clock, for durations.
uint64_t steady_time() noexcept;
// The same clock as it was at the kernel's last tick, some milliseconds ago: a fifth of the cost.
uint64_t coarse_time() noexcept;
// A steady time as nanoseconds since the epoch: the wall clock as it was when the process first asked, carried on by the
// steady clock, so that it is never set back.
uint64_t wall_time(uint64_t steady) noexcept;

// Marks the thread as inside the library. A call that arrives while `nested()` comes from a signal handler, from
// another interposer or from the driver, and belongs to the call that is already being served.
class ReentryGuard {
 public:
  ReentryGuard() noexcept { ++this_thread.depth; }
  ~ReentryGuard() { --this_thread.depth; }
  ReentryGuard(const ReentryGuard&) = delete;
  ReentryGuard& operator=(const ReentryGuard&) = delete;
  [[nodiscard]] static bool nested() noexcept { return this_thread.depth > 1; }
};

}  // namespace xlog
