#include "runtime/resource/global_device_budget.h"

#include "runtime/base/thread.h"

namespace xlog {

namespace {

// A refusal waits no longer than this for frees that stand in streams.
constexpr uint64_t kPatience = 1'000'000'000;
// In steps, because another thread's free may be enough meanwhile.
constexpr uint64_t kStep = 20'000'000;

}  // namespace

GlobalDeviceBudget::GlobalDeviceBudget(DeviceMemoryResource& inner, uint64_t limit, DeviceLedger& ledger, BudgetCount count) noexcept
    : ResourceAdaptor(inner), ledger_(ledger), limit_(limit), count_(count) {
  ledger_.add(inner_.bytes_outstanding());
  ledger_.join(*this);
  pools_ = inner_.pools();
  if (pools_ != nullptr) {
    pools_->charge_to(ledger_);
  }
}

GlobalDeviceBudget::~GlobalDeviceBudget() {
  ledger_.leave(*this);
  ledger_.release(inner_.take_released() + inner_.bytes_outstanding());
}

// Bytes pending on the request's own stream are already counted: they change hands.
bool GlobalDeviceBudget::acquire(const AllocationRequest& request, uint64_t bytes, uint64_t& from_pending) noexcept {
  from_pending = inner_.take_pending(request, bytes);
  if (ledger_.reserve(bytes - from_pending, limit_)) {
    return true;
  }
  if (from_pending != 0) {
    inner_.return_pending(request, from_pending);
  }
  return false;
}

// Waits only where waiting can help: with everything pending done, the bytes would fit. A device that failed is told as
// it is, not as a full one.
Status GlobalDeviceBudget::acquire_or_refuse(const AllocationRequest& request, uint64_t bytes, uint64_t& from_pending) noexcept {
  if (acquire(request, bytes, from_pending)) {
    return {};
  }
  if (bytes > limit_) {
    return Status::out_of_budget(bytes, ledger_.reserved(), limit_);
  }
  measure();
  if (acquire(request, bytes, from_pending)) {
    return {};
  }
  give_back_idle_pools();
  if (acquire(request, bytes, from_pending)) {
    return {};
  }
  Status reaped;
  uint64_t start = steady_time();
  bool can_help = true;
  bool progress = true;
  // Again, because another thread may take what this one has waited for.
  for (uint64_t waited = 0; can_help && reaped.ok() && (progress || waited < kPatience); waited = steady_time() - start) {
    ledger_.settle_others(*this);
    uint64_t used = 0;
    uint64_t pending = 0;
    {
      LockGuard guard(settling_);
      pending = inner_.pending_bytes();
      used = ledger_.reserved();
    }
    uint64_t live = used > pending ? used - pending : 0;
    can_help = pending != 0 && live <= limit_ && bytes <= limit_ - live;
    uint64_t missing = used > limit_ - bytes ? used - (limit_ - bytes) : 0;
    reaped = settle({.bytes = missing, .patience_ns = can_help ? kStep : 0});
    if (acquire(request, bytes, from_pending)) {
      return {};
    }
    progress = inner_.pending_bytes() < pending;
  }
  return reaped.ok() ? Status::out_of_budget(bytes, ledger_.reserved(), limit_) : reaped;
}

// A request that the driver would refuse for another reason than memory gets its code, and has the effect that it has there:
// an allocation that a capture forbids ends the capture.
Status GlobalDeviceBudget::refuse(const AllocationRequest& request, const Status& status, DeviceBlock& out) noexcept {
  uint64_t left = out.ptr;
  CUresult code = status.error == Error::out_of_budget ? inner_.judge(request, left) : CUDA_ERROR_OUT_OF_MEMORY;
  bool otherwise = code != CUDA_SUCCESS && code != CUDA_ERROR_OUT_OF_MEMORY;
  out.ptr = otherwise ? left : 0;
  return otherwise ? Status::from(code) : status;
}

Status GlobalDeviceBudget::charge_difference(uint64_t reserved, DeviceBlock& out) noexcept {
  uint64_t real = cost(out.bytes, out.taken);  // a pitch is known only now
  if (real <= reserved) {
    ledger_.release(reserved - real);
    return {};
  }
  if (ledger_.reserve(real - reserved, limit_)) {
    return {};
  }
  measure();
  if (ledger_.reserve(real - reserved, limit_)) {
    return {};
  }
  Status undone = inner_.deallocate(out, FreeRequest{});
  if (!undone.ok()) {  // the memory is taken: it counts
    ledger_.add(real - reserved);
    return undone;
  }
  ledger_.release(reserved);
  out.ptr = 0;
  return Status::out_of_budget(real, ledger_.reserved(), limit_);
}

Status GlobalDeviceBudget::allocate_promised(const AllocationRequest& request, DeviceBlock& out) noexcept {
  MemoryReservation& promise = *request.reservation;
  uint64_t bytes = cost(request.bytes, taken_by(request.kind, request.bytes));
  if (promise.ledger_ != &ledger_ || !promise.take(bytes)) {
    uint64_t left = promise.remaining();
    out.ptr = 0;
    return Status::out_of_budget(bytes, promise.total() - left, promise.total());
  }
  Status status = inner_.allocate(request, out);
  if (!status.ok()) {
    promise.give(bytes);
    return status;
  }
  return charge_difference(bytes, out);
}

Status GlobalDeviceBudget::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  if (request.reservation != nullptr) {
    return allocate_promised(request, out);
  }
  if (pools_ != nullptr && request.is_ordered() && request.pool != nullptr) {
    return allocate_from_pool(*pools_, request, out);
  }
  uint64_t bytes = cost(request.bytes, taken_by(request.kind, request.bytes));
  if (request.in_use_already) {
    Status made = inner_.allocate(request, out);
    ledger_.add(made.ok() ? bytes : 0);
    return made;
  }
  uint64_t from_pending = 0;
  Status status = acquire_or_refuse(request, bytes, from_pending);
  if (!status.ok()) {
    return refuse(request, status, out);
  }
  status = inner_.allocate(request, out);
  if (!status.ok()) {
    ledger_.release(bytes - from_pending);
    if (from_pending != 0) {
      inner_.return_pending(request, from_pending);
    }
    return status;
  }
  return charge_difference(bytes, out);
}

