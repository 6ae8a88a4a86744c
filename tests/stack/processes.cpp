// XlogDeviceRuntime in processes of its own: cold start, what the options install, many processes at once.
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "runtime/library/launch_recorder.h"
#include "tests/stack/harness.h"

extern char** environ;
using namespace stack_tests;

BOOST_TEST_DONT_PRINT_LOG_VALUE(Error)

namespace {

using Mode = LaunchRecorder::Mode;

// This test program again, for one test case, in processes of its own that run at the same time.
std::vector<int> run_children(const char* test, int count, const std::vector<std::string>& more = {}) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    std::string filter = std::string("--run_test=") + test;
    std::string seed = "XLOG_STACK_CHILD=" + std::to_string(42 + i);
    std::vector<char*> environment;
    for (char** at = environ; *at != nullptr; ++at) {
      environment.push_back(*at);
    }
    environment.push_back(seed.data());
    for (const std::string& each : more) {
      environment.push_back(const_cast<char*>(each.c_str()));
    }
    environment.push_back(nullptr);
    char self[] = "/proc/self/exe";
    char quiet[] = "--log_level=error";
    char* arguments[] = {self, filter.data(), quiet, nullptr};
    pid_t child = 0;
    BOOST_REQUIRE(posix_spawn(&child, self, nullptr, nullptr, arguments, environment.data()) == 0);
    children.push_back(child);
  }
  std::vector<int> results;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    results.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return results;
}
const char* child_seed() { return getenv("XLOG_STACK_CHILD"); }

}  // namespace

// Cold start: in a process that has done nothing yet, 8 threads ask for the runtime at once, and get the same one.
BOOST_AUTO_TEST_CASE(child_cold_start) {
  if (child_seed() == nullptr) {
    return;
  }
  std::atomic<int> ready{0};
  std::vector<XlogDeviceRuntime*> seen(8);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      ++ready;
      while (ready < 8) {
      }
      ResourceResult<XlogDeviceRuntime*> got = XlogDeviceRuntime::try_get(0);
      seen[t] = got.ok() ? got.value() : nullptr;
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
  for (XlogDeviceRuntime* each : seen) {
    BOOST_TEST(each == seen[0]);
  }
  BOOST_REQUIRE(seen[0] != nullptr);
  XlogDeviceRuntime& runtime = *seen[0];
  BOOST_TEST(runtime.supports_block_use_tracking());
  ResourceResult<DeviceBlock> block = runtime.allocate(4096);
  BOOST_REQUIRE(block.ok());
  BOOST_TEST(runtime.deallocate(*block).ok());
}

BOOST_AUTO_TEST_CASE(cold_start_race) {
  if (child_seed() != nullptr) {
    return;
  }
  for (int result : run_children("child_cold_start", 4)) {
    BOOST_TEST(result == 0);
  }
}

// What the options install, and a first attempt that failed.
BOOST_AUTO_TEST_CASE(child_options) {
  if (child_seed() == nullptr) {
    return;
  }
  const char* expected = getenv("XLOG_STACK_EXPECT");
  if (std::string_view(expected) == "refused") {
    BOOST_TEST(XlogDeviceRuntime::try_get(0).status().code == CUDA_ERROR_INVALID_VALUE);
    return;
  }
  if (Gpu::get().simulated()) {  // tried again, not remembered
    Gpu::get().sim_faults("cuDevicePrimaryCtxRetain:1:2");
    BOOST_TEST(XlogDeviceRuntime::try_get(0).status().code == CUDA_ERROR_OUT_OF_MEMORY);
    Gpu::get().sim_faults("");
  }
  ResourceResult<XlogDeviceRuntime*> got = XlogDeviceRuntime::try_get(0);
  BOOST_REQUIRE(got.ok());
  XlogDeviceRuntime& runtime = *got.value();
  BOOST_TEST(runtime.supports_block_use_tracking() == (std::string_view(expected) == "async"));
  BudgetSnapshot budget;
  BOOST_TEST(runtime.resource().budget_snapshot(budget));
  BOOST_TEST(budget.limit == uint64_t{64} << 20);
  BOOST_TEST((runtime.allocate(100 << 20).status().error == Error::out_of_budget));
}

