// Whose memory it is: NVTX ranges and those of xlog_preload.h are tags, payloads are query ids.
#include <boost/test/unit_test.hpp>
#include <regex>

#include "support/process.h"

using namespace xlog::test;

namespace {

const char* const kPushes =
    "push train: 0\npush layer in its domain: 0\npush wide: 1\npop the domain's: 0\npop wide: 1\npop train: 0\npop none: -2\n"
    "pop none of our own: -1\n";
const char* const kNothing =
    "push train: -2\npush layer in its domain: -2\npush wide: -2\npop the domain's: -2\npop wide: -2\npop train: -2\npop none: -2\n";

Environment injected(Environment more) {
  more["NVTX_INJECTION64_PATH"] = build_folder() + "/libxlog.so";
  return more;
}

}  // namespace

BOOST_AUTO_TEST_CASE(ranges_are_tags) {
  TempFolder folder;
  Outcome ours =
      run_with_library({program("ranges")}, injected({{"XLOG_LOG", folder / "x.csv"}, {"XLOG_TAG", "job"}, {"XLOG_QUERY_ID", "all"}}));
  BOOST_TEST(ours.err == "");
  BOOST_TEST(ours.out == kPushes);
  std::map<std::string, std::string> tags;
  for (const Row& row : rows_of(log_in(folder))) {
    if (row.at("action") == "allocate") {
      tags[row.at("bytes")] = row.at("tag") + " " + row.at("query_id");
    }
  }
  const std::map<std::string, std::string> right{
      {"1001", "job/train all"},
      {"1002", "job/train/layer 42"},
      {"1003",
       "job/train/layer/gr\xc3\xb6\xc3\x9f"
       "e, \"quoted\" 42"},
      {"1004",
       "job/train/gr\xc3\xb6\xc3\x9f"
       "e, \"quoted\" all"},
      {"1005", "job all"},
      {"1006", "job/started/inner -7"},
      {"1007", "job all"},
      {"1008", "job/inner -7"},
      {"1009", "job all"},
      {"1010", "job/own/theirs q7"},
      {"1011", "job/theirs q7"},
      {"1012", "job all"},
      {"1014", "job all"},
      {"1015", "job all"},
  };
  for (const auto& [bytes, tag] : right) {
    BOOST_TEST(tags[bytes] == tag, bytes << ": " << tags[bytes]);
  }
  BOOST_TEST(tags["1013"].starts_with("job/deep/deep/deep/"));
}

BOOST_AUTO_TEST_CASE(ranges_are_left_alone_without_a_log_or_without_the_preload) {
  BOOST_TEST(run({program("ranges")}, injected({{"XLOG_LOG", "x.csv"}})).out == kNothing);
  BOOST_TEST(run_with_library({program("ranges")}, injected({{"XLOG_BUDGET", "1G"}})).out ==
             std::string(kNothing) + "pop none of our own: -1\n");
}

BOOST_AUTO_TEST_CASE(the_command_asks_for_ranges_unless_a_profiler_has_them) {
  TempFolder folder;
  std::string xlog = build_folder() + "/xlog";
  Outcome ours = run({xlog, "run", "--quiet", "--", program("ranges")}, {}, folder.path());
  BOOST_TEST(ours.out == kPushes);
  Outcome theirs = run({xlog, "run", "--", program("ranges")}, {{"NVTX_INJECTION64_PATH", "/nowhere/profiler.so"}}, folder.path());
  BOOST_TEST(theirs.out.starts_with(kNothing));
  BOOST_TEST(
      theirs.err.find("NVTX_INJECTION64_PATH is set: the program's NVTX ranges go to that tool, and are not in the log") != theirs.err.npos,
      theirs.err);
}

BOOST_AUTO_TEST_CASE(a_report_is_by_tag_and_query) {
  TempFolder folder;
  run_with_library({program("ranges")}, injected({{"XLOG_LOG", folder / "x.csv"}}));
  std::string report = run({build_folder() + "/xlog", "report", "--full", folder.path()}).out;
  BOOST_TEST(std::regex_search(report, std::regex("  tag train/layer +1 allocation +1002 B at the peak +1002 B at the end\n")), report);
  BOOST_TEST(std::regex_search(report, std::regex("  query q7 +2 allocations +1.97 KiB at the peak +1.97 KiB at the end\n")), report);
}
