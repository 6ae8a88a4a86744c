#include "runtime/guard/launch_checks.h"

#include <sched.h>
#include <string.h>

#include "runtime/base/diagnostics.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/thread.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

// As is_legacy() and is_per_thread() tell them apart.
uint64_t stream_key(const StreamArg& stream) noexcept {
  return stream.is_legacy() ? 1 : stream.is_per_thread() ? uint64_t{thread_id()} << 8 | 2 : reinterpret_cast<uint64_t>(stream.handle);
}

}  // namespace

LaunchChecks::Context* LaunchChecks::find(CUcontext context) noexcept {
  Context* each = contexts_.load(std::memory_order_acquire);
  while (each != nullptr && each->context.load(std::memory_order_acquire) != context) {
    each = each->next;
  }
  return each;
}

// Kernel and pinned memory are the context's and end with it. A context that cannot have them is not checked.
void LaunchChecks::prepare(CUcontext context) noexcept {
  if (find(context) != nullptr || gate_.is_capturing()) {
    return;
  }
  LockGuard guard(lock_);
  if (find(context) != nullptr) {
    return;
  }
  Context* fresh = find(nullptr);  // that another context has left
  bool made = fresh == nullptr;
  fresh = made ? static_cast<Context*>(map_state(sizeof(Context))) : fresh;
  if (fresh == nullptr) {
    return;
  }
  RelaxedCapture relaxed(driver_);
  CUmodule module = nullptr;
  void* pinned = nullptr;
  bool good = driver_.cuModuleLoadData != nullptr && driver_.cuModuleGetFunction != nullptr && driver_.cuLaunchKernel != nullptr &&
              driver_.cuMemHostAlloc != nullptr && driver_.cuModuleLoadData(&module, kCheckKernel) == CUDA_SUCCESS &&
              driver_.cuModuleGetFunction(&fresh->kernel, module, kCheckKernelName) == CUDA_SUCCESS &&
              driver_.cuMemHostAlloc(&pinned, kSlots * sizeof(Pinned), CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS;
  if (!good) {
    fresh->kernel = nullptr;
    if (said_none_.first()) {
      say("XLOG_GUARD_CHECK=launch: the kernel that checks could not be loaded; zones are checked when blocks are freed");
    }
  }
  fresh->pinned = static_cast<Pinned*>(pinned);
  fresh->context.store(context, std::memory_order_release);
  if (made) {
    fresh->next = contexts_.load(std::memory_order_relaxed);
    contexts_.store(fresh, std::memory_order_release);
  }
}

LaunchChecks::Slot* LaunchChecks::take(Context& context) noexcept {
  for (Slot& each : context.slots) {
    State free = State::free;
    if (each.state.compare_exchange_strong(free, State::filling, std::memory_order_acq_rel)) {
      return &each;
    }
  }
  return nullptr;
}

uint32_t LaunchChecks::collect(CUcontext context, Pinned& out) noexcept {
  uint32_t count = 0;
  records_.next_zones(context, kMostZones, [&](const ZoneList::Zone& zone) {
    if (memory_.has_landed(zone.write_number)) {
      out.zones[count++] = {.at = zone.at, .seed = zone.seed, .bytes = zone.bytes};
    }
  });
  memset(out.flags, 0, count * sizeof out.flags[0]);
  return count;
}

LaunchChecks::Put LaunchChecks::enqueue(Context& context, Slot& slot, const StreamArg& stream) noexcept {
  Pinned& pinned = pinned_of(context, slot);
  auto launch = stream.per_thread_abi ? driver_.cuLaunchKernel_ptsz : driver_.cuLaunchKernel;
  auto record = stream.per_thread_abi ? driver_.cuEventRecord_ptsz : driver_.cuEventRecord;
  uint64_t zones = reinterpret_cast<uint64_t>(pinned.zones);
  uint64_t flags = reinterpret_cast<uint64_t>(pinned.flags);
  void* arguments[] = {&zones, &flags};
  CaptureGate::Section section(gate_);
  if (!section.is_open() || launch == nullptr || record == nullptr) {
    return Put::nothing;
  }
  if (!stream.is_legacy()) {  // work there is refused beside a capture of a blocking stream, and loses it
    section.leave();
  }
  slot.zones = collect(context.context.load(std::memory_order_relaxed), pinned);
  if (slot.zones == 0 || (slot.event == nullptr && driver_.cuEventCreate(&slot.event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)) {
    return Put::nothing;
  }
  if (launch(context.kernel, slot.zones, 1, 1, kCheckThreads, 1, 1, 0, stream.handle, arguments, nullptr) != CUDA_SUCCESS) {
    return Put::nothing;
  }
  return record(slot.event, stream.handle) == CUDA_SUCCESS ? Put::check : Put::blind;
}

void LaunchChecks::launched(const Launch& launch, const StreamArg& stream, CUcontext context) noexcept {
  uint64_t key = stream_key(stream);
  uint64_t before = last_stream_.exchange(key, std::memory_order_relaxed);
  if (before != key && before != 0) {
    last_mixed_.store(launch.number, std::memory_order_relaxed);
  }
  if (waiting_.load(std::memory_order_relaxed) != 0) {
    settle(nullptr);
  }
  if (launch.number % every_ != 0 || gate_.is_capturing()) {
    return;
  }
  Context* known = find(context);
  Slot* slot = known != nullptr && known->kernel != nullptr ? take(*known) : nullptr;
  if (slot == nullptr) {
    return;  // so many are on their way: the next one sees what this one would have
  }
  preparing_.fetch_add(1, std::memory_order_seq_cst);
  Put put = enqueue(*known, *slot, stream);
  preparing_.fetch_sub(1, std::memory_order_seq_cst);
  if (put != Put::check) {  // a blind one keeps its slot until the context ends: the kernel may still read what is in it
    slot->state.store(put == Put::nothing ? State::free : State::blind, std::memory_order_release);
    return;
  }
  slot->launch = launch;
  slot->number.store(launch.number, std::memory_order_relaxed);
  slot->clean = known->last_checked.exchange(slot->zones < kMostZones ? launch.number : 0, std::memory_order_relaxed);
  slot->mixed = last_mixed_.load(std::memory_order_relaxed) > slot->clean;
  waiting_.fetch_add(1, std::memory_order_relaxed);
  slot->state.store(State::waiting, std::memory_order_release);
}

void LaunchChecks::look(Context& context, Slot& slot, GuardRecord* leaving) noexcept {
  struct Found {
    GuardRecord record;
    Damage damage;
  };
  constexpr size_t kMost = 4;  // a check: this is the program's stack
  Found found[kMost];
  size_t count = 0;
  const Pinned& pinned = pinned_of(context, slot);
  for (uint32_t i = 0; i < slot.zones && count < kMost; ++i) {
    if (pinned.flags[i] == 0) {
      continue;
    }
    auto read = [&](GuardRecord& record) {
      bool same = count < kMost && record.written && record.seed == pinned.zones[i].seed && record.ptr + record.bytes == pinned.zones[i].at;
      if (same && memory_.read_zone(record, found[count].damage) && found[count].damage.count != 0) {
        found[count++].record = record;
        records_.set_reported(record);
      }
    };
    if (leaving != nullptr) {
      read(*leaving);
    }
    records_.each_live(read);
  }
  CheckedLaunch checked{.launch = slot.launch, .clean = slot.clean, .mixed = slot.mixed};
  for (size_t i = 0; i < count; ++i) {
    reporter_.report({.block = &found[i].record, .damage = found[i].damage, .found_by = "the check", .behind = &checked}, records_);
  }
}

// In the order of launches, so that the first kernel behind which a zone is bad is the one that is named.
void LaunchChecks::settle(GuardRecord* leaving) noexcept {
  if (waiting_.load(std::memory_order_relaxed) == 0) {
    return;
  }
  RelaxedCapture relaxed(driver_);
  for (Context* context = contexts_.load(std::memory_order_acquire); context != nullptr; context = context->next) {
    uint64_t last = 0;
    for (Slot* slot = next_waiting(*context, last); slot != nullptr; slot = next_waiting(*context, last)) {
      last = slot->number.load(std::memory_order_relaxed);
      State waiting = State::waiting;
      if (!slot->state.compare_exchange_strong(waiting, State::looking, std::memory_order_acq_rel)) {
        continue;
      }
      CUresult result = driver_.cuEventQuery(slot->event);
      if (!GuardMemory::is_over(result)) {
        slot->state.store(State::waiting, std::memory_order_release);
        continue;
      }
      if (result == CUDA_SUCCESS) {
        look(*context, *slot, leaving);
      }
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      slot->state.store(State::free, std::memory_order_release);
    }
  }
}

LaunchChecks::Slot* LaunchChecks::next_waiting(Context& context, uint64_t after) noexcept {
  Slot* next = nullptr;
  uint64_t lowest = UINT64_MAX;
  for (Slot& each : context.slots) {
    uint64_t number = each.number.load(std::memory_order_relaxed);
    if (each.state.load(std::memory_order_acquire) == State::waiting && number > after && number < lowest) {
      next = &each;
      lowest = number;
    }
  }
  return next;
}

void LaunchChecks::wait_for_preparation() noexcept {
  while (preparing_.load(std::memory_order_seq_cst) != 0) {
    sched_yield();
  }
}

// A wait that is refused is asked for again: another one's failure may have been in its way.
WaitResult LaunchChecks::finish(CUcontext ended) noexcept {
  constexpr int kTries = 8;
  CUresult refused = CUDA_SUCCESS;
  RelaxedCapture relaxed(driver_);
  for (Context* context = contexts_.load(std::memory_order_acquire); context != nullptr; context = context->next) {
    bool theirs = context->context.load(std::memory_order_acquire) == ended;
    for (size_t i = 0; theirs && i < kSlots; ++i) {
      Slot& slot = context->slots[i];
      if (slot.state.load(std::memory_order_acquire) == State::waiting) {
        CUresult code = driver_.cuEventSynchronize(slot.event);
        for (int tries = 1; !GuardMemory::is_over(code) && tries < kTries; ++tries) {
          code = driver_.cuEventSynchronize(slot.event);
        }
        refused = GuardMemory::is_over(code) ? refused : code;
      }
    }
  }
  settle(nullptr);
  return WaitResult::from(refused);
}

void LaunchChecks::suspend(CUcontext ending) noexcept {
  constexpr uint64_t kPatience = 1'000'000'000;
  uint64_t start = steady_time();
  for (Context* context = contexts_.load(std::memory_order_acquire); context != nullptr; context = context->next) {
    bool theirs = ending != nullptr && context->context.load(std::memory_order_acquire) == ending;
    for (size_t i = 0; theirs && i < kSlots; ++i) {
      std::atomic<State>& at = context->slots[i].state;
      for (State state = State::waiting; !at.compare_exchange_strong(state, State::suspended);) {
        if (state != State::looking || steady_time() - start > kPatience) {
          break;
        }
        sched_yield();
        state = State::waiting;
      }
    }
  }
}

void LaunchChecks::resume(CUcontext stays) noexcept {
  for (Context* context = contexts_.load(std::memory_order_acquire); context != nullptr; context = context->next) {
    bool theirs = stays != nullptr && context->context.load(std::memory_order_acquire) == stays;
    for (size_t i = 0; theirs && i < kSlots; ++i) {
      State suspended = State::suspended;
      context->slots[i].state.compare_exchange_strong(suspended, State::waiting);
    }
  }
}

void LaunchChecks::context_ended(CUcontext ended) noexcept {
  suspend(ended);
  LockGuard guard(lock_);
  for (Context* context = contexts_.load(std::memory_order_relaxed); context != nullptr; context = context->next) {
    if (ended == nullptr || context->context.load(std::memory_order_relaxed) != ended) {
      continue;
    }
    for (Slot& slot : context->slots) {
      State suspended = State::suspended;
      slot.event = nullptr;
      State blind = State::blind;
      if (slot.state.compare_exchange_strong(suspended, State::free, std::memory_order_acq_rel)) {
        waiting_.fetch_sub(1, std::memory_order_relaxed);
      } else {
        slot.state.compare_exchange_strong(blind, State::free, std::memory_order_acq_rel);
      }
    }
    context->last_checked.store(0, std::memory_order_relaxed);
    context->kernel = nullptr;
    context->pinned = nullptr;
    context->context.store(nullptr, std::memory_order_release);
  }
}

}  // namespace xlog
