// The memory of a process ends with it, and a log that is named twice is one.
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>

#include "support/log_text.h"
#include "tools/analysis/simulate.h"
#include "tools/report/report.h"

using namespace xlog;
using namespace xlog::tools;
using test::LogText;
using test::TempFolder;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kSecond = 1'000'000'000;

// A program that keeps 100 MiB, from `start` on, for half a second.
LogText keeper(uint64_t start, bool killed = false) {
  LogText log;
  log.allocate({.ptr = 0x7f0000000000, .bytes = 60 * kMiB, .time = start, .stack = 1});
  log.allocate({.ptr = 0x7f0010000000, .bytes = 40 * kMiB, .time = start + kSecond / 4, .stack = 2});
  Event last;
  last.action = killed ? action::driver_used : action::exit;
  last.result = "ok";
  last.time = start + kSecond / 2;
  return log.put(last);
}

Report report_of(const TempFolder& folder, const AnalysisOptions& options = {.resolve = false}) {
  std::vector<std::string> problems;
  return analyse(find_logs({folder.path()}, problems), options);
}

void check_ranks(uint64_t ranks, bool killed) {
  TempFolder folder;
  for (uint64_t i = 0; i < ranks; ++i) {
    keeper(kSecond * (i + 1), killed).write(folder, "rank." + std::to_string(i + 1));
  }
  Report report = report_of(folder);
  const GpuReport& gpu = report.gpus.at(0);
  BOOST_TEST(gpu.peak == 100 * kMiB);
  BOOST_TEST(gpu.peak_time == kSecond + kSecond / 4);
  BOOST_TEST(gpu.live == ranks * 100 * kMiB);
  BOOST_TEST(gpu.live_blocks == ranks * 2);
  BOOST_TEST(gpu.growing.empty());
  BOOST_TEST(gpu.by(By::stack).entries().at(0).group.at_peak == 60 * kMiB);
  BOOST_TEST(gpu.by(By::stack).entries().at(0).group.live == ranks * 60 * kMiB);
  BOOST_TEST(*std::max_element(gpu.timeline.highest().begin(), gpu.timeline.highest().end()) == 100 * kMiB);
  BOOST_TEST(report.processes.at(0).live == 100 * kMiB);
  std::vector<std::string> problems;
  Simulation on_another = simulate(find_logs({folder.path()}, problems), {.gpu_bytes = 100 * kMiB, .context_bytes = 0, .resolve = false});
  BOOST_TEST(on_another.fits());
  BOOST_TEST(on_another.gpus.at(0).needed == 100 * kMiB);
}

void write_run_info(const TempFolder& folder, const std::string& name, const std::string& more) {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  test::spit(folder / (name + ".run.json"), std::string(R"({"host": ")") + host + R"(", "arguments": ["keeper"], )" + more + "}");
}

}  // namespace

BOOST_AUTO_TEST_CASE(runs_one_after_another_peak_as_one) {
  check_ranks(3, false);
  check_ranks(64, false);
}

BOOST_AUTO_TEST_CASE(a_killed_process_has_ended_with_its_last_row) { check_ranks(3, true); }

BOOST_AUTO_TEST_CASE(runs_at_once_add_up) {
  TempFolder folder;
  keeper(kSecond).write(folder, "rank.1");
  keeper(kSecond + kSecond / 3).write(folder, "rank.2");
  Report report = report_of(folder);
  BOOST_TEST(report.gpus.at(0).peak == 160 * kMiB);
  std::vector<std::string> problems;
  Simulation both = simulate(find_logs({folder.path()}, problems), {.gpu_bytes = 160 * kMiB, .context_bytes = 0, .resolve = false});
  BOOST_TEST(both.gpus.at(0).needed == 160 * kMiB);
}

