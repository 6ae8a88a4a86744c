// What a limit allows is what the card can lose.
#include <boost/test/unit_test.hpp>

#include <sstream>

#include "support/process.h"

using namespace xlog::test;

namespace {

std::string limited(const std::string& name, const std::string& what, const std::string& budget) {
  return run_with_library({program(name), what}, {{"XLOG_BUDGET", budget}}).out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    out.push_back(line);
  }
  return out;
}

}  // namespace

// A pool that keeps what was freed to it holds it of the card. On a card of that size the driver refuses the second request until the
// program has synchronised with the free, and then takes the memory from the pool for it (measured on an H200).
BOOST_AUTO_TEST_CASE(what_pools_keep_counts) {
  BOOST_TEST(limited("pool_limits", "keeps", "8G") ==
             "7 GiB in stream order: 0\n"
             "freed, and kept by the pool: 1024 of 8192 MiB free\n"
             "synchronised: 1024 of 8192 MiB free\n"
             "7 GiB of plain memory: 0\n"
             "taken from the pool: 1024 of 8192 MiB free\n"
             "6 GiB from the pool: 2\n"
             "7 GiB from the pool: 0\n"
             "the pool is trimmed: 0\n"
             "trimmed: 8192 of 8192 MiB free\n");
}

BOOST_AUTO_TEST_CASE(no_estimate_refuses_an_allocation_from_a_pool) {
  BOOST_TEST(limited("pool_limits", "loops", "1G") == "20000 allocations beside 960 MiB: 0 refused\n");
}

BOOST_AUTO_TEST_CASE(any_number_of_pools_is_limited) {
  BOOST_TEST(limited("pool_limits", "many", "1G") ==
             "1100 MiB from pool 0: 2\n"
             "1100 MiB from pool 150: 2\n"
             "1100 MiB from pool 299: 2\n"
             "1 MiB from each of 300 pools: 32 granted\n");
}

BOOST_AUTO_TEST_CASE(a_destroyed_pool_counts_as_long_as_its_blocks) {
  BOOST_TEST(limited("pool_limits", "destroyed", "1G") ==
             "500 MiB beside the blocks of a destroyed pool: 2\n"
             "one of two is freed: 2\n"
             "both are freed: 0\n");
}

// Freed plain memory that a backend keeps goes back before other memory takes its place under the limit.
BOOST_AUTO_TEST_CASE(what_a_backend_keeps_counts_beside_pools) {
  for (const char* backend : {"async", "cache"}) {
    TempFolder folder;
    Environment with = {{"XLOG_BUDGET", "1G"}, {"XLOG_BACKEND", backend}, {"XLOG_LOG", folder / "x.csv"}};
    Outcome ours = run_with_library({program("pool_limits"), "backend"}, with);
    std::string round = "900 MiB of plain memory: 0\n900 MiB in stream order: 0\n";
    BOOST_TEST(ours.out == round + round + round + "600 MiB in stream order: 0\n", backend);
    size_t looks = 0;
    for (const Row& row : rows_of(log_in(folder))) {
      bool look = row.at("action") == "driver_used";
      looks += look ? 1 : 0;
      BOOST_TEST((!look || std::stoull(row.at("bytes")) <= uint64_t{1} << 30), backend << ": " << row.at("bytes"));
    }
    BOOST_TEST(looks != 0);
  }
}

BOOST_AUTO_TEST_CASE(pools_of_sixteen_threads_stay_below_the_limit) {
  BOOST_TEST(limited("pool_limits", "threads", "1G") ==
             "served more than 100: 1, other codes: 0, at most 1 GiB is reserved: 1\n"
             "at the end: 1024 of 1024 MiB free\n");
}

