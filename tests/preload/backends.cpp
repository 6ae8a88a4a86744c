// XLOG_BACKEND=async and cache: who serves plain memory is not to be seen. Cases C04 to C08, C24, C31, C32.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <set>
#include <sstream>

#include "support/process.h"

using namespace xlog::test;
namespace data = boost::unit_test::data;

namespace {

struct Mode {
  const char* backend;
  const char* free;
  [[nodiscard]] Environment with(Environment extra = {}) const {
    extra.insert({{"XLOG_BACKEND", backend}, {"XLOG_ASYNC_FREE", free}});
    return extra;
  }
  friend std::ostream& operator<<(std::ostream& out, const Mode& mode) { return out << mode.backend << ' ' << mode.free; }
};

constexpr Mode kAll[] = {{"async", "wait"}, {"async", "ordered"}, {"cache", "wait"}, {"cache", "ordered"}};
constexpr Mode kAsync[] = {{"async", "wait"}, {"async", "ordered"}};
constexpr Mode kCache[] = {{"cache", "wait"}, {"cache", "ordered"}};

std::string without(const std::string& text, const std::vector<std::string>& starts) {
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at) + 1;
    std::string line = text.substr(at, end - at);
    bool drop = false;
    for (const std::string& each : starts) {
      drop = drop || line.starts_with(each);
    }
    kept += drop ? "" : line;
    at = end;
  }
  return kept;
}

// What memory of a pool is not: the driver says so, and it is not hidden.
const std::vector<std::string> kPoolIsNot = {
    "ipc of ", " same handle", "cuMemAlloc ptr attribute 10:", "cuMemAlloc ptr attribute 15:", "wait for a value in plain memory"};

}  // namespace

// The driver beside captures: its answers, and the same through every backend. C04, C05
BOOST_AUTO_TEST_CASE(captures_as_recorded) {
  std::string recorded = slurp("tests/gpu/captures.expected");
  BOOST_TEST(run({program("captures")}).out == recorded);
  BOOST_TEST(run_with_library({program("captures")}, {{"XLOG_BUDGET", "100%"}}).out == recorded);
}
BOOST_DATA_TEST_CASE(captures_under, data::make(kAll), mode) {
  Outcome ours = run_with_library({program("captures")}, mode.with());
  BOOST_TEST(ours.out == slurp("tests/gpu/captures.expected"));
  BOOST_TEST(ours.err.empty());
}

// A capture begins at any instant of a free. C04
BOOST_DATA_TEST_CASE(captures_that_begin_in_a_free, data::make(kAll) * data::make({"global", "thread", "relaxed"}), mode, capture) {
  Outcome ours = run_with_library({program("capture_race"), capture}, mode.with());
  BOOST_TEST(ours.out == "0 wrong\n");
  BOOST_TEST(ours.status == 0);
}

BOOST_DATA_TEST_CASE(answers_under_cache, data::make(kCache), mode) {
  BOOST_TEST(run_with_library({program("conformance")}, mode.with()).out == slurp("tests/gpu/conformance.expected"));
}
BOOST_DATA_TEST_CASE(answers_under_async, data::make(kAsync), mode) {
  std::string native = run({program("conformance")}).out;
  BOOST_TEST(without(run_with_library({program("conformance")}, mode.with()).out, kPoolIsNot) == without(native, kPoolIsNot));
}

// C05, C06, C07, C24: one program, the same lines.
BOOST_DATA_TEST_CASE(plain_memory_is_plain_memory, data::make(kAll), mode) {
  Outcome native = run({program("plain_memory")});
  BOOST_TEST(native.status == 0);
  for (const Environment& extra : std::vector<Environment>{
           {}, {{"XLOG_BUDGET", "100%"}}, {{"XLOG_ASYNC_KEEP", "0B"}, {"XLOG_ASYNC_PENDING", "0B"}}, {{"XLOG_SIM_DEINIT", "1"}}}) {
    bool gone = extra.count("XLOG_SIM_DEINIT") != 0;
    Outcome ours = run_with_library({program("plain_memory")}, mode.with(extra));
    BOOST_TEST(ours.out == (gone ? run({program("plain_memory")}, extra).out : native.out));
    BOOST_TEST(ours.status == 0);
    BOOST_TEST(ours.err.empty());
  }
}

