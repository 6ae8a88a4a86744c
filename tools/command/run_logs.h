// The logs that one `xlog run` has left: which they are, and what is written into them at the end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/command/child.h"
#include "tools/log/log_set.h"

namespace xlog::tools {

// Set for the program as XLOG_RUN, and so in the NAME.run.json of each process of the run. Runs within runs are `outer/inner`.
inline constexpr const char* kRunMark = "XLOG_RUN";
std::string new_run_mark();

// Logs that XLOG_LOG names, of the run that has this mark. Only files written since `since_ns` are read.
std::vector<ProcessLog> marked_logs(const std::string& pattern, const std::string& mark, uint64_t since_ns);

// Adds "run" to each log's NAME.run.json: this command's program and arguments, host, start, duration, and how it ended.
void write_run_header(const std::vector<ProcessLog>& logs, const std::vector<std::string>& command, const Ending& ending);

}  // namespace xlog::tools
