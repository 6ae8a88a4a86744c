#include "runtime/guard/guard_resource.h"

#include <utility>

#include "runtime/base/memory_map.h"
#include "runtime/base/thread.h"
#include "runtime/resource/current_context.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

bool is_want_of_memory(const Status& status) noexcept { return status.code == CUDA_ERROR_OUT_OF_MEMORY; }

uint64_t extra_taken(const DeviceBlock& block) noexcept {
  uint64_t without = taken_by(block.kind, block.bytes);
  return block.taken > without ? block.taken - without : 0;
}

}  // namespace

bool GuardResource::takes(const AllocationRequest& request) const noexcept {
  return request.kind <= Kind::pool && request.own == nullptr && request.reservation == nullptr && request.bytes != 0 &&
         request.context != nullptr;
}

// With a zone where there is room for one, else as it was asked for.
Status GuardResource::allocate_grown(const AllocationRequest& request, DeviceBlock& out) noexcept {
  AllocationRequest grown = request;
  bool pitched = request.kind == Kind::pitch;
  size_t extra = pitched ? request.width_bytes : settings_.zone;
  bool fits =
      settings_.zone != 0 && request.bytes + extra > request.bytes &&
      extra_.load(std::memory_order_relaxed) + (taken_by(request.kind, request.bytes + extra) - taken_by(request.kind, request.bytes)) <=
          settings_.most_extra;
  if (!fits) {
    if (settings_.zone != 0) {
      reporter_.count_unguarded();
    }
    return inner_.allocate(request, out);
  }
  grown.bytes += extra;
  grown.height += pitched ? 1 : 0;
  Status status = inner_.allocate(grown, out);
  if (is_want_of_memory(status)) {  // it may be the zone that does not fit
    status = inner_.allocate(request, out);
    if (status.ok()) {
      reporter_.count_unguarded();
    }
    return status;
  }
  if (status.ok()) {
    out.guard_bytes = pitched ? *request.pitch_out : extra;
    out.bytes -= out.guard_bytes;
    extra_.fetch_add(extra_taken(out), std::memory_order_relaxed);
  }
  return status;
}

void GuardResource::arm(const AllocationRequest& request, DeviceBlock& block) noexcept {
  GuardRecord* record = records_.make();
  if (record == nullptr) {
    reporter_.count_unguarded();
    return;
  }
  record->ptr = block.ptr;
  record->bytes = block.bytes;
  record->zone = block.guard_bytes < settings_.zone ? block.guard_bytes : settings_.zone;
  record->generation = block.generation.value;
  record->seed = zone_seed(block.ptr, record->generation);
  record->context = block.context;
  record->kind = block.kind;
  record->device = block.device;
  record->ordered = request.is_ordered();
  record->allocated.take(request.caller);
  if (record->zone != 0) {
    record->written = record->ordered ? memory_.write_zone(*record, request.stream_arg) : memory_.write_zone(*record);
  }
  if (settings_.poison_alloc && record->ordered) {
    memory_.fill(request.stream_arg, block.ptr, block.bytes, kPoisonAllocated);
  } else if (settings_.poison_alloc) {  // waited for: the program may write from any stream as soon as it has the address
    memory_.fill(block.context, block.ptr, block.bytes, kPoisonAllocated, true);
  }
  block.guard = record;
  records_.add_live(*record);
}

Status GuardResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  if (is_exiting() || !takes(request)) {
    return inner_.allocate(request, out);
  }
  ordered_.settle();
  Status status = allocate_grown(request, out);
  if (is_want_of_memory(status) && relieve()) {
    status = allocate_grown(request, out);
  }
  if (status.ok()) {
    arm(request, out);
  } else if (is_want_of_memory(status) && out_of_memory_.first()) {  // what follows may be a program that ends in disorder
    check_all("the first refusal for want of memory", false);
  }
  return status;
}

bool GuardResource::read_zone(const GuardRecord& record, Damage& damage) noexcept {
  unsigned char found[512];  // a part at a time: this is the program's stack
  for (size_t at = 0; at < record.zone; at += sizeof found) {
    size_t n = record.zone - at < sizeof found ? record.zone - at : sizeof found;
    if (!memory_.read(record.context, record.ptr + record.bytes + at, found, n)) {
      return false;
    }
    look_at_zone(record.seed, at, found, n, damage);
  }
  return true;
}