BOOST_AUTO_TEST_CASE(the_stack_from_the_options) {
  if (child_seed() != nullptr) {
    return;
  }
  auto one = [](std::vector<std::string> more) { return run_children("child_options", 1, more)[0]; };
  BOOST_TEST(one({"XLOG_BUDGET=64M", "XLOG_STACK_EXPECT=async"}) == 0);
  BOOST_TEST(one({"XLOG_BUDGET=64M", "XLOG_BACKEND=direct", "XLOG_STACK_EXPECT=direct"}) == 0);
  BOOST_TEST(one({"XLOG_BUDGET=64 quarks", "XLOG_STACK_EXPECT=refused"}) == 0);
  if (Gpu::get().simulated()) {
    BOOST_TEST(one({"XLOG_BUDGET=64M", "XLOG_SIM_NO_POOLS=all", "XLOG_STACK_EXPECT=direct"}) == 0);
  }
}

// One of 16 processes that run at the same time, each with a seed of its own: 8 threads share the process's runtime, use
// blocks on streams of their own and of others, and check what they read. Nothing is outstanding at the end.
BOOST_AUTO_TEST_CASE(child_many_processes) {
  if (child_seed() == nullptr) {
    return;
  }
  auto seed = static_cast<unsigned>(atoi(child_seed()));
  ResourceResult<XlogDeviceRuntime*> got = XlogDeviceRuntime::try_get(0);
  BOOST_REQUIRE(got.ok());
  XlogDeviceRuntime& runtime = *got.value();
  Gpu::get().seed(seed);
  std::atomic<int> wrong{0};
  std::vector<StreamId> ids;
  for (int i = 0; i < 8; ++i) {
    ids.push_back(runtime.streams().acquire().id);
  }
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Current current(runtime.streams());
      std::minstd_rand random(seed * 8 + t);
      for (int i = 0; i < 32; ++i) {
        ResourceResult<DeviceBlock> block = runtime.allocate(64 + random() % 65536, ids[t]);
        if (!block.ok()) {
          ++wrong;
          continue;
        }
        StreamId other = ids[random() % ids.size()];
        auto value = static_cast<unsigned char>(random());
        LaunchRecorder writing(other, Mode::strict);
        writing.write(&*block);
        wrong += writing.preflight(runtime).ok() ? 0 : 1;
        fill(runtime.streams(), other, *block, value);
        wrong += writing.commit(runtime).ok() ? 0 : 1;
        std::vector<unsigned char> read(block->bytes);
        LaunchRecorder reading(ids[t], Mode::strict);
        reading.read(&*block);
        wrong += reading.preflight(runtime).ok() ? 0 : 1;
        wrong += Gpu::get().to_host(read.data(), block->ptr, read.size(), runtime.streams().resolve(ids[t])) == CUDA_SUCCESS ? 0 : 1;
        wrong += reading.commit(runtime).ok() ? 0 : 1;
        wrong += runtime.deallocate(*block).ok() ? 0 : 1;
        wrong += runtime.wait_for_stream(ids[t]).ok() ? 0 : 1;
        wrong += all_are(read, value) ? 0 : 1;
      }
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
  BOOST_TEST(wrong == 0);
  for (StreamId id : ids) {
    sync(runtime.streams(), id);
  }
  BOOST_TEST(runtime.reap_pending(ReapGoal{.patience_ns = 5'000'000'000}).ok());
  BOOST_TEST(runtime.bytes_outstanding() == 0);
}

BOOST_AUTO_TEST_CASE(sixteen_processes_at_once) {
  if (child_seed() != nullptr) {
    return;
  }
  for (int result : run_children("child_many_processes", 16)) {
    BOOST_TEST(result == 0);
  }
}
