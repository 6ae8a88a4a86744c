#include "tools/log/log_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "runtime/base/size_text.h"
#include "tools/log/json_value.h"
#include "tools/log/missing_log.h"
#include "tools/log/row_format.h"

namespace xlog::tools {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

bool is_log_name(const std::string& name) { return name.ends_with(".csv") && !name.ends_with(".stacks.csv"); }

// Begins like one: a folder may hold other people's CSV files.
bool is_log(const fs::path& path) {
  constexpr size_t kLongest = 1 << 16;
  std::ifstream in(path);
  std::string first(kLongest, '\0');
  in.read(first.data(), static_cast<std::streamsize>(first.size()));
  size_t end = first.find('\n');
  return end != first.npos && RowFormat(std::string_view(first).substr(0, end)).good();
}

void read_run_info(ProcessLog& log) {
  constexpr size_t kMost = 16 << 20;
  std::string problem;  // a log without it is read as well as can be
  json info = read_json_file(log.stem + ".run.json", kMost, problem);
  if (!info.is_object()) {
    return;
  }
  log.has_run_info = true;
  log.program = json_string(info, "program");
  log.host = json_string(info, "host");
  log.pid = json_number(info, "pid", 0);
  log.parent = json_number(info, "parent", 0);
  log.start_ns = json_number(info, "start_ns", 0);
  // Each array is kept: a range-for over part of a temporary would outlive it.
  const json arguments = json_list(info, "arguments");
  for (const json& argument : arguments) {
    log.arguments += (log.arguments.empty() ? "" : " ") + (argument.is_string() ? argument.get<std::string>() : "");
  }
  // What `xlog run` saw of its own child, when that is this process.
  const json run = json_value(info, "run");
  if (run.is_object() && json_value(run, "arguments") == arguments && json_number(run, "duration_ns", 0) != 0) {
    log.ended_ns = json_number(run, "start_ns", 0) + json_number(run, "duration_ns", 0);
    log.exit_status = json_number(run, "exit_status", kNone);
    log.exit_signal = json_number(run, "signal", kNone);
  }
  const json gpus = json_list(info, "gpus");
  for (const json& gpu : gpus) {
    GpuInfo& out = log.gpus[json_number(gpu, "ordinal", 0)];
    out.uuid = json_string(gpu, "uuid");
    out.name = json_string(gpu, "name");
    out.total_bytes = json_number(gpu, "total_bytes", 0);
    out.limit_bytes = json_number(gpu, "limit_bytes", UINT64_MAX);
  }
  const json options = json_value(info, "options");
  auto bytes_of = [&options](const char* name) {
    uint64_t bytes = 0;
    bool good = parse_bytes(json_string(options, name), bytes) == SizeError::none;
    return good ? bytes : 0;
  };
  log.least = bytes_of("XLOG_LOG_MIN");
  log.sample = bytes_of("XLOG_LOG_SAMPLE");
  const json environment = json_value(info, "environment");
  for (const auto& [name, value] : environment.items()) {
    log.environment[name] = value.is_string() ? value.get<std::string>() : "";
  }
}

void add_file(const std::string& csv, std::vector<ProcessLog>& logs) {
  ProcessLog log;
  log.csv = csv;
  log.stem = csv.substr(0, csv.size() - (csv.ends_with(".csv") ? 4 : 0));
  size_t device = log.stem.rfind(".dev");
  log.device = device != log.stem.npos ? parse_decimal(log.stem.substr(device + 4)).value_or(0) : 0;
  read_run_info(log);
  logs.push_back(std::move(log));
}

void add_folder(const fs::path& folder, std::vector<ProcessLog>& logs) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error) && is_log_name(entry.path().filename()) && is_log(entry.path())) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  for (const std::string& each : found) {
    add_file(each, logs);
  }
}