// What counts is the environment that the program was started with.
BOOST_AUTO_TEST_CASE(a_program_cannot_change_its_limit) {
  for (const char* how : {"nothing", "clearenv", "unsetenv", "setenv", "putenv", "overwrite"}) {
    BOOST_TEST(limited("environment", how, "64M") == "1 GiB: 2\n", how);
  }
  BOOST_TEST(limited("environment", "fork", "64M") == "in the child: 2\n1 GiB: 2\n");
  BOOST_TEST(limited("environment", "exec", "64M") == "1 GiB: 0\n");  // the new program was started with 1 TiB
  Outcome late = run_with_library({program("environment"), "setenv"}, {});
  BOOST_TEST(late.out == "1 GiB: 0\n");
  std::string first = build_folder() + "/programs/plugins/clears_environment.so:" + build_folder() + "/libxlog.so";
  std::string last = build_folder() + "/libxlog.so:" + build_folder() + "/programs/plugins/clears_environment.so";
  for (const std::string& preload : {first, last}) {
    Outcome ours = run({program("environment"), "nothing"}, {{"XLOG_BUDGET", "64M"}, {"LD_PRELOAD", preload}});
    BOOST_TEST(ours.out == "1 GiB: 2\n", preload);
  }
}

BOOST_AUTO_TEST_CASE(a_limit_that_limits_nothing_lets_nothing_run) {
  for (const auto& [value, what] : std::vector<std::pair<std::string, std::string>>{
           {"1=1G", "there is no GPU 1"},
           {"0=1G,1=1G", "there is no GPU 1"},
           {"4G,17=1G", "there is no GPU 17"},
           {"GPU-deadbeef=1G", "no GPU's UUID begins with GPU-deadbeef"},
           {"MIG-10=1G,GPU-20=1G", "no GPU's UUID begins with GPU-20"},
       }) {
    Outcome ours = run_with_library({program("demo")}, {{"XLOG_BUDGET", value}});
    BOOST_TEST(ours.status == 3);
    BOOST_TEST(ours.out.find("cuInit(0): 1\n") != std::string::npos);
    BOOST_TEST(ours.err == "xlog: XLOG_BUDGET: " + what + " among the 1 that this process sees; no GPU work is started\n");
  }
  BOOST_TEST(run_with_library({program("demo")}, {{"XLOG_BUDGET", "4G,1=1G"}, {"XLOG_SIM_DEVICES", "2"}}).status == 0);
}

// A key may name a GPU that is hidden from this process, as long as each GPU that it sees has a limit.
BOOST_AUTO_TEST_CASE(keys_of_hidden_gpus) {
  auto status = [](const std::string& budget, const std::string& visible) {
    return run_with_library({program("demo")}, {{"XLOG_BUDGET", budget}, {"XLOG_SIM_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", visible}})
        .status;
  };
  BOOST_TEST(status("GPU-20=1G,GPU-30=1G", "1") == 0);
  BOOST_TEST(status("GPU-20=1G,GPU-30=1G", "0") == 3);
  BOOST_TEST(status("0=1G,1=1G", "3") == 0);
  BOOST_TEST(status("1=1G", "3") == 3);
}

BOOST_AUTO_TEST_CASE(a_misspelt_limit_lets_nothing_run) {
  for (const char* name : {"XLOG_BUGDET", "XLOG_BUDGETS", "XLOG_LIMIT", "XLOG_GPU_LIMIT", "xlog_budget", "XLOGBUDGET"}) {
    Outcome ours = run_with_library({program("demo")}, {{name, "8G"}});
    BOOST_TEST(ours.status == 3, name);
    BOOST_TEST(ours.err ==
               "xlog: " + std::string(name) + " is not an option of this library; did you mean XLOG_BUDGET?; no GPU work is started\n");
  }
  Outcome other = run_with_library({program("demo")}, {{"XLOG_BACKNED", "async"}});
  BOOST_TEST(other.status == 0);
  BOOST_TEST(other.err == "xlog: XLOG_BACKNED is not an option of this library; did you mean XLOG_BACKEND?\n");
  BOOST_TEST(run_with_library({program("demo")}, {{"XLOGIN_SHELL", "1"}, {"XLOG_SIM_SEED", "1"}}).err.empty());
}

