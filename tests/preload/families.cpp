// Processes that start others: one log each that did something, and a report of all of them as one run.
#include <boost/test/unit_test.hpp>
#include <regex>
#include <set>

#include "support/process.h"
#include "tools/analysis/analysis.h"

using namespace xlog::test;
using namespace xlog::tools;

BOOST_AUTO_TEST_CASE(a_report_shows_the_tree_of_processes) {
  TempFolder folder;
  Outcome ours = run_with_library({program("family"), "2"}, {{"XLOG_LOG", folder / "run/"}});
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.err == "");
  std::vector<std::string> problems;
  Report report = analyse(find_logs({folder / "run"}, problems), {});
  BOOST_TEST(report.logs.size() == 7);
  BOOST_TEST(report.contradiction_count == 0);
  std::multiset<size_t> children;
  for (size_t parent : parents_of(report.logs)) {
    children.insert(parent);
  }
  BOOST_TEST(children.count(report.logs.size()) == 1);  // the first
  std::set<size_t> with_children(children.begin(), children.end());
  BOOST_TEST(with_children.size() == 4);
  for (size_t parent : with_children) {
    BOOST_TEST(children.count(parent) == (parent == report.logs.size() ? 1 : 2));
  }
  std::string text = run({build_folder() + "/xlog", "report", "--full", folder / "run"}).out;
  // A child may have ended before the peak.
  const std::regex tree(
      "Processes\n"
      "  \\d+ \\S*/family 2 +1 allocation +\\d B at the peak +3 B at the end\n"
      "    \\d+ \\S*/family 1 +1 allocation +\\d B at the peak +2 B at the end\n"
      "      \\d+ \\S*/family 0 +1 allocation +\\d B at the peak +1 B at the end\n");
  BOOST_TEST(std::regex_search(text, tree), text);
}

BOOST_AUTO_TEST_CASE(children_that_did_nothing_have_no_log) {
  TempFolder folder;
  run_with_library({"bash", "-c", "for i in $(seq 300); do /bin/true; done; (exit 3) & wait; " + program("demo") + " | cat"},
                   {{"XLOG_LOG", folder / "%r.%h"}, {"SLURM_PROCID", "5"}});
  std::vector<std::string> problems;
  auto logs = find_logs({folder.path()}, problems);
  BOOST_TEST(logs.size() == 1);
  BOOST_TEST(folder.files().size() == 3);
  BOOST_TEST(logs.at(0).csv.find("/5.") != std::string::npos);
}
