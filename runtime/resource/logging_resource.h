// A record for each allocate, deallocate and reap_pending, with the caller's stack. Transparent: the result below is the
// result above, whatever happens to the log. Outermost in the default stack, so that a record shows what was asked for
// and got, refusals too. Specification, section 6.
#pragma once

#include <atomic>

#include "runtime/base/thread.h"
#include "runtime/resource/log_filter.h"
#include "runtime/resource/logging_sink.h"
#include "runtime/resource/resource_adaptor.h"

namespace xlog {

class LoggingResource final : public ResourceAdaptor {
 public:
  LoggingResource(DeviceMemoryResource& inner, LoggingSink& sink) noexcept
      : ResourceAdaptor(inner), sink_(sink), timed_(sink.wants_times()), device_(inner.device_ordinal()) {}
  // Blocks that the options leave out have no rows.
  LoggingResource(DeviceMemoryResource& inner, LoggingSink& sink, const Options& options) noexcept
      : ResourceAdaptor(inner), sink_(sink), timed_(sink.wants_times()), device_(inner.device_ordinal()), filter_(options) {}

  using ResourceAdaptor::allocate, ResourceAdaptor::deallocate, ResourceAdaptor::reap_pending;
  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(DeviceBlock& block, const FreeRequest& request) noexcept override;
  Status reap_pending(const ReapGoal& goal) noexcept override;
  [[nodiscard]] int device_ordinal() const noexcept override { return device_; }

  // A block that ends without a call of its own: `action` says how, `api` names the call that did it. Claimed before
  // that call is made, completed after it.
  void hold_end(const DeviceBlock& block, std::string_view action, std::string_view api, HeldRow& held) noexcept;
  void complete_end(const DeviceBlock& block, std::string_view action, std::string_view api, const HeldRow& held, CUresult result) noexcept;
  // The same, for an end that is noticed afterwards.
  void record_end(const DeviceBlock& block, std::string_view action, std::string_view api) noexcept;

  // A live block when the log is on anew: decides of it as of a fresh one, and writes its row. Under the block's lock.
  void take_up(DeviceBlock& block) noexcept;

  // Of the blocks without rows, if there were any: one row.
  void record_left_out() noexcept;

  [[nodiscard]] uint64_t live_bytes() const noexcept { return live_bytes_.load(std::memory_order_relaxed); }
  // Records that the sink did not take.
  [[nodiscard]] uint64_t dropped_records() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  [[nodiscard]] uint64_t now() const noexcept { return timed_ ? steady_time() : 0; }
  [[nodiscard]] bool has_rows(const DeviceBlock& block) const noexcept { return !block.unlogged && block.log_period == sink_.period(); }
  void leave_out(DeviceBlock& block, uint32_t period) noexcept;
  Status allocate_unlogged(const AllocationRequest& request, DeviceBlock& out, uint32_t period) noexcept;
  Status deallocate_unlogged(DeviceBlock& block, const FreeRequest& request) noexcept;
  Status deallocate_logged(DeviceBlock& block, const FreeRequest& request, uint64_t stack_id) noexcept;
  LogEntry describe(const DeviceBlock& block, std::string_view action, std::string_view api) const noexcept;
  uint64_t add_live(size_t bytes) noexcept { return live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes; }
  uint64_t sub_live(size_t bytes) noexcept { return live_bytes_.fetch_sub(bytes, std::memory_order_relaxed) - bytes; }
  void count(SinkError error) noexcept {
    if (error != SinkError::none) {
      dropped_.fetch_add(1, std::memory_order_relaxed);
    }
  }

  LoggingSink& sink_;
  const bool timed_;
  const int device_;
  LogFilter filter_;
  alignas(64) std::atomic<uint64_t> live_bytes_{0};  // alone in its line: each call of each thread writes it
  alignas(64) std::atomic<uint64_t> dropped_{0};
};

}  // namespace xlog
