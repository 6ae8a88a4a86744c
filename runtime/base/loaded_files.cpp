#include "runtime/base/loaded_files.h"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "runtime/base/memory_map.h"
#include "runtime/base/system_calls.h"
#include "runtime/base/thread.h"

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
  void* pages = map_state(sizeof(Gate));
  if (pages == nullptr) {
    return nullptr;
  }
  auto* fresh = new (pages) Gate{};
  if (!shared.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) {
    unmap_state(pages, sizeof(Gate));
    return known;
  }
  return fresh;
}

template <class Condition>
void wait_until(Condition holds, uint64_t milliseconds) noexcept {
  int saved = errno;
  uint64_t deadline = steady_time() + milliseconds * 1'000'000;
  while (!holds() && steady_time() < deadline) {
    timespec step{0, 20'000};
    kernel::sleep(step);
  }
  errno = saved;
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
  int result = dl_iterate_phdr(visit, data);
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
