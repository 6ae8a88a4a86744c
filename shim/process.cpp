// The process story. State is constant-initialised, never destroyed, and wiped by the kernel in a fork child
// (base/memory_map.h). There are no signal handlers, no threads, and no constructor but the one that keeps our variables
// (start.cpp): loaded into a program that never calls the driver, the library does nothing. exit() is noticed by one
// handler, registered at the first listed call that the stack serves; _exit, abort and SIGKILL need nothing: every row is
// where it outlives the process.
#include <stdlib.h>

#include "runtime/base/diagnostics.h"
#include "runtime/base/loaded_files.h"
#include "shim/entry.h"
#include "shim/gpu_processes.h"
#include "shim/lifetime.h"
#include "shim/python.h"

namespace xlog {

namespace {

// No CUDA call is made here or later by us: the driver may be shutting down.
void on_exit_begins() {
  Runtime* runtime = Runtime::get();
  if (runtime != nullptr) {
    ReentryGuard guard;
    runtime->begin_exit();
  }
}

void watch_exit() noexcept {
  static constinit std::atomic<bool> watching{false};
  if (!watching.exchange(true, std::memory_order_relaxed)) {
    atexit(on_exit_begins);
  }
}

}  // namespace

// Registered after the driver was initialised, so that it comes before what the driver does at exit.
void check_at_exit(const Runtime& runtime) noexcept {
  if (runtime.options().guards() && runtime.options().guard_check.at_exit) {
    atexit([] {
      Runtime* at_exit = Runtime::get();
      if (at_exit != nullptr && at_exit->is_prepared()) {
        ReentryGuard guard;
        at_exit->check_guarded("the check at exit", true);
      }
    });
  }
}

Runtime* Entry::open() noexcept {
  Runtime* runtime = Runtime::get();
  if (runtime == nullptr || runtime->is_prepared()) {
    refused_ = runtime != nullptr && runtime->refused();
    return runtime;
  }
  make_forks_wait();
  DriverApi driver;
  if (!fill_driver_api(driver)) {
    return nullptr;
  }
  refused_ = !runtime->prepare(driver, find_python, list_gpu_processes);
  if (runtime->engaged()) {
    watch_exit();
  }
  return runtime;
}

// Only while the stack is at work: a resolver must not be what starts it.
void note_unhooked(const char* name) noexcept {
  bool unknown = is_unknown_lifetime(name);
  if (!unknown && !UnhookedNames::makes_memory(name)) {
    return;
  }
  Runtime* runtime = Runtime::get();
  static constinit Once said;
  if (unknown && runtime != nullptr && runtime->is_prepared() && runtime->engaged() && said.first()) {
    Text<300> line;
    line.put(std::string_view(name).substr(0, 60))
        .put(": this driver's function is newer than this version of the library, which does not follow it: ");
    line.put("limits, logs and backends may miss what it makes or ends");
    say(line.view());
  }
  if (runtime != nullptr && runtime->is_prepared() && runtime->engaged()) {
    runtime->handed_out_unhooked(name);
  }
}

}  // namespace xlog

// What the preloaded library must not take from libstdc++, which it does not link: the program has its own. The export
// map keeps these local.
namespace std {
void __throw_out_of_range_fmt(const char*, ...) { __builtin_trap(); }
}  // namespace std
extern "C" void __cxa_pure_virtual() { __builtin_trap(); }
