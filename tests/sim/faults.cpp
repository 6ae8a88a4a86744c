// Calls that fail on demand, and how many calls there were. A call that fails here has no effect.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/sim/driver.h"

namespace sim {

namespace {

// XLOG_SIM_FAIL=function:n:code[,...]: the nth call of the function fails with the code; `n+` from the nth on. `*` is any function.
struct Fault {
  std::string function;
  unsigned long n;
  bool onward;
  int code;
  unsigned long seen = 0;
};

std::vector<Fault> parse_faults(const char* text) {
  std::vector<Fault> list;
  for (const char* at = text; at != nullptr && *at != '\0';) {
    const char* colon = std::strchr(at, ':');
    if (colon == nullptr) {
      break;
    }
    char* end = nullptr;
    Fault fault{std::string(at, colon), std::strtoul(colon + 1, &end, 10), false, 0};
    fault.onward = *end == '+';
    end = std::strchr(end, ':');
    fault.code = end != nullptr ? static_cast<int>(std::strtol(end + 1, &end, 10)) : 999;
    list.push_back(fault);
    at = end != nullptr && *end == ',' ? end + 1 : nullptr;
  }
  return list;
}

std::vector<Fault>& faults() {
  static auto* all = new std::vector<Fault>(parse_faults(std::getenv("XLOG_SIM_FAIL")));
  return *all;
}

unsigned long calls = 0;
std::string failed;  // names

// XLOG_SIM_COUNT=FILE: the number of calls, and the names of those that were made to fail, when the process that loaded the driver
// exits. What it forks writes nothing.
struct CountAtExit {
  pid_t loader = getpid();
  const char* path = std::getenv("XLOG_SIM_COUNT");
  ~CountAtExit() {
    std::FILE* file = path != nullptr && loader == getpid() ? std::fopen(path, "we") : nullptr;
    if (file != nullptr) {
      std::fprintf(file, "%lu%s\n", calls, failed.c_str());
      std::fclose(file);
    }
  }
} count_at_exit;

}  // namespace

CUresult injected_fault(const char* name) {
  ++calls;
  for (Fault& fault : faults()) {
    if (fault.function == "*" || fault.function == name) {
      ++fault.seen;
      if (fault.seen == fault.n || (fault.onward && fault.seen > fault.n)) {
        failed += failed.size() < 4000 ? std::string(" ") + name : "";
        return static_cast<CUresult>(fault.code);
      }
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace sim

// For tests: faults from now on, as in XLOG_SIM_FAIL.
SIM_EXPORT void xlog_sim_set_faults(const char* text) {
  std::lock_guard guard(sim::Driver::get().lock);
  sim::faults() = sim::parse_faults(text);
}
