#include "runtime/guard/ordered_checks.h"

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
  if (!memory_.read(stream, record.ptr + record.bytes, slot->found, record.zone, slot->event)) {
    cancel(*slot);
    return nullptr;
  }
  return slot;
}

void OrderedChecks::commit(Slot& slot, GuardRecord& record) noexcept {
  slot.record = &record;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  slot.state.store(State::waiting, std::memory_order_release);
}

void OrderedChecks::cancel(Slot& slot) noexcept {
  memory_.give_event(slot.context, slot.event);
  slot.state.store(State::free, std::memory_order_release);
}

bool OrderedChecks::find(CUdeviceptr ptr, GuardRecord& out) noexcept {
  bool found = false;
  for (Slot& each : slots_) {
    State waiting = State::waiting;
    if (!found && each.state.compare_exchange_strong(waiting, State::looking, std::memory_order_acq_rel)) {
      found = each.record->ptr == ptr;
      out = found ? *each.record : out;
      each.state.store(State::waiting, std::memory_order_release);
    }
  }
  return found;
}

void OrderedChecks::look(Slot& slot) noexcept {
  GuardRecord* record = slot.record;
  Finding finding;
  look_at_zone(record->seed, 0, slot.found, record->zone, finding.damage);
  if (finding.damage.count != 0) {
    finding.block = record;
    finding.found_by = slot.api;
    reporter_.report(finding, records_);
  }
  records_.remember(record);
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  cancel(slot);
}

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
    if (driver_.cuEventQuery(each.event) == CUDA_ERROR_NOT_READY) {
      each.state.store(State::waiting, std::memory_order_release);
    } else {
      look(each);
    }
  }
}

void OrderedChecks::settle_all(CUcontext context) noexcept {
  RelaxedCapture relaxed(driver_);
  for (Slot& each : slots_) {
    State waiting = State::waiting;
    if (each.context == context && each.state.compare_exchange_strong(waiting, State::looking, std::memory_order_acq_rel)) {
      driver_.cuEventSynchronize(each.event);
      look(each);
    }
  }
}

}  // namespace xlog
