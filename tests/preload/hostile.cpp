// Legal programs under the worst that a driver may do: threads that do everything at once, and every call of the driver failing once.
// XLOG_HOSTILE_SEEDS: how many seeds, 5 where it is not set, and how many of the calls are made to fail: 300 then. Many more seeds on
// the hostile driver are tried by support/hostile-seeds.sh.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <sstream>

#include "support/process.h"

using namespace xlog::test;
namespace data = boost::unit_test::data;

namespace {

const std::vector<std::string> kModes = {
    "natively",           "XLOG_BUDGET=100% XLOG_LOG=/", "XLOG_BACKEND=async", "XLOG_BACKEND=async XLOG_ASYNC_FREE=ordered",
    "XLOG_BACKEND=cache", "XLOG_GUARD=canary",           "XLOG_GUARD=fence"};

int seeds() {
  const char* count = std::getenv("XLOG_HOSTILE_SEEDS");
  return count != nullptr ? std::atoi(count) : 5;
}

// A mode, with a log in a folder of its own, and the program in it. The program is ended where it hangs.
class Mode {
 public:
  explicit Mode(const std::string& text) : natively_(text == "natively") {
    std::istringstream words(natively_ ? "" : text);
    for (std::string word; words >> word;) {
      variables_[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
    }
    if (variables_.count("XLOG_LOG") != 0) {
      variables_["XLOG_LOG"] = folder_.path() + '/';
    }
  }
  Outcome run(std::vector<std::string> words, const Environment& extra) const {
    std::vector<std::string> command{"timeout", "-s", "KILL", "60", program(words[0])};
    command.insert(command.end(), words.begin() + 1, words.end());
    Environment all = variables_;
    all.insert(extra.begin(), extra.end());
    return natively_ ? xlog::test::run(command, all) : run_with_library(command, all);
  }

 private:
  bool natively_;
  TempFolder folder_;
  Environment variables_;
};

// Runs the program with each of its driver's calls failing once, or with some of them, evenly spread.
template <class Check>
void fail_each(const std::string& mode, const std::vector<std::string>& words, const std::string& code, int each_seed, Check check) {
  Mode in(mode);
  TempFolder folder;
  std::string counted = folder / "count";
  in.run(words, {{"XLOG_SIM_COUNT", counted}});
  int count = std::atoi(slurp(counted).c_str());
  BOOST_TEST(count > 100);
  for (int n = 1, step = std::max(1, count / (each_seed * seeds())); n <= count; n += step) {
    std::string fault = "*:" + std::to_string(n) + ":" + code;
    Outcome ours = in.run(words, {{"XLOG_SIM_FAIL", fault}, {"XLOG_SIM_COUNT", counted}});
    BOOST_TEST_CONTEXT(mode << ' ' << fault << ", of " << slurp(counted) << ours.out << ours.err) { check(ours); }
  }
}

}  // namespace

BOOST_DATA_TEST_CASE(threads_that_do_everything, data::make(kModes), mode) {
  Mode in(mode);
  for (int seed = 1; seed <= seeds(); ++seed) {
    std::string text = std::to_string(seed);
    Outcome ours = in.run({"torture", text, "40", "4"}, {{"XLOG_SIM_SEED", text}});
    BOOST_TEST_CONTEXT(mode << " seed " << seed << '\n' << ours.out << ours.err) {
      BOOST_TEST(ours.status == 0);
      BOOST_TEST(ours.out == "0 bad\nfree as at the start: 1\n");
    }
  }
}

// What the hostile driver is for: it tells these from legal programs.
BOOST_DATA_TEST_CASE(a_handle_that_ended_is_not_to_be_used, data::make({"context", "stream", "event", "pool", "graph", "executable graph"}),
                     kind) {
  std::string argument = std::string(kind) == "executable graph" ? "exec" : kind;
  Outcome hostile = run({program("ended_handles"), argument}, {{"XLOG_SIM_HOSTILE", "1"}});
  BOOST_TEST(hostile.status == 128 + 6);
  BOOST_TEST(hostile.err.find(std::string(" ") + kind + " that has ended\n") != std::string::npos, hostile.err);
  BOOST_TEST(run({program("ended_handles"), argument}).status == 0);
}
BOOST_AUTO_TEST_CASE(a_stream_is_not_to_be_asked_about_beside_a_call_on_it) {
  Outcome hostile = run({program("ended_handles"), "question"}, {{"XLOG_SIM_HOSTILE", "1"}});
  BOOST_TEST(hostile.status == 128 + 6);
  BOOST_TEST(hostile.err.find("a stream is asked about by cuStreamIsCapturing while another thread is in cuStream") != std::string::npos,
             hostile.err);
  BOOST_TEST(run({program("ended_handles"), "question"}).status == 0);
}

// The program makes a call again that failed with the code: a call that fails has no effect, so that all is well then.
BOOST_DATA_TEST_CASE(every_call_failing_once_beside_everything, data::make(kModes) * data::make({"999", "2"}), mode, code) {
  fail_each(mode, {"torture", "1", "0", "1", code}, code, 60, [](const Outcome& ours) {
    BOOST_TEST(ours.status < 128);
    BOOST_TEST(ours.out.starts_with("0 bad\nfree as at the start: 1\n"));
  });
}

// Whatever the program then does: it ends, and not by a signal.
BOOST_DATA_TEST_CASE(every_call_failing_once, data::make(kModes), mode) {
  fail_each(mode, {"conformance"}, "999", 12, [](const Outcome& ours) { BOOST_TEST(ours.status < 128); });
}

// What a card reserves, on the simulated one; a limit between two of the figures refuses what is above it.
BOOST_AUTO_TEST_CASE(graphs_reserve_what_a_card_reserves_for_them) {
  auto answers = [](const char* one, const char* branches) {
    std::string text = "one of 256: launch " + std::string(one) + " MiB\ntwo branches of 256: launch " + branches + " MiB\n";
    text += "two of 256 in a row: launch " + std::string(one) + " MiB\nfour branches of 128: launch " + branches + " MiB\n";
    return text + "a child with 256: launch 0, reserved 288 MiB\n";
  };
  BOOST_TEST(run({program("graph_reserves")}).out == answers("0, reserved 256", "0, reserved 512"));
  BOOST_TEST(run_with_library({program("graph_reserves")}, {{"XLOG_BUDGET", "300M"}}).out == answers("0, reserved 256", "2, reserved 0"));
}
BOOST_AUTO_TEST_CASE(a_call_that_fails_is_counted_and_told) {
  TempFolder folder;
  Environment with = {{"XLOG_SIM_FAIL", "*:4:46"}, {"XLOG_SIM_COUNT", folder / "count"}};
  Outcome failed = run({program("torture"), "1", "0", "1", "46"}, with);
  BOOST_TEST(failed.out == "0 bad\nfree as at the start: 1\n1 calls failed once\n");
  BOOST_TEST(slurp(folder / "count").find(" cu") != std::string::npos);
}
