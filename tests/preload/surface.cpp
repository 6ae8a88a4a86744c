// Every way to make device memory is seen: the same answers as without the library, and a limit that holds for each.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <sstream>

#include "support/process.h"
#include "tools/analysis/analysis.h"
#include "tools/report/report.h"

using namespace xlog;
using namespace xlog::test;

namespace {

const Environment kLimits = {{"XLOG_BUDGET", "64M"}, {"XLOG_HOST_BUDGET", "64M"}};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

tools::Report report_of(const std::string& path) {
  std::vector<std::string> problems;
  return tools::analyse(tools::find_logs({path}, problems), {.resolve = false});
}

const tools::GpuReport* find(const tools::Report& report, const std::string& key) {
  auto found = std::find_if(report.gpus.begin(), report.gpus.end(), [&](const auto& gpu) { return gpu.key == key; });
  return found != report.gpus.end() ? &*found : nullptr;
}

}  // namespace

// What a real driver answered (tests/gpu/results).
BOOST_AUTO_TEST_CASE(answers_of_the_driver_about_every_kind) {
  std::string recorded = slurp("tests/gpu/surface.expected");
  BOOST_TEST(run({program("surface")}).out == recorded);
  TempFolder folder;
  Outcome logged = run_with_library({program("surface")}, {{"XLOG_LOG", folder / "x.csv"}});
  BOOST_TEST(logged.out == recorded);
  BOOST_TEST(logged.status == 0);
  BOOST_TEST(logged.err == "");
  tools::Report report = report_of(log_in(folder));
  BOOST_TEST(report.contradiction_count == 0);
  for (const tools::GpuReport& gpu : report.gpus) {
    BOOST_TEST(gpu.live == 0);
    BOOST_TEST(gpu.live_blocks == 0);
  }
  for (Row& row : rows_of(log_in(folder))) {
    BOOST_TEST((row["action"] != "context_destroyed" || row["kind"] != "vmm"), "physical memory outlives contexts");
  }
  for (const char* kind : {"vmm", "managed", "array", "graph"}) {
    BOOST_TEST(std::count(report.kinds.begin(), report.kinds.end(), kind) == 1, kind);
  }
  BOOST_REQUIRE(find(report, "host") != nullptr);
  BOOST_TEST(find(report, "host")->peak == 64 << 20);
  BOOST_REQUIRE(find(report, "import") != nullptr);
  for (const Environment& more : {Environment{{"XLOG_BACKEND", "async"}}, Environment{{"XLOG_BACKEND", "cache"}}}) {
    BOOST_TEST(run_with_library({program("surface")}, more).out == recorded);
  }
}