// One memory under two handles counts once, as long as either of them lives.
BOOST_AUTO_TEST_CASE(exported_memory_counts_as_long_as_anything_holds_it) {
  for (const char* how : {"import", "both", "descriptor", "copy", "socket", "twice", "again", "mapped"}) {
    BOOST_TEST(limited("exports", how, "64M") == "4 rounds, then 2\n4 rounds, then 2\nall of it is free: 1\n", how);
  }
}

// A request that the driver would refuse for another reason than memory gets its code, and has the effect that it has there.
BOOST_AUTO_TEST_CASE(other_reasons_than_memory_come_first) {
  std::string native = run({program("other_reasons")}).out;
  std::string want = native;
  for (const char* granted : {"plain", "pitch, elements of 4 bytes", "physical", "host", "32 MiB beside them"}) {
    size_t at = want.find(std::string(granted) + ": 0\n");
    BOOST_REQUIRE(at != want.npos);
    want[at + std::string(granted).size() + 2] = '2';
  }
  // What was refused was not left registered.
  const std::string left = "not left registered: ";
  BOOST_REQUIRE(want.find(left) != want.npos);
  want.replace(want.find(left), left.size() + 3, left + "0");
  Outcome ours = run_with_library({program("other_reasons")}, {{"XLOG_BUDGET", "64M"}, {"XLOG_HOST_BUDGET", "16M"}});
  BOOST_TEST(ours.out == want);
}

// Plain memory that is freed in the order of a stream, of whatever sort, comes back when its work is done, and not before.
BOOST_AUTO_TEST_CASE(frees_in_stream_order_of_plain_memory) {
  const std::string sorts = limited("ordered_plain", "sorts", "64M");
  BOOST_TEST(lines_of(sorts).size() == 10);
  for (const std::string& line : lines_of(sorts)) {
    BOOST_TEST(line.ends_with(": 0"), line);
  }
  BOOST_TEST(limited("ordered_plain", "held", "64M") ==
             "first: 0\n"
             "the free is not done: 2\n"
             "nothing was given: 1\n"
             "it is done: 0\n");
  BOOST_TEST(limited("ordered_plain", "captures", "64M") == "captures lost: 0, frees beside them: 1, all of it is free: 1\n");
}

// The calls that the limit itself makes may fail once, at any time: the program has the same answers.
BOOST_AUTO_TEST_CASE(calls_of_the_limit_that_fail_once) {
  const std::string sorts = limited("ordered_plain", "sorts", "64M");
  const std::string keeps = limited("pool_limits", "keeps", "8G");
  for (const char* call :
       {"cuEventCreate", "cuEventRecord", "cuEventRecord_ptsz", "cuEventQuery", "cuCtxRecordEvent", "cuCtxPushCurrent_v2", "cuStreamGetCtx",
        "cuMemPoolGetAttribute", "cuMemPoolTrimTo", "cuThreadExchangeStreamCaptureMode"}) {
    for (int index = 1; index <= 8; ++index) {
      Environment with = {{"XLOG_BUDGET", "64M"}, {"XLOG_SIM_FAIL", std::string(call) + ":" + std::to_string(index) + ":999"}};
      BOOST_TEST(run_with_library({program("ordered_plain"), "sorts"}, with).out == sorts, call << " " << index);
      with["XLOG_BUDGET"] = "8G";
      bool own = std::string_view(call) == "cuMemPoolTrimTo";  // the program's own call fails, too
      BOOST_TEST((own || run_with_library({program("pool_limits"), "keeps"}, with).out == keeps), call << " " << index);
    }
  }
}

// Branches that may run beside each other hold their memory at the same time (measured on an H200: two of 256 MiB reserve 512).
BOOST_AUTO_TEST_CASE(branches_of_a_graph_are_summed) {
  BOOST_TEST(limited("graph_branches", "", "300M") ==
             "1 of 256 MiB: 0\n"
             "2 of 256 MiB: 2\n"
             "4 of 128 MiB: 2\n"
             "2 of 128 MiB: 0\n"
             "1 of 300 MiB: 2\n");
}
