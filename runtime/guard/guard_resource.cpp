#include "runtime/guard/guard_resource.h"

#include <utility>

#include "runtime/base/memory_map.h"
#include "runtime/base/thread.h"
#include "runtime/resource/current_context.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

// What a look at the zone has found. A block is told once.
void GuardResource::judge(GuardRecord& record, const Damage& damage, std::string_view found_by) noexcept {
  if (damage.count == 0) {
    record.clean_time = steady_time();
  } else if (record.written) {
    reporter_.report({.block = &record, .damage = damage, .found_by = found_by}, records_);
  }
}

bool GuardResource::check_zone(GuardRecord& record, std::string_view found_by) noexcept {
  Damage damage;
  if (record.written && !memory_.read_zone(record, damage)) {
    return false;
  }
  judge(record, damage, found_by);
  return true;
}

// `bytes`: with the zone.
void GuardResource::leave_pool(const GuardRecord* record, uint64_t bytes, uint64_t zone) noexcept {
  if (record != nullptr && record->pool_number != 0) {
    records_.pools().block_left(record->pool_number, record->held ? 0 : bytes - zone, record->held ? bytes : zone);
  }
}

Status GuardResource::free_below(DeviceBlock& block, const FreeRequest& request) noexcept {
  uint64_t extra = extra_taken(block);
  block.bytes += block.guard_bytes;
  Status status = inner_.deallocate(block, request);
  if (!status.ok()) {
    block.bytes -= block.guard_bytes;
    return status;
  }
  extra_.fetch_sub(extra, std::memory_order_relaxed);
  leave_pool(block.guard, block.bytes, block.guard_bytes);
  return status;
}

Status GuardResource::free_ordered(DeviceBlock& block, const FreeRequest& request) noexcept {
  GuardRecord& record = *block.guard;
  if (!record.ordered) {
    WaitResult written = memory_.finish_writes(record.context);
    WaitResult checked = settings_.check_launches != 0 ? launch_checks_.finish(record.context) : WaitResult::done();
    if (!written.is_done() || !checked.is_done()) {
      return Status::from(written.is_done() ? checked.code() : written.code());
    }
  }
  bool own_stream = request.stream_arg.is_per_thread();  // as for an allocation
  OrderedChecks::Slot* check = record.zone != 0 && !own_stream ? ordered_.begin(record, request.stream_arg, request.api) : nullptr;
  if (settings_.poison_free && !record.fenced && !own_stream) {
    memory_.fill(request.stream_arg, block.ptr, block.bytes, kPoisonFreed);
  }
  Status status = free_below(block, request);
  if (check != nullptr && status.ok()) {
    ordered_.commit(*check, record);
  } else if (check != nullptr) {
    ordered_.cancel(*check);
  } else if (status.ok()) {
    if (record.written) {
      reporter_.count_unchecked();
    }
    records_.remember(&record);
  }
  return status;
}

// The free itself waits for the last look.
bool GuardResource::free_behind_look(DeviceBlock& block, const FreeRequest& request, Status& status) noexcept {
  GuardRecord& record = *block.guard;
  GuardMemory::LastLook look(memory_, record);
  Damage damage;
  if (!look.is_under_way()) {
    return false;
  }
  status = free_below(block, request);
  if (status.ok()) {
    if (look.finish(damage)) {
      judge(record, damage, request.api);
    } else {
      reporter_.count_unchecked();
    }
    records_.remember(&record);
  }
  return true;
}

Status GuardResource::free_now(DeviceBlock& block, const FreeRequest& request) noexcept {
  GuardRecord& record = *block.guard;
  CurrentContext current(driver_, block.context);
  Status freed;
  bool lasts = !record.fenced && (settings_.quarantine >= block.taken || settings_.poison_free);  // its bytes are looked at again
  // The driver's free of pool memory waits for nothing.
  if (!lasts && !record.ordered && settings_.check_launches == 0 && current.result() == CUDA_SUCCESS &&
      free_behind_look(block, request, freed)) {
    return freed;
  }
  bool looks = record.written || lasts;
  bool quiet = looks && current.result() == CUDA_SUCCESS && memory_.wait_for_work(block.context).is_done();
  if (quiet) {
    launch_checks_.settle(&record);  // it knows the kernel
  }
  bool checked = quiet && check_zone(record, request.api);
  if (checked && lasts && settings_.quarantine >= block.taken && !block.shared && hold_back(block)) {
    return {};
  }
  bool filled = checked && lasts && settings_.poison_free && memory_.fill(block.context, block.ptr, block.bytes, kPoisonFreed, true);
  if (looks && !filled) {  // what was written may be on its way, also where a wait for it was refused
    WaitResult written = memory_.finish_writes(record.context);
    if (!written.is_done()) {
      return Status::from(written.code());
    }
  }
  Status status = free_below(block, request);
  if (status.ok()) {
    if (!checked && record.written) {
      reporter_.count_unchecked();
    }
    records_.remember(&record);
  }
  return status;
}

Status GuardResource::deallocate(DeviceBlock& block, const FreeRequest& request) noexcept {
  if (block.guard == nullptr) {
    return free_below(block, request);
  }
  GuardRecord& record = *block.guard;
  if (is_exiting()) {
    records_.remove_live(record);
    return free_below(block, request);
  }
  ordered_.settle();
  records_.remove_live(record);
  if (settings_.check_launches != 0) {
    launch_checks_.wait_for_preparation();
  }
  record.freed.take(request.caller);
  PoolBooks::Change change(records_.pools());
  Status status = request.ordered ? free_ordered(block, request) : free_now(block, request);
  if (!status.ok()) {
    record.freed = {};
    records_.add_live(record);
  } else if (!request.ordered) {
    shrink(settings_.quarantine);
  }
  return status;
}

