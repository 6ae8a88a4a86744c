// XLOG_SIM_HOSTILE=seed: what a driver may do and rarely does. The memory of a context, stream, event, pool or graph that ended is that
// of the next of its kind, at once or later; a use of a handle that ended, and a question about a stream beside another thread's call on
// it, end the process with a line that says so; threads lose their turn before and after each call.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/sim/driver.h"

namespace sim {

namespace {

constexpr const char* kKindNames[] = {"context", "stream", "event", "pool", "graph", "executable graph"};
constexpr int kKinds = 6;
constexpr size_t kMostSpare = 8;  // of a kind: more are never held back

unsigned seed() {
  static const unsigned given = [] {
    const char* text = std::getenv("XLOG_SIM_HOSTILE");
    return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : 0;
  }();
  return given;
}

// Each thread has a row of numbers of its own.
unsigned random_number() {
  static std::atomic<unsigned> threads{0};
  static thread_local unsigned state = seed() * 2'654'435'761U + 97 * threads++ + 1;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

thread_local const char* current_call = "";

// Handles that ended and were not given out again, oldest first.
std::deque<void*>& spare(Kind kind) {
  static auto* all = new std::deque<void*>[kKinds];
  return all[static_cast<int>(kind)];
}

// Calls on streams that are under way. A lock of its own: a call leaves when it no longer has the driver's.
struct Visit {
  uint64_t stream;
  long thread;
  bool asks;
  const char* call;
};
std::mutex& visits_lock() {
  static auto* lock = new std::mutex;
  return *lock;
}
std::vector<Visit>& visits() {
  static auto* all = new std::vector<Visit>;
  return *all;
}

bool asks(const char* call) {
  for (const char* each : {"cuStreamQuery", "cuStreamIsCapturing", "cuStreamGetCaptureInfo", "cuStreamGetId", "cuStreamGetCtx"}) {
    if (std::strncmp(call, each, std::strlen(each)) == 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool is_hostile() { return seed() != 0; }

void lose_turn() {
  if (is_hostile()) {
    unsigned n = random_number() % 16;
    n == 0 ? static_cast<void>(usleep(random_number() % 60)) : n < 5 ? static_cast<void>(sched_yield()) : static_cast<void>(0);
  }
}

void begin_hostile_call(const char* name) { current_call = name; }

void* take_storage(Kind kind, size_t bytes) {
  auto& all = spare(kind);
  bool later = all.size() < kMostSpare && random_number() % 4 == 0;
  if (!is_hostile() || all.empty() || later) {
    return ::operator new(bytes);
  }
  bool newest = random_number() % 4 != 0;
  void* chosen = newest ? all.back() : all.front();
  newest ? all.pop_back() : all.pop_front();
  return chosen;
}

void give_storage(Kind kind, void* memory) {
  if (is_hostile()) {
    spare(kind).push_back(memory);
  } else {
    ::operator delete(memory);
  }
}

void must_not_have_ended(Kind kind, const void* handle) {
  if (!is_hostile()) {
    return;
  }
  for (const void* each : spare(kind)) {
    if (each == handle) {
      std::fprintf(stderr, "simulated driver: %s is given the handle of a%s %s that has ended\n", current_call,
                   kind == Kind::event || kind == Kind::exec ? "n" : "", kKindNames[static_cast<int>(kind)]);
      std::abort();
    }
  }
}

void enter_stream(uint64_t stream, const char* call) {
  Visit mine{stream, syscall(SYS_gettid), asks(call), call};
  std::lock_guard guard(visits_lock());
  for (const Visit& each : visits()) {
    if (each.stream == stream && each.thread != mine.thread && each.asks != mine.asks) {
      std::fprintf(stderr, "simulated driver: a stream is asked about by %s while another thread is in %s on it: a real driver can crash\n",
                   mine.asks ? call : each.call, mine.asks ? each.call : call);
      std::abort();
    }
  }
  visits().push_back(mine);
}

void leave_stream(uint64_t stream) {
  long thread = syscall(SYS_gettid);
  std::lock_guard guard(visits_lock());
  for (size_t i = visits().size(); i-- != 0;) {
    if (visits()[i].stream == stream && visits()[i].thread == thread) {
      visits().erase(visits().begin() + static_cast<long>(i));
      return;
    }
  }
}

}  // namespace sim