bool GuardResource::check_zone(GuardRecord& record, std::string_view found_by) noexcept {
  Finding finding;
  if (!record.written) {
    return true;
  }
  if (!read_zone(record, finding.damage)) {
    return false;
  }
  if (finding.damage.count != 0) {
    finding.block = &record;
    finding.found_by = found_by;
    reporter_.report(finding, records_);
  } else {
    record.clean_time = steady_time();
  }
  return true;
}

Status GuardResource::free_below(DeviceBlock& block, const FreeRequest& request) noexcept {
  uint64_t extra = extra_taken(block);
  block.bytes += block.guard_bytes;
  Status status = inner_.deallocate(block, request);
  if (!status.ok()) {
    block.bytes -= block.guard_bytes;
  } else if (block.guard_bytes != 0) {
    extra_.fetch_sub(extra, std::memory_order_relaxed);
  }
  return status;
}

Status GuardResource::free_ordered(DeviceBlock& block, const FreeRequest& request) noexcept {
  GuardRecord& record = *block.guard;
  if (!record.ordered) {
    memory_.finish_writes(record.context);
  }
  OrderedChecks::Slot* check = record.zone != 0 ? ordered_.begin(record, request.stream_arg, request.api) : nullptr;
  if (settings_.poison_free) {
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

Status GuardResource::free_now(DeviceBlock& block, const FreeRequest& request) noexcept {
  GuardRecord& record = *block.guard;
  CurrentContext current(driver_, block.context);
  bool quiet = current.result() == CUDA_SUCCESS && memory_.wait_for_work(block.context);
  bool checked = quiet && check_zone(record, request.api);
  if (!checked) {
    memory_.finish_writes(record.context);
  }
  if (checked && settings_.quarantine >= block.taken && !block.shared && hold_back(block)) {
    return {};
  }
  if (checked && settings_.poison_free) {
    memory_.fill(block.context, block.ptr, block.bytes, kPoisonFreed, true);
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
  record.freed.take(request.caller);
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
  if (!quarantine_.add(block)) {
    return false;
  }
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

// A block leaves the quarantine. Its context is alive.
void GuardResource::release(DeviceBlock& block, std::string_view api) noexcept {
  CurrentContext current(driver_, block.context);
  GuardRecord* record = block.guard;
  look_at_held(block, "leaving the quarantine");
  quarantine_.gone(block.ptr);
  RelaxedCapture relaxed(driver_);
  block.state = BlockState::live;
  static_cast<void>(free_below(block, FreeRequest{.api = api}));
  records_.remember(record);
}

// While something captures nothing leaves: its free would be one that the capture forbids.
void GuardResource::shrink(uint64_t most) noexcept {
  DeviceBlock oldest;
  while (!gate_.is_capturing() && quarantine_.take_oldest(most, oldest)) {
    release(oldest, "quarantine");
  }
}

bool GuardResource::relieve() noexcept {
  bool any = quarantine_.bytes() != 0;
  shrink(0);
  return any && quarantine_.bytes() == 0;
}

void GuardResource::prepare_context_end(CUcontext context, bool alive) noexcept {
  if (!alive) {
    return;
  }
  CurrentContext current(driver_, context);
  if (current.result() == CUDA_SUCCESS) {
    memory_.wait_for_work(context);
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
  if (block.guard_bytes != 0) {
    extra_.fetch_sub(extra_taken(block), std::memory_order_relaxed);
  }
  block.bytes += block.guard_bytes;
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
  auto* bad = static_cast<Found*>(map_state(kMost * sizeof(Found)));
  size_t count = 0;
  records_.each_live([&](GuardRecord& record) {
    bool known = record.written && !record.ordered && record.device == inner_.device_ordinal();
    if (!known || bad == nullptr || count == kMost) {
      return;
    }
    CurrentContext current(driver_, record.context);
    Damage damage;
    bool good = current.result() == CUDA_SUCCESS && read_zone(record, damage);
    if (!good) {
      reporter_.count_unchecked();
    } else if (damage.count == 0) {
      record.clean_time = steady_time();
    } else {
      record.written = false;  // told once
      bad[count].record = record;
      bad[count++].damage = damage;
    }
  });
  for (size_t i = 0; i < count; ++i) {
    reporter_.report({.block = &bad[i].record, .damage = bad[i].damage, .found_by = found_by}, records_);
  }
  if (bad != nullptr) {
    unmap_state(bad, kMost * sizeof(Found));
  }
  DeviceBlock held;
  while (at_exit && quarantine_.take_oldest(0, held)) {
    CurrentContext current(driver_, held.context);
    look_at_held(held, found_by);
  }
}

}  // namespace xlog
