// Keeps cuCtxRecordEvent and stream captures apart: it invalidates every capture of its context, from every thread and in
// every mode (tests/gpu/captures.expected). Whoever records opens a section, which fails while anything captures; whoever
// begins a capture raises the flag and waits until no section is open. A section is a few driver calls that do not block,
// so neither side waits long. Thread-safe; all zero is a gate without captures.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/lock.h"
#include "runtime/resource/block.h"
#include "runtime/resource/growing_list.h"

namespace xlog {

class CaptureGate {
 public:
  [[nodiscard]] bool is_capturing() const noexcept { return active_.load(std::memory_order_seq_cst) != 0; }

  class Section {
   public:
    explicit Section(CaptureGate& gate) noexcept;
    ~Section() { leave(); }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;
    [[nodiscard]] bool is_open() const noexcept { return open_; }
    void leave() noexcept {
      if (open_) {
        sections_.fetch_sub(1, std::memory_order_seq_cst);
        open_ = false;
      }
    }

   private:
    std::atomic<uint32_t>& sections_;
    bool open_;
  };

  // Call before the driver is asked to begin a capture; `context` is the stream's.
  void begin(const StreamArg& stream, CUcontext context) noexcept;
  // The driver refused to begin it.
  void refused(const StreamArg& stream, CUcontext context) noexcept;
  // The stream has ended its capture, whichever thread asked for that; `context` is the stream's.
  void ended(const StreamArg& stream, CUcontext context) noexcept;
  // Call before the driver destroys the stream, because the handle may belong to another stream as soon as it has. Returns how many
  // captures ended with it; `restore` takes that number back when the driver refused.
  uint32_t stream_ends(CUstream stream) noexcept;
  void restore(CUstream stream, CUcontext context, uint32_t captures) noexcept;
  // Call while no other context can be given this handle.
  void context_ended(CUcontext context) noexcept;
  // The calling thread is about to end, and its per-thread streams with it.
  void thread_ends() noexcept;

 private:
  static constexpr size_t kSlots = 16;
  struct Capture {
    CUstream stream;
    uint32_t thread;  // of a per-thread stream: its handle is the same in each thread
    CUcontext context;
  };
  struct alignas(64) Slot {
    std::atomic<uint32_t> sections;
  };

  static Capture name(const StreamArg& stream, CUcontext context) noexcept;
  // The same stream: a thread has a stream of its own in each context.
  static bool same(const Capture& a, const Capture& b) noexcept {
    return a.stream == b.stream && a.thread == b.thread && (a.thread == 0 || a.context == b.context);
  }
  void add(const Capture& capture) noexcept;
  template <class Match>
  uint32_t remove(Match match, size_t most) noexcept;

  Slot slots_[kSlots];
  std::atomic<uint32_t> active_;
  Lock lock_;
  GrowingList<Capture> listed_;
};

}  // namespace xlog
