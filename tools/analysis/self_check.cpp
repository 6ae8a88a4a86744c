#include "tools/analysis/self_check.h"

#include "tools/report/format.h"

namespace xlog::tools {

void SelfCheck::contradict(size_t process, uint64_t seq, const std::string& what) {
  ++report_.contradiction_count;
  if (report_.contradictions.size() < kMost) {
    report_.contradictions.push_back(report_.logs[process].csv + ": seq " + std::to_string(seq) + ": " + what);
  }
}

void SelfCheck::finish(size_t process, bool has_gaps, bool exact_live) {
  if (missing_[process] != 0 && !has_gaps) {
    contradict(process, last_seq_[process], plural(missing_[process], "row") + " missing before it");
  }
  for (const auto& [seq, what] : wrong_live_) {
    if (exact_live) {
      contradict(process, seq, what);
    }
  }
}

}  // namespace xlog::tools
