// What a GPU held over the run, as one line of blocks.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

// Sixty columns: the highest of each sixtieth of the run, as eighths of the peak.
inline std::string sparkline(const GpuReport& gpu) {
  constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr size_t kColumns = 60;
  const std::vector<uint64_t>& steps = gpu.timeline.highest();
  std::string text;
  for (size_t i = 0; i < kColumns && !steps.empty(); ++i) {
    size_t width = steps.size() / kColumns;
    auto begin = steps.begin() + static_cast<long>(i * width);
    uint64_t highest = *std::max_element(begin, begin + static_cast<long>(width));
    bool none = highest == 0 || gpu.peak == 0;
    text += kBlocks[none ? 0 : 1 + static_cast<size_t>(7.0 * static_cast<double>(highest) / static_cast<double>(gpu.peak))];
  }
  return text;
}

}  // namespace xlog::tools
