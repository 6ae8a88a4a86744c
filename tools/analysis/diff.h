// Two runs, stack by stack.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

// Of one stack, on all GPUs of a run.
struct StackSums {
  std::string name;  // for people
  uint64_t at_peak = 0;
  uint64_t live = 0;  // at the end
  uint64_t bytes = 0;
  uint64_t allocations = 0;
};

// A run, for comparing: what a baseline file keeps of it.
struct RunSums {
  uint64_t peak = 0;  // of the GPU that had the highest
  uint64_t live = 0;
  uint64_t allocations = 0;
  std::map<std::string, StackSums> stacks;  // by stable name
};
RunSums sums_of(const Report& report);

std::string baseline_json(const RunSums& sums);
// False, and a line in `problem`, when the text is none.
bool read_baseline(const std::string& text, RunSums& out, std::string& problem);

enum class What : uint8_t { peak, live, total };
What parse_what(const std::string& name);  // "peak", "live", "total"
enum class Change : uint8_t { fresh, gone, grown, shrunk };
struct StackChange {
  Change change = Change::grown;
  std::string name;
  uint64_t before = 0;
  uint64_t after = 0;
  [[nodiscard]] uint64_t distance() const { return before < after ? after - before : before - after; }
};
// What differs, the largest first.
std::vector<StackChange> differences(const RunSums& before, const RunSums& after, What what);

const char* change_name(Change change);
std::string diff_text(const RunSums& before, const RunSums& after, What what, size_t top);
std::string diff_json(const RunSums& before, const RunSums& after, What what);

}  // namespace xlog::tools
