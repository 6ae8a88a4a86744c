// What the analysis answers beside the peak, on logs that are written here row by row.
#include <boost/test/unit_test.hpp>
#include <sstream>

#include "support/log_text.h"
#include "tools/analysis/diff.h"
#include "tools/analysis/simulate.h"
#include "tools/analysis/stable_name.h"
#include "tools/analysis/suppressions.h"
#include "tools/report/export.h"
#include "tools/report/report.h"

using namespace xlog;
using namespace xlog::tools;
using test::LogText;
using test::TempFolder;

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kSecond = 1'000'000'000;

const Group& of_stack(const Report& report, uint64_t stack) {
  const auto& entries = report.gpus.at(0).by(By::stack).entries();
  auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& each) { return report.places[each.number].stack == stack; });
  BOOST_REQUIRE((found != entries.end()));
  return found->group;
}

std::vector<ProcessLog> logs_of(const LogText& log, const TempFolder& folder, const std::string& name = "x") {
  log.write(folder, name);
  std::vector<std::string> problems;
  return find_logs({folder / (name + ".csv")}, problems);
}

}  // namespace

BOOST_AUTO_TEST_CASE(allocations_that_do_not_last) {
  LogText log;
  uint64_t now = kSecond;
  for (int i = 0; i < 10; ++i) {  // freed at once
    log.allocate({.ptr = 0x1000, .time = now, .stack = 1}).free({.ptr = 0x1000, .time = now + 2'000'000, .stack = 2});
    now += 10'000'000;
  }
  // Freed behind another of the same thread, and behind one of another thread.
  log.allocate({.ptr = 0x1000, .time = now, .stack = 3}).allocate({.ptr = 0x2000, .time = now + 1, .stack = 4});
  log.free({.ptr = 0x1000, .time = now + 999'999}).free({.ptr = 0x2000, .time = now + kSecond});
  log.allocate({.ptr = 0x1000, .time = now, .stack = 5}).allocate({.ptr = 0x2000, .thread = 8, .time = now + 1, .stack = 6});
  log.free({.ptr = 0x1000, .time = now + 1'000'000});
  Report report = log.report();
  BOOST_TEST(of_stack(report, 1).temporary == 10);
  BOOST_TEST(of_stack(report, 1).short_lived == 0);
  BOOST_TEST(of_stack(report, 3).temporary == 0);
  BOOST_TEST(of_stack(report, 3).short_lived == 1);
  BOOST_TEST(of_stack(report, 4).temporary == 1);
  BOOST_TEST(of_stack(report, 5).temporary == 1);
  BOOST_TEST(of_stack(report, 5).short_lived == 0);  // a millisecond is not less
  BOOST_TEST(of_stack(report, 6).temporary == 0);    // never freed
  BOOST_TEST(report.lifetimes[7].blocks == 11);      // below 10 ms: ten of 2 ms, one of 1 ms
  BOOST_TEST(report.lifetimes[6].blocks == 1);
}

BOOST_AUTO_TEST_CASE(what_grows_over_the_second_half) {
  LogText log;
  for (uint64_t i = 0; i < 80; ++i) {
    uint64_t now = kSecond + i * kSecond;
    log.allocate({.ptr = 0x100000 + i * 0x10000, .bytes = 4096, .time = now, .stack = 1});  // grows
    log.allocate({.ptr = 0x9000000, .bytes = 65536, .time = now + 1, .stack = 2});          // comes and goes
    log.free({.ptr = 0x9000000, .bytes = 65536, .time = now + 500'000'000});
    if (i < 30) {
      log.allocate({.ptr = 0x8000000 + i * 0x1000, .bytes = 4096, .time = now + 2, .stack = 3});  // stops
    }
  }
  for (uint64_t i = 0; i < 80; ++i) {
    log.free({.ptr = 0x100000 + i * 0x10000, .bytes = 4096, .time = 81 * kSecond + i});
  }
  Report report = log.report();
  BOOST_REQUIRE(report.gpus.at(0).growing.size() == 1);
  // At 3/8 and 7/8 of 80 seconds and a little: a row of that very second is before it.
  const Growth& growth = report.gpus[0].growing[0];
  BOOST_TEST(report.places[growth.place].stack == 1);
  BOOST_TEST(growth.from == 31 * 4096);
  BOOST_TEST(growth.to == 71 * 4096);
}

BOOST_AUTO_TEST_CASE(holes_are_where_blocks_have_been) {
  LogText log;
  for (uint64_t i = 0; i < 8; ++i) {
    log.allocate({.ptr = 0x7f0000000000 + i * kMiB, .bytes = kMiB, .stack = 1});
  }
  for (uint64_t i : {1, 2, 5}) {
    log.free({.ptr = 0x7f0000000000 + i * kMiB, .bytes = kMiB});
  }
  log.allocate({.ptr = 0x100, .bytes = kMiB, .kind = "vmm"});  // a handle, no address
  log.allocate({.bytes = 3 * kMiB, .result = "CUDA_ERROR_OUT_OF_MEMORY"});
  log.free({.ptr = 0x7f0000000000, .bytes = kMiB});
  Report report = log.report();
  const GpuReport& gpu = report.gpus.at(0);
  BOOST_TEST(gpu.refused.at(0).holes.count == 2);
  BOOST_TEST(gpu.refused.at(0).holes.bytes == 3 * kMiB);
  BOOST_TEST(gpu.refused.at(0).holes.largest == 2 * kMiB);
  BOOST_TEST(gpu.holes.largest == 3 * kMiB);
  // Blocks end at steps of 512 bytes: what is between is no hole.
  Report odd = LogText().allocate({.ptr = 0x7f0000000000, .bytes = 1000}).allocate({.ptr = 0x7f0000000400, .bytes = 1}).report();
  BOOST_TEST(odd.gpus.at(0).holes.count == 0);
}

BOOST_AUTO_TEST_CASE(what_the_driver_rounds) {
  Report report = LogText()
                      .allocate({.ptr = 0x1000000, .bytes = 1})
                      .allocate({.ptr = 0x2000000, .bytes = kMiB})
                      .allocate({.ptr = 0x4000000, .bytes = kMiB + 1})
                      .allocate({.ptr = 0x8000000, .bytes = kMiB + 1, .kind = "async"})
                      .report();
  BOOST_TEST(report.gpus.at(0).peak_taken == 512 + kMiB + 2 * kMiB + kMiB + 512);
  BOOST_TEST(report.sizes[21].taken == kMiB + 2 * kMiB + kMiB + 512);
}

BOOST_AUTO_TEST_CASE(rows_after_a_moment_are_left_out) {
  LogText log;
  log.allocate({.ptr = 0x1000, .time = 10, .stack = 1}).allocate({.ptr = 0x2000, .time = 20, .stack = 2}).free({.ptr = 0x1000, .time = 30});
  BOOST_TEST(log.report({.resolve = false, .until = 9}).rows == 0);
  BOOST_TEST(log.report({.resolve = false, .until = 10}).gpus.at(0).live == 512);
  BOOST_TEST(log.report({.resolve = false, .until = 29}).gpus.at(0).live == 1024);
  BOOST_TEST(log.report({.resolve = false, .until = 30}).gpus.at(0).live == 512);
  BOOST_TEST(log.report({.resolve = false, .until = 10}).contradiction_count == 0);
}

BOOST_AUTO_TEST_CASE(the_same_stack_of_two_processes_is_one) {
  TempFolder folder;
  Event exit;  // behind the other's last row: they run at once
  exit.action = action::exit;
  exit.time = 2 * kSecond;
  std::vector<ProcessLog> logs = logs_of(LogText().allocate({.ptr = 0x1000, .stack = 1}).put(exit), folder, "a");
  logs.push_back(logs_of(LogText().allocate({.ptr = 0x1000, .stack = 1}).allocate({.ptr = 0x2000}), folder, "b")[0]);
  Report report = analyse(logs, {.resolve = false});
  BOOST_TEST(of_stack(report, 1).live_blocks == 2);
  BOOST_TEST(report.places.size() == 2);  // and one for no stack
  BOOST_TEST(report.gpus.at(0).peak == 1536);
  BOOST_TEST(report.processes[0].peak == 512);
  BOOST_TEST(report.processes[1].peak == 1024);
}

BOOST_AUTO_TEST_CASE(suppressions_as_the_leak_sanitizer_has_them) {
  BOOST_TEST(matches_pattern("f1", "xxf1yy"));
  BOOST_TEST(!matches_pattern("^f1", "xxf1yy"));
  BOOST_TEST(matches_pattern("^xx*yy$", "xxf1yy"));
  BOOST_TEST(!matches_pattern("^xx*y$", "xxf1yz"));
  BOOST_TEST(matches_pattern("a*b*c", "0a11b2c3"));
  BOOST_TEST(!matches_pattern("a*b*c", "0a11c2b3"));
  BOOST_TEST(matches_pattern("*", ""));
  TempFolder folder;
  test::spit(folder / "s", "# known\n\nleak:f1\n  leak:/opt/other*\nleak:\nrace:f2\n");
  std::vector<std::string> problems;
  ReportStyle style;
  style.suppressions.read(folder / "s", problems);
  BOOST_REQUIRE(problems.size() == 2);
  BOOST_TEST(problems[0].ends_with("s:5: not of the form leak:PATTERN"));
  BOOST_TEST(problems[1].ends_with("s:6: not of the form leak:PATTERN"));
  LogText log;
  log.allocate({.ptr = 0x1000, .bytes = 100, .stack = 1}).allocate({.ptr = 0x2000, .bytes = 200, .stack = 2});
  std::string text = report_text(log.report(), style);
  BOOST_TEST(text.find("200 B never freed\n  200 B  100.0 %  1 block\n      f2  app.cpp:2") != text.npos);
  BOOST_TEST(text.find("100 B more never freed, suppressed") != text.npos);
}

BOOST_AUTO_TEST_CASE(a_diff_is_by_function_and_library) {
  TempFolder folder;
  logs_of(LogText()
              .allocate({.ptr = 0x1000, .bytes = 100, .stack = 1})
              .allocate({.ptr = 0x2000, .bytes = 200, .stack = 2})
              .allocate({.ptr = 0x3000, .bytes = 300, .stack = 3}),
          folder, "a");
  logs_of(LogText()
              .allocate({.ptr = 0x9000, .bytes = 100, .stack = 5})
              .allocate({.ptr = 0xa000, .bytes = 250, .stack = 2})
              .allocate({.ptr = 0xb000, .bytes = 50, .stack = 4}),
          folder, "b");
  // Built again: other build-id, offsets and lines, other numbers of stacks, loaded elsewhere; and a clone.
  test::spit(folder / "b.stacks.csv",
             std::string(kStackColumns) +
                 "\n5,0,/usr/app,ffff,0x999,f1 [clone .isra.0],app.cpp,77\n5,1,/usr/app,ffff,0x888,main,app.cpp,66\n"
                 "2,0,/usr/app,ffff,0x777,f2,app.cpp,55\n2,1,/usr/app,ffff,0x888,main,app.cpp,66\n"
                 "4,0,/usr/app,ffff,0x666,f4,app.cpp,44\n4,1,/usr/app,ffff,0x888,main,app.cpp,66\n");
  std::vector<std::string> problems;
  RunSums before = sums_of(analyse(find_logs({folder / "a.csv"}, problems), {.resolve = false}));
  RunSums after = sums_of(analyse(find_logs({folder / "b.csv"}, problems), {.resolve = false}));
  std::vector<StackChange> all = differences(before, after, What::peak);
  BOOST_REQUIRE(all.size() == 3);
  BOOST_TEST((all[0].change == Change::gone && all[0].before == 300));
  BOOST_TEST((all[1].change == Change::grown && all[1].before == 200 && all[1].after == 250));
  BOOST_TEST((all[2].change == Change::fresh && all[2].after == 50));
  BOOST_TEST(differences(before, before, What::total).empty());
  RunSums again;
  std::string problem;
  BOOST_TEST(read_baseline(baseline_json(before), again, problem));
  BOOST_TEST(differences(before, again, What::peak).empty());
  BOOST_TEST(!read_baseline("{\"what\": 7}", again, problem));
}

BOOST_AUTO_TEST_CASE(a_smaller_gpu) {
  LogText log;
  for (uint64_t i = 0; i < 8; ++i) {
    log.allocate({.ptr = 0x7f0000000000 + i * 4 * kMiB, .bytes = 4 * kMiB, .stack = i < 6 ? 1U : 2U});
  }
  log.free({.ptr = 0x7f0000000000, .bytes = 4 * kMiB});
  TempFolder folder;
  auto run = [&](uint64_t gpu, uint64_t context) {
    return simulate(logs_of(log, folder), {.gpu_bytes = gpu, .context_bytes = context, .resolve = false});
  };
  BOOST_TEST(run(32 * kMiB, 0).fits());
  BOOST_TEST(!run(32 * kMiB, kMiB).fits());
  Simulation small = run(29 * kMiB, kMiB);
  const SimulatedGpu& gpu = small.gpus.at(0);
  BOOST_TEST(gpu.needed == 33 * kMiB);
  BOOST_TEST(gpu.refused == 1);
  BOOST_TEST(gpu.first.requested == 4 * kMiB);
  BOOST_TEST(gpu.first.needed == 33 * kMiB);
  BOOST_TEST(small.report.places[gpu.first.place].stack == 2);
  BOOST_REQUIRE(gpu.first.holders.size() == 2);
  BOOST_TEST(gpu.first.holders[0].bytes == 24 * kMiB);
  // Small blocks share the pages that they stand on.
  LogText pages;
  for (uint64_t i = 0; i < 4; ++i) {
    pages.allocate({.ptr = 0x7f0000000000 + i * 1024, .bytes = 1024});
  }
  pages.allocate({.ptr = 0x7f0000800000, .bytes = 1024});
  Simulation shared = simulate(logs_of(pages, folder), {.gpu_bytes = 4 * kMiB, .context_bytes = 0, .resolve = false});
  BOOST_TEST(shared.gpus.at(0).needed == 4 * kMiB);
  BOOST_TEST(shared.fits());
}

BOOST_AUTO_TEST_CASE(streams_have_what_they_freed) {
  auto block = [](uint64_t ptr, uint64_t stream) {
    return LogText::Block{.ptr = ptr, .bytes = 4 * kMiB, .stream = stream, .kind = "async", .api = "cuMemAllocAsync"};
  };
  TempFolder folder;
  auto run = [&](uint64_t second_stream) {
    LogText log;
    log.allocate(block(0x1000000, 1)).free(block(0x1000000, 1)).allocate(block(0x2000000, second_stream));
    return simulate(logs_of(log, folder), {.gpu_bytes = 4 * kMiB, .context_bytes = 0, .resolve = false}).gpus.at(0);
  };
  SimulatedGpu own = run(1);
  BOOST_TEST(own.waits == 0);
  BOOST_TEST(own.needed_unwaited == 4 * kMiB);
  SimulatedGpu other = run(2);
  BOOST_TEST(other.refused == 0);  // it waits
  BOOST_TEST(other.waits == 1);
  BOOST_TEST(other.needed == 4 * kMiB);
  BOOST_TEST(other.needed_unwaited == 8 * kMiB);
}

BOOST_AUTO_TEST_CASE(rmm_reads_what_is_exported) {
  LogText log;
  log.allocate({.ptr = 0x7f0000001000, .bytes = 100, .time = 3'723'000'004'000, .stack = 1});
  log.allocate({.ptr = 0x7f0000002000, .bytes = 50, .time = 3'723'000'005'000, .stream = 2, .kind = "async"});
  log.allocate({.bytes = 1 << 30, .time = 3'723'000'006'000, .result = "CUDA_ERROR_OUT_OF_MEMORY"});
  log.allocate({.ptr = 0x5000, .bytes = 50, .time = 3'723'000'006'000, .kind = "vmm"});
  log.allocate({.ptr = 0x6000, .bytes = 50, .time = 3'723'000'006'000, .device = 1});
  log.free({.ptr = 0x7f0000001000, .bytes = 100, .time = 3'723'000'007'000});
  TempFolder folder;
  std::ostringstream out;
  std::vector<std::string> problems;
  BOOST_TEST(export_rmm(logs_of(log, folder), 0, out, problems) == 2);
  BOOST_TEST(out.str() ==
             "Thread,Time,Action,Pointer,Size,Stream\n"
             "7,01:02:03.000004,allocate,0x7f0000001000,100,0\n"
             "7,01:02:03.000005,allocate,0x7f0000002000,50,0x2\n"
             "7,01:02:03.000006,allocate failure,(nil),1073741824,0\n"
             "7,01:02:03.000007,free,0x7f0000001000,100,0\n");
  test::spit(folder / "rmm.csv", out.str());
  Report report = analyse(find_logs({folder / "rmm.csv"}, problems), {.resolve = false});
  BOOST_TEST(report.gpus.at(0).peak == 150);
  BOOST_TEST(report.gpus.at(0).live == 50);
  BOOST_TEST(report.gpus.at(0).refusals == 1);
}

// REPLAY_BENCH keeps one table of addresses.
BOOST_AUTO_TEST_CASE(one_address_in_two_processes_is_two_blocks_for_rmm) {
  LogText log;
  log.allocate({.ptr = 0x7f0000001000, .bytes = 100, .time = kSecond, .stack = 1});
  log.free({.ptr = 0x7f0000001000, .bytes = 100, .time = 2 * kSecond});
  TempFolder folder;
  log.write(folder, "a.1");
  log.write(folder, "a.2");
  std::ostringstream out;
  std::vector<std::string> problems;
  BOOST_TEST(export_rmm(find_logs({folder.path()}, problems), 0, out, problems) == 0);
  for (const char* row : {"allocate,0x7f0000001000,", "free,0x7f0000001000,", "allocate,0x17f0000001000,", "free,0x17f0000001000,"}) {
    size_t place = out.str().find(row);
    BOOST_TEST(place != std::string::npos, row);
    BOOST_TEST(out.str().find(row, place + 1) == std::string::npos, row);
  }
}

BOOST_AUTO_TEST_CASE(what_was_refused_and_given_later) {
  auto refused = [](uint64_t bytes) { return LogText::Block{.bytes = bytes, .result = "CUDA_ERROR_OUT_OF_MEMORY"}; };
  auto at_end = [](const LogText& log) { return summary_text(log.report(), "the program exited with 1", kSecond, ""); };
  std::string text = at_end(LogText().allocate({.ptr = 0x1000, .bytes = 100, .stack = 1}).allocate(refused(400)));
  BOOST_TEST(text.find("out of memory at the end: asked for 400 B with 100 B in use") != text.npos);
  text = at_end(LogText().allocate(refused(400)).allocate({.ptr = 0x1000, .bytes = 100, .stack = 1}));
  BOOST_TEST(text.find("at the end") == text.npos);
  text = at_end(LogText().allocate(refused(400)).allocate({.ptr = 0x1000, .bytes = 99, .stack = 1}));
  BOOST_TEST(text.find("out of memory at the end") != text.npos);
}

// A run of many ranks: each GPU's own figures, and one answer for all.
BOOST_AUTO_TEST_CASE(many_gpus_are_told_as_their_sum) {
  auto run = [](uint64_t gpus) {
    LogText log;
    for (uint64_t i = 0; i < gpus; ++i) {
      log.allocate({.ptr = 0x100000 * (i + 1), .bytes = 100 + i, .stack = 1, .device = i});
      log.allocate({.ptr = 0x200000 * (i + 100), .bytes = 10, .stack = 2, .device = i});
    }
    return log.report();
  };
  GpuReport sum;
  BOOST_TEST(told_gpus(run(kMostGpusTold), sum).size() == kMostGpusTold);
  Report many = run(9);
  std::vector<const GpuReport*> told = told_gpus(many, sum);
  BOOST_REQUIRE(told.size() == 1);
  BOOST_TEST(told[0]->peak == 9 * 110 + 36);
  BOOST_TEST(told[0]->allocations == 18);
  auto held = largest(told[0]->by(By::stack), &Group::at_peak, &Group::blocks_at_peak, 5);
  BOOST_REQUIRE(held.size() == 2);
  BOOST_TEST(held[0].bytes == 9 * 100 + 36);
  BOOST_TEST(held[0].blocks == 9);
  BOOST_TEST(report_text(many, {}).find("9 GPUs: 1.00 KiB in all, each at its own peak; held by") != std::string::npos);
  BOOST_TEST(report_json(many, {}).find("\"all_gpus\"") != std::string::npos);
}
