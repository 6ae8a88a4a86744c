// What the guard has found, as text of a fixed form (README, "The guard").
#pragma once

#include <span>

#include "runtime/base/text.h"
#include "runtime/guard/guard_record.h"
#include "runtime/guard/launches.h"
#include "runtime/guard/zone.h"
#include "runtime/record/recorder.h"
#include "runtime/resource/status.h"

namespace xlog {

enum class FindingKind : uint8_t { overflow, use_after_free, double_free, interior_free };

// The launch behind which a check found something, and the one behind which the check before it did not.
struct CheckedLaunch {
  Launch launch;
  uint64_t clean = 0;  // 0: none before
  bool mixed = false;  // several streams had work between the two
};

std::string_view finding_name(FindingKind kind) noexcept;

struct Finding {
  FindingKind kind = FindingKind::overflow;
  const GuardRecord* block = nullptr;
  Damage damage{};                        // overflow, use_after_free
  std::string_view found_by{};            // the call, or the check, that looked
  const CheckedLaunch* behind = nullptr;  // a check of launches looked
  uint64_t freed_ptr = 0;                 // interior_free: what was passed
  GuardStack passed{};                    // double_free, interior_free: by whom
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
  // The GPU met an address that is not mapped (CUDA_ERROR_ILLEGAL_ADDRESS, from `api`); which, nobody tells. Says which
  // fenced blocks there are, which were freed last, and which kernels were launched last.
  void report_fault(std::string_view api, GuardRecords& records, std::span<const Launch> last) noexcept;
  [[nodiscard]] uint32_t count() const noexcept { return findings_.load(std::memory_order_relaxed); }
  // What could not be checked, and why: counted here, told at exit.
  void count_unchecked() noexcept { unchecked_.fetch_add(1, std::memory_order_relaxed); }
  void count_unguarded() noexcept { unguarded_.fetch_add(1, std::memory_order_relaxed); }
  void count_overtaken(uint64_t zones) noexcept {
    if (zones != 0) {
      overtaken_.fetch_add(zones, std::memory_order_relaxed);
    }
  }
  void summarize() noexcept;

 private:
  void abort_if_asked() const noexcept;

  // Above this, findings are counted only.
  static constexpr uint32_t kMost = 100;

  Recorder* log_ = nullptr;
  bool aborts_ = false;
  Lock lock_{};
  std::atomic<uint32_t> findings_{0};
  std::atomic<uint64_t> unchecked_{0};
  std::atomic<uint64_t> unguarded_{0};
  std::atomic<uint64_t> overtaken_{0};
};

}  // namespace xlog
