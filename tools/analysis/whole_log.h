// Whether the logs of a run hold all of it, and what of its memory was kept until the end: what a check has to know before it says
// "good". Reads the rows by itself, so that an error of the analysis is not repeated here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

// Blocks of one stack on one GPU that were live at the end, or were freed only by what runs at the exit, and that were allocated
// all through the second half of their process's life: a program that begins has its blocks before that.
struct KeptGrowth {
  std::string gpu;  // GpuReport::key
  StackKey stack;
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

struct WholeLog {
  std::vector<std::string> doubts;     // a sentence each: why a log cannot be judged
  std::vector<std::string> left_out;   // a sentence each: what the log was told to leave out
  std::vector<std::string> open_ends;  // a sentence for each log without its end mark, which is legal
  std::vector<KeptGrowth> growth;      // the largest first
};

// `report`: of the same logs, whole.
WholeLog examine_log(const Report& report);

}  // namespace xlog::tools
