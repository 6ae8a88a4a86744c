#include "tools/log/debuginfod.h"

#include <time.h>

#include <cstdlib>
#include <string>

namespace xlog::tools {

namespace {

unsigned allowed_seconds = 0;
time_t deadline = 0;  // 0: nothing was asked yet

time_t now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

}  // namespace

void allow_debuginfod(unsigned seconds) { allowed_seconds = seconds; }

bool is_debuginfod_allowed() { return allowed_seconds != 0; }

void prepare_debuginfod() {
  if (allowed_seconds != 0 && deadline == 0) {
    deadline = now() + static_cast<time_t>(allowed_seconds);
  }
  time_t left = allowed_seconds != 0 ? deadline - now() : 0;
  if (left <= 0) {
    unsetenv("DEBUGINFOD_URLS");
    return;
  }
  std::string text = std::to_string(left);
  setenv("DEBUGINFOD_TIMEOUT", text.c_str(), 1);  // for the first bytes
  setenv("DEBUGINFOD_MAXTIME", text.c_str(), 1);  // for the whole file
}

}  // namespace xlog::tools