BOOST_AUTO_TEST_CASE(what_was_live_at_a_moment_is_of_those_that_ran) {
  TempFolder folder;
  keeper(kSecond).write(folder, "rank.1");
  keeper(2 * kSecond).write(folder, "rank.2");
  auto live = [&](uint64_t moment) { return report_of(folder, {.resolve = false, .until = moment}).gpus.at(0).live; };
  BOOST_TEST(live(kSecond) == 60 * kMiB);
  BOOST_TEST(live(kSecond + kSecond / 2) == 100 * kMiB);
  BOOST_TEST(live(kSecond + kSecond / 2 + 1) == 0);
  BOOST_TEST(live(2 * kSecond) == 60 * kMiB);
}

// `xlog run` saw the end of its own child, which had been idle since its last row.
BOOST_AUTO_TEST_CASE(a_wait_status_says_when_it_ended) {
  TempFolder folder;
  keeper(kSecond, true).write(folder, "rank.1");
  keeper(2 * kSecond).write(folder, "rank.2");
  write_run_info(folder, "rank.1",
                 R"("pid": 7, "start_ns": 900000000, "run": {"arguments": ["keeper"], "start_ns": 900000000, "duration_ns": 1200000000})");
  BOOST_TEST(report_of(folder).gpus.at(0).peak == 160 * kMiB);
  write_run_info(folder, "rank.1",
                 R"("pid": 7, "start_ns": 900000000, "run": {"arguments": ["sh"], "start_ns": 900000000, "duration_ns": 1200000000})");
  BOOST_TEST(report_of(folder).gpus.at(0).peak == 100 * kMiB);
}

BOOST_AUTO_TEST_CASE(what_a_running_process_has_is_still_live) {
  TempFolder folder;
  uint64_t now = static_cast<uint64_t>(time(nullptr)) * kSecond;
  std::string who =
      R"("pid": )" + std::to_string(getpid()) + R"(, "program": ")" + std::filesystem::read_symlink("/proc/self/exe").string() + '"';
  keeper(now, true).write(folder, "rank.1");
  write_run_info(folder, "rank.1", who + R"(, "start_ns": )" + std::to_string(now));
  Report report = report_of(folder);
  BOOST_TEST(report.processes.at(0).runs);
  std::string text = report_text(report, {});
  BOOST_TEST(text.find("100.00 MiB still live.") != text.npos);
  BOOST_TEST(text.find("never freed") == text.npos);
  // Its end mark says that it is at its end; a process that began later has the pid again; another program is another log's.
  keeper(now).write(folder, "rank.1");
  BOOST_TEST(report_text(report_of(folder), {}).find("100.00 MiB never freed.") != text.npos);
  keeper(now, true).write(folder, "rank.1");
  write_run_info(folder, "rank.1", who + R"(, "start_ns": 1000000000)");
  BOOST_TEST(!report_of(folder).processes.at(0).runs);
  write_run_info(folder, "rank.1",
                 R"("program": "/bin/true", "pid": )" + std::to_string(getpid()) + R"(, "start_ns": )" + std::to_string(now));
  BOOST_TEST(!report_of(folder).processes.at(0).runs);
}

BOOST_AUTO_TEST_CASE(a_log_that_is_named_twice_is_one) {
  TempFolder folder;
  keeper(kSecond).write(folder, "rank.1");
  keeper(kSecond).write(folder, "rank.2");
  std::filesystem::create_hard_link(folder / "rank.1.csv", folder / "again.csv");
  std::filesystem::create_symlink(folder / "rank.2.csv", folder / "link.csv");
  auto count = [](const std::vector<std::string>& names) {
    std::vector<std::string> problems;
    return find_logs(names, problems).size();
  };
  BOOST_TEST(count({folder.path()}) == 2);
  BOOST_TEST(count({folder.path(), folder.path() + "/."}) == 2);
  BOOST_TEST(count({folder / "rank.1.csv", folder.path(), folder / "link.csv"}) == 2);
  // A copy is told by what it is a log of.
  TempFolder copy;
  keeper(kSecond).write(copy, "rank.1");
  BOOST_TEST(count({folder.path(), copy.path()}) == 3);
  write_run_info(folder, "rank.1", R"("pid": 7, "start_ns": 900000000)");
  write_run_info(copy, "rank.1", R"("pid": 7, "start_ns": 900000000)");
  BOOST_TEST(count({folder / "rank.1.csv", copy.path()}) == 1);
}

