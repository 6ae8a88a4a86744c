#include "tools/command/checks.h"

#include <set>

#include "tools/report/format.h"
#include "tools/report/report.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

// The same stack of several processes has one place.
uint32_t place_of(const Report& report, const StackKey& key) {
  const Stack* stack = report.stacks[key.process].find(key.stack);
  for (uint32_t i = 0; i < report.places.size(); ++i) {
    const Stack* each = report.stack(i);
    if (each == stack || (each != nullptr && stack != nullptr && each->frames == stack->frames)) {
      return i;
    }
  }
  return 0;
}

}  // namespace

void check_peak(const Report& report, uint64_t most, std::vector<Failure>& failures) {
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.is_gpu() && gpu.peak > most) {
      auto top = largest(gpu.by(By::stack), &Group::at_peak, &Group::blocks_at_peak, 1);
      failures.push_back({"max-peak", gpu_title(gpu) + ": peak " + size_text(gpu.peak) + ", " + size_text(gpu.peak - most) + " above " +
                                          size_text(most) + "; most of it by " + (top.empty() ? "" : holder_name(report, top[0].place))});
    }
  }
}

void check_leaks(const Report& report, const Suppressions& suppressions, std::vector<Failure>& failures) {
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.key == "import") {
      continue;
    }
    for (const Holder& each : largest(gpu.by(By::stack), &Group::live, &Group::live_blocks, SIZE_MAX)) {
      if (!suppressions.match(report.stack(each.place))) {
        failures.push_back({"no-leaks", gpu_title(gpu) + ": " + size_text(each.bytes) + " in " + plural(each.blocks, "block") + ' ' +
                                            left_text(report) + ", made by " + holder_name(report, each.place)});
      }
    }
  }
}

void check_growth(const Report& report, const WholeLog& whole, std::vector<Failure>& failures) {
  for (const GpuReport& gpu : report.gpus) {
    std::set<uint32_t> told;
    for (const KeptGrowth& each : whole.growth) {
      if (each.gpu != gpu.key || gpu.key == "import") {
        continue;
      }
      uint32_t place = place_of(report, each.stack);
      told.insert(place);
      failures.push_back({"no-growth", gpu_title(gpu) + ": " + size_text(each.bytes) + " in " + plural(each.blocks, "block") +
                                           ", allocated all through the second half and not freed before the exit, by " +
                                           holder_name(report, place)});
    }
    for (const Growth& each : gpu.growing) {
      if (!told.contains(each.place)) {
        failures.push_back({"no-growth", gpu_title(gpu) + ": grew from " + size_text(each.from) + " to " + size_text(each.to) +
                                             " over the second half, by " + holder_name(report, each.place)});
      }
    }
  }
}

void check_findings(const Report& report, std::vector<Failure>& failures) {
  for (const GuardFinding& each : report.findings) {
    failures.push_back({"no-findings", "guard: " + each.text});
  }
}

void check_refusals(const Report& report, std::vector<Failure>& failures) {
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.refusals != 0) {
      failures.push_back({"no-refusals", gpu_title(gpu) + ": " + plural(gpu.refusals, "request") + " refused for want of memory"});
    }
  }
}

void check_baseline(const RunSums& before, const RunSums& after, double tolerance, std::vector<Failure>& failures) {
  constexpr uint64_t kLeast = 1 << 20;  // a stack that grew by less is no news
  auto above = [&](uint64_t was, uint64_t is) { return static_cast<double>(is) > static_cast<double>(was) * (1 + tolerance); };
  if (above(before.peak, after.peak)) {
    failures.push_back({"baseline", "peak " + size_text(after.peak) + ", was " + size_text(before.peak)});
  }
  for (const StackChange& each : differences(before, after, What::peak)) {
    if (each.after > each.before && each.distance() >= kLeast && above(each.before, each.after)) {
      failures.push_back({"baseline", size_text(each.after) + " at the peak, was " + size_text(each.before) + ", by " + each.name});
    }
  }
}

}  // namespace xlog::tools
