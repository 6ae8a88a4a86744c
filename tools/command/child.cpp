#include "tools/command/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace xlog::tools {

namespace {

constexpr int kForwarded[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH, SIGALRM, SIGPIPE};
// Who sends a signal to all processes of a job may send it to this one twice: so long, the second is not meant anew.
constexpr uint64_t kSameSignal = 500'000'000;

volatile sig_atomic_t child_pid = 0;  // 0 once it has been waited for: its number may be another's then
volatile sig_atomic_t has_ended = 0;
volatile sig_atomic_t ended_status = 0;
volatile uint64_t last_signal = 0;

uint64_t now_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

bool asks_to_end(int number) { return number == SIGHUP || number == SIGINT || number == SIGQUIT || number == SIGTERM; }

// What the terminal sends reaches the program too, which is in the same process group: only what was sent to this process alone
// is passed on. The program decides about a signal that is ignored here (nohup): it inherits that.
void forward_signal(int number, siginfo_t* info, void*) {
  int saved = errno;
  uint64_t now = now_of(CLOCK_MONOTONIC);
  bool again = now - last_signal < kSameSignal;
  last_signal = now;
  if (has_ended != 0 && asks_to_end(number) && !again) {
    _exit(follow(ended_status));
  }
  if (child_pid > 0 && info != nullptr && info->si_code <= 0) {
    kill(child_pid, number);
  }
  errno = saved;
}

void take_signals(struct sigaction (&before)[NSIG]) {
  struct sigaction action {};
  action.sa_sigaction = forward_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigfillset(&action.sa_mask);
  for (int each : kForwarded) {
    sigaction(each, &action, &before[each]);
  }
}

// After the program's end there is nobody to pass it on to: what was ignored is ignored again.
void give_back_ignored(const struct sigaction (&before)[NSIG]) {
  for (int each : kForwarded) {
    if (before[each].sa_handler == SIG_IGN) {
      sigaction(each, &before[each], nullptr);
    }
  }
}

// As the first process of a container others' orphans come to us as well. The program's number stays taken until no signal
// can be sent to it any more.
int wait_for(pid_t child) {
  for (;;) {
    siginfo_t ended{};
    if (waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) != 0) {
      if (errno == EINTR) {
        continue;
      }
      return 0;
    }
    int status = 0;
    if (ended.si_pid != child) {
      waitpid(ended.si_pid, &status, 0);
      continue;
    }
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    child_pid = 0;
    waitpid(child, &status, 0);
    ended_status = status;
    has_ended = 1;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return status;
  }
}

[[noreturn]] void become(const std::vector<std::string>& command, int report_failure) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& each : command) {
    arguments.push_back(const_cast<char*>(each.c_str()));
  }
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  int error = errno;
  static_cast<void>(write(report_failure, &error, sizeof error) == 0);
  _exit(error == ENOENT ? 127 : 126);
}

}  // namespace

bool run_child(const std::vector<std::string>& command, Ending& ending) {
  int report_failure[2];
  if (pipe2(report_failure, O_CLOEXEC) != 0) {
    return false;
  }
  ending.start_ns = now_of(CLOCK_REALTIME);
  uint64_t start = now_of(CLOCK_MONOTONIC);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  pid_t child = fork();
  int error = errno;
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    become(command, report_failure[1]);
  }
  static struct sigaction dispositions[NSIG];
  if (child > 0) {
    child_pid = child;
    take_signals(dispositions);
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(report_failure[1]);
  if (child < 0) {
    close(report_failure[0]);
    errno = error;
    return false;
  }
  ssize_t told = 0;
  do {
    told = read(report_failure[0], &error, sizeof error);
  } while (told < 0 && errno == EINTR);
  close(report_failure[0]);
  ending.exec_error = told == sizeof error ? error : 0;
  ending.status = wait_for(child);
  ending.duration_ns = now_of(CLOCK_MONOTONIC) - start;
  give_back_ignored(dispositions);
  return true;
}

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

}  // namespace xlog::tools