// A log that is named twice is one: as a file and in its folder, by two paths, by a link, or as a copy. Processes are told by
// host, pid and start time.
void leave_out_repeated(std::vector<ProcessLog>& logs) {
  std::set<std::pair<dev_t, ino_t>> files;
  std::set<std::tuple<std::string, uint64_t, uint64_t, std::string>> processes;
  std::erase_if(logs, [&](const ProcessLog& log) {
    struct stat info {};
    bool again = stat(log.csv.c_str(), &info) == 0 && !files.emplace(info.st_dev, info.st_ino).second;
    bool known = log.pid != 0 && log.start_ns != 0;
    std::string name = fs::path(log.csv).filename();
    return again || (known && !processes.emplace(log.host, log.pid, log.start_ns, name).second);
  });
}

// The newest folder xlog.*/ or log here.
fs::path newest() {
  fs::path best;
  fs::file_time_type when{};
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(".", error)) {
    std::string name = entry.path().filename();
    bool folder = entry.is_directory(error) && name.starts_with("xlog.");
    bool file = entry.is_regular_file(error) && is_log_name(name) && is_log(entry.path());
    if ((folder || file) && (best.empty() || entry.last_write_time(error) > when)) {
      best = name;
      when = entry.last_write_time(error);
    }
  }
  return best;
}

}  // namespace

std::vector<ProcessLog> find_logs(const std::vector<std::string>& names, std::vector<std::string>& problems) {
  std::vector<ProcessLog> logs;
  std::vector<std::string> wanted = names;
  if (wanted.empty()) {
    fs::path best = newest();
    if (best.empty()) {
      problems.push_back("no log here: name a folder or a .csv file, or make one with: xlog run -- COMMAND");
      return logs;
    }
    wanted.push_back(best);
  }
  for (const std::string& name : wanted) {
    std::error_code error;
    if (fs::is_directory(name, error)) {
      size_t before = logs.size();
      add_folder(name, logs);
      if (logs.size() == before) {
        problems.push_back(why_no_log(name));
      }
    } else if (fs::is_regular_file(name, error)) {
      add_file(name, logs);
    } else {
      problems.push_back(why_no_log(name));
    }
  }
  leave_out_repeated(logs);
  return logs;
}

std::vector<size_t> parents_of(const std::vector<ProcessLog>& logs) {
  std::vector<size_t> parents(logs.size(), logs.size());
  for (size_t child = 0; child < logs.size(); ++child) {
    for (size_t i = 0; i < logs.size(); ++i) {  // a pid may come again: the last one that had it before the child began
      bool could =
          i != child && logs[i].host == logs[child].host && logs[i].pid == logs[child].parent && logs[i].start_ns <= logs[child].start_ns;
      size_t known = parents[child];
      if (could && (known == logs.size() || logs[known].start_ns < logs[i].start_ns)) {
        parents[child] = i;
      }
    }
  }
  return parents;
}

std::string name_of(const std::vector<ProcessLog>& logs) {
  if (logs.size() == 1) {
    return logs.front().csv;
  }
  return logs.empty() ? "" : fs::path(logs.front().csv).parent_path().string();
}

void trim_log(const std::string& csv) {
  int fd = open(csv.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  struct stat info {};
  if (fd < 0) {
    return;
  }
  if (fstat(fd, &info) == 0) {
    off_t end = info.st_size;
    char chunk[4096];
    for (bool more = true; more && end > 0;) {
      auto n = static_cast<size_t>(std::min<off_t>(end, sizeof chunk));
      if (pread(fd, chunk, n, end - static_cast<off_t>(n)) != static_cast<ssize_t>(n)) {
        break;
      }
      while (n > 0 && (chunk[n - 1] == '\n' || chunk[n - 1] == '\0')) {
        --n;
        --end;
      }
      more = n == 0;
    }
    if (end > 0 && end + 1 < info.st_size) {
      static_cast<void>(ftruncate(fd, end + 1) == 0);
    }
  }
  close(fd);
}

}  // namespace xlog::tools
