#include "runtime/base/loaded_files.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <new>

#include "runtime/base/elf_table.h"
#include "runtime/base/plain_calls.h"

namespace xlog {

namespace {

// In wiped pages: a child begins with nobody walking and no fork under way.
struct Gate {
  std::atomic<uint32_t> walkers;
  std::atomic<uint32_t> forks;
};

constinit std::atomic<Gate*> shared{nullptr};
constinit thread_local uint32_t walks_here __attribute__((tls_model("initial-exec"))) = 0;

Gate* gate() noexcept {
  Gate* known = shared.load(std::memory_order_acquire);
  if (known != nullptr) {
    return known;
  }
  long mapped = system_call(SYS_mmap, 0, sizeof(Gate), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  if (mapped < 0 && mapped > -4096) {
    return nullptr;
  }
  system_call(SYS_madvise, mapped, sizeof(Gate), MADV_WIPEONFORK);
  auto* fresh = new (reinterpret_cast<void*>(mapped)) Gate{};
  if (!shared.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) {
    system_call(SYS_munmap, mapped, sizeof(Gate));
    return known;
  }
  return fresh;
}

uint64_t now() noexcept {
  timespec time{};
  system_call(SYS_clock_gettime, CLOCK_MONOTONIC, reinterpret_cast<long>(&time));
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

template <class Condition>
void wait_until(Condition holds, uint64_t milliseconds) noexcept {
  uint64_t deadline = now() + milliseconds * 1'000'000;
  while (!holds() && now() < deadline) {
    timespec step{0, 20'000};
    system_call(SYS_nanosleep, reinterpret_cast<long>(&step));
  }
}

// The C library's own walk: a sanitizer's dl_iterate_phdr cannot run before the sanitizer has begun.
int iterate(VisitLoaded visit, void* data) noexcept {
  static constinit std::atomic<void*> known{nullptr};
  void* own = known.load(std::memory_order_acquire);
  if (own == nullptr) {
    own = c_library_function("dl_iterate_phdr");
    own = own != nullptr ? own : reinterpret_cast<void*>(&dl_iterate_phdr);
    known.store(own, std::memory_order_release);
  }
  return reinterpret_cast<decltype(&dl_iterate_phdr)>(own)(visit, data);
}

// Sequentially consistent on both sides: a walker and a fork that begin together see each other.
void enter(Gate& at) noexcept {
  for (int patience = 3;; --patience) {
    at.walkers.fetch_add(1);
    if (at.forks.load() == 0 || patience == 0) {
      return;
    }
    at.walkers.fetch_sub(1);
    wait_until([&] { return at.forks.load() == 0; }, 100);
  }
}

void before_fork() {
  Gate* at = gate();
  if (at == nullptr) {
    return;
  }
  at->forks.fetch_add(1);
  if (walks_here == 0) {  // otherwise a signal handler forks
    wait_until([&] { return at->walkers.load() == 0; }, 1000);
  }
}

void after_fork() {
  Gate* at = gate();
  if (at != nullptr) {
    at->forks.fetch_sub(1);
  }
}

}  // namespace

int walk_loaded_files(VisitLoaded visit, void* data) noexcept {
  Gate* at = walks_here == 0 ? gate() : nullptr;
  if (at != nullptr) {
    enter(*at);
  }
  ++walks_here;
  int result = iterate(visit, data);
  --walks_here;
  if (at != nullptr) {
    at->walkers.fetch_sub(1);
  }
  return result;
}

void make_forks_wait() noexcept {
  static constinit std::atomic<bool> done{false};
  if (gate() != nullptr && !done.exchange(true)) {
    pthread_atfork(before_fork, after_fork, nullptr);
  }
}

}  // namespace xlog

// libunwind's walks (runtime/base/libunwind.sed).
extern "C" __attribute__((visibility("hidden"))) int xlog_walk_loaded_files(xlog::VisitLoaded visit, void* data) {
  return xlog::walk_loaded_files(visit, data);
}