BOOST_DATA_TEST_CASE(other_programs, data::make(kAll) * data::make({"info", "reset", "threads"}), mode, name) {
  std::vector<std::string> command{program(name), "4", "500"};
  Outcome native = run(command);
  Outcome ours = run_with_library(command, mode.with());
  BOOST_TEST(ours.out == native.out);
  BOOST_TEST(ours.err == native.err);
  BOOST_TEST(ours.status == native.status);
}

BOOST_DATA_TEST_CASE(limits_hold_as_natively, data::make(kAll) * data::make({"budget_threads", "reset"}), mode, name) {
  Outcome native = run_with_library({program(name)}, {{"XLOG_BUDGET", "1G"}});
  Outcome ours = run_with_library({program(name)}, mode.with({{"XLOG_BUDGET", "1G"}}));
  auto but = std::vector<std::string>{"the driver refused"};
  BOOST_TEST(without(ours.out, but) == without(native.out, but));
}

// What counts is what was requested, whatever a pool takes for it.
BOOST_DATA_TEST_CASE(a_limit_counts_requested_bytes, data::make(kAll), mode) {
  auto granted = [&](const char* count_what) {
    TempFolder folder;
    run_with_library({program("rounding")},
                     mode.with({{"XLOG_BUDGET", "100M"}, {"XLOG_BUDGET_COUNT", count_what}, {"XLOG_LOG", folder / "x.csv"}}));
    auto rows = rows_of(log_in(folder));
    return count(rows, "result", "ok") - count(rows, "action", "exit");
  };
  BOOST_TEST(granted("bytes") == 99);
  BOOST_TEST(granted("taken") == 50);
}

BOOST_DATA_TEST_CASE(devices_under, data::make(kAll), mode) {
  Environment two{{"XLOG_BUDGET", "1G"}, {"XLOG_SIM_DEVICES", "2"}};
  BOOST_TEST(run_with_library({program("devices")}, mode.with(two)).out == run_with_library({program("devices")}, two).out);
}

BOOST_DATA_TEST_CASE(ends_of_a_process_under,
                     data::make(kAll) * data::make({"return", "exit", "_exit", "abort", "kill"}) * data::make({"0", "1"}), mode, how,
                     gone) {
  Environment extra{{"XLOG_SIM_DEINIT", gone}};
  Outcome native = run({program("shutdown"), how}, extra);
  Outcome ours = run_with_library({program("shutdown"), how}, mode.with(extra));
  BOOST_TEST(ours.out == native.out);
  BOOST_TEST(ours.status == native.status);
}

// A free after exit has begun is still the program's: it waits for the work of its context, and makes no call beside that.
BOOST_DATA_TEST_CASE(a_free_after_exit_began_does_what_a_free_does, data::make(kAll), mode) {
  Outcome native = run({program("exit_calls")});
  BOOST_TEST(native.out == "cuMemFree_v2\nfree: 0\n");
  std::istringstream lines(run_with_library({program("exit_calls")}, mode.with()).out);
  const std::set<std::string> waiting{"cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuEventCreate",
                                      "cuCtxRecordEvent",    "cuEventSynchronize", "cuThreadExchangeStreamCaptureMode"};
  std::string line;
  while (std::getline(lines, line) && line != "free: 0") {
    BOOST_TEST_CONTEXT(line) { BOOST_TEST(waiting.count(line) == 1U); }
  }
  BOOST_TEST(line == "free: 0");
}
BOOST_DATA_TEST_CASE(a_free_after_exit_began_waits, data::make({"async", "cache", "native"}), backend) {
  Outcome ours = run_with_library({program("late_free")}, {{"XLOG_BACKEND", backend}});
  BOOST_TEST(ours.out == "the free waited: 1, code 0\n");
}
BOOST_AUTO_TEST_CASE(a_fenced_free_after_exit_began_waits) {
  BOOST_TEST(run_with_library({program("late_free")}, {{"XLOG_GUARD", "fence"}}).out == "the free waited: 1, code 0\n");
}

// A limit waits for work that cuMemFree would have waited for, without an end of its own.
BOOST_DATA_TEST_CASE(a_limit_waits_for_work, data::make(kAll), mode) {
  Outcome ours = run_with_library({program("limit_behind_work")}, mode.with({{"XLOG_BUDGET", "1G"}, {"XLOG_ASYNC_PENDING", "1G"}}));
  BOOST_TEST(ours.out == "free: 0\nthe same again: 0\n");
  BOOST_TEST(ours.status == 0);
}

