#include "runtime/resource/capture_gate.h"

#include <sched.h>

#include "runtime/base/thread.h"

namespace xlog {

CaptureGate::Section::Section(CaptureGate& gate) noexcept : sections_(gate.slots_[thread_id() % kSlots].sections), open_(true) {
  sections_.fetch_add(1, std::memory_order_seq_cst);
  if (gate.is_capturing()) {
    leave();
  }
}

CaptureGate::Capture CaptureGate::name(const StreamArg& stream, CUcontext context) noexcept {
  bool own = stream.is_per_thread();
  return {.stream = own ? CU_STREAM_PER_THREAD : stream.handle, .thread = own ? thread_id() : 0, .context = context};
}

void CaptureGate::begin(const StreamArg& stream, CUcontext context) noexcept {
  active_.fetch_add(1, std::memory_order_seq_cst);
  {
    LockGuard guard(lock_);
    if (count_ < kListed) {
      listed_[count_++] = name(stream, context);
    } else {
      ++unlisted_;
    }
  }
  for (Slot& each : slots_) {
    for (int spin = 0; each.sections.load(std::memory_order_seq_cst) != 0; ++spin) {
      if (spin > 100) {
        sched_yield();
      }
    }
  }
}

template <class Match>
void CaptureGate::remove(Match match, size_t most) noexcept {
  LockGuard guard(lock_);
  size_t removed = 0;
  for (size_t i = count_; i-- > 0 && removed < most;) {
    if (match(listed_[i])) {
      listed_[i] = listed_[--count_];
      ++removed;
    }
  }
  if (removed == 0 && unlisted_ != 0) {
    --unlisted_;
    removed = 1;
  }
  active_.fetch_sub(static_cast<uint32_t>(removed), std::memory_order_seq_cst);
}

void CaptureGate::refused(const StreamArg& stream) noexcept {
  Capture meant = name(stream, nullptr);
  remove([&](const Capture& each) { return each.stream == meant.stream && each.thread == meant.thread; }, 1);
}

void CaptureGate::ended(const StreamArg& stream) noexcept {
  if (!is_capturing()) {
    return;
  }
  Capture meant = name(stream, nullptr);
  remove([&](const Capture& each) { return each.stream == meant.stream && each.thread == meant.thread; }, kListed);
}

void CaptureGate::context_ended(CUcontext context) noexcept {
  if (is_capturing()) {
    remove([context](const Capture& each) { return each.context == context; }, kListed);
  }
}

}  // namespace xlog