// It stands in front of the rows, and is written behind them.
BOOST_AUTO_TEST_CASE(the_time_of_a_row_lost_is_no_moment_of_the_run) {
  TempFolder folder;
  Event lost;
  lost.action = action::lost;
  lost.bytes = 5;
  lost.seq = 0;
  lost.time = 9 * kSecond;
  LogText first;
  first.put(lost)
      .allocate({.ptr = 0x7f0000000000, .bytes = 100, .time = kSecond})
      .free({.ptr = 0x7f0000000000, .bytes = 100, .time = 2 * kSecond});
  first.write(folder, "rank.1");
  LogText().allocate({.ptr = 0x7f0000000000, .bytes = 10, .time = kSecond + 1}).write(folder, "rank.2");
  Report report = report_of(folder);
  BOOST_TEST(report.gpus.at(0).peak == 110);
  BOOST_TEST(report.span.length() == kSecond);
  BOOST_TEST(report.lost == 5);
}

BOOST_AUTO_TEST_CASE(what_was_live_when_the_log_went_off_is_so_until_it_is_told_anew) {
  LogText log;
  log.allocate({.ptr = 0x1000, .bytes = 100, .time = kSecond, .stack = 1, .generation = 1});
  log.allocate({.ptr = 0x2000, .bytes = 200, .time = kSecond, .stack = 2, .generation = 2});
  Event off;
  off.action = action::log_off;
  off.time = 2 * kSecond;
  log.put(off);
  BOOST_TEST(log.report().gpus.at(0).live == 300);
  Event on;
  on.action = action::log_on;
  on.time = 3 * kSecond;
  Event live;
  live.thread = 9;
  live.action = action::live;
  live.result = "ok";
  live.device = 0;
  live.kind = "plain";
  live.ptr = 0x2000;
  live.bytes = 200;
  live.generation = 2;
  live.time = 3 * kSecond + 1;
  log.put(on).put(live);
  live.ptr = 0x3000;
  live.generation = 3;
  log.put(live);
  log.free({.ptr = 0x2000, .bytes = 200, .time = 3 * kSecond + 2, .generation = 2});
  log.free({.ptr = 0x3000, .bytes = 200, .time = 3 * kSecond + 3, .generation = 3});
  Report report = log.report();
  const GpuReport& gpu = report.gpus.at(0);
  BOOST_TEST(gpu.peak == 400);
  BOOST_TEST(gpu.live == 0);
  BOOST_TEST(gpu.allocations == 2);
  // As old as it was, and of an age that is not known.
  BOOST_TEST(report.lifetimes[10].blocks == 1);
  BOOST_TEST(report.lifetimes[0].blocks + report.lifetimes[1].blocks == 0);
  for (const auto& [stack, group] : gpu.by(By::stack).entries()) {
    BOOST_TEST(group.short_lived == 0);
  }
}

BOOST_AUTO_TEST_CASE(threads_that_call_at_once_have_a_share_of_their_time) {
  LogText log;
  for (uint64_t thread = 1; thread <= 4; ++thread) {
    Event call;
    call.thread = thread;
    call.time = kSecond;
    call.action = action::allocate;
    call.result = "ok";
    call.device = 0;
    call.kind = "plain";
    call.api = "cuMemAlloc_v2";
    call.ptr = 0x1000 * thread;
    call.bytes = 512;
    call.elapsed_ns = kSecond / 2;
    log.put(call);
  }
  std::string text = report_text(log.report(), {});
  BOOST_TEST(text.find("2.0 s in 4 calls, 100.0 % of the time of 4 threads from first to last") != text.npos);
}
