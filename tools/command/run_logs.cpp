#include "tools/command/run_logs.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/command/version.h"
#include "tools/log/text_file.h"

namespace xlog::tools {

namespace {

std::string host_name() {
  utsname host{};
  uname(&host);
  return host.nodename;
}

// A pattern of XLOG_LOG as one for glob(): each placeholder stands for anything within a name.
std::string glob_pattern(std::string pattern) {
  if (pattern.ends_with(".csv")) {
    pattern.resize(pattern.size() - 4);
  }
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '%' && i + 1 < pattern.size() && pattern[i + 1] != '%') {
      size_t close = pattern[i + 1] == 'q' ? pattern.find('}', i) : i + 1;
      i = close == pattern.npos ? pattern.size() : close;
      out += '*';
    } else {
      i += pattern[i] == '%' ? 1 : 0;
      char c = i < pattern.size() ? pattern[i] : '%';
      out += std::string_view("*?[\\").find(c) != std::string_view::npos ? std::string{'\\', c} : std::string(1, c);
    }
  }
  return out + "*.csv";
}

bool was_written_since(const char* path, uint64_t since_ns) {
  struct stat info {};
  uint64_t seconds = since_ns / 1'000'000'000;
  return lstat(path, &info) == 0 && S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_mtim.tv_sec) + 1 >= seconds;
}

bool has_mark(const ProcessLog& log, const std::string& mark) {
  auto found = log.environment.find(kRunMark);
  return found != log.environment.end() && ('/' + found->second + '/').find('/' + mark + '/') != std::string::npos;
}

// The old file stays when the new one cannot be written in whole.
void replace_file(const std::string& path, const std::string& text) {
  std::string fresh = path + ".new";
  unlink(fresh.c_str());
  int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    return;
  }
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n <= 0) {
      break;
    }
    done += static_cast<size_t>(n);
  }
  bool good = close(fd) == 0 && done == text.size() && std::rename(fresh.c_str(), path.c_str()) == 0;
  if (!good) {
    unlink(fresh.c_str());
  }
}

}  // namespace

std::string new_run_mark() {
  using namespace std::chrono;
  std::string host = host_name();
  std::replace(host.begin(), host.end(), '/', '_');
  auto now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
  return host + '.' + std::to_string(getpid()) + '.' + std::to_string(now);
}

std::vector<ProcessLog> marked_logs(const std::string& pattern, const std::string& mark, uint64_t since_ns) {
  std::vector<std::string> names;
  glob_t found{};
  if (glob(glob_pattern(pattern).c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      std::string name = found.gl_pathv[i];
      if (!name.ends_with(".stacks.csv") && was_written_since(name.c_str(), since_ns)) {
        names.push_back(name);
      }
    }
  }
  globfree(&found);
  std::sort(names.begin(), names.end());
  std::vector<std::string> problems;
  std::vector<ProcessLog> logs;
  if (!names.empty()) {
    logs = find_logs(names, problems);
  }
  std::erase_if(logs, [&mark](const ProcessLog& log) { return !has_mark(log, mark); });
  return logs;
}

void write_run_header(const std::vector<ProcessLog>& logs, const std::vector<std::string>& command, const Ending& ending) {
  nlohmann::ordered_json run = {{"program", command.empty() ? "" : command[0]},
                                {"arguments", command},
                                {"host", host_name()},
                                {"start_ns", ending.start_ns},
                                {"duration_ns", ending.duration_ns}};
  if (WIFSIGNALED(ending.status)) {
    run["signal"] = WTERMSIG(ending.status);
  } else {
    run["exit_status"] = WEXITSTATUS(ending.status);
  }
  run["xlog"] = version();
  for (const ProcessLog& log : logs) {
    std::string path = log.stem + ".run.json";
    std::string text;
    std::string problem;
    if (!log.has_run_info || !read_text_file(path, text, problem)) {
      continue;
    }
    auto info = nlohmann::ordered_json::parse(text, nullptr, false);
    if (info.is_object()) {
      info["run"] = run;
      replace_file(path, info.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
    }
  }
}

}  // namespace xlog::tools
