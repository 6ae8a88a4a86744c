#include "runtime/device_stack.h"

namespace xlog {

namespace {

GuardSettings guard_settings(const Options& options, uint64_t total_bytes) noexcept {
  return {.zone = options.guard.zone,
          .poison_alloc = options.poison.on_alloc,
          .poison_free = options.poison.on_free,
          .quarantine = options.quarantine,
          .most_extra = options.guard_max.on(total_bytes),
          .fence = options.guard.fence,
          .check_launches = options.guard_check.launches};
}

}  // namespace

DeviceStack::DeviceStack(DeviceMemoryResource& leaf, const Options& options, LoggingSink& sink, DeviceLedger& ledger, uint64_t limit,
                         const GuardParts* guard) noexcept
    : top_(&leaf) {
  if (limit != UINT64_MAX) {
    top_ = &budget_.emplace(*top_, limit, ledger, options.budget_count);
  }
  if (options.guards() && guard != nullptr) {
    top_ = &guard_.emplace(*top_, guard->driver, guard->gate, guard_settings(options, guard->total_bytes), guard->records, guard->reporter);
  }
  if (options.log.size != 0) {
    top_ = &logging_.emplace(*top_, sink, options);
  }
}

}  // namespace xlog
