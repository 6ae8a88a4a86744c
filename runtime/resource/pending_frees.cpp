#include "runtime/resource/pending_frees.h"

#include <sched.h>

#include <optional>

#include "runtime/base/ask.h"
#include "runtime/base/driver_api.h"
#include "runtime/resource/current_context.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

CUcontext PendingFrees::context_of(const StreamArg& stream) noexcept {
  CUcontext context = nullptr;
  bool special = stream.is_legacy() || stream.is_per_thread() || driver_.cuStreamGetCtx == nullptr;
  if (special || driver_.cuStreamGetCtx(stream.handle, &context) != CUDA_SUCCESS) {
    ask_twice([&] { return driver_.cuCtxGetCurrent(&context); });
  }
  return context;
}

PendingFrees::Entry* PendingFrees::take_spare(CUcontext context) noexcept {
  {
    LockGuard guard(lock_);
    Spares* spares = spares_.find(reinterpret_cast<uint64_t>(context));
    if (spares != nullptr && spares->first != nullptr) {
      Entry* entry = spares->first;
      spares->first = entry->next;
      return entry;
    }
  }
  Entry* entry = slab_.get();
  if (entry != nullptr) {
    entry->context = context;
  }
  return entry;
}

// Under the lock. Without host memory for the list the event stays where it is until its context ends.
void PendingFrees::put_spare(Entry* entry) noexcept {
  bool known = false;
  Spares* spares = spares_.claim(reinterpret_cast<uint64_t>(entry->context), known);
  if (spares == nullptr) {
    return;
  }
  entry->next = known ? spares->first : nullptr;
  spares->first = entry;
}

void PendingFrees::keep(Entry* entry) noexcept {
  LockGuard guard(lock_);
  entry->asked = entry->ending = false;
  entry->prev = nullptr;
  entry->next = pending_;
  if (pending_ != nullptr) {
    pending_->prev = entry;
  }
  pending_ = entry;
  total_.fetch_add(entry->bytes, std::memory_order_relaxed);
}

// Under the lock.
void PendingFrees::unlink(Entry* entry) noexcept {
  (entry->prev != nullptr ? entry->prev->next : pending_) = entry->next;
  if (entry->next != nullptr) {
    entry->next->prev = entry->prev;
  }
  total_.fetch_sub(entry->bytes, std::memory_order_release);
}

// In the relaxed capture mode, with the event's context current for as long as it takes.
bool PendingFrees::record(Entry& entry, const StreamArg& stream) noexcept {
  std::optional<CaptureGate::Section> section;
  if (stream.is_legacy() && gate_ != nullptr && !section.emplace(*gate_).is_open()) {
    return false;
  }
  CurrentContext current(driver_, entry.context);
  bool made = current.result() == CUDA_SUCCESS &&
              (entry.event != nullptr || driver_.cuEventCreate(&entry.event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  auto call = stream.per_thread_abi ? driver_.cuEventRecord_ptsz : driver_.cuEventRecord;
  return made && call != nullptr && call(entry.event, stream.handle) == CUDA_SUCCESS;
}

bool PendingFrees::record_over_context(Entry& entry) noexcept {
  std::optional<CaptureGate::Section> section;
  if (driver_.cuCtxRecordEvent == nullptr || (gate_ != nullptr && !section.emplace(*gate_).is_open())) {
    return false;
  }
  CurrentContext current(driver_, entry.context);
  bool made = current.result() == CUDA_SUCCESS &&
              (entry.event != nullptr || driver_.cuEventCreate(&entry.event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  return made && driver_.cuCtxRecordEvent(entry.context, entry.event) == CUDA_SUCCESS;
}

bool PendingFrees::add(const StreamArg& stream, uint64_t bytes) noexcept {
  RelaxedCapture relaxed(driver_);
  Entry* entry = take_spare(context_of(stream));
  if (entry == nullptr) {
    return false;
  }
  entry->bytes = bytes;
  entry->recorded = record(*entry, stream);
  keep(entry);
  return true;
}

bool PendingFrees::add_behind_context(uint64_t bytes) noexcept {
  CUcontext context = nullptr;
  ask_twice([&] { return driver_.cuCtxGetCurrent(&context); });
  Entry* entry = context != nullptr ? take_spare(context) : nullptr;
  if (entry == nullptr) {
    return false;
  }
  RelaxedCapture relaxed(driver_);
  entry->bytes = bytes;
  entry->recorded = record_over_context(*entry);
  keep(entry);
  return true;
}

// Under the lock: the first one from there on that may be asked.
PendingFrees::Entry* PendingFrees::ask_next(Entry* from) noexcept {
  while (from != nullptr && (from->asked || from->ending)) {
    from = from->next;
  }
  if (from != nullptr) {
    from->asked = true;
  }
  return from;
}

PendingFrees::Entry* PendingFrees::answered(Entry* entry, bool done, const Books& books) noexcept {
  LockGuard guard(lock_);
  Entry* next = ask_next(entry->next);
  entry->asked = false;
  if (done) {
    books.credit(entry->bytes);
    unlink(entry);
    put_spare(entry);
  }
  return next;
}

// Nothing is taken for done but what the event says; an error may be the context's, whose end is told.
bool PendingFrees::is_done(Entry& entry) noexcept {
  entry.recorded = entry.recorded || record_over_context(entry);
  return entry.recorded && driver_.cuEventQuery(entry.event) == CUDA_SUCCESS;
}

uint64_t PendingFrees::settle(const Books& books) noexcept {
  if (empty()) {
    return 0;
  }
  RelaxedCapture relaxed(driver_);
  uint64_t credit = 0;
  Entry* entry = nullptr;
  {
    LockGuard guard(lock_);
    entry = ask_next(pending_);
  }
  while (entry != nullptr) {
    bool done = is_done(*entry);
    credit += done ? entry->bytes : 0;
    entry = answered(entry, done, books);
  }
  return credit;
}

void PendingFrees::begin_context_end(CUcontext context, bool alive) noexcept {
  Entry* spare = nullptr;
  bool busy = true;
  while (busy) {
    busy = false;
    {
      LockGuard guard(lock_);
      for (Entry* each = pending_; each != nullptr; each = each->next) {
        if (each->context == context) {
          each->ending = true;
          busy = busy || each->asked;
        }
      }
      Spares* spares = spares_.find(reinterpret_cast<uint64_t>(context));
      if (spares != nullptr && !busy) {
        spare = spares->first;
        spares_.erase(spares);
      }
    }
    if (busy) {  // a query is on its way
      sched_yield();
    }
  }
  for (Entry* each = spare; alive && each != nullptr; each = each->next) {
    driver_.cuEventDestroy_v2(each->event);
  }
  slab_.put_list(spare);
}

void PendingFrees::finish_context_end(CUcontext context, bool ended, const Books& books) noexcept {
  LockGuard guard(lock_);
  for (Entry* each = pending_; each != nullptr;) {
    Entry* next = each->next;
    if (each->ending && each->context == context) {
      each->ending = false;
      if (ended) {
        books.credit(each->bytes);
        unlink(each);
        slab_.put(each);
      }
    }
    each = next;
  }
}

}  // namespace xlog
