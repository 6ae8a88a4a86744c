// Which files make up a run, and what their companions say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace xlog::tools {

struct GpuInfo {
  std::string uuid;
  std::string name;
  uint64_t total_bytes = 0;
  uint64_t limit_bytes = UINT64_MAX;
};

// One process's log.
struct ProcessLog {
  std::string csv;  // path
  std::string stem;
  std::string program;
  std::string arguments;
  std::string host;
  uint64_t pid = 0;
  uint64_t parent = 0;  // its pid
  uint64_t start_ns = 0;
  uint64_t ended_ns = 0;                           // its wait status, where `xlog run` had it; 0: not known
  uint64_t exit_status = UINT64_MAX;               // where `xlog run` saw the end; UINT64_MAX: not known
  uint64_t exit_signal = UINT64_MAX;               // that ended it, likewise
  std::map<uint64_t, GpuInfo> gpus;                // by the process's own ordinal
  std::map<std::string, std::string> environment;  // that says how a framework allocates
  uint64_t least = 0;                              // blocks below have no rows
  uint64_t sample = 0;                             // bytes that a row stands for at least; 0: not sampled
  uint64_t device = 0;                             // of a file of RMM's that is one GPU's: NAME.dev1.csv
  bool has_run_info = false;
};

// Logs named by files and folders; with none, the newest run below the current folder. Companion files are read.
// `problems` receives one line for each name that is no log.
std::vector<ProcessLog> find_logs(const std::vector<std::string>& names, std::vector<std::string>& problems);

// For each log, by place, the log of the process that started it; the number of logs where there is none.
std::vector<size_t> parents_of(const std::vector<ProcessLog>& logs);

// The folder or file that a user would name for these logs.
std::string name_of(const std::vector<ProcessLog>& logs);

// Cuts the empty lines off the end of a log whose process could not do so itself (it was killed).
void trim_log(const std::string& csv);

}  // namespace xlog::tools
