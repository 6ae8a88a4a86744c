// The limit for memory that comes from a pool of the program.
#include <time.h>

#include "runtime/base/system_calls.h"
#include "runtime/base/thread.h"
#include "runtime/resource/global_device_budget.h"

namespace xlog {

namespace {

// A refusal waits no longer than this for work that may be the last user of what the pool holds.
constexpr uint64_t kPatience = 1'000'000'000;
// Nor than this for allocations of other threads, which are charged as what they may take until they return.
constexpr uint64_t kPatienceForOthers = 100'000'000;
constexpr uint64_t kFirstNap = 500'000;

// Threads that meet at the limit do not come back together.
void sleep_for(uint64_t nanoseconds) noexcept {
  uint64_t mine = nanoseconds + nanoseconds / 16 * (thread_id() % 16);
  timespec nap{.tv_sec = 0, .tv_nsec = static_cast<long>(mine < 200'000'000 ? mine : 200'000'000)};
  kernel::sleep(nap);
}

}  // namespace

struct GlobalDeviceBudget::PoolRequest {
  PoolReserves& pools;
  AllocationRequest request;
  uint64_t number = 0;
  uint64_t growth = 0;
  uint64_t reserved = 0;  // by the pool, before
};

// The driver alone knows whether the pool can serve the request without growing, so it is asked to, and what the pool has
// reserved is read again. True: `status` is the answer. False: the pool has grown above the limit, and the block was given
// back where it came from, in the order of its stream.
bool GlobalDeviceBudget::try_pool(const PoolRequest& wanted, DeviceBlock& out, Status& status) noexcept {
  wanted.pools.begin_try();
  status = inner_.allocate(wanted.request, out);
  wanted.pools.finish_try(wanted.number, wanted.growth);
  wanted.pools.measure();
  if (!status.ok() || ledger_.reserved() <= limit_) {
    return true;
  }
  Status undone = inner_.deallocate(out, FreeRequest{.ordered = true, .stream_arg = wanted.request.stream_arg});
  if (!undone.ok()) {
    status = {};  // the memory is the program's, and it counts
    return true;
  }
  out.ptr = 0;
  wanted.pools.trim(wanted.number, wanted.reserved);
  return false;
}

// Growth that did not go back when a try was undone, because the stream had not come that far.
void GlobalDeviceBudget::give_back_excess(const PoolRequest& wanted) noexcept {
  uint64_t used = ledger_.reserved();
  if (used > limit_) {
    uint64_t reserved = 0;
    wanted.pools.idle(wanted.number, reserved);
    uint64_t excess = used - limit_;
    wanted.pools.trim(wanted.number, reserved > excess ? reserved - excess : 0);
  }
}

bool GlobalDeviceBudget::allocate_within(const PoolRequest& wanted, DeviceBlock& out, Status& status) noexcept {
  if (!wanted.pools.begin(wanted.number, wanted.growth, limit_)) {
    return false;
  }
  status = inner_.allocate(wanted.request, out);
  wanted.pools.finish(wanted.number, wanted.growth);
  return true;
}

// Something may come back that a wait of `waited` so far was too short for.
bool GlobalDeviceBudget::is_worth_waiting(const PoolRequest& wanted, uint64_t idle, uint64_t waited) noexcept {
  uint64_t bytes = wanted.request.bytes;
  uint64_t used = ledger_.reserved();
  uint64_t pending = inner_.pending_bytes();
  uint64_t live = used > pending ? used - pending : 0;
  bool helps = idle >= bytes || (pending != 0 && live <= limit_ && bytes <= limit_ - live);
  return (helps && waited < kPatience) || (wanted.pools.others_allocate() && waited < kPatienceForOthers);
}

// On a card of that size the driver would let the pool grow while there is room, else take what was freed to it, else what other
// pools hold idle, else refuse.
Status GlobalDeviceBudget::allocate_from_pool(PoolReserves& pools, const AllocationRequest& request, DeviceBlock& out) noexcept {
  PoolRequest wanted{.pools = pools, .request = request, .growth = PoolReserves::growth_of(request.bytes)};
  wanted.request.pool_number = wanted.number = pools.number_of(request.pool);
  Status status;
  if (wanted.number != 0 && allocate_within(wanted, out, status)) {
    return status;
  }
  uint64_t least = PoolReserves::least_of(request.bytes);
  uint64_t start = steady_time();
  bool possible = wanted.number != 0 && request.bytes <= limit_;
  for (uint64_t nap = kFirstNap; possible; nap *= 2) {
    static_cast<void>(settle({}));
    ledger_.settle_others(*this);
    pools.measure();
    if (allocate_within(wanted, out, status)) {
      return status;
    }
    give_back_excess(wanted);
    uint64_t idle = pools.idle(wanted.number, wanted.reserved);
    uint64_t used = ledger_.reserved();
    bool may_fit = used <= limit_ && (least <= limit_ - used || idle >= request.bytes);
    if (may_fit && try_pool(wanted, out, status)) {
      return status;
    }
    pools.give_back_idle();
    if (allocate_within(wanted, out, status)) {
      return status;
    }
    possible = is_worth_waiting(wanted, idle, steady_time() - start);
    if (possible) {
      sleep_for(nap);
    }
  }
  return refuse(request, Status::out_of_budget(request.bytes, ledger_.reserved(), limit_), out);
}

}  // namespace xlog
