#include "runtime/plain_backend.h"

#include "runtime/base/diagnostics.h"
#include "runtime/base/modules.h"

namespace xlog {

namespace {

// Libraries that hand device memory to other processes or to network cards, which memory from a pool does not support
// (CUDA.jl issue 1053, ucx issue 7110, libfabric issue 10162).
constexpr std::string_view kSharers[] = {"libmpi", "libucp.", "libuct.", "libnccl"};

constinit Once said_sharer;
constinit Once said_no_pools;
constinit Once said_no_events;

bool has_pools(const DriverApi& driver, int ordinal) noexcept {
  int supported = 0;
  return driver.cuMemPoolCreate != nullptr && driver.cuMemPoolTrimTo != nullptr && driver.cuMemAllocFromPoolAsync != nullptr &&
         driver.cuMemFreeAsync != nullptr &&
         driver.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, ordinal) == CUDA_SUCCESS && supported != 0;
}

}  // namespace

Maker plain_maker(const DriverApi& driver, const Options& options, int ordinal) noexcept {
  if (options.backend != Backend::async && options.backend != Backend::cache) {
    return Maker::driver;
  }
  // Without an event over a whole context there is no way to wait for it that leaves captures and other pools alone.
  if (driver.cuCtxRecordEvent == nullptr || driver.cuEventSynchronize == nullptr) {
    if (said_no_events.first()) {
      say("the driver is older than 12.5 and cannot record an event over a context: XLOG_BACKEND is taken as native");
    }
    return Maker::driver;
  }
  if (options.backend == Backend::cache) {
    return Maker::cache;
  }
  Text<128> sharer;
  if (!options.async_always && find_loaded(kSharers, sharer)) {
    if (said_sharer.first()) {
      Text<400> line;
      line.put(sharer.view()).put(" is loaded, which may share device memory with other processes: XLOG_BACKEND=async is taken as ");
      line.put("cache (XLOG_ASYNC_ALWAYS=1 keeps async)");
      say(line.view());
    }
    return Maker::cache;
  }
  if (!has_pools(driver, ordinal)) {
    if (said_no_pools.first()) {
      Text<200> line;
      line.put("GPU ").decimal(static_cast<uint64_t>(ordinal)).put(" has no memory pools: XLOG_BACKEND=async is taken as native there");
      say(line.view());
    }
    return Maker::driver;
  }
  return Maker::pool;
}

PlainSettings plain_settings(const Options& options, const DeviceFacts& facts) noexcept {
  return {.ordered = options.async_free == AsyncFree::ordered,
          .most_pending = options.async_pending.is_auto ? UINT64_MAX : options.async_pending.size.on(facts.total_bytes),
          .most_pending_by_use = facts.total_bytes / 4,
          .keep = options.async_keep.on(facts.total_bytes),
          .limit = facts.limit,
          .count = options.budget_count};
}

}  // namespace xlog
