// What was live over time, in steps: the highest of each, and who held it at a few moments.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace xlog::tools {

// First and last time of a run, ns since the epoch.
struct TimeSpan {
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  void add(const TimeSpan& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
  [[nodiscard]] uint64_t length() const { return last > first ? last - first : 0; }
};

// Highest live bytes in each of kSteps equal parts of the span.
class Timeline {
 public:
  static constexpr size_t kSteps = 960;

  void note(const TimeSpan& span, uint64_t time, uint64_t live) {
    if (time < begin_ || time >= end_) {
      go_to(span, time);
    }
    highest_[step_] = std::max(highest_[step_], live);
    last_ = live;
  }
  // Fills the steps without an event behind the last one.
  void finish();
  [[nodiscard]] const std::vector<uint64_t>& highest() const { return highest_; }

 private:
  void go_to(const TimeSpan& span, uint64_t time);

  std::vector<uint64_t> highest_;
  size_t step_ = 0;
  uint64_t begin_ = 1;  // times of the current step
  uint64_t end_ = 0;
  uint64_t last_ = 0;
};

// Live bytes by stack at one moment, largest first.
struct Snapshot {
  uint64_t time = 0;
  uint64_t live = 0;
  std::vector<std::pair<uint32_t, uint64_t>> places;  // number in Report::places, bytes
};

}  // namespace xlog::tools