BOOST_DATA_TEST_CASE(a_limit_counts_what_threads_settle_for_each_other, data::make(kAll), mode) {
  for (int i = 0; i < 6; ++i) {
    Environment extra{{"XLOG_BUDGET", i < 3 ? "64M" : "66M"}, {"XLOG_SIM_SEED", std::to_string(i + 1)}};
    BOOST_TEST(run_with_library({program("limit_threads")}, mode.with(extra)).out == "refused: 0\n");
  }
}

// Adversarial schedules: 10,000 seeds over the four modes, some with bounds that are always in the way.
BOOST_DATA_TEST_CASE(schedules, data::make(kAll) * data::xrange(2), mode, tight) {
  Environment extra{{"XLOG_SIM_MEMORY", std::to_string(tight != 0 ? 64 << 20 : 256 << 20)}};
  if (tight != 0) {
    extra.insert({{"XLOG_ASYNC_PENDING", "1M"}, {"XLOG_ASYNC_KEEP", "4M"}, {"XLOG_BUDGET", "48M"}});
  }
  Outcome ours = run_with_library({program("schedules"), "1250", std::to_string(1 + 1250 * tight)}, mode.with(extra));
  BOOST_TEST(ours.out == "1250 seeds, 0 wrong\n");
  BOOST_TEST(ours.err.empty());
  BOOST_TEST(ours.status == 0);
}
BOOST_AUTO_TEST_CASE(schedules_natively) { BOOST_TEST(run({program("schedules"), "200"}).out == "200 seeds, 0 wrong\n"); }

// C08
BOOST_AUTO_TEST_CASE(sharing_is_refused_by_the_driver_and_the_remedy_named_once) {
  Outcome ours = run_with_library({program("conformance")}, {{"XLOG_BACKEND", "async"}});
  BOOST_TEST(ours.out.find("ipc of cuMemAlloc: 1\n") != ours.out.npos);
  BOOST_TEST(ours.out.find("cuMemAlloc ptr attribute 10: r 0 value 0\n") != ours.out.npos);
  BOOST_TEST(ours.err ==
             "xlog: cuIpcGetMemHandle: CUDA_ERROR_INVALID_VALUE: not supported by memory from XLOG_BACKEND=async; "
             "XLOG_BACKEND=cache serves memory that does\n");
}

BOOST_AUTO_TEST_CASE(what_was_shared_is_not_given_out_again) {
  Outcome ours = run_with_library({program("given_out_again")}, {{"XLOG_BACKEND", "cache"}});
  BOOST_TEST(ours.out ==
             "given out again: 1\n"
             "one byte more: 0\n"
             "one byte less: 0\n"
             "in another context: 0\n"
             "shared, given out again: 0\n"
             "with an attribute, given out again: 0\n");
}

// With a library of these names in the process the memory has to be what they can share.
BOOST_AUTO_TEST_CASE(async_becomes_cache_beside_mpi) {
  TempFolder folder;
  for (const char* name : {"libmpi.so.40", "libmpi_cxx.so", "libucp.so.0", "libuct.so.0", "libnccl.so.2"}) {
    std::string path = folder / name;
    run({"cp", program("plugins/cu_names.so"), path});
    Environment with{{"XLOG_BACKEND", "async"}, {"LD_PRELOAD", build_folder() + "/libxlog.so:" + path}};
    Outcome ours = run({program("conformance")}, with);
    BOOST_TEST(ours.out == slurp("tests/gpu/conformance.expected"));
    BOOST_TEST(ours.err == "xlog: " + std::string(name) +
                               " is loaded, which may share device memory with other processes: XLOG_BACKEND=async is taken as cache "
                               "(XLOG_ASYNC_ALWAYS=1 keeps async)\n");
    with.insert({"XLOG_ASYNC_ALWAYS", "1"});
    BOOST_TEST(run({program("conformance")}, with).out.find("ipc of cuMemAlloc: 1\n") != std::string::npos);
  }
}

