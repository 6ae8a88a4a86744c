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

  // Before the driver is asked to begin a capture; `context` is the stream's.
  void begin(const StreamArg& stream, CUcontext context) noexcept;
  // The driver refused to begin it.
  void refused(const StreamArg& stream) noexcept;
  // The stream captures no longer: it ended its capture or was destroyed, by whatever thread.
  void ended(const StreamArg& stream) noexcept;
  void context_ended(CUcontext context) noexcept;

 private:
  static constexpr size_t kListed = 64;
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
  template <class Match>
  void remove(Match match, size_t most) noexcept;

  Slot slots_[kSlots];
  std::atomic<uint32_t> active_;
  Lock lock_;
  Capture listed_[kListed];
  size_t count_;
  size_t unlisted_;  // more than kListed capture at once
};

}  // namespace xlog
