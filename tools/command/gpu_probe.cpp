#include "tools/command/gpu_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "runtime/base/options.h"

namespace xlog::tools {

namespace {

constexpr int kPatienceSeconds = 20;  // the first cuInit after a machine's start takes some

// What the child writes: this, and a UUID for each GPU.
struct Answer {
  int has_driver = 0;
  int init_result = 0;
  int count_result = 0;
  int count = 0;
};
struct Uuid {
  unsigned char bytes[16] = {};
};

template <class Function>
Function driver_function(void* driver, const char* name) {
  return reinterpret_cast<Function>(dlsym(driver, name));
}

void ask_driver(int out) {
  Answer answer;
  std::vector<Uuid> uuids;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (driver != nullptr) {
    auto init = driver_function<int (*)(unsigned)>(driver, "cuInit");
    auto count = driver_function<int (*)(int*)>(driver, "cuDeviceGetCount");
    auto uuid = driver_function<int (*)(Uuid*, int)>(driver, "cuDeviceGetUuid_v2");
    answer.has_driver = 1;
    answer.init_result = init != nullptr ? init(0) : -1;
    answer.count_result = answer.init_result == 0 && count != nullptr ? count(&answer.count) : -1;
    for (int i = 0; answer.count_result == 0 && i < answer.count; ++i) {
      Uuid one;
      if (uuid != nullptr) {
        uuid(&one, i);  // where it fails it stays zero, and fits no limit
      }
      uuids.push_back(one);
    }
  }
  bool written = write(out, &answer, sizeof answer) == sizeof answer;
  for (size_t i = 0; written && i < uuids.size(); ++i) {
    written = write(out, &uuids[i], sizeof uuids[i]) == sizeof uuids[i];
  }
}

std::string text_of(const Uuid& uuid) {
  Text<64> out;
  out.put("GPU-");
  for (int i = 0; i < 16; ++i) {
    out.put(i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "").hex(uuid.bytes[i], 2);
  }
  return std::string(out.view());
}

// All that comes before the end, or nothing when that takes too long.
std::string read_in_time(int fd) {
  std::string all;
  for (;;) {
    pollfd waiting{fd, POLLIN, 0};
    int ready = poll(&waiting, 1, kPatienceSeconds * 1000);
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    char buffer[4096];
    ssize_t n = ready > 0 ? read(fd, buffer, sizeof buffer) : -1;
    if (n <= 0) {
      return n == 0 ? all : "";
    }
    all.append(buffer, static_cast<size_t>(n));
  }
}

}  // namespace

GpuProbe probe_gpus() {
  GpuProbe probe;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return probe;
  }
  pid_t child = fork();
  if (child == 0) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDOUT_FILENO);  // a driver may have something to say
    dup2(null, STDERR_FILENO);
    ask_driver(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  std::string text = child > 0 ? read_in_time(ends[0]) : "";
  close(ends[0]);
  if (child > 0) {
    kill(child, SIGKILL);
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  Answer answer;
  if (text.size() < sizeof answer) {
    return probe;
  }
  std::memcpy(&answer, text.data(), sizeof answer);
  probe = {.answered = true,
           .has_driver = answer.has_driver != 0,
           .init_result = answer.init_result,
           .count_result = answer.count_result,
           .uuids = {}};
  for (size_t at = sizeof answer; at + sizeof(Uuid) <= text.size(); at += sizeof(Uuid)) {
    Uuid one;
    std::memcpy(&one, text.data() + at, sizeof one);
    probe.uuids.push_back(text_of(one));
  }
  return probe;
}

// The library's own rule (Runtime::check_budget_keys), before the program starts.
std::string limit_trouble(const std::string& shown, const std::string& limit) {
  static std::string value;
  value = limit;
  auto options = std::make_unique<Options>();
  bool good =
      parse_options([](const char* name) -> const char* { return std::string_view(name) == "XLOG_BUDGET" ? value.c_str() : nullptr; },
                    [](std::string_view, bool) {}, *options);
  const BudgetSpec& budget = options->budget;
  bool names_gpus =
      std::any_of(budget.parts, budget.parts + budget.count, [](const BudgetPart& each) { return each.key != BudgetPart::Key::every; });
  if (limit.empty() || !good || !names_gpus) {
    return "";
  }
  GpuProbe probe = probe_gpus();
  if (!probe.works() || probe.uuids.empty()) {
    return "";
  }
  BudgetMatches matches;
  bool all_limited = true;
  for (size_t i = 0; i < probe.uuids.size(); ++i) {
    auto ordinal = static_cast<uint32_t>(i);
    budget.match(ordinal, probe.uuids[i], matches);
    all_limited = all_limited && budget.limit(ordinal, probe.uuids[i], 1) != UINT64_MAX;
  }
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  bool some_hidden = visible != nullptr && *visible != '\0';
  const BudgetPart* part = budget.unmatched(matches);
  if (part == nullptr || (some_hidden && all_limited)) {
    return "";
  }
  size_t count = probe.uuids.size();
  std::string what = part->key == BudgetPart::Key::ordinal ? "there is no GPU " + std::to_string(part->ordinal)
                                                           : "no GPU's UUID begins with " + std::string(part->uuid);
  return shown + ": " + what + "; a program that is started here sees " +
         (count == 1 ? "one GPU, number 0" : std::to_string(count) + " GPUs, numbers 0 to " + std::to_string(count - 1));
}

}  // namespace xlog::tools
