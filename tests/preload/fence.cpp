// Fences in real processes, and checks behind the launches of kernels.
#include <boost/test/unit_test.hpp>

#include "support/misuses.h"
#include "tools/analysis/analysis.h"
#include "tools/report/report.h"

using namespace xlog;
using namespace xlog::test;

// Where the GPU meets the fence the program gets the fault; everywhere else nothing changes for it.
BOOST_AUTO_TEST_CASE(what_the_table_says_is_found_at_a_fence) {
  for (const Misuse& each : misuses()) {
    BOOST_TEST_CONTEXT(each.name) {
      Outcome native = run({program("misuse/" + each.name)});
      for (const Environment& with :
           {Environment{{"XLOG_GUARD", "fence"}}, Environment{{"XLOG_GUARD", "fence"}, {"XLOG_BACKEND", "cache"}}}) {
        Outcome fenced = misuse(each.name, with);
        BOOST_TEST(findings(fenced.err) == each.fence);
        if (each.fence == "fault") {
          BOOST_TEST(fenced.out.find(": 700\n") != fenced.out.npos);
        } else {
          BOOST_TEST(fenced.err.find("not checked") == fenced.err.npos);
          BOOST_TEST(fenced.out == native.out);
          BOOST_TEST(fenced.status == native.status);
        }
      }
      Outcome right = run_with_library({program("misuse/" + each.name), "correct"}, {{"XLOG_GUARD", "fence"}});
      BOOST_TEST(right.out == run({program("misuse/" + each.name), "correct"}).out);
      BOOST_TEST(without_line(right.err, "xlog: cuIpcGetMemHandle: CUDA_ERROR_INVALID_VALUE: not supported by a fenced block;") == "");
    }
  }
}

