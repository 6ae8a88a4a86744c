// When a request is refused for want of memory: what can be known of it then, and only then.
#include <new>

#include "runtime/base/memory_map.h"
#include "runtime/base/thread.h"
#include "runtime/resource/relaxed_capture.h"
#include "runtime/runtime.h"

namespace xlog {

void Runtime::note_outcome(NativeDevice& target, const AllocationRequest& request, const Status& status, uint64_t bytes) noexcept {
  bool refused = status.code == CUDA_ERROR_OUT_OF_MEMORY;
  if (status.ok()) {
    refusals_.given(target.ordinal(), bytes);
  } else if (refused && refusals_.is_wanted()) {
    tell_refusal(target, request, status);
  }
  look_at_driver_use(target, refused);
}

// Apart, so that its text is not on the program's stack in calls that are served.
__attribute__((noinline)) void Runtime::tell_refusal(NativeDevice& target, const AllocationRequest& request,
                                                     const Status& status) noexcept {
  uint64_t now = steady_time();
  BudgetSnapshot budget;
  bool limited = target.budget() != nullptr && target.top().budget_snapshot(budget);
  uint64_t live = target.logging() != nullptr ? target.logging()->live_bytes() : limited ? budget.limit - budget.remaining() : now;
  bool quiet = exiting_.load(std::memory_order_relaxed) || !refusals_.begin(target.ordinal(), request.bytes, live, now);
  void* memory = quiet ? nullptr : map_state(sizeof(Refusal));
  if (memory == nullptr) {
    return;
  }
  auto& refusal = *new (memory) Refusal;
  refusal.time = wall_time(now);
  refusal.thread = thread_id();
  refusal.device = target.ordinal();
  refusal.gpu_name = target.facts().name;
  refusal.gpu_uuid = target.facts().uuid;
  refusal.program = program_;
  refusal.api = request.api;
  refusal.kind = kind_name(request.kind);
  refusal.requested = request.bytes;
  refusal.stack_id = is_logging() ? recorder_.stack_id(request.caller) : kNone;
  refusal.by_limit = status.error == Error::out_of_budget;
  if (limited) {
    refusal.limit = budget.limit;
    refusal.counted = budget.limit - budget.remaining();
  }
  ask_driver(refusal);
  find_holders(registry_, target.ordinal(), refusal.live);
  if (list_processes_ != nullptr && target.ordinal() >= 0) {
    refusal.processes.known = list_processes_(target.facts().uuid, refusal.processes);
  }
  refusals_.tell(refusal);
  unmap_state(memory, sizeof(Refusal));
}

void Runtime::ask_driver(Refusal& refusal) noexcept {
  size_t free = 0;
  size_t total = 0;
  if (refusal.device < 0 || devices_.of_current(driver_) != refusal.device || driver_.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) {
    return;
  }
  refusal.has_driver = true;
  refusal.driver_free = free;
  refusal.driver_total = total;
  CUmemoryPool pool = nullptr;
  cuuint64_t reserved = 0;
  cuuint64_t used = 0;
  RelaxedCapture relaxed(driver_);
  if (driver_.cuDeviceGetDefaultMemPool != nullptr && driver_.cuDeviceGetDefaultMemPool(&pool, refusal.device) == CUDA_SUCCESS &&
      driver_.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) == CUDA_SUCCESS &&
      driver_.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) == CUDA_SUCCESS) {
    refusal.pool_reserved = reserved;
    refusal.pool_used = used;
  }
}

}  // namespace xlog
