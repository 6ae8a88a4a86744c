#include "tools/command/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "runtime/base/options.h"
#include "tools/command/needed_files.h"
#include "tools/report/format.h"
#include "tools/report/report.h"

namespace xlog::tools {

namespace fs = std::filesystem;

namespace {

constexpr int kForwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGALRM, SIGPIPE};

volatile sig_atomic_t child_pid = 0;

// What the terminal sends reaches the program too, which is in the same process group: only what was sent to this
// process alone is handed on.
void forward_signal(int number, siginfo_t* info, void*) {
  int saved = errno;
  if (child_pid > 0 && info != nullptr && info->si_code <= 0) {
    kill(child_pid, number);
  }
  errno = saved;
}

void take_signals() {
  struct sigaction action {};
  action.sa_sigaction = forward_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  for (int each : kForwarded) {
    struct sigaction before {};
    sigaction(each, nullptr, &before);
    if (before.sa_handler != SIG_IGN) {  // nohup and the like: the program inherits that
      sigaction(each, &action, nullptr);
    }
  }
}

std::string program_name(const std::vector<std::string>& command) { return fs::path(command.at(0)).filename(); }

std::string local_time() {
  time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    return "the program was killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  }
  return WEXITSTATUS(status) != 0 ? "the program exited with " + std::to_string(WEXITSTATUS(status)) : "";
}

// As the first process of a container others' orphans come to us as well.
int wait_for(pid_t child) {
  for (;;) {
    int status = 0;
    pid_t ended = waitpid(-1, &status, 0);
    if (ended == child) {
      return status;
    }
    if (ended < 0 && errno == ECHILD) {
      return 0;
    }
  }
}

void finish_logs(const std::string& folder, const std::string& ending, uint64_t wall_ns, bool quiet) {
  std::vector<std::string> problems;
  std::vector<ProcessLog> logs = find_logs({folder}, problems);
  for (const ProcessLog& log : logs) {
    trim_log(log.csv);
    std::string path = log.stem + ".stacks.csv";
    StackFile stacks;
    stacks.read(path);
    if (stacks.needs_names()) {
      stacks.resolve();
      stacks.write(path);
    }
  }
  if (logs.empty()) {
    rmdir(folder.c_str());
  }
  if (!quiet) {
    std::error_code error;
    std::string name = fs::relative(folder, error);
    Report report = analyse(std::move(logs), {.resolve = false});
    std::cerr << summary_text(report, ending, wall_ns, error || name.starts_with("..") ? folder : name) << std::flush;
  }
}

// Ends the way the program ended.
int follow(int status) {
  if (!WIFSIGNALED(status)) {
    return WEXITSTATUS(status);
  }
  int number = WTERMSIG(status);
  rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);  // the program's core is the one of interest
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  kill(getpid(), number);
  return 128 + number;  // the first process of a container cannot kill itself
}

// The library before what is preloaded already, but for a sanitizer's runtime, which has to be the first.
std::string preload_list(const LaunchOptions& options) {
  std::string first = options.command.empty() ? "" : sanitizer_of(options.command[0]);
  std::string rest;
  std::string given = std::getenv("LD_PRELOAD") != nullptr ? std::getenv("LD_PRELOAD") : "";
  std::replace(given.begin(), given.end(), ' ', ':');
  std::istringstream parts(given);
  for (std::string each; std::getline(parts, each, ':');) {
    if (must_be_first(each)) {
      first = each;
    } else if (!each.empty()) {
      rest += ':' + each;
    }
  }
  return (first.empty() ? "" : first + ':') + library_path() + rest;
}

}  // namespace

std::string library_path() {
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& each : {self.parent_path() / "libxlog.so", self.parent_path().parent_path() / "lib" / "libxlog.so"}) {
    if (fs::exists(each, error)) {
      return each;
    }
  }
  return "";
}

std::string library_trouble() {
  std::string path = library_path();
  if (path.empty()) {
    return "libxlog.so is neither beside this command nor in ../lib";
  }
  // LD_PRELOAD separates with both, and has no way to quote.
  return path.find_first_of(" :") != path.npos ? path + ": LD_PRELOAD cannot name a path with a space or a colon" : "";
}

