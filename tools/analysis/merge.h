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

  // From the first and the last rows of each.
  [[nodiscard]] const TimeSpan& span() const { return span_; }
  [[nodiscard]] const LogSource& source(size_t process) const { return sources_[process]; }
  void tell(const Progress& progress) const;

 private:
  static TimeSpan span_of(const LogSource& source);
  void sink(size_t at);

  ReadAhead helpers_;
  std::deque<LogSource> sources_;
  std::vector<size_t> heap_;  // the alive ones, the earliest first
  bool begun_ = false;
  TimeSpan span_;
  uint64_t bytes_ = 0;
};

}  // namespace xlog::tools
