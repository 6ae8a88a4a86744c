// One GPU ordinal of a program under the shim: its stack over the native calls. Lives in memory that a fork child finds
// wiped, its ledger too; never destroyed.
#pragma once

#include <optional>

#include "runtime/device_facts.h"
#include "runtime/device_stack.h"
#include "runtime/plain_backend.h"
#include "runtime/resource/cache_source.h"
#include "runtime/resource/native_resource.h"
#include "runtime/resource/pool_source.h"

namespace xlog {

class NativeDevice {
 public:
  // `maker`: who serves the plain calls (plain_maker()).
  // `guard` nullptr: its memory is not guarded.
  NativeDevice(const DriverApi& driver, const Options& options, Recorder& recorder, CaptureGate& gate, int ordinal,
               const DeviceFacts& facts, Maker maker, const DeviceStack::GuardParts* guard) noexcept
      : facts_(facts),
        native_(driver, ordinal, facts.limit != UINT64_MAX, options.budget_count, &gate),
        sink_(recorder),
        stack_(native_, options, sink_, ledger_, facts.limit, guard) {
    if (ordinal >= 0 && facts.limit != UINT64_MAX) {
      ledger_.add(options.budget_context.on(facts.total_bytes));
    }
    PlainSettings settings = plain_settings(options, facts);
    settings.ledger = &ledger_;
    if (maker == Maker::pool) {
      native_.set_source(pool_.emplace(driver, ordinal, gate, settings), maker);
    } else if (maker == Maker::cache) {
      native_.set_source(cache_.emplace(driver, gate, settings), maker);
    }
    if (guard != nullptr && options.guard.fence.one_in != 0) {
      native_.set_fence(fence_.emplace(driver, ordinal, gate, settings, options.guard.fence.before));
    }
  }
  NativeDevice(const NativeDevice&) = delete;
  NativeDevice& operator=(const NativeDevice&) = delete;

  [[nodiscard]] DeviceMemoryResource& top() noexcept { return stack_.top(); }
  [[nodiscard]] NativeResource& native() noexcept { return native_; }
  [[nodiscard]] PlainSource* source() noexcept { return native_.source(); }
  [[nodiscard]] PoolSource* pool() noexcept { return pool_ ? &*pool_ : nullptr; }
  [[nodiscard]] FenceSource* fence() noexcept { return fence_ ? &*fence_ : nullptr; }
  // That a block came from; nullptr for the driver's own.
  [[nodiscard]] PlainSource* source_of(const DeviceBlock& block) noexcept {
    return block.maker == Maker::driver ? nullptr : block.maker == Maker::fence ? fence() : source();
  }
  [[nodiscard]] GlobalDeviceBudget* budget() noexcept { return stack_.budget(); }
  [[nodiscard]] GuardResource* guard() noexcept { return stack_.guard(); }
  [[nodiscard]] LoggingResource* logging() noexcept { return stack_.logging(); }
  // -1: memory that is no GPU's.
  [[nodiscard]] int ordinal() const noexcept { return native_.device_ordinal(); }
  [[nodiscard]] const DeviceFacts& facts() const noexcept { return facts_; }

  // The block went without a deallocate.
  void ended(DeviceBlock& block) noexcept {
    if (guard() != nullptr) {
      guard()->forget(block);
    }
    native_.forget(block);
    if (budget() != nullptr) {
      budget()->credit(block);
    }
  }
  // What was pending in something that is gone counts no longer.
  void settle() noexcept {
    if (budget() != nullptr) {
      static_cast<void>(budget()->settle({}));
    }
  }
  // The same, and what pools have reserved is read: what is told of the limit is exact then.
  void measure() noexcept {
    settle();
    if (budget() != nullptr) {
      budget()->measure();
    }
  }

 private:
  DeviceFacts facts_;
  NativeResource native_;
  std::optional<PoolSource> pool_;
  std::optional<CacheSource> cache_;
  std::optional<FenceSource> fence_;
  RecorderSink sink_;
  DeviceLedger ledger_;
  DeviceStack stack_;
};

}  // namespace xlog
