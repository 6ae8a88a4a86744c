#include "runtime/guard/ordered_checks.h"

#include <sched.h>

#include "runtime/base/thread.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

OrderedChecks::Slot* OrderedChecks::take() noexcept {
  for (Slot& each : slots_) {
    State free = State::free;
    if (each.state.compare_exchange_strong(free, State::filling, std::memory_order_acq_rel)) {
      return &each;
    }
  }
  return nullptr;
}

OrderedChecks::Slot* OrderedChecks::begin(GuardRecord& record, const StreamArg& stream, std::string_view api) noexcept {
  unsigned char* pinned = record.written ? pinned_.get(driver_, kSlots * zone_) : nullptr;
  Slot* slot = pinned != nullptr ? take() : nullptr;
  if (slot == nullptr) {
    return nullptr;
  }
  slot->api = api;
  slot->found = pinned + static_cast<size_t>(slot - slots_) * zone_;
  slot->event = memory_.take_event(stream, slot->context);
  if (slot->event == nullptr) {
    slot->state.store(State::free, std::memory_order_release);
    return nullptr;
  }
  GuardMemory::Put put = memory_.read(stream, record.ptr + record.bytes, slot->found, record.zone, slot->event);
  if (put == GuardMemory::Put::copy) {
    return slot;
  }
  if (put == GuardMemory::Put::nothing) {
    release(*slot);
  } else {
    slot->state.store(State::blind, std::memory_order_release);
  }
  return nullptr;
}

void OrderedChecks::commit(Slot& slot, GuardRecord& record) noexcept {
  slot.record = &record;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  slot.state.store(State::waiting, std::memory_order_release);
}

// The copy is under way all the same.
void OrderedChecks::cancel(Slot& slot) noexcept {
  slot.record = nullptr;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  slot.state.store(State::waiting, std::memory_order_release);
}

void OrderedChecks::release(Slot& slot) noexcept {
  memory_.give_event(slot.context, slot.event);
  slot.state.store(State::free, std::memory_order_release);
}

bool OrderedChecks::find(CUdeviceptr ptr, GuardRecord& out) noexcept {
  bool found = false;
  for (Slot& each : slots_) {
    State waiting = State::waiting;
    if (!found && each.state.compare_exchange_strong(waiting, State::looking, std::memory_order_acq_rel)) {
      found = each.record != nullptr && each.record->ptr == ptr;
      out = found ? *each.record : out;
      each.state.store(State::waiting, std::memory_order_release);
    }
  }
  return found;
}

void OrderedChecks::close(Slot& slot, bool arrived) noexcept {
  GuardRecord* record = slot.record;
  Finding finding;
  if (record != nullptr && arrived) {
    look_at_zone(record->seed, 0, slot.found, record->zone, finding.damage);
  } else if (record != nullptr) {
    reporter_.count_unchecked();
  }
  if (finding.damage.count != 0) {
    finding.block = record;
    finding.found_by = slot.api;
    reporter_.report(finding, records_);
  }
  if (record != nullptr) {
    records_.remember(record);
  }
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  release(slot);
}

// Only an answer that the work is over is final; what was not answered so is asked for again.
void OrderedChecks::settle() noexcept {
  if (waiting_.load(std::memory_order_relaxed) == 0) {
    return;
  }
  RelaxedCapture relaxed(driver_);
  for (Slot& each : slots_) {
    State waiting = State::waiting;
    if (!each.state.compare_exchange_strong(waiting, State::looking, std::memory_order_acq_rel)) {
      continue;
    }
    CUresult code = driver_.cuEventQuery(each.event);
    if (GuardMemory::is_over(code)) {
      close(each, code == CUDA_SUCCESS);
    } else {
      each.state.store(State::waiting, std::memory_order_release);
    }
  }
}

void OrderedChecks::settle_all(CUcontext context) noexcept {
  RelaxedCapture relaxed(driver_);
  for (Slot& each : slots_) {
    State waiting = State::waiting;
    if (each.context != context || !each.state.compare_exchange_strong(waiting, State::looking, std::memory_order_acq_rel)) {
      continue;
    }
    CUresult code = driver_.cuEventSynchronize(each.event);
    if (GuardMemory::is_over(code)) {
      close(each, code == CUDA_SUCCESS);
    } else {
      each.state.store(State::waiting, std::memory_order_release);
    }
  }
}

void OrderedChecks::suspend(CUcontext context) noexcept {
  constexpr uint64_t kPatience = 1'000'000'000;
  uint64_t start = steady_time();
  for (Slot& each : slots_) {
    for (State state = State::waiting; each.context == context && !each.state.compare_exchange_strong(state, State::suspended);) {
      if (state != State::looking || steady_time() - start > kPatience) {
        break;
      }
      sched_yield();
      state = State::waiting;
    }
  }
}

void OrderedChecks::resume(CUcontext context) noexcept {
  for (Slot& each : slots_) {
    State suspended = State::suspended;
    if (each.context == context) {
      each.state.compare_exchange_strong(suspended, State::waiting);
    }
  }
}

void OrderedChecks::context_ended(CUcontext context) noexcept {
  suspend(context);
  for (Slot& each : slots_) {
    State waiting = State::suspended;
    State blind = State::blind;
    if (each.context != context) {
      continue;
    }
    if (each.state.compare_exchange_strong(waiting, State::looking, std::memory_order_acq_rel)) {
      close(each, false);
    } else if (each.state.compare_exchange_strong(blind, State::looking, std::memory_order_acq_rel)) {
      release(each);
    }
  }
  pinned_.context_ended(context);
}

}  // namespace xlog