// C23. A way that is not counted would be granted 100 MiB, or lose a part of the limit in every round.
BOOST_AUTO_TEST_CASE(a_limit_holds_for_every_kind) {
  for (const char* backend : {"native", "async", "cache", "direct"}) {
    TempFolder folder;
    Environment with = kLimits;
    with["XLOG_BACKEND"] = backend;
    with["XLOG_LOG"] = folder / "x.csv";
    with["XLOG_BACKTRACE"] = "off";
    Outcome ours = run_with_library({program("kinds"), "1000"}, with);
    BOOST_TEST_CONTEXT(backend) {
      BOOST_TEST(ours.status == 0);
      std::vector<std::string> lines = lines_of(ours.out);
      BOOST_TEST(lines.size() == 15);
      for (const std::string& line : lines) {
        BOOST_TEST(line.ends_with(": 100 MiB: 2; of 1000 rounds failed: 0; lost of the limit: 0"), line);
      }
      tools::Report report = report_of(log_in(folder));
      BOOST_TEST(report.contradiction_count == 0);
      BOOST_TEST(report.gpus.at(0).live == 0);
      BOOST_TEST(report.gpus.at(0).refusals >= 12);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_a_refusal_leaves_and_calls_that_fail_once) {
  for (const char* faults : {"", "cuMemRelease:1:999,cuMemUnmap:1:999,cuArrayDestroy:2:999"}) {
    bool failing = *faults != '\0';
    Environment with = {{"XLOG_BUDGET", "100M"}, {"XLOG_HOST_BUDGET", "100M"}, {"XLOG_SIM_FAIL", faults}};
    TempFolder folder;
    with["XLOG_LOG"] = folder / "x.csv";
    std::string seen = failing ? "1" : "0";
    BOOST_TEST(run_with_library({program("refusals")}, with).out ==
               "managed: 2\n ptr zero 1\n"
               "host: 2\n ptr zero 1\n"
               "physical: 2\n handle untouched 1\n"
               "physical, a bad size: 1\n"
               "physical, bad flags: 1\n"
               "managed, bad flags: 1\n"
               "array, three channels: 1\n"
               "left: 100\n"
               "released; failures seen " +
                   seen +
                   "; left: 100\n"
                   "mapped; left: 36\n"
                   "unmapped; failures seen " +
                   seen +
                   "; left: 100\n"
                   "destroyed; failures seen " +
                   seen +
                   "; left: 100\n"
                   "graph a: 0\n"
                   "graph a again: 0\n"
                   "graph b, a may run beside it: 2\n"
                   "graph b, a is gone: 0\n"
                   "graph b, trimmed, beside 60 MiB: 2\n"
                   "graph b: 0\n"
                   "left: 36\n"
                   "left: 100\n");
    BOOST_TEST(report_of(log_in(folder)).contradiction_count == 0);
  }
}

// Without a limit each of them is granted: the refusals above are ours.
BOOST_AUTO_TEST_CASE(what_no_limit_is_set_for_is_granted) {
  for (const std::string& line : lines_of(run({program("kinds"), "1"}).out)) {
    BOOST_TEST(line.find(": 100 MiB: 0; of 1 rounds failed: 0") != line.npos, line);
  }
  Outcome ours = run_with_library({program("kinds"), "1"}, {{"XLOG_BUDGET", "64M"}});
  for (const std::string& line : lines_of(ours.out)) {
    bool host = line.starts_with("host") || line.starts_with("registered");
    BOOST_TEST(line.find(host ? ": 100 MiB: 0;" : ": 100 MiB: 2;") != line.npos, line);
  }
}

// What is counted is what the driver takes, within a granule: 2 MiB, and 32 MiB for what pools and graphs reserve.
BOOST_AUTO_TEST_CASE(what_is_counted_is_what_is_taken) {
  std::vector<std::string> native = lines_of(run({program("kinds"), "taken"}).out);
  std::vector<std::string> ours =
      lines_of(run_with_library({program("kinds"), "taken"}, {{"XLOG_BUDGET", "60G"}, {"XLOG_BUDGET_COUNT", "taken"}}).out);
  BOOST_REQUIRE(native.size() == ours.size());
  BOOST_TEST(native.size() > 30);
  for (size_t i = 0; i < native.size(); ++i) {
    size_t at = native[i].rfind('\t');
    BOOST_TEST(native[i].substr(0, at) == ours[i].substr(0, at));
    bool pooled = native[i].find("async") == 0 || native[i].find("pool") == 0 || native[i].find("graph") != std::string::npos;
    long difference = std::stol(native[i].substr(at)) - std::stol(ours[i].substr(at));
    BOOST_TEST(std::abs(difference) <= (pooled ? 32L << 20 : 2L << 20), native[i] << " and " << ours[i]);
  }
}

// A process that opens another one's block is not charged for it, and closes it as often as it opened it.
BOOST_AUTO_TEST_CASE(imports_are_logged_and_not_charged) {
  Outcome native = run({program("imports")});
  TempFolder folder;
  Outcome ours = run_with_library({program("imports")}, {{"XLOG_BUDGET", "4M"}, {"XLOG_HOST_BUDGET", "1M"}, {"XLOG_LOG", folder / "log/"}});
  BOOST_TEST(ours.out == native.out);
  BOOST_TEST(native.out.find("close: 0\nclose: 0\nclose once more: 1\nchild: 0\n") != std::string::npos);
  tools::Report report = report_of(folder / "log");
  BOOST_TEST(report.contradiction_count == 0);
  const tools::GpuReport* imports = find(report, "import");
  BOOST_REQUIRE(imports != nullptr);
  BOOST_TEST(imports->allocations == 1);
  BOOST_TEST(imports->peak == 4 << 20);
  BOOST_TEST(imports->live == 0);
  BOOST_TEST(report.gpus.at(0).peak == 2 * (4 << 20));  // what the two processes allocated
  TempFolder external;
  BOOST_TEST(run_with_library({program("imports"), "external"}, {{"XLOG_LOG", external / "x.csv"}}).out == "import: 0\ndestroy: 0\n");
  auto rows = rows_of(log_in(external));
  BOOST_TEST(count(rows, "api", "cuImportExternalMemory") == 1);
  BOOST_TEST(count(rows, "api", "cuDestroyExternalMemory") == 1);
}

BOOST_AUTO_TEST_CASE(the_calls_of_the_first_drivers) {
  const std::string native = slurp("tests/gpu/first_drivers.expected");
  BOOST_TEST(run({program("first_drivers")}).out == native);
  TempFolder folder;
  Environment with = {{"XLOG_BUDGET", "64M"}, {"XLOG_HOST_BUDGET", "64M"}, {"XLOG_LOG", folder / "x.csv"}};
  std::string limited = run_with_library({program("first_drivers")}, with).out;
  BOOST_TEST(limited.find("100 MiB: 2\n") != limited.npos);
  BOOST_TEST(limited.find("array of 100 MiB: 2\n") != limited.npos);
  BOOST_TEST(limited.find("host 100 MiB: 2\n") != limited.npos);
  BOOST_TEST(limited.find("total at most 64 MiB: 1, free too: 1, device total: 1\n") != limited.npos);
  BOOST_TEST(limited.find("1 MiB: 0\n") != limited.npos);
  tools::Report report = report_of(log_in(folder));
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_TEST(report.gpus.at(0).live == 1000);  // what was allocated in stream order and cannot be freed there
  for (const char* backend : {"async", "cache", "direct"}) {
    BOOST_TEST(run_with_library({program("first_drivers")}, {{"XLOG_BACKEND", backend}}).out == native);
  }
}

// C22. The key is the UUID if one is given, else the ordinal as the process sees it.
BOOST_AUTO_TEST_CASE(ordinals_uuids_and_visible_devices) {
  auto total = [](const std::string& visible, const std::string& budget) {
    std::string out =
        run_with_library({program("info")}, {{"XLOG_SIM_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", visible}, {"XLOG_BUDGET", budget}}).out;
    return out.substr(0, out.find('\n'));
  };
  const std::string by_ordinal = "0=1G,1=2G,2=3G,3=4G";
  // Physical GPU n has the UUID (n + 1)0...
  const std::string by_uuid = "GPU-10=1G,GPU-20=2G,GPU-30=3G,GPU-40=4G";
  for (const char* visible : {"2,3", "3,2", "GPU-30,GPU-40", "MIG-3031,0", "0,-1,2"}) {
    BOOST_TEST(total(visible, by_ordinal) == "device total 1073741824", visible);
  }
  BOOST_TEST(total("2,3", by_uuid) == "device total 3221225472");
  BOOST_TEST(total("3,2", by_uuid) == "device total 4294967296");
  BOOST_TEST(total("GPU-30", by_uuid) == "device total 3221225472");
  BOOST_TEST(total("MIG-3031", "MIG-3031=5G") == "device total 5368709120");
  BOOST_TEST(total("0,-1,2", by_uuid) == "device total 1073741824");
  BOOST_TEST(total("1", by_ordinal + ",GPU-20=7G") == "device total 7516192768");
  BOOST_TEST(total("", by_ordinal).starts_with("tests/programs/program.h"));  // no GPU: as natively
  TempFolder folder;
  run_with_library(
      {program("info")},
      {{"XLOG_SIM_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", "2,3"}, {"XLOG_BUDGET", by_ordinal}, {"XLOG_LOG", folder / "x.csv"}});
  tools::Report report = report_of(log_in(folder));
  BOOST_TEST(report.gpus.at(0).ordinal == 0);
  BOOST_TEST(report.gpus.at(0).info.uuid.starts_with("GPU-30313233-"));
}

BOOST_AUTO_TEST_CASE(nvml_says_what_cuMemGetInfo_says) {
  Environment two = {{"XLOG_SIM_DEVICES", "3"}, {"CUDA_VISIBLE_DEVICES", "1,2"}};
  std::string native = run({program("nvml")}, two).out;
  BOOST_TEST(run_with_library({program("nvml")}, two).out == native);
  Environment with = two;
  with["XLOG_BUDGET"] = "0=1G,1=2G";
  BOOST_TEST(run_with_library({program("nvml")}, with).out ==
             "GPUs 3\n"
             "before cuInit: 0, whole GPU 1\n"
             "ordinal 1: v1 0, v2 0, total 2048 MiB, adds up 1 1\n"
             "ordinal 0: v1 0, v2 0, as cuMemGetInfo: total 1 1 free 1 1, adds up 1 1\n"
             "ordinal -1: v1 0, v2 0, total 81920 MiB, adds up 1 1\n"
             "bad version refused: 1, no memory refused: 1\n");
  with["XLOG_NVML"] = "0";
  std::string off = run_with_library({program("nvml")}, with).out;
  BOOST_TEST(off.find("ordinal 1: v1 0, v2 0, total 81920 MiB") != off.npos);
  BOOST_TEST(off.find("total 0 0 free 0 0") != off.npos);
}

// C14. A thread that takes a stack may hold the C library's lock over the list of loaded files when another one forks.
BOOST_AUTO_TEST_CASE(children_of_every_sort) {
  for (bool stacks : {false, true}) {
    std::vector<std::string> command = {program("forks")};
    Outcome native = run(command);
    TempFolder folder;
    Outcome ours =
        run_with_library(command, {{"XLOG_LOG", folder / "x.csv"}, {"XLOG_BUDGET", "1G"}, {"XLOG_BACKTRACE", stacks ? "32" : "off"}});
    BOOST_TEST(ours.out == native.out);
    BOOST_TEST(ours.err == "");
    BOOST_TEST(native.out.find("in the child: 3\n") != native.out.npos);
    BOOST_TEST(native.out.find("quick 0") == native.out.npos);
    BOOST_TEST(folder.files().size() == (stacks ? 3 : 2));  // the parent's
    tools::Report report = report_of(log_in(folder));
    BOOST_TEST(report.contradiction_count == 0);
    BOOST_TEST(report.gpus.at(0).live == 0);
  }
}

// The context is counted from the first use of the GPU on.
BOOST_AUTO_TEST_CASE(what_the_driver_takes_beside_blocks) {
  auto free_of = [](const Environment& with) {
    std::string out = run_with_library({program("info")}, with).out;
    return std::stoull(out.substr(out.find("empty: r 0 free ") + 16));
  };
  BOOST_TEST(free_of({{"XLOG_BUDGET", "1G"}}) == 1ULL << 30);
  BOOST_TEST(free_of({{"XLOG_BUDGET", "1G"}, {"XLOG_BUDGET_CONTEXT", "600M"}}) == 424ULL << 20);
  Outcome wrong = run_with_library({program("info")}, {{"XLOG_BUDGET", "1G"}, {"XLOG_BUDGET_CONTEXT", "600"}});
  BOOST_TEST(wrong.err.find("XLOG_BUDGET_CONTEXT=600") != wrong.err.npos);
  BOOST_TEST(wrong.out.find("cuInit(0)") != wrong.out.npos);
  TempFolder folder;
  run_with_library({program("info")}, {{"XLOG_LOG", folder / "x.csv"}});
  tools::Report report = report_of(log_in(folder));
  BOOST_REQUIRE(report.gpus.at(0).looks != 0);
  BOOST_TEST(report.gpus.at(0).first_look.used == 100 << 20);
  BOOST_TEST(report.gpus.at(0).first_look.beyond() == 0);
}

// Physical memory is looked up where it is mapped.
BOOST_AUTO_TEST_CASE(addresses_of_mapped_memory) {
  TempFolder folder;
  Outcome ours = run_with_library({program("mapped")}, {{"XLOG_LOG", folder / "x.csv"}});
  BOOST_REQUIRE(ours.out.starts_with("0x"));
  uint64_t address = std::stoull(ours.out, nullptr, 16);
  std::vector<std::string> problems;
  auto ask = [&](uint64_t at) {
    tools::WhatisQuery query{.address = at, .at = ""};
    return tools::whatis_text(tools::what_is(query, tools::find_logs({folder.path()}, problems), false), query, false);
  };
  BOOST_TEST(ask(address + 5)
                 .find("live: offset 5 (0x5) of " + ours.out.substr(0, ours.out.find('\n')) +
                       ", 2.00 MiB (2,097,152 bytes, mapped, handle 0x") != std::string::npos);
  BOOST_TEST(ask(address + (2 << 20)).find("was: offset 0 (0x0)") != std::string::npos);
  BOOST_TEST(ask(address + (2 << 20)).find("unmapped ") != std::string::npos);
  BOOST_TEST(ask(address + (4 << 20)).find("in no block of this log") != std::string::npos);
  tools::Report report = report_of(log_in(folder));
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_TEST(report.gpus.at(0).live == 2 << 20);
}

BOOST_AUTO_TEST_CASE(nothing_is_looked_at_once_exit_has_begun) {
  TempFolder folder;
  BOOST_TEST(run_with_library({program("exit_calls")}, {{"XLOG_LOG", folder / "x.csv"}}).out == "cuMemFree_v2\nfree: 0\n");
}

BOOST_AUTO_TEST_CASE(functions_that_make_memory_and_are_not_covered_are_named) {
  TempFolder folder;
  run_with_library({program("unhooked")}, {{"XLOG_LOG", folder / "x.csv"}});
  tools::Report report = report_of(log_in(folder));
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_TEST(report.unhooked == std::vector<std::string>{"cuMulticastCreate"});
}
// A newer driver's function that begins a life is named when it is handed out, where something depends on it.
BOOST_AUTO_TEST_CASE(functions_of_a_newer_driver_that_make_memory_are_named) {
  Outcome limited = run_with_library({program("unhooked"), "future"}, {{"XLOG_BUDGET", "1G"}});
  BOOST_TEST(limited.status == 0);
  BOOST_TEST(limited.err.starts_with("xlog: cuMemAllocOfTheFuture: this driver's function is newer than this version of the library"));
  BOOST_TEST(run_with_library({program("unhooked"), "future"}, {}).err == "");
}