std::vector<std::pair<std::string, std::string>> launch_environment(const LaunchOptions& options, std::string& log_folder) {
  std::vector<std::pair<std::string, std::string>> out;
  out.emplace_back("LD_PRELOAD", preload_list(options));
  if (!options.limit.empty()) {
    out.emplace_back("XLOG_BUDGET", options.limit);
  }
  if (!options.backend.empty() || options.per_tensor) {
    out.emplace_back("XLOG_BACKEND", options.backend.empty() ? "async" : options.backend);
  }
  if (options.per_tensor) {
    out.emplace_back("PYTORCH_NO_CUDA_MEMORY_CACHING", "1");
    out.emplace_back("XLA_PYTHON_CLIENT_ALLOCATOR", "platform");
    out.emplace_back("XLOG_ASYNC_FREE", "ordered");
  }
  if (!options.no_log && std::getenv("NVTX_INJECTION64_PATH") == nullptr) {
    out.emplace_back("NVTX_INJECTION64_PATH", library_path());  // the program's ranges become tags
  }
  if (options.no_log) {
    out.emplace_back("XLOG_LOG", "");
  } else if (std::getenv("XLOG_LOG") == nullptr) {
    std::string name = options.command.empty() ? "xlog" : "xlog." + program_name(options.command) + '.' + local_time();
    log_folder = fs::absolute(name);
    for (int i = 1; fs::exists(log_folder); ++i) {
      log_folder = fs::absolute(name + '.' + std::to_string(i));
    }
    out.emplace_back("XLOG_LOG", log_folder + '/');
    if (std::getenv("XLOG_LOG_MAX") == nullptr) {
      out.emplace_back("XLOG_LOG_MAX", "2GiB");
    }
  } else if (std::string(std::getenv("XLOG_LOG")).find('/') != 0) {
    out.emplace_back("XLOG_LOG", fs::absolute(".").parent_path() / std::getenv("XLOG_LOG"));
  }
  return out;
}

bool check_environment(std::vector<std::string>& complaints) {
  static std::vector<std::string> lines;  // the parser's callback has no place for a pointer
  lines.clear();
  Options parsed;
  bool good = parse_options([](const char* name) -> const char* { return std::getenv(name); },
                            [](std::string_view line, bool) { lines.emplace_back(line); }, parsed);
  complaints = lines;
  for (char** each = environ; *each != nullptr; ++each) {
    std::string_view name = std::string_view(*each).substr(0, std::string_view(*each).find('='));
    std::string_view near;
    NameKind kind = kind_of_name(name, near);
    if (kind == NameKind::unknown || kind == NameKind::like_limit) {
      complaints.push_back(std::string(name) + " is not an option of this library" +
                           (near.empty() ? "" : "; did you mean " + std::string(near) + "?"));
    }
  }
  return good && complaints.empty();
}

int launch(const LaunchOptions& options) {
  if (!library_trouble().empty()) {
    std::cerr << "xlog: " << library_trouble() << '\n';
    return 2;
  }
  std::string folder;
  const char* injected = std::getenv("NVTX_INJECTION64_PATH");
  if (injected != nullptr && injected != library_path() && !options.no_log && !options.quiet) {
    std::cerr << "xlog: NVTX_INJECTION64_PATH is set: the program's NVTX ranges go to that tool, and are not in the log\n";
  }
  for (const auto& [name, value] : launch_environment(options, folder)) {
    if (value.empty()) {
      unsetenv(name.c_str());
    } else {
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  std::vector<std::string> complaints;
  if (!check_environment(complaints)) {
    for (const std::string& each : complaints) {
      std::cerr << "xlog: " << each << '\n';
    }
    return 2;
  }
  if (options.per_tensor && !options.quiet) {
    std::cerr << "xlog: per tensor: the framework's own cache is off, so that each tensor is a row; CUDA graphs in PyTorch need that "
                 "cache\n";
  }
  if (!folder.empty() && mkdir(folder.c_str(), 0700) != 0) {
    std::cerr << "xlog: cannot make the log folder " << folder << ": " << std::strerror(errno) << '\n';
    return 2;
  }
  int report_failure[2];
  if (pipe2(report_failure, O_CLOEXEC) != 0) {
    std::cerr << "xlog: pipe: " << std::strerror(errno) << '\n';
    return 2;
  }
  timespec start{};
  clock_gettime(CLOCK_MONOTONIC, &start);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  pid_t child = fork();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    std::vector<char*> arguments;
    for (const std::string& each : options.command) {
      arguments.push_back(const_cast<char*>(each.c_str()));
    }
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    int error = errno;
    static_cast<void>(write(report_failure[1], &error, sizeof error) == 0);
    _exit(error == ENOENT ? 127 : 126);
  }
  child_pid = child;
  take_signals();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(report_failure[1]);
  if (child < 0) {
    std::cerr << "xlog: fork: " << std::strerror(errno) << '\n';
    return 2;
  }
  int error = 0;
  ssize_t told = 0;
  do {
    told = read(report_failure[0], &error, sizeof error);
  } while (told < 0 && errno == EINTR);
  close(report_failure[0]);
  int status = wait_for(child);
  if (told == sizeof error) {
    std::cerr << "xlog: " << options.command[0] << ": " << std::strerror(error) << '\n';
    if (!folder.empty()) {
      rmdir(folder.c_str());
    }
    return WEXITSTATUS(status);
  }
  timespec end{};
  clock_gettime(CLOCK_MONOTONIC, &end);
  auto wall = static_cast<uint64_t>((end.tv_sec - start.tv_sec) * 1'000'000'000 + (end.tv_nsec - start.tv_nsec));
  if (!folder.empty()) {
    finish_logs(folder, how_it_ended(status), wall, options.quiet);
  } else if (!options.quiet && status != 0) {
    std::cerr << "xlog: " << how_it_ended(status) << '\n';
  }
  return follow(status);
}

}  // namespace xlog::tools
