// The rows of a run in time order: several processes' by their times, one process's in its own order.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "tools/analysis/timeline.h"
#include "tools/log/log_source.h"

namespace xlog::tools {

// `done` of `whole` bytes are read.
using Progress = std::function<void(uint64_t done, uint64_t whole)>;

class LogMerge {
 public:
  // `problems` receives a line for each log that cannot be read.
  LogMerge(const std::vector<ProcessLog>& logs, std::vector<std::string>& problems);

  // Next row, and whose; nullptr at the end.
  const Event* next(size_t& process);
  // The processes that ended between the row before and this one: their memory is the driver's again. A process ends with its
  // exit, which is its last row; without one with its last row, as it was killed, unless it still runs here; later where
  // `xlog run` saw when. Those that no row follows are not among them.
  [[nodiscard]] const std::vector<size_t>& ended() const { return ended_; }
  // Its log has been read to its end, has no end mark, and the process is there.
  [[nodiscard]] bool still_runs(size_t process) const { return states_[process].runs; }

  // From the first and the last rows of each.
  [[nodiscard]] const TimeSpan& span() const { return span_; }
  [[nodiscard]] const LogSource& source(size_t process) const { return sources_[process]; }
  void tell(const Progress& progress) const;

 private:
  static TimeSpan span_of(const LogSource& source);
  void sink(size_t at);
  void read_to_the_end(size_t process);
  void find_ended();

  ReadAhead helpers_;
  std::deque<LogSource> sources_;
  std::vector<size_t> heap_;  // the alive ones, the earliest first
  std::vector<size_t> read_;  // to their ends, and not among ended_ yet
  std::vector<size_t> ended_;
  struct State {
    const ProcessLog* log = nullptr;
    bool exited = false;  // its end mark was there
    bool runs = false;
  };
  std::vector<State> states_;  // by process
  bool begun_ = false;
  TimeSpan span_;
  uint64_t bytes_ = 0;
};

}  // namespace xlog::tools
