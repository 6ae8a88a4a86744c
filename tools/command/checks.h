// What `xlog check` asks of a run. Each function adds a failure for what is not as it should be.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/diff.h"
#include "tools/analysis/suppressions.h"
#include "tools/analysis/whole_log.h"

namespace xlog::tools {

struct Failure {
  std::string check;
  std::string text;
};

// No GPU had more than `most` bytes at its peak.
void check_peak(const Report& report, uint64_t most, std::vector<Failure>& failures);
// Everything was freed. What is freed at the exit is no leak.
void check_leaks(const Report& report, const Suppressions& suppressions, std::vector<Failure>& failures);
// Nothing grew until the end, by two measures: live bytes of a stack that grew over the second half of the run, and blocks that
// were allocated all the time and kept until the exit.
void check_growth(const Report& report, const WholeLog& whole, std::vector<Failure>& failures);
// The guard has found nothing; nothing was refused for want of memory.
void check_findings(const Report& report, std::vector<Failure>& failures);
void check_refusals(const Report& report, std::vector<Failure>& failures);
// No stack, and no GPU, has more at the peak than before. `tolerance`: the share that it may be more.
void check_baseline(const RunSums& before, const RunSums& after, double tolerance, std::vector<Failure>& failures);

}  // namespace xlog::tools
