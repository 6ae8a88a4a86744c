// Which refusals for want of memory are told, and where: NAME.oom.N.json beside the log, and XLOG_SUMMARY.
//
// A program that backs off (a framework that asks for less and less) makes one episode of refusals: it begins with the first and
// ends when memory is given that is at least a quarter of the least that was refused. An episode has one file, written at its
// beginning and again when what is live has changed since. Thread-safe; all zero has seen nothing.
#pragma once

#include <atomic>

#include "runtime/base/options.h"
#include "runtime/record/recorder.h"
#include "runtime/refusal/refusal.h"

namespace xlog {

class RefusalReporter {
 public:
  static constexpr uint32_t kMostFiles = 5;  // the last one is that of the last episode

  // Before the first refusal. `folder`: where a relative path of XLOG_SUMMARY begins.
  void configure(const Options& options, Recorder& recorder, std::string_view folder) noexcept;
  [[nodiscard]] bool is_wanted() const noexcept { return options_ != nullptr && (options_->log.size != 0 || options_->has_summary()); }

  // True: this one is to be told, by tell(), and nobody else tells one meanwhile. `device`: -1 for pinned host memory.
  bool begin(int device, uint64_t requested, uint64_t live_bytes, uint64_t now) noexcept;
  // Fills in what it knows itself: the number, the program, the labels.
  void tell(Refusal& refusal) noexcept;
  // Memory was given.
  void given(int device, uint64_t bytes) noexcept {
    std::atomic<uint64_t>& least = least_[place(device)];
    uint64_t refused = least.load(std::memory_order_relaxed);
    if (refused != 0 && bytes >= refused / 4) {
      least.store(0, std::memory_order_relaxed);
    }
  }
  void begin_exit() noexcept;

 private:
  static constexpr size_t kTextBytes = 4096;  // what Kubernetes shows of a termination message
  static constexpr size_t kDevices = 1024;    // with those above, the last place is for memory that is no GPU's
  static size_t place(int device) noexcept {
    return device >= 0 && static_cast<size_t>(device) < kDevices ? static_cast<size_t>(device) : kDevices;
  }
  struct Draft;
  void write(const Refusal& refusal, Draft& draft) noexcept;
  void write_summary(std::string_view text) noexcept;

  const Options* options_;
  Recorder* recorder_;
  std::atomic<bool> telling_;
  std::atomic<uint64_t> refusals_;
  std::atomic<uint64_t> least_[kDevices + 1];  // that was refused in the episode; 0: none is open
  // Of whoever is telling:
  uint32_t files_;
  uint64_t live_told_;
  uint64_t began_;
  uint64_t next_;  // steady time before which an episode is not told again
  char* text_;     // the last one
  size_t text_size_;
  char summary_path_[2048];
};

}  // namespace xlog