// What a fenced block cannot be: exported by the calls for plain memory.
BOOST_AUTO_TEST_CASE(answers_are_as_without_a_fence_but_for_ipc) {
  for (const char* name :
       {"conformance", "captures", "surface", "schedules", "ordered", "resolver", "threads", "freed", "reset", "peers"}) {
    BOOST_TEST_CONTEXT(name) {
      auto comparable = [](std::string out) {
        for (const char* start : {"1000 x 1B consumes", "ipc of ", " same handle: ", "cuMemAlloc ptr attribute 10: "}) {
          out = without_line(out, start);
        }
        return out;
      };
      std::vector<std::string> command = {program(name)};
      if (command[0].ends_with("/threads")) {
        command.insert(command.end(), {"4", "500"});
      }
      const Environment two = {{"XLOG_SIM_DEVICES", "2"}};
      Outcome native = run(command, two);
      for (const char* how : {"fence", "fence:before", "fence:1/3"}) {
        Environment with = {{"XLOG_GUARD", how}, {"XLOG_SIM_DEVICES", "2"}};
        Outcome fenced = run_with_library(command, with);
        BOOST_TEST(comparable(fenced.out) == comparable(native.out));
        BOOST_TEST(fenced.status == native.status);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_begins_before_a_fenced_block_is_refused) {
  Outcome native = run({program("before_the_start")});
  BOOST_TEST(native.out.find("3145728: two bytes from one before: 1, to there: 1, set: 1\n") != native.out.npos, native.out);
  for (const char* how : {"fence", "fence:before", "fence:16"}) {
    BOOST_TEST(run_with_library({program("before_the_start")}, {{"XLOG_GUARD", how}}).out == native.out);
  }
}

BOOST_AUTO_TEST_CASE(a_fault_is_explained_once) {
  std::string err = misuse("use_after_free_write", {{"XLOG_GUARD", "fence"}}).err;
  static const std::regex kText(
      "xlog: guard: fault: CUDA_ERROR_ILLEGAL_ADDRESS from cuCtxSynchronize: a kernel went past a fenced block, used one after its free, "
      "or "
      "used another bad address\n"
      "xlog: guard:   last launched: store_bytes\n"
      "xlog: guard:   fenced blocks that are live: 1:\n"
      "xlog: guard:   block 0x[0-9a-f]+, 1048576 bytes \\(plain, fenced, GPU 0, generation [0-9]+\\)\n"
      "xlog: guard:   allocated by thread [0-9]+:\n"
      "(xlog: guard:     #[0-9]+ .*\n)+"
      "xlog: guard:   fenced blocks that were freed last:\n"
      "xlog: guard:   block 0x[0-9a-f]+, 1000 bytes \\(plain, fenced, GPU 0, generation [0-9]+\\)\n"
      "xlog: guard:   allocated by thread [0-9]+:\n"
      "(xlog: guard:     #[0-9]+ .*\n)+"
      "xlog: guard:   freed by thread [0-9]+:\n"
      "(xlog: guard:     #[0-9]+ .*\n)+"
      "xlog: guard: 1 finding\n");
  BOOST_TEST(std::regex_match(err, kText), err);
}

BOOST_AUTO_TEST_CASE(a_fault_stands_in_the_log_and_first_in_the_report) {
  TempFolder folder;
  misuse("overflow_1_of_512", {{"XLOG_GUARD", "fence"}, {"XLOG_LOG", folder / "x.csv"}});
  std::vector<Row> rows = rows_of(log_in(folder));
  BOOST_TEST(count(rows, "result", "fault") == 1);
  std::vector<std::string> problems;
  tools::Report report = tools::analyse(tools::find_logs({log_in(folder)}, problems), {});
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_REQUIRE(report.findings.size() == 1);
  std::string text = tools::report_text(report, {});
  BOOST_TEST(text.starts_with("The guard found 1 misuse of memory. "), text);
  BOOST_TEST(text.find("store_bytes") != text.npos, text);
}

BOOST_AUTO_TEST_CASE(fences_by_size_and_within_their_share) {
  BOOST_TEST(findings(misuse("overflow_1_of_512", {{"XLOG_GUARD", "fence:-512B"}}).err) == "fault");
  BOOST_TEST(findings(misuse("overflow_1_of_512", {{"XLOG_GUARD", "fence:513B-"}}).err) == "-");
  BOOST_TEST(findings(misuse("overflow_1_of_512", {{"XLOG_GUARD", "fence:before"}}).err) == "overflow");  // a zone is behind it
  BOOST_TEST(findings(misuse("underrun", {{"XLOG_GUARD", "fence:before"}}).err) == "fault");
  BOOST_TEST(findings(misuse("overflow_200_of_1000", {{"XLOG_GUARD", "fence:16"}}).err) == "fault");
  BOOST_TEST(findings(misuse("overflow_4_of_1000", {{"XLOG_GUARD", "fence:16"}}).err) == "overflow");
  Outcome bounded = misuse("overflow_1_of_512", {{"XLOG_GUARD", "fence"}, {"XLOG_GUARD_MAX", "1M"}});
  BOOST_TEST(bounded.out == run({program("misuse/overflow_1_of_512")}).out);
  BOOST_TEST(
      bounded.err ==
      "xlog: guard: 0 findings; 1 block without a zone or a fence (XLOG_GUARD_MAX, no memory for one, or of a thread's default stream)\n");
}

// What a fence takes is counted where `taken` is, and given back.
BOOST_AUTO_TEST_CASE(a_limit_counts_what_fences_take) {
  for (const char* count : {"bytes", "taken"}) {
    Environment with = {{"XLOG_BUDGET", "64M"}, {"XLOG_BUDGET_COUNT", count}, {"XLOG_HOST_BUDGET", "64M"}};
    std::string kinds = run_with_library({program("kinds"), "100"}, with).out;
    with["XLOG_GUARD"] = "fence";
    BOOST_TEST(run_with_library({program("kinds"), "100"}, with).out == kinds);
  }
}

// What fences took counts no longer when their blocks are freed, and what is kept for new ones is given up.
BOOST_AUTO_TEST_CASE(fences_give_back_what_they_took) {
  Outcome bounded = run_with_library({program("kinds"), "100"}, {{"XLOG_GUARD", "fence"}, {"XLOG_GUARD_MAX", "4M"}});
  BOOST_TEST(run_with_library({program("kinds"), "200"}, {{"XLOG_GUARD", "fence"}, {"XLOG_GUARD_MAX", "4M"}}).err == bounded.err);
  Outcome native = run({program("fill_after_frees")}, {{"XLOG_SIM_MEMORY", "67108864"}});
  BOOST_TEST(native.out.find("60 MiB: 0\n") != native.out.npos, native.out);
  for (const char* guard : {"off", "fence"}) {
    Outcome fenced =
        run_with_library({program("fill_after_frees")},
                         {{"XLOG_SIM_MEMORY", "67108864"}, {"XLOG_GUARD", guard}, {"XLOG_GUARD_MAX", "100%"}, {"XLOG_VERBOSE", "0"}});
    BOOST_TEST(without_line(fenced.out, "free ") == without_line(native.out, "free "));
    BOOST_TEST(fenced.err == "");
  }
}

BOOST_AUTO_TEST_CASE(fences_end_with_their_context) {
  Outcome native = run({program("context_gives_back")});
  BOOST_TEST(native.out == "lost: 0 MiB\nlost: 0 MiB\nlost: 0 MiB\n");
  BOOST_TEST(run_with_library({program("context_gives_back")}, {{"XLOG_GUARD", "fence"}}).out == native.out);
}

BOOST_AUTO_TEST_CASE(without_virtual_memory_blocks_are_as_without_a_fence) {
  Outcome none = misuse("overflow_1_of_512", {{"XLOG_GUARD", "fence"}, {"XLOG_SIM_FAIL", "cuMemGetAllocationGranularity:1+:801"}});
  BOOST_TEST(none.out == run({program("misuse/overflow_1_of_512")}).out);
  BOOST_TEST(none.err.find("1 block without a zone or a fence") != none.err.npos, none.err);
  for (const char* call : {"cuMemCreate", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"}) {
    Outcome failed =
        run_with_library({program("threads"), "4", "200"}, {{"XLOG_GUARD", "fence"}, {"XLOG_SIM_FAIL", std::string(call) + ":7+:2"}});
    BOOST_TEST(failed.status == 0);
    BOOST_TEST(findings(failed.err) == "-");
  }
}

BOOST_AUTO_TEST_CASE(the_kernel_is_named_with_the_command_that_shows_its_access) {
  std::string err = misuse("overflow_twice", {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}}).err;
  BOOST_TEST(err.find("found by the check behind launch 1 of kernel store_bytes; last seen clean: when it was written\n") != err.npos, err);
  BOOST_TEST(err.find("found by the check behind launch 2 of kernel store_bytes; last seen clean: behind launch 1\n") != err.npos, err);
  BOOST_TEST(err.find("to see the access: compute-sanitizer --kernel-name kne=store_bytes --launch-skip 1 --launch-count 1 ") != err.npos,
             err);
  BOOST_TEST(err.find("/overflow_twice\n") != err.npos, err);
  err = misuse("overflow_twice", {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch:2"}}).err;
  BOOST_TEST(findings(err) == "overflow overflow");
  BOOST_TEST(err.find("behind launch 1 ") == err.npos, err);
  BOOST_TEST(err.find("behind launch 2 of kernel store_bytes; last seen clean: when it was written\n") != err.npos, err);
  BOOST_TEST(err.find("compute-sanitizer") == err.npos, err);  // which of the two it was is not known
  err = run_with_library({program("two_streams")}, {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}}).err;
  BOOST_TEST(err.find("last seen clean: behind launch 1; several streams were at work: it may be another kernel's\n") != err.npos, err);
  BOOST_TEST(err.find("compute-sanitizer") == err.npos, err);
  err = misuse("overflow_in_a_graph", {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}}).err;
  BOOST_TEST(err.find("behind launch 1 of kernel graph;") != err.npos, err);
}

BOOST_AUTO_TEST_CASE(without_its_kernel_zones_are_checked_at_frees) {
  Outcome none =
      misuse("overflow_twice", {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}, {"XLOG_SIM_FAIL", "cuModuleLoadData:2+:222"}});
  BOOST_TEST(none.out == run({program("misuse/overflow_twice")}).out);
  BOOST_TEST(findings(none.err) == "overflow overflow");
  BOOST_TEST(none.err.starts_with("xlog: XLOG_GUARD_CHECK=launch: the kernel that checks could not be loaded;"), none.err);
}

// The kernel that checks runs, and nothing tells when it has.
BOOST_AUTO_TEST_CASE(without_events_zones_are_checked_at_frees) {
  const Environment with = {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}, {"XLOG_SIM_FAIL", "cuEventRecord:1+:999"}};
  Outcome blind = misuse("overflow_twice", with);
  BOOST_TEST(blind.out == run({program("misuse/overflow_twice")}).out);
  BOOST_TEST(findings(blind.err) == "overflow overflow");
  BOOST_TEST(blind.err.find("behind launch") == blind.err.npos, blind.err);
  for (const char* seed : {"1", "2", "3"}) {
    Environment many = with;
    many["XLOG_SIM_SEED"] = seed;
    many["XLOG_SIM_FAIL"] = "cuEventRecord:20+:999";
    Outcome guarded = run_with_library({program("launches"), "8", "200"}, many);
    BOOST_TEST(guarded.out == "done\n");
    BOOST_TEST(findings(guarded.err) == "-");
  }
}

// However many checks have arrived when they are looked at.
BOOST_AUTO_TEST_CASE(the_first_kernel_behind_which_it_is_bad_is_named) {
  for (int seed = 1; seed <= 12; ++seed) {
    Outcome bad = run_with_library({program("bad_then_good")},
                                   {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}, {"XLOG_SIM_SEED", std::to_string(seed)}});
    BOOST_TEST(bad.err.find("found by the check behind launch 1 of kernel store_bytes;") != bad.err.npos, bad.err);
    BOOST_TEST(findings(bad.err) == "overflow");
  }
}

