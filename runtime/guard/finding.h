// What the guard has found, as text of a fixed form (README, "The guard").
#pragma once

#include "runtime/base/text.h"
#include "runtime/guard/guard_record.h"
#include "runtime/guard/zone.h"
#include "runtime/record/recorder.h"
#include "runtime/resource/status.h"

namespace xlog {

enum class FindingKind : uint8_t { overflow, use_after_free, double_free, interior_free };

std::string_view finding_name(FindingKind kind) noexcept;

struct Finding {
  FindingKind kind = FindingKind::overflow;
  const GuardRecord* block = nullptr;
  Damage damage{};              // overflow, use_after_free
  std::string_view found_by{};  // the call, or the check, that looked
  uint64_t freed_ptr = 0;       // interior_free: what was passed
  GuardStack passed{};          // double_free, interior_free: by whom
};

// Writes findings to stderr and into the log, and ends the program where that is asked for. Thread-safe; all zero has no log.
class FindingReporter {
 public:
  // Before the first report. `log` nullptr: there is none.
  void configure(Recorder* log, bool aborts) noexcept {
    log_ = log;
    aborts_ = aborts;
  }
  void report(const Finding& finding, GuardRecords& records) noexcept;
  // What could not be checked, and why: counted here, told at exit.
  void count_unchecked() noexcept { unchecked_.fetch_add(1, std::memory_order_relaxed); }
  void count_unguarded() noexcept { unguarded_.fetch_add(1, std::memory_order_relaxed); }
  void summarize() noexcept;

 private:
  // Above this, findings are counted only.
  static constexpr uint32_t kMost = 100;

  Recorder* log_ = nullptr;
  bool aborts_ = false;
  Lock lock_{};
  std::atomic<uint32_t> findings_{0};
  std::atomic<uint64_t> unchecked_{0};
  std::atomic<uint64_t> unguarded_{0};
};

}  // namespace xlog
