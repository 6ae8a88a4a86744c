// NAME.oom.N.json: what was known when memory was refused, with the names that the library does not look up.
#pragma once

#include <string>
#include <vector>

#include "tools/log/log_set.h"

namespace xlog::tools {

struct OomReports {
  std::string text;
  std::string json;
  size_t count = 0;
  std::vector<std::string> problems;
};
// Of all logs, in the order of time.
OomReports read_oom_reports(const std::vector<ProcessLog>& logs, size_t top, bool all_frames);

}  // namespace xlog::tools
