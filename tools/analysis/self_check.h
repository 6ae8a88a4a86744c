// Where a log contradicts itself: numbers missing or out of order, ends without beginnings, a ledger that does not add up.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

class SelfCheck {
 public:
  explicit SelfCheck(Report& report) : report_(report), last_seq_(report.logs.size()), missing_(report.logs.size()) {}

  void contradict(size_t process, uint64_t seq, const std::string& what);

  void follow_seq(size_t process, const Event& event) {
    if (event.seq == kNone || event.seq == 0) {
      return;
    }
    uint64_t& last = last_seq_[process];
    if (event.seq <= last) {
      contradict(process, event.seq, "follows seq " + std::to_string(last));
    } else {
      missing_[process] += event.seq - last - 1;
    }
    last = event.seq;
  }
  // The ledger of a row: `live` is what the rows add up to.
  void follow_live(const Event& event, uint64_t live) {
    if (event.live_bytes != kNone && event.live_bytes != live && wrong_live_.size() < kMost) {
      wrong_live_.emplace_back(event.seq,
                               "live_bytes " + std::to_string(event.live_bytes) + ", the rows add up to " + std::to_string(live));
    }
  }
  // At the end of a log. `has_gaps`: places stand for the missing rows. `exact_live`: the ledger of each row had to be exact.
  void finish(size_t process, bool has_gaps, bool exact_live);

 private:
  static constexpr size_t kMost = 10;
  Report& report_;
  std::vector<uint64_t> last_seq_;
  std::vector<uint64_t> missing_;  // numbers that no row has
  std::vector<std::pair<uint64_t, std::string>> wrong_live_;
};

}  // namespace xlog::tools
