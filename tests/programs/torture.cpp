// Threads that make, use, capture, share and destroy everything that the driver has, with data that is verified. Everything here is
// legal, so that no call may fail, with the library or without it, on the simulated driver or on a card: only copies and sets, no kernel.
//   torture [SEED [ROUNDS [THREADS [CODE]]]]      prints how much was bad, and whether all memory is free again
// No rounds: each scenario once. With a code, a call that fails with it is made again and must then succeed.
#include "programs/torture/contexts.h"

namespace torture {
namespace {

struct Scenario {
  const char* name;
  void (*run)(Worker&);
  unsigned weight;
};
const Scenario kScenarios[] = {
    {"plain", plain, 6},
    {"created", created, 2},
    {"ordered", ordered, 6},
    {"pool", pool, 3},
    {"captured", captured, 6},
    {"mapped", mapped, 3},
    {"events", events, 3},
    {"hand_on", hand_on, 4},
    {"take", take, 4},
    {"reset", reset, 1},
    {"whole_context", whole_context, 1},
    {"destroyed_stream", destroyed_stream, 2},
    {"short_thread", short_thread, 2},
    {"green", green, 2},
    {"detached", detached, 1},
};

void work(unsigned seed, int rounds, int number) {
  unsigned weights = 0;
  for (const Scenario& each : kScenarios) {
    weights += each.weight;
  }
  Worker worker(seed * 1000 + static_cast<unsigned>(number));
  for (const Scenario& each : kScenarios) {
    if (rounds == 0) {
      worker.where = each.name;
      each.run(worker);
    }
  }
  for (int round = 0; round < rounds; ++round) {
    auto chosen = static_cast<unsigned>(worker.pick(weights));
    const Scenario* scenario = kScenarios;
    while (chosen >= scenario->weight) {
      chosen -= scenario++->weight;
    }
    worker.where = scenario->name;
    scenario->run(worker);
  }
}

// With a primary context that was just made, and nothing kept by pools and graphs.
size_t free_memory() {
  CUcontext context = nullptr;
  CUmemoryPool standard = nullptr;
  Worker worker(1);
  worker.where = "free_memory";
  size_t free = 0;
  size_t total = 0;
  GOOD(cuDevicePrimaryCtxRetain(&context, 0));
  GOOD(cuCtxSetCurrent(context));
  GOOD(cuCtxSynchronize());
  GOOD(cuDeviceGetDefaultMemPool(&standard, 0));
  GOOD(cuMemPoolTrimTo(standard, 0));
  GOOD(cuDeviceGraphMemTrim(0));
  GOOD(cuMemGetInfo_v2(&free, &total));
  GOOD(cuCtxSetCurrent(nullptr));
  GOOD(cuDevicePrimaryCtxRelease_v2(0));
  return free;
}

}  // namespace
}  // namespace torture

int main(int argc, char** argv) {
  unsigned seed = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
  int rounds = argc > 2 ? std::atoi(argv[2]) : 40;
  int threads = argc > 3 ? std::atoi(argv[3]) : 4;
  torture::expected_failure = argc > 4 ? std::atoi(argv[4]) : 0;
  torture::Worker worker(seed);
  GOOD(cuInit(0));
  if (rounds != 0) {
    torture::work(seed, 20, 999);  // what a driver makes once
    torture::take_all();
  }
  size_t before = torture::free_memory();
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back(torture::work, seed, rounds, i);
  }
  for (std::thread& each : all) {
    each.join();
  }
  torture::take_all();
  size_t after = torture::free_memory();
  std::printf("%ld bad\nfree as at the start: %d\n", torture::bad.load(), after == before);
  if (torture::expected_failure != 0) {
    std::printf("%ld calls failed once\n", torture::failures.load());
  }
  if (after != before) {
    std::printf("%zu bytes were free, %zu are\n", before, after);
  }
  return torture::bad != 0 || after != before;
}
