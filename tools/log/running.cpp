#include "tools/log/running.h"

#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

namespace xlog::tools {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

uint64_t now_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kSecond + static_cast<uint64_t>(now.tv_nsec);
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// When the process began, ns since the epoch, to a tick; 0 when it has ended.
uint64_t began(uint64_t pid) {
  constexpr size_t kStartTime = 22 - 3;  // its place behind the state, which is the third field
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  size_t name_end = text.rfind(')');  // a name may hold anything
  if (name_end == text.npos) {
    return 0;
  }
  std::istringstream fields(text.substr(name_end + 1));
  std::string state;
  uint64_t ticks = 0;
  fields >> state;
  std::string skipped;
  for (size_t i = 1; i < kStartTime; ++i) {
    fields >> skipped;
  }
  fields >> ticks;
  if (!fields || state == "Z" || state == "X") {
    return 0;
  }
  auto per_second = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  uint64_t since_boot = ticks / per_second * kSecond + ticks % per_second * kSecond / per_second;
  uint64_t age = now_of(CLOCK_BOOTTIME) - since_boot;
  return now_of(CLOCK_REALTIME) - age;
}

}  // namespace

bool still_runs(const ProcessLog& log) {
  constexpr uint64_t kClockSteps = kSecond;  // the clock may have been set a little since
  if (log.pid == 0 || log.start_ns == 0 || log.ended_ns != 0 || log.host != host_name()) {
    return false;
  }
  uint64_t start = began(log.pid);
  if (start == 0 || start > log.start_ns + kClockSteps) {
    return false;
  }
  std::error_code error;
  std::string program = std::filesystem::read_symlink("/proc/" + std::to_string(log.pid) + "/exe", error);
  constexpr std::string_view kDeleted = " (deleted)";
  if (program.ends_with(kDeleted)) {
    program.resize(program.size() - kDeleted.size());
  }
  return error || program.empty() || log.program.empty() || program == log.program;
}

}  // namespace xlog::tools
