#include "oracle/generate.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "oracle/generated_process.h"

namespace xlog::oracle {

namespace {

constexpr uint64_t kStart = 1'700'000'000'000'000'000;
constexpr uint64_t kMillisecond = 1'000'000;

}  // namespace

void generate(uint64_t seed, const std::string& folder) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15 + 1);
  auto below = [&](uint64_t n) { return random() % n; };
  Sort sort = sort_of(seed);
  bool alone = sort == Sort::rmm || below(4) == 0;
  uint64_t count = alone ? 1 : sort == Sort::one_after_another && below(8) == 0 ? 64 : 2 + below(5);
  uint64_t gpus = sort == Sort::rmm ? 1 : 1 + below(3);
  uint64_t now = kStart;
  uint64_t pid = 100 + below(100'000);
  uint64_t first_pid = pid;
  for (uint64_t i = 0; i < count; ++i) {
    Plan plan;
    plan.pid = pid;
    pid += 1 + below(5);
    // A child of the first process, forked while that runs, or of the shell that ran them all.
    plan.parent = i != 0 && below(3) == 0 ? first_pid : first_pid - 1;
    plan.sort = sort;
    plan.start = now;
    plan.gpus = gpus;
    plan.turned = gpus > 1 ? below(gpus) : 0;
    plan.killed = below(3) == 0;
    plan.run_info = sort == Sort::sampled || gpus > 1 || count > 1 || below(5) != 0;
    plan.events = count > 10 ? 10 + below(20) : 20 + below(180);
    GeneratedProcess process(plan, random());
    process.run();
    process.write(folder);
    bool next_waits = sort == Sort::one_after_another || below(2) == 0;
    now = next_waits ? process.end() + 1 + below(kMillisecond) : now + below(process.end() - now + 1);
  }
}

}  // namespace xlog::oracle