// Frees on other threads while checks are put together, blocks that streams have not come to, captures beside.
BOOST_AUTO_TEST_CASE(checks_behind_launches_touch_nothing_that_is_gone) {
  for (const char* seed : {"1", "2", "3", "4", "5", "6"}) {
    Environment with = {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}, {"XLOG_SIM_SEED", seed}};
    Outcome native = run({program("launches"), "8", "400"}, {{"XLOG_SIM_SEED", seed}});
    BOOST_TEST(native.status == 0);
    for (const char* backend : {"native", "async", "cache"}) {
      with["XLOG_BACKEND"] = backend;
      Outcome guarded = run_with_library({program("launches"), "8", "400"}, with);
      BOOST_TEST(guarded.out == native.out);
      BOOST_TEST(findings(guarded.err) == "-");
      BOOST_TEST(guarded.status == 0);
    }
  }
  for (const Environment& with :
       {Environment{{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch:3"}}, Environment{{"XLOG_GUARD", "fence"}}}) {
    Outcome guarded = run_with_library({program("schedules"), "200"}, with);
    BOOST_TEST(guarded.status == 0);
    BOOST_TEST(findings(guarded.err) == "-");
    BOOST_TEST(guarded.out == run({program("schedules"), "200"}).out);
  }
}

BOOST_AUTO_TEST_CASE(a_program_can_ask_for_a_check) {
  Outcome asked = run_with_library({program("guard_check")}, {{"XLOG_GUARD", "canary"}});
  BOOST_TEST(asked.out == "before: 0\nafter: 1\nagain: 1\nfree: 0\n");
  BOOST_TEST(asked.err.find("found by the check that the program asked for in thread") != asked.err.npos);
  BOOST_TEST(run_with_library({program("guard_check")}, {}).out == "before: 0\nafter: 0\nagain: 0\nfree: 0\n");
  BOOST_TEST(run({program("guard_check")}).out == "without the library\n");
}
