// The guard in real processes: what it finds in programs that misuse memory, and that no program notices it.
#include <boost/test/unit_test.hpp>

#include <regex>

#include "support/misuses.h"
#include "tools/analysis/analysis.h"
#include "tools/report/report.h"

using namespace xlog;
using namespace xlog::test;

namespace {

const Environment kAll = {{"XLOG_GUARD", "canary:64"}, {"XLOG_QUARANTINE", "64M"}, {"XLOG_POISON", "alloc,free"}};

}  // namespace

BOOST_AUTO_TEST_CASE(what_the_table_says_is_found_and_the_program_does_not_notice) {
  std::vector<Misuse> all = misuses();
  BOOST_TEST(all.size() >= 40);
  for (const Misuse& each : all) {
    BOOST_TEST_CONTEXT(each.name) {
      Outcome native = run({program("misuse/" + each.name)});
      BOOST_TEST(native.status == 0);
      for (const auto& [with, expected] :
           {std::pair{Environment{{"XLOG_GUARD", "canary"}}, each.canary},
            {Environment{{"XLOG_QUARANTINE", "256M"}}, each.quarantine},
            {Environment{{"XLOG_GUARD", "canary"}, {"XLOG_BACKEND", "async"}}, each.canary},
            {Environment{{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}}, each.canary},
            {Environment{{"XLOG_GUARD", "canary"}, {"XLOG_BACKEND", "cache"}, {"XLOG_BUDGET", "1G"}}, each.canary}}) {
        Outcome guarded = misuse(each.name, with);
        BOOST_TEST(findings(guarded.err) == expected);
        BOOST_TEST(guarded.err.find("not checked") == guarded.err.npos);
        BOOST_TEST(guarded.out == native.out);
        BOOST_TEST(guarded.status == native.status);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(the_same_programs_done_right_give_no_finding) {
  for (const Misuse& each : misuses()) {
    BOOST_TEST_CONTEXT(each.name) {
      std::vector<std::string> command = {program("misuse/" + each.name), "correct"};
      Outcome native = run(command);
      Outcome guarded = run_with_library(command, kAll);
      BOOST_TEST(guarded.err == "");
      BOOST_TEST(guarded.out == native.out);
      BOOST_TEST(guarded.status == native.status);
    }
  }
}

// What the driver says at the end of a block, to the byte (C09).
BOOST_AUTO_TEST_CASE(addresses_copies_and_sets_at_the_end_are_as_without_it) {
  const std::string native = slurp("tests/gpu/past_the_end.expected");
  BOOST_TEST(run({program("past_the_end")}).out == native);
  for (const Environment& with :
       {Environment{{"XLOG_GUARD", "canary"}}, Environment{{"XLOG_GUARD", "canary:4096"}, {"XLOG_BACKEND", "async"}},
        Environment{{"XLOG_GUARD", "canary:16"}, {"XLOG_BACKEND", "cache"}}, Environment{{"XLOG_GUARD", "fence"}},
        Environment{{"XLOG_GUARD", "fence:before:1/2"}}, Environment{{"XLOG_GUARD", "fence:16"}, {"XLOG_QUARANTINE", "64M"}}, kAll}) {
    Outcome guarded = run_with_library({program("past_the_end")}, with);
    BOOST_TEST(guarded.out == native);
    BOOST_TEST(guarded.err == "");
  }
}

// A zone is looked at last by a copy that the free waits for.
BOOST_AUTO_TEST_CASE(a_free_waits_for_the_work_of_its_context) {
  const std::string native = slurp("tests/gpu/free_waits.expected");
  BOOST_TEST(run({program("free_waits")}).out == native);
  for (const Environment& with : {Environment{{"XLOG_GUARD", "canary"}}, Environment{{"XLOG_GUARD", "fence"}},
                                  Environment{{"XLOG_GUARD", "canary"}, {"XLOG_BACKEND", "async"}}}) {
    Outcome guarded = run_with_library({program("free_waits")}, with);
    BOOST_TEST(guarded.out == native);
    BOOST_TEST(guarded.err == "");
  }
}

// Whatever waits for a kernel that may wait for the program is what waits natively.
BOOST_AUTO_TEST_CASE(calls_beside_a_kernel_wait_as_without_it) {
  const std::string native = slurp("tests/gpu/beside_a_kernel.expected");
  BOOST_TEST(run({program("beside_a_kernel")}).out == native);
  for (const Environment& with : {Environment{{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}},
                                  Environment{{"XLOG_GUARD", "fence"}}, Environment{{"XLOG_GUARD", "canary"}, {"XLOG_BACKEND", "async"}}}) {
    Outcome guarded = run_with_library({program("beside_a_kernel")}, with);
    BOOST_TEST(guarded.out == native);
    BOOST_TEST(guarded.err == "");
  }
}

// A driver hangs where a thread ends with a free behind unfinished work in its stream: none of that work is the guard's.
BOOST_AUTO_TEST_CASE(threads_end_as_without_it) {
  BOOST_TEST(run({program("thread_ends")}).out == "all threads have ended\n");
  BOOST_TEST(run({program("thread_ends"), "work"}).err.find("a real one hangs") != std::string::npos);
  for (const Environment& with : {Environment{{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}},
                                  Environment{{"XLOG_GUARD", "canary"}, {"XLOG_POISON", "alloc,free"}, {"XLOG_BACKEND", "async"}}}) {
    Outcome guarded = run_with_library({program("thread_ends")}, with);
    BOOST_TEST(guarded.out == "all threads have ended\n");
    BOOST_TEST(
        guarded.err ==
        "xlog: guard: 0 findings; 20 blocks without a zone or a fence (XLOG_GUARD_MAX, no memory for one, or of a thread's default "
        "stream); 20 frees not checked (a capture was under way, the context had failed, it was in a thread's default stream, or too "
        "many at once)\n");
  }
  for (const Environment& with :
       {Environment{{"XLOG_BACKEND", "async"}, {"XLOG_LOG", "/dev/null"}}, Environment{{"XLOG_BACKEND", "direct"}},
        Environment{{"XLOG_BACKEND", "cache"}, {"XLOG_ASYNC_FREE", "ordered"}, {"XLOG_BUDGET", "1G"}}}) {
    BOOST_TEST(run_with_library({program("thread_ends")}, with).out == "all threads have ended\n");
  }
}

// Deliberate errors, captures beside everything, frees of what is no block (C04, C05, C10).
BOOST_AUTO_TEST_CASE(answers_are_as_without_it) {
  for (const char* name : {"conformance", "captures", "surface", "schedules", "ordered", "resolver", "threads", "exit_calls", "freed"}) {
    BOOST_TEST_CONTEXT(name) {
      const std::string one = "1000 x 1B consumes";  // zones take memory
      std::vector<std::string> command = {program(name)};
      if (command[0].ends_with("/threads")) {
        command.insert(command.end(), {"4", "500"});
      }
      Outcome plain = run(command);
      BOOST_TEST(plain.status == 0);
      std::string native = without_line(plain.out, one);
      for (const Environment& with :
           {Environment{{"XLOG_GUARD", "canary"}}, Environment{{"XLOG_GUARD", "canary"}, {"XLOG_QUARANTINE", "64M"}},
            Environment{{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}}}) {
        BOOST_TEST(without_line(run_with_library(command, with).out, one) == native);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_finding_says_what_where_and_who) {
  std::string err = misuse("overflow_4_of_1000", {{"XLOG_GUARD", "canary"}}).err;
  static const std::regex kText(
      "xlog: guard: overflow: 4 bytes written past the end of block 0x[0-9a-f]+, 1000 bytes \\(plain, GPU 0, generation [0-9]+\\)\n"
      "xlog: guard:   bytes \\+0 to \\+3 behind the end: found 5a 5a 5a 5a, written by the guard:( [0-9a-f]{2}){4}\n"
      "xlog: guard:   found by cuMemFree_v2 in thread [0-9]+; last seen clean: when it was written\n"
      "xlog: guard:   allocated by thread [0-9]+:\n"
      "(xlog: guard:     #[0-9]+ .*overflow_4_of_1000\\+0x[0-9a-f]+\n)+"
      "(xlog: guard:     #[0-9]+ .*\n)+"
      "xlog: guard:   freed by thread [0-9]+:\n"
      "(xlog: guard:     #[0-9]+ .*\n)+"
      "xlog: guard: 1 finding\n");
  BOOST_TEST(std::regex_match(err, kText), err);
  err = misuse("overflow_last_of_zone", {{"XLOG_GUARD", "canary"}}).err;
  BOOST_TEST(err.find("bytes +255 to +255 behind the end: found 5a,") != err.npos);
  err = misuse("use_after_free_write", {{"XLOG_QUARANTINE", "1M"}}).err;
  BOOST_TEST(err.find("bytes 10 to 13 of the block: found 5a 5a 5a 5a, written by the guard: db db db db\n") != err.npos, err);
  BOOST_TEST(err.find("freed by thread") != err.npos);
  err = misuse("double_free", {{"XLOG_GUARD", "canary"}}).err;
  BOOST_TEST(err.find("freed by thread") < err.find("passed by thread"));
  err = misuse("free_interior", {{"XLOG_GUARD", "canary"}}).err;
  BOOST_TEST(std::regex_search(err, std::regex("interior-free: free of 0x[0-9a-f]+, offset 256 of block")));
}

BOOST_AUTO_TEST_CASE(findings_stand_in_the_log_and_first_in_the_report) {
  TempFolder folder;
  misuse("overflow_twice", {{"XLOG_GUARD", "canary"}, {"XLOG_LOG", folder / "x.csv"}});
  std::vector<Row> rows = rows_of(log_in(folder));
  BOOST_TEST(count(rows, "action", "finding") == 2);
  BOOST_TEST(count(rows, "result", "overflow") == 2);
  BOOST_TEST(count(rows, "bytes", "1000") == 3);  // as the program asked: allocate, deallocate, finding
  std::vector<std::string> problems;
  tools::Report report = tools::analyse(tools::find_logs({log_in(folder)}, problems), {});
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_TEST(report.gpus.at(0).live == 0);
  BOOST_REQUIRE(report.findings.size() == 2);
  std::string text = tools::report_text(report, {});
  BOOST_TEST(text.starts_with("The guard found 2 misuses of memory. "));
  BOOST_TEST(text.find("overflow_twice.cpp:1") != text.npos);
}

BOOST_AUTO_TEST_CASE(abort_ends_the_program_at_the_first_finding) {
  Outcome ended = misuse("overflow_twice", {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_ACTION", "abort"}});
  BOOST_TEST(ended.status == 128 + 6);
  BOOST_TEST(findings(ended.err) == "overflow");
}

BOOST_AUTO_TEST_CASE(what_lives_at_the_end_is_checked_unless_only_frees_are) {
  BOOST_TEST(findings(misuse("overflow_never_freed", {{"XLOG_GUARD", "canary"}}).err) == "overflow");
  BOOST_TEST(misuse("overflow_never_freed", {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "free"}}).err == "");
}

// A block that fits without a zone is made without one; so is one beyond what zones may take. Both are counted.
BOOST_AUTO_TEST_CASE(a_zone_never_costs_a_block) {
  Outcome tight = misuse("overflow_1_of_1mib", {{"XLOG_GUARD", "canary"}, {"XLOG_BUDGET", "1M"}});
  BOOST_TEST(tight.out == run({program("misuse/overflow_1_of_1mib")}).out);
  BOOST_TEST(
      tight.err ==
      "xlog: guard: 0 findings; 1 block without a zone or a fence (XLOG_GUARD_MAX, no memory for one, or of a thread's default stream)\n");
  Outcome bounded = misuse("overflow_among_many", {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_MAX", "512K"}});
  BOOST_TEST(findings(bounded.err) == "-");  // the block is the 1235th, and a zone adds 512 bytes to each
  BOOST_TEST(bounded.err.find("976 blocks without a zone") != bounded.err.npos, bounded.err);
}

BOOST_AUTO_TEST_CASE(zones_are_charged_to_the_limit) {
  auto left = [](Environment with) {
    with["XLOG_BUDGET"] = "1G";
    const std::string start = "with it: r 0 free ";
    std::string out = run_with_library({program("info")}, with).out;
    return std::stoull(out.substr(out.find(start) + start.size()));
  };
  BOOST_TEST(left({}) == left({{"XLOG_GUARD", "canary:4096"}}) + 4096);
}

BOOST_AUTO_TEST_CASE(what_is_left_of_a_limit_is_as_without_it) {
  Environment with = {{"XLOG_BUDGET", "64M"}, {"XLOG_HOST_BUDGET", "64M"}};
  for (const char* backend : {"native", "async", "cache"}) {
    with["XLOG_BACKEND"] = backend;
    std::string books = run_with_library({program("guard_books")}, with).out;
    BOOST_TEST(books.find("reset: 0, left 67108864 of 67108864\n") != books.npos);
    Environment guarded = kAll;
    guarded.insert(with.begin(), with.end());
    BOOST_TEST(run_with_library({program("guard_books")}, guarded).out == books);
    guarded.erase("XLOG_POISON");
    std::string kinds = run_with_library({program("kinds"), "100"}, with).out;
    BOOST_TEST(run_with_library({program("kinds"), "100"}, guarded).out == kinds);
    guarded.erase("XLOG_QUARANTINE");
    guarded["XLOG_GUARD_MAX"] = "4M";  // zones that were given back count no longer
    Outcome bounded = run_with_library({program("kinds"), "100"}, guarded);
    BOOST_TEST(bounded.out == kinds);
    BOOST_TEST(run_with_library({program("kinds"), "200"}, guarded).err == bounded.err);
  }
}

// Random programs; the second time the copy of a zone's pattern is not seen to be done, as where the GPU's engines are taken.
BOOST_AUTO_TEST_CASE(random_programs_and_late_zones) {
  std::vector<std::string> command = {program("schedules"), "200"};
  Outcome native = run(command);
  BOOST_TEST(native.status == 0);
  for (const char* fault : {"", "cuStreamQuery:1+:600"}) {
    for (const char* quarantine : {"0B", "16M"}) {
      Outcome guarded = run_with_library(command, {{"XLOG_GUARD", "canary"}, {"XLOG_QUARANTINE", quarantine}, {"XLOG_SIM_FAIL", fault}});
      BOOST_TEST(guarded.out == native.out);
      BOOST_TEST(guarded.status == 0);
      BOOST_TEST(findings(guarded.err) == "-");
    }
  }
}

// A pattern that came after a kernel may hide what that wrote: whoever finds nothing is told.
BOOST_AUTO_TEST_CASE(zones_that_a_kernel_overtook_are_counted) {
  auto summary = [](const char* fault) {
    Outcome guarded =
        run_with_library({program("misuse/overflow_1_of_100"), "correct"}, {{"XLOG_GUARD", "canary"}, {"XLOG_SIM_FAIL", fault}});
    BOOST_TEST(guarded.status == 0);
    return guarded.err;
  };
  BOOST_TEST(summary("") == "");
  BOOST_TEST(summary("cuEventQuery:1+:600") ==
             "xlog: guard: 0 findings; 1 zone written late, maybe over what a kernel wrote there (the GPU was busy)\n");
}

// C04: work of ours in the legacy stream would lose the capture.
BOOST_AUTO_TEST_CASE(no_work_in_the_legacy_stream_beside_a_capture) {
  std::string native = run({program("legacy_beside_capture")}).out;
  BOOST_TEST(native.find("end 0, graph 1") != native.npos);
  BOOST_TEST(run_with_library({program("legacy_beside_capture")}, {{"XLOG_GUARD", "canary"}, {"XLOG_POISON", "alloc,free"}}).out == native);
}

// What a stream has not come to has no zone yet.
BOOST_AUTO_TEST_CASE(no_finding_where_a_stream_waits) {
  Outcome native = run({program("late_zone")});
  BOOST_TEST(native.status == 0);
  Outcome guarded = run_with_library({program("late_zone")}, {{"XLOG_GUARD", "canary"}});
  BOOST_TEST(guarded.out == native.out);
  BOOST_TEST(guarded.err == "");
}

BOOST_AUTO_TEST_CASE(the_quarantine_is_bounded) {
  std::string err = misuse("use_after_free_then_more_frees", {{"XLOG_QUARANTINE", "256M"}}).err;
  BOOST_TEST(err.find("found by leaving the quarantine") != err.npos);
  err = misuse("use_after_free_then_more_frees", {{"XLOG_QUARANTINE", "512M"}}).err;
  BOOST_TEST(err.find("found by the check at exit") != err.npos);
}

BOOST_AUTO_TEST_CASE(a_check_that_cannot_be_read_starts_nothing) {
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"XLOG_GUARD", "canary:8"},
                                                                                    {"XLOG_GUARD", "canary:5000"},
                                                                                    {"XLOG_GUARD", "fence:0"},
                                                                                    {"XLOG_GUARD", "fence:1/0"},
                                                                                    {"XLOG_GUARD", "fence:2M-1M"},
                                                                                    {"XLOG_GUARD", "fence:1000-"},
                                                                                    {"XLOG_GUARD", "fence:before:"},
                                                                                    {"XLOG_GUARD", "fences"},
                                                                                    {"XLOG_GUARD_CHECK", "launch:0"},
                                                                                    {"XLOG_GUARD_CHECK", "never"},
                                                                                    {"XLOG_POISON", "alloc,"},
                                                                                    {"XLOG_QUARANTINE", "lots"},
                                                                                    {"XLOG_GUARD_ACTION", "shrug"},
                                                                                    {"XLOG_GUARD_MAX", "-1"}}) {
    Outcome refused = misuse("overflow_1_of_1", {{name, value}});
    BOOST_TEST(refused.status == 3);
    BOOST_TEST(refused.err.find(name + "=" + value) != refused.err.npos);
  }
}

BOOST_AUTO_TEST_CASE(a_refusal_for_want_of_memory_looks_at_all_zones) {
  std::string err =
      misuse("overflow_then_out_of_memory", {{"XLOG_GUARD", "canary"}, {"XLOG_BUDGET", "1M"}, {"XLOG_GUARD_CHECK", "free"}}).err;
  BOOST_TEST(findings(err) == "overflow");
  BOOST_TEST(err.find("found by the first refusal for want of memory") != err.npos);
}
