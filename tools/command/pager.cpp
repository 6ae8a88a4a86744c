#include "tools/command/pager.h"

#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace xlog::tools {

namespace {

std::string pager() {
  for (const char* name : {"XLOG_PAGER", "PAGER"}) {
    if (const char* value = std::getenv(name); value != nullptr) {
      return value;
    }
  }
  return "less";
}

bool is_longer_than_the_terminal(std::string_view text) {
  winsize size{};
  return isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row != 0 &&
         std::count(text.begin(), text.end(), '\n') >= size.ws_row;
}

}  // namespace

bool shown_by_pager(std::string_view text) {
  std::string command = pager();
  if (command.empty() || command == "cat" || !is_longer_than_the_terminal(text)) {
    return false;
  }
  setenv("LESS", "FRX", 0);                     // leaves what fits on a screen, shows colours, and does not clear the screen
  auto before = std::signal(SIGPIPE, SIG_IGN);  // the reader may leave before the end
  FILE* pipe = popen(command.c_str(), "w");
  bool started = pipe != nullptr;
  if (started) {
    std::fwrite(text.data(), 1, text.size(), pipe);
    int status = pclose(pipe);
    constexpr int kNotFound = 127;  // by the shell that was to start it
    started = !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
  }
  std::signal(SIGPIPE, before);
  return started;
}

}  // namespace xlog::tools