// The block is live no longer for the program; below nothing has happened.
bool GuardResource::hold_back(DeviceBlock& block) noexcept {
  if (!memory_.fill(block.context, block.ptr, block.bytes, kPoisonFreed, true)) {
    return false;
  }
  CUdeviceptr ptr = block.ptr;
  GuardRecord& record = *block.guard;
  uint64_t bytes = block.bytes;
  record.held = true;
  if (!quarantine_.add(block)) {
    record.held = false;
    return false;
  }
  records_.pools().block_leaves(record.pool_number, bytes);
  block.ptr = ptr;
  block.state = BlockState::freed;
  return true;
}

void GuardResource::look_at_held(DeviceBlock& block, std::string_view found_by) noexcept {
  constexpr size_t kPart = 256 << 10;
  GuardRecord& record = *block.guard;
  auto* found = static_cast<unsigned char*>(map_state(kPart));
  Finding finding;
  bool good = found != nullptr;
  for (size_t at = 0; good && at < record.bytes; at += kPart) {
    size_t n = record.bytes - at < kPart ? record.bytes - at : kPart;
    good = memory_.read(block.context, block.ptr + at, found, n);
    if (good) {
      look_at_fill(kPoisonFreed, at, found, n, finding.damage);
    }
  }
  if (found != nullptr) {
    unmap_state(found, kPart);
  }
  if (!good) {
    reporter_.count_unchecked();
  }
  if (finding.damage.count != 0) {
    finding.kind = FindingKind::use_after_free;
    finding.block = &record;
    finding.found_by = found_by;
    reporter_.report(finding, records_);
  }
}

// A block leaves the quarantine. Its context is alive. False: the driver did not take it, and it is held as before. In the relaxed
// capture mode a free of plain memory is allowed beside every capture (tests/gpu/captures.expected).
bool GuardResource::release(DeviceBlock& block, std::string_view api) noexcept {
  CurrentContext current(driver_, block.context);
  GuardRecord* record = block.guard;
  if (!is_exiting()) {
    look_at_held(block, "leaving the quarantine");
  }
  quarantine_.begin_free(block);
  RelaxedCapture relaxed(driver_);
  block.state = BlockState::live;
  if (!free_below(block, FreeRequest{.api = api}).ok()) {
    block.state = BlockState::freed;
    quarantine_.put_back(block);
    return false;
  }
  quarantine_.freed();
  records_.remember(record);
  return true;
}

void GuardResource::shrink(uint64_t most) noexcept {
  DeviceBlock oldest;
  while (quarantine_.take_oldest(most, oldest) && release(oldest, "quarantine")) {
  }
}

// Another thread may be giving up what this one needs: it is waited for, as for a free of this thread's own. True: something was
// given up since `before` was read.
bool GuardResource::relieve(uint64_t before) noexcept {
  shrink(0);
  quarantine_.wait_for_others();
  return quarantine_.given_up() != before;
}

void GuardResource::prepare_context_end(CUcontext context, bool alive) noexcept {
  if (!alive) {
    return;
  }
  CurrentContext current(driver_, context);
  if (current.result() == CUDA_SUCCESS) {
    static_cast<void>(memory_.wait_for_work(context));  // what is not done is not looked at
    launch_checks_.settle(nullptr);
    ordered_.settle_all(context);
  }
}

void GuardResource::check_ending(const DeviceBlock& block, std::string_view api) noexcept {
  if (block.guard == nullptr) {
    return;
  }
  CurrentContext current(driver_, block.context);
  if (current.result() != CUDA_SUCCESS || !check_zone(*block.guard, api)) {
    reporter_.count_unchecked();
  }
}

void GuardResource::forget(DeviceBlock& block) noexcept {
  extra_.fetch_sub(extra_taken(block), std::memory_order_relaxed);
  block.bytes += block.guard_bytes;
  leave_pool(block.guard, block.bytes, block.guard_bytes);
  block.guard_bytes = 0;
  if (block.guard != nullptr) {
    records_.remove_live(*block.guard);
    records_.remember(block.guard);
    block.guard = nullptr;
  }
}

// Findings are told afterwards: a report looks at the live blocks, too.
void GuardResource::check_all(std::string_view found_by, bool at_exit) noexcept {
  constexpr size_t kMost = 32;
  struct Found {
    GuardRecord record;
    Damage damage;
  };
  ordered_.settle();
  launch_checks_.settle(nullptr);
  auto* bad = static_cast<Found*>(map_state(kMost * sizeof(Found)));
  size_t count = 0;
  records_.each_live([&](GuardRecord& record) {
    bool known = record.written && !record.ordered && record.device == inner_.device_ordinal();
    if (!known || bad == nullptr || count == kMost) {
      return;
    }
    CurrentContext current(driver_, record.context);
    Damage damage;
    bool good = current.result() == CUDA_SUCCESS && memory_.read_zone(record, damage);
    if (!good) {
      reporter_.count_unchecked();
    } else if (damage.count == 0) {
      record.clean_time = steady_time();
    } else {
      bad[count].record = record;
      records_.set_reported(record);
      bad[count++].damage = damage;
    }
  });
  for (size_t i = 0; i < count; ++i) {
    reporter_.report({.block = &bad[i].record, .damage = bad[i].damage, .found_by = found_by}, records_);
  }
  if (bad != nullptr) {
    unmap_state(bad, kMost * sizeof(Found));
  }
  for (size_t left = at_exit ? quarantine_.count() : 0; left != 0; --left) {
    DeviceBlock held;
    if (!quarantine_.take_oldest(0, held)) {
      break;
    }
    CurrentContext current(driver_, held.context);
    look_at_held(held, found_by);
    quarantine_.put_last(held);
  }
}

}  // namespace xlog
