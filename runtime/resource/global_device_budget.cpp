#include "runtime/resource/global_device_budget.h"

#include <time.h>

#include "runtime/base/thread.h"

namespace xlog {

namespace {

// A refusal waits no longer than this for frees that stand in other streams.
constexpr uint64_t kLongestWait = 1'000'000'000;

bool is_ordered(const AllocationRequest& request) noexcept {
  return (request.kind == Kind::async && !request.as_plain) || request.kind == Kind::pool;
}

}  // namespace

bool GlobalDeviceBudget::reserve(uint64_t bytes) noexcept {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (used > limit_ || bytes > limit_ - used) {
      return false;
    }
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_acq_rel, std::memory_order_relaxed));
  return true;
}

void GlobalDeviceBudget::put_back(const AllocationRequest& request, uint64_t from_pending) noexcept {
  PendingFrees::Where there{.stream = request.stream, .stream_id = request.stream_id, .context = request.context, .pool = request.pool};
  release(pending_.add(there, from_pending, steady_time()));
}

// Bytes pending on the request's own stream and pool are already counted: they change hands.
bool GlobalDeviceBudget::acquire(const AllocationRequest& request, uint64_t bytes, uint64_t& from_pending) noexcept {
  from_pending = is_ordered(request) ? pending_.take(request.stream_id, request.pool, bytes) : 0;
  if (reserve(bytes - from_pending)) {
    return true;
  }
  if (from_pending != 0) {
    put_back(request, from_pending);
  }
  return false;
}

bool GlobalDeviceBudget::acquire_after_wait(const AllocationRequest& request, uint64_t bytes, uint64_t& from_pending) noexcept {
  uint64_t start = steady_time();
  for (timespec nap{.tv_sec = 0, .tv_nsec = 20'000};;) {
    reap_pending();
    if (acquire(request, bytes, from_pending)) {
      return true;
    }
    uint64_t live = reserved_bytes() - pending_.total();
    bool hopeless = bytes > limit_ - (live < limit_ ? live : limit_);  // even with all of them done
    if (pending_.empty() || hopeless || steady_time() - start > kLongestWait) {
      return false;
    }
    nanosleep(&nap, nullptr);
    nap.tv_nsec = nap.tv_nsec < 1'000'000 ? nap.tv_nsec * 2 : nap.tv_nsec;
  }
}

Status GlobalDeviceBudget::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  uint64_t bytes = cost(request.bytes, plain_taken(request.bytes));
  uint64_t from_pending = 0;
  if (!acquire(request, bytes, from_pending) && (bytes > limit_ || !acquire_after_wait(request, bytes, from_pending))) {
    out.ptr = 0;
    return Status::out_of_budget(bytes, reserved_bytes(), limit_);
  }
  Status status = inner_.allocate(request, out);
  if (!status.ok()) {
    release(bytes - from_pending);
    if (from_pending != 0) {
      put_back(request, from_pending);
    }
    return status;
  }
  uint64_t real = cost(out.bytes, out.taken);  // a pitch is known only now
  if (real <= bytes) {
    release(bytes - real);
  } else if (!reserve(real - bytes)) {
    inner_.deallocate(out, FreeRequest{});
    release(bytes);
    out.ptr = 0;
    return Status::out_of_budget(real, reserved_bytes(), limit_);
  }
  return status;
}

Status GlobalDeviceBudget::deallocate(const DeviceBlock& block, const FreeRequest& request) noexcept {
  Status status = inner_.deallocate(block, request);
  if (!status.ok()) {
    return status;
  }
  uint64_t bytes = cost(block.bytes, block.taken);
  if (request.ordered) {
    CUcontext current = nullptr;
    driver_.cuCtxGetCurrent(&current);
    PendingFrees::Where there{.stream = request.stream, .stream_id = request.stream_id, .context = current, .pool = block.pool};
    bytes = pending_.add(there, bytes, steady_time());
  }
  release(bytes);
  return status;
}

Status GlobalDeviceBudget::reap_pending() noexcept {
  release(pending_.settle(driver_, steady_time()));
  return {};
}

bool GlobalDeviceBudget::budget_snapshot(BudgetSnapshot& out) const noexcept {
  out = {.limit = limit_, .reserved = reserved_bytes()};
  return true;
}

}  // namespace xlog
