// Numbers for what blocks have in common: asked for at every row, so the last answers are looked at first.
#pragma once

#include <array>
#include <map>
#include <unordered_map>

#include "tools/analysis/analysis.h"
#include "tools/log/names.h"

namespace xlog::tools {

// Of the stacks of all processes: the same frames, the same number.
class Places {
 public:
  explicit Places(Report& report) : report_(report), known_(report.logs.size()) {}
  uint32_t of(size_t process, uint64_t stack) {
    std::vector<uint32_t>& known = known_[process];
    return stack < known.size() && known[stack] != kUnknown ? known[stack] : look_up(process, stack);
  }

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;
  static constexpr uint64_t kMostNumbers = 1 << 22;  // that a log can have; others are looked up each time
  uint32_t look_up(size_t process, uint64_t stack);

  Report& report_;
  std::vector<std::vector<uint32_t>> known_;  // by process and stack_id
  std::map<std::vector<const Frame*>, uint32_t> by_frames_;
  std::map<StackKey, uint32_t> by_number_;  // those that the stacks file does not have
};

// Of (process, value): threads and streams.
class ProcessNumbers {
 public:
  explicit ProcessNumbers(size_t processes) : known_(processes) {}
  // `fresh(number)` when it is a new one.
  template <class Fresh>
  uint32_t of(size_t process, uint64_t value, Fresh fresh) {
    Known& known = known_[process];
    Recent& recent = known.recent[value * 0x9E3779B97F4A7C15ULL >> (64 - kRecentBits)];
    if (recent.is_known && recent.value == value) {
      return recent.number;
    }
    auto [it, is_new] = known.numbers.try_emplace(value, count_);
    if (is_new) {
      fresh(count_++);
    }
    recent = {value, it->second, true};
    return it->second;
  }

 private:
  static constexpr unsigned kRecentBits = 3;
  struct Recent {
    uint64_t value = 0;
    uint32_t number = 0;
    bool is_known = false;
  };
  struct Known {
    std::array<Recent, 1 << kRecentBits> recent;
    std::unordered_map<uint64_t, uint32_t> numbers;
  };
  std::vector<Known> known_;
  uint32_t count_ = 0;
};

}  // namespace xlog::tools
