// Which blocks have rows: all of at least some size, and of those a sample. A block of `bytes` is taken with the
// probability bytes / sample, so that each taken one stands for `sample` bytes, or for itself when it is larger: totals
// over the sample are unbiased. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/options.h"
#include "runtime/base/thread.h"

namespace xlog {

class LogFilter {
 public:
  LogFilter() noexcept = default;
  explicit LogFilter(const Options& options) noexcept : least_(options.log_min), sample_(options.log_sample) {}

  // Of a size that is not known, 0, always.
  [[nodiscard]] bool wants(size_t bytes) noexcept {
    return bytes == 0 || (bytes >= least_ && (bytes >= sample_ || random_below(sample_) < bytes));
  }
  void count_left_out(size_t bytes) noexcept {
    count_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t left_out() const noexcept { return count_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t left_out_bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  uint64_t least_ = 0;
  uint64_t sample_ = 0;
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace xlog
