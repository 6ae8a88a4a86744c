// A row for each allocate and deallocate, with the caller's stack. Transparent: the result below is the result above,
// whatever happens to the log. Outermost in the shim's stack, so that a row shows what the program asked for and got,
// refusals too. Specification, section 6.
#pragma once

#include <atomic>

#include "runtime/record/recorder.h"
#include "runtime/resource/memory_resource.h"

namespace xlog {

class LoggingResource final : public MemoryResource {
 public:
  constexpr LoggingResource(MemoryResource& inner, Recorder& recorder, int device) noexcept
      : inner_(inner), recorder_(recorder), device_(static_cast<uint64_t>(device)) {}

  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(const DeviceBlock& block, const FreeRequest& request) noexcept override;
  Status reap_pending() noexcept override { return inner_.reap_pending(); }
  bool budget_snapshot(BudgetSnapshot& out) const noexcept override { return inner_.budget_snapshot(out); }

  // A block that ends without a call of its own: `action` says how, `api` names the call that did it. Claimed before
  // that call is made, completed after it.
  void hold_end(const DeviceBlock& block, std::string_view action, std::string_view api, HeldRow& held) noexcept;
  void complete_end(const DeviceBlock& block, std::string_view action, std::string_view api, const HeldRow& held, CUresult result) noexcept;
  // The same, for an end that is noticed afterwards.
  void record_end(const DeviceBlock& block, std::string_view action, std::string_view api) noexcept;

  [[nodiscard]] uint64_t live_bytes() const noexcept { return live_bytes_.load(std::memory_order_relaxed); }

 private:
  Event describe(const DeviceBlock& block, std::string_view action, std::string_view api) const noexcept;
  uint64_t add_live(size_t bytes) noexcept { return live_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes; }
  uint64_t sub_live(size_t bytes) noexcept { return live_bytes_.fetch_sub(bytes, std::memory_order_relaxed) - bytes; }

  MemoryResource& inner_;
  Recorder& recorder_;
  const uint64_t device_;
  std::atomic<uint64_t> live_bytes_{0};
};

}  // namespace xlog
