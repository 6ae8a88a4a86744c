// The guard of one GPU's blocks: a zone behind each block that is checked when it is freed, fills of new and of freed memory,
// and a quarantine of freed blocks. Above the budget, so that its bytes are charged; below the log, so that the log shows
// what the program asked for. A block that cannot be guarded is made as without it: the guard refuses nothing.
#pragma once

#include "runtime/base/diagnostics.h"
#include "runtime/guard/fence_sample.h"
#include "runtime/guard/guard_settings.h"
#include "runtime/guard/launch_checks.h"
#include "runtime/guard/ordered_checks.h"
#include "runtime/guard/quarantine.h"
#include "runtime/resource/resource_adaptor.h"

namespace xlog {

class GuardResource final : public ResourceAdaptor {
 public:
  GuardResource(DeviceMemoryResource& inner, const DriverApi& driver, CaptureGate& gate, const GuardSettings& settings,
                GuardRecords& records, FindingReporter& reporter) noexcept
      : ResourceAdaptor(inner),
        driver_(driver),
        gate_(gate),
        settings_(settings),
        records_(records),
        reporter_(reporter),
        memory_(driver, gate),
        launch_checks_(driver, gate, memory_, records, reporter, settings.check_launches),
        ordered_(driver, memory_, records, reporter, settings.fence.one_in != 0 ? kFenceZone : settings.zone) {
    if (settings.check_launches != 0) {
      records.list_zones();
    }
  }

  using ResourceAdaptor::allocate, ResourceAdaptor::deallocate;
  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override;
  Status deallocate(DeviceBlock& block, const FreeRequest& request) noexcept override;

  // All live blocks of this GPU whose zone is known to be written, and at exit all that is held, as they are now: nothing of the
  // program's is waited for.
  void check_all(std::string_view found_by, bool at_exit) noexcept;

  // The program launches a kernel, and has launched it; `context` is current, on this GPU.
  void prepare_launch(CUcontext context) noexcept {
    if (!is_exiting()) {
      launch_checks_.prepare(context);
    }
  }
  void before_launch() noexcept { reporter_.count_overtaken(memory_.finish_writes_briefly()); }
  void launched(const Launch& launch, const StreamArg& stream, CUcontext context) noexcept {
    if (settings_.check_launches != 0 && !is_exiting()) {
      launch_checks_.launched(launch, stream, context);
    }
  }

  // A context ends: before the driver's call (`alive`) or after it. Then each block, and at last the context. What was freed and is
  // held goes to the driver before the context does; what the driver did not take then goes with the context, unless it is of a pool.
  template <class Gone>  // gone(DeviceBlock&): a block of the quarantine went with its context
  void begin_context_end(CUcontext context, bool alive, std::string_view api, Gone gone) noexcept {
    DeviceBlock block;
    bool taken = true;
    prepare_context_end(context, alive);
    while (taken && quarantine_.take_of(context, block)) {
      if (alive || block.pool != nullptr) {
        taken = release(block, api);
      } else {
        quarantine_.begin_free(block);
        gone(block);
        quarantine_.freed();
      }
    }
  }
  // An event over a green context does not cover what may use its memory: its blocks are left alone.
  void refuse_context(CUcontext context) noexcept { memory_.refuse_context(context); }
  [[nodiscard]] bool knows_context(CUcontext context) noexcept { return memory_.knows_context(context); }
  void check_ending(const DeviceBlock& block, std::string_view api) noexcept;
  // The last before the driver's call: its handles may not be used from here on.
  void suspend_context(CUcontext context) noexcept {
    ordered_.suspend(context);
    launch_checks_.suspend(context);
    memory_.begin_context_end(context);
  }
  void context_stays(CUcontext context) noexcept {
    memory_.context_stays(context);
    launch_checks_.resume(context);
    ordered_.resume(context);
  }
  void finish_context_end(CUcontext context) noexcept {
    memory_.context_ended(context);
    ordered_.context_ended(context);
    launch_checks_.context_ended(context);
  }
  // The block ended without a deallocate: it is again what the resource below made.
  void forget(DeviceBlock& block) noexcept;

  // No call of ours is made any more: what is freed from here on was checked before, or is not.
  void begin_exit() noexcept { exiting_.store(true, std::memory_order_relaxed); }
  // The program has freed this block, and the driver does not know.
  bool holds(CUdeviceptr base) noexcept { return quarantine_.holds(base); }
  bool find_leaving(CUdeviceptr ptr, GuardRecord& out) noexcept { return quarantine_.find(ptr, out) || ordered_.find(ptr, out); }
  // Before a request for memory that is not made here is refused: gives up what is held. True: something was given up since `before`,
  // which given_up() said before the request was first tried.
  bool relieve(uint64_t before) noexcept;
  [[nodiscard]] uint64_t given_up() const noexcept { return quarantine_.given_up(); }
  // What the driver counts as used although the program has freed it.
  [[nodiscard]] uint64_t held_bytes() const noexcept { return quarantine_.bytes(); }

 private:
  // Bytes behind a fenced block, at most.
  static constexpr size_t kFenceZone = 512;

  [[nodiscard]] bool takes(const AllocationRequest& request) const noexcept;
  bool is_to_be_fenced(const AllocationRequest& request) noexcept;
  bool grow(AllocationRequest& request) noexcept;
  void leave_pool(const GuardRecord* record, uint64_t bytes, uint64_t zone) noexcept;
  // What the driver takes for a block beyond what it would take without a guard.
  static uint64_t extra_taken(const DeviceBlock& block) noexcept;
  Status allocate_grown(const AllocationRequest& request, DeviceBlock& out) noexcept;
  void arm(const AllocationRequest& request, DeviceBlock& block) noexcept;
  void judge(GuardRecord& record, const Damage& damage, std::string_view found_by) noexcept;
  bool free_behind_look(DeviceBlock& block, const FreeRequest& request, Status& status) noexcept;
  bool check_zone(GuardRecord& record, std::string_view found_by) noexcept;
  Status free_below(DeviceBlock& block, const FreeRequest& request) noexcept;
  Status free_ordered(DeviceBlock& block, const FreeRequest& request) noexcept;
  Status free_now(DeviceBlock& block, const FreeRequest& request) noexcept;
  bool hold_back(DeviceBlock& block) noexcept;
  void look_at_held(DeviceBlock& block, std::string_view found_by) noexcept;
  bool release(DeviceBlock& block, std::string_view api) noexcept;
  void shrink(uint64_t most) noexcept;
  void prepare_context_end(CUcontext context, bool alive) noexcept;
  [[nodiscard]] bool is_exiting() const noexcept { return exiting_.load(std::memory_order_relaxed); }

  const DriverApi& driver_;
  CaptureGate& gate_;
  const GuardSettings settings_;
  GuardRecords& records_;
  FindingReporter& reporter_;
  GuardMemory memory_;
  LaunchChecks launch_checks_;
  OrderedChecks ordered_;
  Quarantine quarantine_;
  Once out_of_memory_{};
  std::atomic<bool> exiting_{false};
  std::atomic<uint64_t> extra_{0};  // what the driver takes for zones and fences
  FenceSample sample_{};
};

}  // namespace xlog
