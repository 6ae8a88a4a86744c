#include "runtime/device_stack.h"

namespace xlog {

DeviceStack::DeviceStack(DeviceMemoryResource& leaf, const Options& options, LoggingSink& sink, DeviceLedger& ledger,
                         uint64_t limit) noexcept
    : top_(&leaf) {
  if (limit != UINT64_MAX) {
    top_ = &budget_.emplace(*top_, limit, ledger, options.budget_count);
  }
  if (options.log.size != 0) {
    top_ = &logging_.emplace(*top_, sink);
  }
}

}  // namespace xlog