Status GlobalDeviceBudget::deallocate(DeviceBlock& block, const FreeRequest& request) noexcept {
  uint64_t bytes = charged(block);
  Status status = inner_.deallocate(block, request);
  if (status.ok() && block.state == BlockState::freed) {
    ledger_.release(bytes);
  }
  return status;
}

Status GlobalDeviceBudget::settle(const ReapGoal& goal) noexcept {
  Status status = inner_.reap_pending(goal);
  LockGuard guard(settling_);  // a thread that finds nothing to settle sees what another one has
  uint64_t bytes = inner_.take_released();
  if (bytes != 0) {
    ledger_.release(bytes);
    settled_.fetch_add(bytes, std::memory_order_acq_rel);
  }
  return status;
}

uint64_t GlobalDeviceBudget::take_pending(const AllocationRequest& request, uint64_t bytes) noexcept {
  uint64_t taken = inner_.take_pending(request, bytes);
  ledger_.release(taken);
  return taken;
}

void GlobalDeviceBudget::return_pending(const AllocationRequest& request, uint64_t bytes) noexcept {
  ledger_.add(bytes);
  inner_.return_pending(request, bytes);
}

void GlobalDeviceBudget::measure() noexcept {
  if (pools_ != nullptr) {
    pools_->measure();
  }
}

void GlobalDeviceBudget::give_back_idle_pools() noexcept {
  if (pools_ != nullptr) {
    pools_->give_back_idle();
  }
}

bool GlobalDeviceBudget::budget_snapshot(BudgetSnapshot& out) const noexcept {
  out = {.limit = limit_, .reserved = ledger_.reserved()};
  return true;
}

Status GlobalDeviceBudget::reserve_memory(uint64_t bytes, MemoryReservation& out) noexcept {
  out.cancel();
  uint64_t from_pending = 0;
  constexpr StreamId kNoStream{UINT32_MAX};  // a promise has none: nothing pending changes hands
  Status status = acquire_or_refuse({.stream = kNoStream}, bytes, from_pending);
  if (!status.ok()) {
    return status;
  }
  out.ledger_ = &ledger_;
  out.total_ = bytes;
  out.left_.store(bytes, std::memory_order_release);
  return {};
}

}  // namespace xlog
