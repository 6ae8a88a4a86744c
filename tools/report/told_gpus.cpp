// A run of thousands of ranks has thousands of GPUs: what each stack held on all of them is one answer.
#include <algorithm>

#include "tools/analysis/group_sum.h"
#include "tools/report/report.h"

namespace xlog::tools {

namespace {

void add(GpuReport& sum, const GpuReport& gpu) {
  sum.live += gpu.live;
  sum.live_blocks += gpu.live_blocks;
  sum.peak += gpu.peak;
  sum.peak_taken += gpu.peak_taken;
  sum.allocations += gpu.allocations;
  sum.failed += gpu.failed;
  sum.refusals += gpu.refusals;
  for (size_t i = 0; i < kDimensions; ++i) {
    bool few = static_cast<By>(i) == By::stack || static_cast<By>(i) == By::kind || static_cast<By>(i) == By::tag ||
               static_cast<By>(i) == By::query;  // threads, streams and processes are each rank's own
    for (const auto& [number, group] : gpu.groups[i].entries()) {
      if (few) {
        add_group(sum.groups[i].at(number), group);
      }
    }
  }
  constexpr size_t kRefusals = 3;
  for (size_t i = 0; i < gpu.refused.size() && sum.refused.size() < kRefusals; ++i) {
    sum.refused.push_back(gpu.refused[i]);
  }
}

}  // namespace

std::vector<const GpuReport*> told_gpus(const Report& report, GpuReport& sum) {
  std::vector<const GpuReport*> told;
  size_t gpus = 0;
  for (const GpuReport& gpu : report.gpus) {
    gpus += gpu.is_gpu() ? 1 : 0;
    told.push_back(&gpu);
  }
  if (gpus <= kMostGpusTold) {
    return told;
  }
  std::erase_if(told, [](const GpuReport* gpu) { return gpu->is_gpu(); });
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.is_gpu()) {
      add(sum, gpu);
    }
  }
  for (Groups& groups : sum.groups) {
    groups.sort();
  }
  sum.key = std::to_string(gpus);
  sum.stands_for = gpus;
  told.insert(told.begin(), &sum);
  return told;
}

}  // namespace xlog::tools
