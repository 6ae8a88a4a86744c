// The guard in every order of events: what a program may do legally has the answers that it has without a guard.
#include <boost/test/unit_test.hpp>

#include "support/misuses.h"

using namespace xlog;
using namespace xlog::test;

namespace {

// Every part of the guard, alone and together.
const std::vector<Environment> kGuards = {
    {{"XLOG_GUARD", "canary"}},
    {{"XLOG_GUARD", "fence"}},
    {{"XLOG_GUARD", "fence:before"}},
    {{"XLOG_POISON", "alloc,free"}},
    {{"XLOG_QUARANTINE", "64M"}},
    {{"XLOG_GUARD", "canary"}, {"XLOG_BACKEND", "async"}},
    {{"XLOG_GUARD", "canary"}, {"XLOG_BACKEND", "cache"}},
    {{"XLOG_GUARD", "canary:4096"}, {"XLOG_QUARANTINE", "64M"}, {"XLOG_POISON", "alloc,free"}, {"XLOG_GUARD_CHECK", "launch"}},
};

void same_as_without(const std::vector<std::string>& command, const std::string& native, const Environment& also = {}) {
  for (Environment with : kGuards) {
    with.insert(also.begin(), also.end());
    Outcome guarded = run_with_library(command, with);
    BOOST_TEST_CONTEXT(with.begin()->first + "=" + with.begin()->second) {
      BOOST_TEST(guarded.out == native);
      BOOST_TEST(guarded.status == 0);
      BOOST_TEST(findings(guarded.err) == "-");
    }
  }
}

}  // namespace

// A range that begins in memory that the guard has left as it is belongs to the driver, wherever it ends.
BOOST_AUTO_TEST_CASE(copies_and_sets_over_mappings_side_by_side_are_the_drivers) {
  std::string native = run({program("copy_ranges")}).out;
  BOOST_TEST(
      native.find("two mappings\n  to: 0\n  to, in a stream: 0\n  from: 0\n  from, in a stream: 0\n  bytes: 0\n  words: 0\n  a row: 0\n") !=
      native.npos);
  BOOST_TEST(native.find("the bytes came over the edges: 1\n") != native.npos);
  same_as_without({program("copy_ranges")}, native);
}

// Whatever is held back is given up before a request is refused.
BOOST_AUTO_TEST_CASE(what_is_held_back_is_given_up_for_requests_of_every_kind) {
  Environment memory = {{"XLOG_SIM_MEMORY", "2147483648"}};
  std::string native = run({program("held_back")}, memory).out;
  BOOST_TEST(native.find("beside a capture: plain 0 end 0; pool 0 end 0; per thread 0 end 0; physical 0 end 0; array 0 end 0; managed 0") !=
             native.npos);
  for (Environment with : {Environment{{"XLOG_QUARANTINE", "1G"}}, Environment{{"XLOG_QUARANTINE", "1G"}, {"XLOG_BACKEND", "async"}},
                           Environment{{"XLOG_QUARANTINE", "1G"}, {"XLOG_BACKEND", "cache"}}}) {
    with.merge(Environment(memory));
    Outcome guarded = run_with_library({program("held_back")}, with);
    BOOST_TEST(guarded.out == native);
    BOOST_TEST(findings(guarded.err) == "-");
  }
  Environment limited = {{"XLOG_QUARANTINE", "1G"}, {"XLOG_BUDGET", "2000M"}};
  BOOST_TEST(run_with_library({program("held_back")}, limited).out == native);
}

// The driver counts the requested bytes of a pool's live blocks (an H200: 1 byte counts as 1), so zones would show.
BOOST_AUTO_TEST_CASE(the_figures_of_a_pool_are_the_programs_own) {
  std::string native = run({program("pool_figures")}).out;
  BOOST_TEST(native.starts_with("the default pool\n  made: used 1, at most 1\n  made: used 513, at most 513\n"));
  same_as_without({program("pool_figures")}, native);
  same_as_without({program("pool_figures")}, native, {{"XLOG_BUDGET", "1G"}});
}

// A wait or a question of the guard's that the driver refuses is no answer: nothing is given back, checked or forgotten for it.
BOOST_AUTO_TEST_CASE(a_refused_wait_is_no_answer) {
  const std::string native = "0 bytes were not the program's own\n";
  BOOST_TEST(run({program("refused_waits")}).out == native);
  for (const char* call : {"cuStreamSynchronize", "cuStreamQuery", "cuEventSynchronize", "cuEventQuery", "cuEventRecord",
                           "cuCtxRecordEvent", "cuStreamWaitEvent", "cuEventCreate"}) {
    for (const char* index : {"1", "2", "3", "7"}) {
      BOOST_TEST_CONTEXT(call << " " << index) {
        same_as_without({program("refused_waits")}, native, {{"XLOG_SIM_FAIL", std::string(call) + ":" + index + ":999"}});
      }
    }
  }
}

// The call that was interrupted never goes on, so the check at exit waits for nothing that it holds.
BOOST_AUTO_TEST_CASE(an_exit_in_a_signal_handler_ends_the_program) {
  const std::string skipped =
      "xlog: guard: no check at exit, because a signal handler that interrupted a call of the driver's has called exit()\n";
  size_t skips = 0;
  for (const Environment& with : {kGuards.front(), kGuards.back()}) {
    for (int i = 0; i < 25; ++i) {
      Outcome ended =
          run_with_library({"/usr/bin/timeout", "-s", "KILL", "20", program("exit_in_handler"), std::to_string(2000 + 137 * i)}, with);
      BOOST_TEST(ended.status == 7);
      BOOST_TEST(findings(ended.err) == "-");
      skips += ended.err.find(skipped) != ended.err.npos ? 1 : 0;
    }
  }
  BOOST_TEST(skips != 0);
}

// Any number of contexts at once.
BOOST_AUTO_TEST_CASE(checks_behind_launches_know_any_number_of_contexts) {
  std::vector<std::string> command = {program("overflow_in_one_of_many_contexts")};
  Outcome guarded = run_with_library(command, {{"XLOG_GUARD", "canary"}, {"XLOG_GUARD_CHECK", "launch"}});
  BOOST_TEST(findings(guarded.err) == "overflow");
  BOOST_TEST(guarded.err.find("found by the check behind launch 70 of kernel store_bytes; last seen clean: when it was written\n") !=
                 guarded.err.npos,
             guarded.err);
  command.emplace_back("correct");
  same_as_without(command, run(command).out);
}
