#include "tools/command/launch.h"

#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>

#include "tools/command/child.h"
#include "tools/command/gpu_probe.h"
#include "tools/command/log_folder.h"
#include "tools/command/messages.h"
#include "tools/command/run_logs.h"
#include "tools/command/shell_text.h"
#include "tools/log/text_file.h"
#include "tools/report/report.h"

namespace xlog::tools {

namespace fs = std::filesystem;

namespace {

constexpr int kTroubleStatus = 2;

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    return "the program was killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  }
  return WEXITSTATUS(status) != 0 ? "the program exited with " + std::to_string(WEXITSTATUS(status)) : "";
}

// As a user would type it from here, for a shell.
std::string shown_path(const std::string& path) {
  std::error_code error;
  std::string name = fs::relative(path, error);
  return shell_word(error || name.empty() || name.starts_with("..") ? path : name);
}

// The folder when it holds nothing else, else the logs, or the folder where they are many.
std::string shown_logs(const LogFolder& folder, const std::vector<ProcessLog>& logs) {
  constexpr size_t kMostNamed = 3;
  if (folder.fresh || logs.empty()) {
    return shown_path(folder.path);
  }
  if (logs.size() > kMostNamed) {
    return shown_path(name_of(logs));
  }
  std::string text;
  for (const ProcessLog& each : logs) {
    text += (text.empty() ? "" : " ") + shown_path(each.csv);
  }
  return text;
}

void resolve_names(const ProcessLog& log) {
  trim_log(log.csv);
  std::string path = log.stem + ".stacks.csv";
  StackFile stacks;
  stacks.read(path);
  if (stacks.needs_names()) {
    stacks.resolve();
    stacks.write(path);
  }
}

struct Run {
  const LaunchOptions& options;
  LogFolder folder;
  std::string mark;
  Ending ending;

  [[nodiscard]] std::vector<ProcessLog> logs() const {
    std::vector<std::string> problems;
    return folder.fresh ? find_logs({folder.path}, problems) : marked_logs(variable("XLOG_LOG"), mark, ending.start_ns);
  }
  void finish() const;
};

void complain_of_none(const std::string& ended, const std::string& pattern) {
  if (!ended.empty()) {
    complain(ended);
  }
  complain("no log of this run is at XLOG_LOG=" + pattern +
           ": no device memory call was seen, or no log could be written there (xlog doctor -- COMMAND says what would be seen)");
}

void Run::finish() const {
  std::string ended = how_it_ended(ending.status);
  std::string pattern = variable("XLOG_LOG");
  if (pattern.empty() || !special_file(pattern.ends_with('/') ? "" : pattern).empty()) {  // no log, or one that cannot be read again
    if (!options.quiet && !ended.empty()) {
      complain(ended);
    }
    return;
  }
  std::vector<ProcessLog> found = logs();
  for (const ProcessLog& each : found) {
    resolve_names(each);
  }
  write_run_header(found, options.command, ending);
  if (folder.fresh) {
    rmdir(folder.path.c_str());  // while it is empty
  }
  if (found.empty() && !folder.fresh) {
    if (!options.quiet) {
      complain_of_none(ended, pattern);
    }
    return;
  }
  if (!options.quiet) {
    std::string where = shown_logs(folder, found);
    std::cerr << summary_text(analyse(std::move(found), {.resolve = false}), ended, ending.duration_ns, where) << std::flush;
  }
}

// What stands in the way of the start; each is said. False when nothing may be started.
bool check(const LaunchOptions& options) {
  std::vector<std::string> complaints;
  check_environment(complaints);
  if (complaints.empty()) {
    auto given = options.values.find("XLOG_BUDGET");
    std::string limit = variable("XLOG_BUDGET");
    std::string trouble = limit_trouble((given != options.values.end() ? "--limit " : "XLOG_BUDGET=") + limit, limit);
    if (!trouble.empty()) {
      complaints.push_back(trouble);
    }
  }
  for (const std::string& each : complaints) {
    complain(each);
  }
  return complaints.empty();
}

void say_what_applies(const LaunchOptions& options, const std::string& inherited) {
  const char* injected = std::getenv("NVTX_INJECTION64_PATH");
  if (injected != nullptr && injected != library_path() && !options.no_log) {
    complain("NVTX_INJECTION64_PATH is set: the program's NVTX ranges go to that tool, and are not in the log");
  }
  if (!inherited.empty()) {
    complain(inherited);
  }
  if (options.per_tensor) {
    complain("per tensor: the framework's own cache is off, so that each tensor is a row; CUDA graphs in PyTorch need that cache");
  }
}

}  // namespace

int launch(const LaunchOptions& options) {
  auto before = signal(SIGPIPE, SIG_IGN);  // nobody who stopped listening keeps the program from its start
  if (!library_trouble().empty()) {
    complain(library_trouble());
    return kTroubleStatus;
  }
  Variables variables = launch_variables(options);
  if (needs_log_folder(options)) {
    unsetenv("XLOG_LOG");  // -o takes its place
  }
  std::string inherited = inherited_text(variables);
  for (const auto& [name, value] : variables) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  if (!check(options)) {
    return kTroubleStatus;
  }
  Run run{.options = options, .folder = {}, .mark = new_run_mark(), .ending = {}};
  if (needs_log_folder(options)) {
    std::string program = fs::path(options.command.at(0)).filename();
    run.folder = options.folder.empty() ? make_log_folder(program) : use_log_folder(options.folder, program);
    if (!run.folder.note.empty()) {
      complain(run.folder.note);
    }
    if (run.folder.path.empty()) {
      return kTroubleStatus;
    }
    setenv("XLOG_LOG", (literal_pattern(run.folder.path) + '/').c_str(), 1);
  }
  if (!options.quiet) {
    say_what_applies(options, inherited);
  }
  std::string outer = variable(kRunMark);
  setenv(kRunMark, (outer.empty() ? run.mark : outer + '/' + run.mark).c_str(), 1);
  setenv("LD_PRELOAD", preload_list(options.command, variable("LD_PRELOAD")).c_str(), 1);
  signal(SIGPIPE, before);
  if (!run_child(options.command, run.ending)) {
    complain("no process can be made: " + std::string(strerror(errno)));
    return kTroubleStatus;
  }
  if (run.ending.exec_error != 0) {
    complain(options.command[0] + ": " + strerror(run.ending.exec_error));
    if (run.folder.fresh) {
      rmdir(run.folder.path.c_str());
    }
    return WEXITSTATUS(run.ending.status);
  }
  run.finish();
  return follow(run.ending.status);
}

}  // namespace xlog::tools
