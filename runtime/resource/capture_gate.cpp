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

// Without host memory for its name the capture stays counted for good: the backends then ask the driver for each free as they do
// beside any capture, which is slower and still right.
void CaptureGate::add(const Capture& capture) noexcept {
  active_.fetch_add(1, std::memory_order_seq_cst);
  LockGuard guard(lock_);
  static_cast<void>(listed_.add(capture));
}

void CaptureGate::begin(const StreamArg& stream, CUcontext context) noexcept {
  add(name(stream, context));
  for (Slot& each : slots_) {
    for (int spin = 0; each.sections.load(std::memory_order_seq_cst) != 0; ++spin) {
      if (spin > 100) {
        sched_yield();
      }
    }
  }
}

template <class Match>
uint32_t CaptureGate::remove(Match match, size_t most) noexcept {
  if (!is_capturing()) {
    return 0;
  }
  LockGuard guard(lock_);
  uint32_t removed = 0;
  for (size_t i = listed_.size(); i-- > 0 && removed < most;) {
    if (match(listed_[i])) {
      listed_.remove_at(i);
      ++removed;
    }
  }
  active_.fetch_sub(removed, std::memory_order_seq_cst);
  return removed;
}

void CaptureGate::refused(const StreamArg& stream, CUcontext context) noexcept {
  Capture meant = name(stream, context);
  remove([&](const Capture& each) { return same(each, meant); }, 1);
}

void CaptureGate::ended(const StreamArg& stream, CUcontext context) noexcept {
  Capture meant = name(stream, context);
  remove([&](const Capture& each) { return same(each, meant); }, SIZE_MAX);
}

uint32_t CaptureGate::stream_ends(CUstream stream) noexcept {
  return remove([stream](const Capture& each) { return each.stream == stream && each.thread == 0; }, SIZE_MAX);
}

void CaptureGate::restore(CUstream stream, CUcontext context, uint32_t captures) noexcept {
  for (; captures != 0; --captures) {
    add(name({.handle = stream}, context));
  }
}

void CaptureGate::context_ended(CUcontext context) noexcept {
  remove([context](const Capture& each) { return each.context == context; }, SIZE_MAX);
}

void CaptureGate::thread_ends() noexcept {
  uint32_t thread = thread_id();
  remove([thread](const Capture& each) { return each.thread == thread; }, SIZE_MAX);
}

}  // namespace xlog
