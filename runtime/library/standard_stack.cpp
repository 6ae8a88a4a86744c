#include "runtime/library/standard_stack.h"

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>

#include "runtime/base/backtrace.h"
#include "runtime/base/diagnostics.h"
#include "runtime/base/driver_api.h"
#include "runtime/base/memory_map.h"
#include "runtime/library/driver_loader.h"
#include "runtime/run_info.h"

namespace xlog {

namespace {

struct Shared;
Shared* shared() noexcept;

// What all ordinals of the process share: the options, read once, and the log.
struct Shared {
  Options options;
  bool readable = false;
  char folder[1024] = {};
  Recorder* recorder = nullptr;

  Shared() noexcept {
    readable = parse_options([](const char* name) -> const char* { return secure_getenv(name); },
                             [](std::string_view line, bool) { say(line); }, options);
    if (getcwd(folder, sizeof folder) == nullptr) {
      folder[0] = '\0';
    }
    recorder = static_cast<Recorder*>(map_state(sizeof(Recorder)));
    if (recorder != nullptr) {
      recorder->configure({.options = &options,
                           .folder = folder,
                           .program = program_invocation_short_name,
                           .run_info = [](TextSink& out, const void* self) noexcept { static_cast<const Shared*>(self)->put_info(out); },
                           .run_info_context = this});
    }
  }

  void put_info(TextSink& out) const noexcept {
    const DriverApi* driver = load_driver();
    if (driver != nullptr) {
      put_run_info(out, *driver, options, folder);
    }
  }
};

// nullptr without memory.
Shared* shared() noexcept {
  static Shared* all = [] {
    auto* fresh = new (std::nothrow) Shared;  // never destroyed: the log may be written until the process ends
    std::atexit([] {
      if (shared() != nullptr && shared()->recorder != nullptr) {
        shared()->recorder->begin_exit();
      }
    });
    return fresh;
  }();
  return all;
}

}  // namespace

StandardStack::StandardStack(const DriverApi& driver, const Options& options, Recorder& recorder, int ordinal,
                             const DeviceFacts& facts) noexcept
    : streams_(driver, ordinal), sink_(recorder) {
  DeviceMemoryResource* leaf = nullptr;
  bool wants_pool = options.backend == Backend::native || options.backend == Backend::async;
  if (wants_pool && streams_.context().supports_pools()) {
    leaf = &async_.emplace(streams_, AsyncOptions{.count = options.budget_count});
  } else {
    if (wants_pool) {
      Text<160> line;
      line.put("GPU ").decimal(static_cast<uint64_t>(ordinal)).put(" has no memory pools: plain memory is used, and uses are not tracked");
      say(line.view());
    }
    leaf = &direct_.emplace(streams_.context());
  }
  stack_.emplace(*leaf, options, sink_, DeviceLedger::of_device(ordinal), facts.limit);
  ResourceResult<XlogDeviceRuntime> runtime = XlogDeviceRuntime::with_resource(ordinal, streams_, stack_->top());
  runtime_ = runtime.value();
}

ResourceResult<StandardStack*> StandardStack::build(int ordinal) noexcept {
  const char* reason = nullptr;
  const DriverApi* driver = load_driver(&reason);
  if (driver == nullptr) {
    return Status::from(CUDA_ERROR_NO_DEVICE, reason);
  }
  CUresult result = driver->cuInit(0);
  if (result != CUDA_SUCCESS) {
    return Status::from(result, "cuInit");
  }
  Shared* shares = shared();
  if (shares == nullptr || shares->recorder == nullptr) {
    return Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
  }
  Shared& all = *shares;
  if (!all.readable) {
    return Status::from(CUDA_ERROR_INVALID_VALUE, "an XLOG_ option could not be read");
  }
  DeviceFacts facts;
  if (!read_device_facts(*driver, all.options, ordinal, facts)) {
    return Status::from(CUDA_ERROR_INVALID_DEVICE, "no such device");
  }
  all.recorder->allow();
  if (all.options.log.size != 0 && all.options.backtrace != 0) {
    warm_backtrace();
  }
  std::unique_ptr<StandardStack> built(new (std::nothrow) StandardStack(*driver, all.options, *all.recorder, ordinal, facts));
  if (built == nullptr) {
    return Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
  }
  if (!built->streams_.status().ok()) {
    return built->streams_.status();
  }
  return built.release();
}

ResourceResult<StandardStack*> StandardStack::try_get(int ordinal) noexcept {
  static std::atomic<StandardStack*> built[kMaxDeviceOrdinals];
  static std::mutex locks[kMaxDeviceOrdinals];
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= kMaxDeviceOrdinals) {
    return Status::from(CUDA_ERROR_INVALID_DEVICE, "ordinals reach from 0 to 15");
  }
  auto at = static_cast<size_t>(ordinal);
  StandardStack* found = built[at].load(std::memory_order_acquire);
  if (found != nullptr) {
    return found;
  }
  std::lock_guard<std::mutex> guard(locks[at]);
  found = built[at].load(std::memory_order_relaxed);
  if (found != nullptr) {
    return found;
  }
  ResourceResult<StandardStack*> fresh = build(ordinal);
  if (fresh.ok()) {
    built[at].store(fresh.value(), std::memory_order_release);
  }
  return fresh;
}

}  // namespace xlog
