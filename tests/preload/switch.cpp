// `xlog log on|off PID`: rows begin and end while a program runs, and what is live has its row when they begin.
#include <boost/test/unit_test.hpp>

#include "support/process.h"
#include "tools/analysis/analysis.h"

using namespace xlog::test;
using namespace xlog::tools;

namespace {

const std::string kXlog = build_folder() + "/xlog";

std::string actions_of(const std::vector<Row>& rows) {
  std::string all;
  for (const Row& row : rows) {
    if (row.at("action") != "driver_used" && row.at("action") != "unhooked") {
      all += row.at("action") + (row.at("bytes").empty() ? "" : ' ' + row.at("bytes")) + '\n';
    }
  }
  return all;
}

Report verified(const std::string& folder) {
  std::vector<std::string> problems;
  Report report = analyse(find_logs({folder}, problems), {});
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_TEST(report.logs.size() == 1);
  for (const std::string& each : report.contradictions) {
    BOOST_TEST_MESSAGE(each);
  }
  return report;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_log_goes_off_and_comes_on_with_what_is_live) {
  TempFolder folder;
  Outcome ours = run_with_library({program("switched"), kXlog}, {{"XLOG_LOG", folder / "run/"}});
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.err == "");
  BOOST_TEST(ours.out.find("off: 0\n") != std::string::npos);
  std::vector<std::string> problems;
  std::vector<Row> rows = rows_of(find_logs({folder / "run"}, problems).at(0).csv);
  std::string all = actions_of(rows);
  bool one =
      all == "allocate 1000\nallocate 2000\nlog_off\nlog_on\nlive 2000\nlive 4000\nallocate 8000\ndeallocate 2000\ndeallocate 4000\nexit\n";
  bool other =
      all == "allocate 1000\nallocate 2000\nlog_off\nlog_on\nlive 4000\nlive 2000\nallocate 8000\ndeallocate 2000\ndeallocate 4000\nexit\n";
  BOOST_TEST((one || other), all);
  for (const Row& row : rows) {
    if (row.at("action") == "live") {
      BOOST_TEST(row.at("stack_id").empty() == (row.at("bytes") == "4000"));
    }
  }
  Report report = verified(folder / "run");
  BOOST_TEST(report.gpus.at(0).live == 8000);
  BOOST_TEST(report.gpus.at(0).peak == 14000);
  BOOST_TEST(report.gpus.at(0).allocations == 3);
  BOOST_TEST(report.switches == 2);
  BOOST_TEST(run({"bash", "-c", "ls " + folder.path() + "/run | grep -c control"}).out == "0\n");
}

BOOST_AUTO_TEST_CASE(a_log_that_begins_off_has_rows_once_it_is_on) {
  TempFolder folder;
  Outcome ours = run_with_library({program("switched"), kXlog}, {{"XLOG_LOG", folder / "run/"}, {"XLOG_LOG_START", "0"}});
  BOOST_TEST(ours.status == 0);
  std::vector<std::string> problems;
  std::string all = actions_of(rows_of(find_logs({folder / "run"}, problems).at(0).csv));
  BOOST_TEST(all.starts_with("log_on\nlive "), all);
  BOOST_TEST(all.ends_with("allocate 8000\ndeallocate 2000\ndeallocate 4000\nexit\n"), all);
  BOOST_TEST(verified(folder / "run").gpus.at(0).live == 8000);
}

// Blocks that are made or freed while it is switched are neither lost nor there twice.
BOOST_AUTO_TEST_CASE(threads_go_on_while_the_log_is_switched) {
  TempFolder folder;
  Outcome ours = run_with_library({program("switched"), kXlog, "4"}, {{"XLOG_LOG", folder / "run/"}});
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.err == "");
  Report report = verified(folder / "run");
  BOOST_TEST(report.switches == 20);
  BOOST_TEST(report.gpus.at(0).live == 256 + 8 * 512 * (1 + 2 + 3 + 4));
}

BOOST_AUTO_TEST_CASE(a_block_that_is_being_made_when_the_log_comes_on_has_its_row) {
  TempFolder folder;
  Outcome ours = run_with_library({program("switched"), kXlog, "between"}, {{"XLOG_LOG", folder / "run/"}, {"XLOG_LOG_START", "0"}});
  BOOST_TEST(ours.status == 0);
  std::vector<std::string> problems;
  std::string all = actions_of(rows_of(find_logs({folder / "run"}, problems).at(0).csv));
  BOOST_TEST(all == "log_on\nlive 100\nallocate 1000\nlive 5000\ndeallocate 5000\nexit\n");
  BOOST_TEST(verified(folder / "run").gpus.at(0).live == 1100);
}

BOOST_AUTO_TEST_CASE(a_process_that_has_no_log_is_told_apart) {
  Outcome none = run({kXlog, "log", "on", "999999999"});
  BOOST_TEST(none.status == 2);
  BOOST_TEST(none.err == "xlog: process 999999999: there is none\n");
  Outcome other = run({"bash", "-c", kXlog + " log off $$"});
  BOOST_TEST(other.status == 2);
  BOOST_TEST(other.err.find("no log to switch") != std::string::npos);
  BOOST_TEST(run({kXlog, "log", "perhaps", "1"}).status == 2);
}