// C31
BOOST_DATA_TEST_CASE(peers_read_what_they_may, data::make(kAll), mode) {
  Environment two{{"XLOG_SIM_DEVICES", "2"}};
  Outcome native = run({program("peers")}, two);
  BOOST_TEST(native.out.find("wrong bytes of a block made after: 0\n") != native.out.npos);
  Outcome ours = run_with_library({program("peers")}, mode.with(two));
  BOOST_TEST(ours.out == native.out);
  BOOST_TEST(ours.err.empty());
}
BOOST_AUTO_TEST_CASE(a_grant_that_does_not_work_is_told) {
  Outcome ours = run_with_library({program("peers")}, {{"XLOG_BACKEND", "async"}, {"XLOG_SIM_DEVICES", "2"}, {"XLOG_SIM_PEER_BUG", "1"}});
  BOOST_TEST(ours.err == "xlog: GPU 1 cannot be given access to what GPU 0 has from XLOG_BACKEND=async: run with XLOG_BACKEND=cache\n");
  BOOST_TEST(ours.out.find("wrong bytes of a block made after: 0\n") != ours.out.npos);
}

// C32
BOOST_AUTO_TEST_CASE(a_device_without_pools) {
  Environment none{{"XLOG_BACKEND", "async"}, {"XLOG_SIM_NO_POOLS", "all"}};
  Outcome ours = run_with_library({program("conformance")}, none);
  BOOST_TEST(ours.out == slurp("tests/gpu/conformance.expected"));
  BOOST_TEST(ours.err == "xlog: GPU 0 has no memory pools: XLOG_BACKEND=async is taken as native there\n");
  Environment mixed{{"XLOG_BACKEND", "async"}, {"XLOG_SIM_NO_POOLS", "1"}, {"XLOG_SIM_DEVICES", "2"}};
  Outcome both = run_with_library({program("peers")}, mixed);
  BOOST_TEST(both.out == run({program("peers")}, {{"XLOG_SIM_DEVICES", "2"}}).out);
  BOOST_TEST(both.err == "xlog: GPU 1 has no memory pools: XLOG_BACKEND=async is taken as native there\n");
}

// Faults of the driver: the program sees the driver's answer, and nothing is lost or counted wrongly.
BOOST_DATA_TEST_CASE(faults,
                     data::make(kAll) *
                         data::make({"cuMemAllocFromPoolAsync:3+:2", "cuMemAllocFromPoolAsync:2:999", "cuStreamSynchronize:1:999",
                                     "cuMemPoolCreate:1+:801", "cuStreamCreate:1+:2", "cuEventCreate:2:2", "cuMemPoolTrimTo:1+:999"}),
                     mode, fault) {
  Outcome ours = run_with_library({program("threads"), "4", "100"}, mode.with({{"XLOG_SIM_FAIL", fault}, {"XLOG_BUDGET", "100%"}}));
  // Without an event a free cannot wait, and says so; everything else the plain calls of the driver stand in for.
  bool told = std::string(fault).starts_with("cuEventCreate");
  BOOST_TEST_CONTEXT(ours.out << ours.err) { BOOST_TEST((told ? ours.status == 0 || ours.status == 3 : ours.status == 0)); }
}
BOOST_DATA_TEST_CASE(the_error_of_the_wait_is_the_frees, data::make({"async", "cache"}), backend) {
  Outcome ours = run_with_library({program("free_twice")}, {{"XLOG_BACKEND", backend}, {"XLOG_SIM_FAIL", "cuEventSynchronize:1:700"}});
  BOOST_TEST(ours.out ==
             "free: 700\n"
             "free: 0\n"
             "free: 1\n");
}

// What the memory that is held does to others is bounded.
BOOST_DATA_TEST_CASE(what_is_held_is_bounded, data::make(kAll), mode) {
  Outcome ours = run_with_library({program("held")}, mode.with({{"XLOG_ASYNC_KEEP", "64M"}, {"XLOG_ASYNC_PENDING", "0B"}}));
  BOOST_TEST(ours.out ==
             "held at most 96 MiB: 1\n"
             "held at most 96 MiB: 1\n");
  // A pool takes slabs of 32 MiB, of which each is held whole for what is left in it.
  Outcome limited = run_with_library({program("held")}, mode.with({{"XLOG_BUDGET", "200M"}}));
  BOOST_TEST(limited.out.ends_with("used at most 300 MiB: 1\n"));
}
