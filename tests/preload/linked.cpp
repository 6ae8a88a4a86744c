// Programs that link the runtime: the stack comes from the options, and a preloaded library beside it changes nothing.
#include <boost/test/unit_test.hpp>

#include "support/process.h"
#include "tools/analysis/analysis.h"

using namespace xlog::test;

BOOST_AUTO_TEST_CASE(two_streams_and_a_recorder) {
  Outcome plain = run({program("stack/two_streams")});
  BOOST_TEST(plain.status == 0);
  BOOST_TEST(plain.out == "sum 110, outstanding 0\n");
  BOOST_TEST(plain.err.empty());
  for (const char* seed : {"2", "3", "4", "5"}) {
    BOOST_TEST(run({program("stack/two_streams")}, {{"XLOG_SIM_SEED", seed}}).out == plain.out);
  }
}

BOOST_AUTO_TEST_CASE(its_log_and_its_budget_come_from_the_options) {
  TempFolder folder;
  Outcome logged = run({program("stack/two_streams")}, {{"XLOG_LOG", folder / "x.csv"}, {"XLOG_BUDGET", "1M"}});
  BOOST_TEST(logged.status == 0);
  BOOST_TEST(logged.out == "sum 110, outstanding 0\n");
  auto rows = rows_of(log_in(folder));
  BOOST_TEST(count(rows, "action", "allocate") == 1);
  BOOST_TEST(count(rows, "action", "deallocate") == 1);
  BOOST_TEST(count(rows, "action", "reap_pending") == 1);
  BOOST_REQUIRE(!rows.empty());
  BOOST_TEST(rows[0].at("tag") == "frames");
  BOOST_TEST(rows[0].at("bytes") == "1048576");
  BOOST_TEST(rows[0].at("stream") == "0x1");
  BOOST_TEST(rows[0].at("kind") == "pool");
  BOOST_TEST(!rows[0].at("stack_id").empty());
  std::vector<std::string> problems;
  xlog::tools::Report report = xlog::tools::analyse(xlog::tools::find_logs({folder.path()}, problems), {.resolve = false});
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_REQUIRE(report.processes.size() == 1);
  BOOST_TEST(report.processes[0].ended);
  BOOST_TEST(count(rows, "action", "exit") == 1);
  Outcome refused = run({program("stack/two_streams")}, {{"XLOG_BUDGET", "512K"}});
  BOOST_TEST(refused.status == 1);
  BOOST_TEST(refused.err ==
             "allocate: out of budget: current 0 bytes, requested 1048576 bytes, required 1048576 bytes, limit 524288 bytes, "
             "remaining 524288 bytes\n");
}

BOOST_AUTO_TEST_CASE(a_fork_child_fails_as_the_driver_does) {
  TempFolder folder;
  for (const Environment& with : {Environment{}, Environment{{"XLOG_LOG", folder / "x.csv"}, {"XLOG_BUDGET", "1M"}}}) {
    Outcome forked = run({program("stack/forked")}, with);
    BOOST_TEST(forked.status == 0);
    BOOST_TEST(forked.out == "child: allocate 0, deallocate 0\nchild ended with 0\nparent: 1, outstanding 0\n");
  }
  auto rows = rows_of(log_in(folder));
  BOOST_TEST(count(rows, "tag", "parent") == 2);
  BOOST_TEST(count(rows, "tag", "child") == 0);
}

BOOST_AUTO_TEST_CASE(without_pools_it_says_so_and_tracks_nothing) {
  Outcome direct = run({program("stack/two_streams")}, {{"XLOG_SIM_NO_POOLS", "all"}});
  BOOST_TEST(direct.status == 1);
  BOOST_TEST(direct.err ==
             "xlog: GPU 0 has no memory pools: plain memory is used, and uses are not tracked\n"
             "preflight: stream-ordered contract violated: use tracking is unsupported by this runtime\n");
}

BOOST_AUTO_TEST_CASE(it_runs_under_the_preloaded_library) {
  TempFolder folder;
  Outcome both = run_with_library({program("stack/two_streams")}, {{"XLOG_LOG", folder / "x.csv"}});
  BOOST_TEST(both.status == 0);
  BOOST_TEST(both.out == "sum 110, outstanding 0\n");
}
