// The limit holds, and what it refuses looks like the driver's refusal.
#include <boost/test/unit_test.hpp>

#include "support/process.h"

using namespace xlog::test;

// C12, within one process
BOOST_AUTO_TEST_CASE(sixteen_threads) {
  Outcome ours = run_with_library({program("budget_threads")}, {{"XLOG_BUDGET", "1G"}});
  BOOST_TEST(ours.out ==
             "600 MiB each: 1 granted, 15 refused\n"
             "a small one: 0\n"
             "the sum never passed the limit: 1\n"
             "the driver refused: 1000\n"
             "then all of it: 0\n"
             "and one byte more: 2, p 0\n");
}

// C13
BOOST_AUTO_TEST_CASE(the_right_device_is_charged) {
  Outcome ours = run_with_library({program("devices")}, {{"XLOG_BUDGET", "1G"}, {"XLOG_SIM_DEVICES", "2"}});
  BOOST_TEST(ours.out ==
             "no context, plain: 201\n"
             "no context, async: 201\n"
             "no context, free: 1\n"
             "on 1's stream, 0 current: 0\n"
             "200 more on 1's stream: 2\n"
             "200 more on 0: 2\n"
             "free 0's with 1 current: 0\n"
             "200 more on 1: 2\n"
             "900 on 0 again: 0\n"
             "1's pool on 0's stream: 0\n"
             "200 more of 1's pool: 2\n"
             "no context, physical on 1: 0\n"
             "200 more on 1: 2\n"
             "900 on 0: 0\n"
             "200 more on 1, released: 0\n"
             "200 on the host: 0\n"
             "a graph of 0 allocates on 1: 0\n"
             "300 more on 1: 2\n"
             "300 managed on 1: 2\n"
             "an array of 320 on 1: 2\n"
             "an array of 320 on 1, trimmed: 0\n"
             "destroyed with 0 current: 0\n"
             "900 managed on 0: 2\n"
             "900 managed on 0: 0\n"
             "freed with 1 current: 0\n");
}

BOOST_AUTO_TEST_CASE(limits_by_ordinal_and_uuid) {
  auto total = [](const std::string& budget) {
    std::string out = run_with_library({program("info")}, {{"XLOG_BUDGET", budget}}).out;
    return out.substr(0, out.find('\n'));
  };
  BOOST_TEST(total("2G") == "device total 2147483648");
  BOOST_TEST(total("0=3G") == "device total 3221225472");
  BOOST_TEST(total("4G,0=3G") == "device total 3221225472");
  BOOST_TEST(total("4G,0=3G,GPU-10111213=1G") == "device total 1073741824");
  BOOST_TEST(total("50%") == "device total 42949672960");
  BOOST_TEST(total("500G") == "device total 85899345920");
  BOOST_TEST(total("0B") == "device total 0");
}

// C17
BOOST_AUTO_TEST_CASE(contexts_that_end_give_back) {
  TempFolder folder;
  Outcome ours = run_with_library({program("reset")}, {{"XLOG_BUDGET", "1G"}, {"XLOG_LOG", folder / "x.csv"}});
  BOOST_TEST(ours.out ==
             "more than fits: 2\n"
             "reset: 0\n"
             "900 again: 0\n"
             "the pool's 50 still count: 2\n"
             "free of a pointer that was not given: 1\n"
             "the pool's block: 0\n"
             "400 more: 2\n"
             "destroy b: 0\n"
             "400 more, b gone: 0\n"
             "b's old block: 1\n"
             "a's block: 0\n"
             "release one of three: 0\n"
             "release another: 0\n"
             "still full: 2\n"
             "release the last: 0\n"
             "900 after the last release: 0\n");
  auto rows = rows_of(log_in(folder));
  BOOST_TEST(count(rows, "action", "context_destroyed") == 3);
}

// A program that frees and allocates in stream order at its limit is never refused.
BOOST_AUTO_TEST_CASE(stream_order_at_the_limit) {
  Outcome ours = run_with_library({program("ordered")}, {{"XLOG_BUDGET", "1G"}});
  BOOST_TEST(ours.out ==
             "same stream, behind the wait: 0\n"
             "same stream, behind the wait: 0\n"
             "same stream, behind the wait: 0\n"
             "same stream, behind the wait: 0\n"
             "same stream, behind the wait: 0\n"
             "another stream, the free not done: 2\n"
             "plain, the free not done: 2\n"
             "another stream, done within the wait: 0\n"
             "plain, after a synchronise: 0\n"
             "after 20 streams came and went: 0\n"
             "on this thread's stream: 0\n");
}

// C21
BOOST_AUTO_TEST_CASE(memory_information) {
  auto out = [](const std::string& budget, const std::string& fail = "") {
    return run_with_library({program("info")}, {{"XLOG_BUDGET", budget}, {"XLOG_SIM_FAIL", fail}}).out;
  };
  BOOST_TEST(out("1G") ==
             "device total 1073741824\n"
             "NULLs: 0 0 0\n"
             "empty: r 0 free 1073741824 total 1073741824\n"
             "100 MiB: 0\n"
             "with it: r 0 free 968884224 total 1073741824\n"
             "after an ordered free: r 0 free 1006632960 total 1073741824\n"
             "three quarters after 0 tries\n");
  // Below what is asked: refused, and never negative.
  BOOST_TEST(out("64M").find("100 MiB: 2\nwith it: r 0 free 67108864 total 67108864\n") != std::string::npos);
  // Above the card: as without a limit.
  BOOST_TEST(out("500G") == run({program("info")}).out);
  // The driver's error, with the outputs left alone.
  BOOST_TEST(out("1G", "cuMemGetInfo_v2:4:999").find("empty: r 999 free 1 total 2\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_limit_that_cannot_be_read_lets_nothing_run) {
  for (const char* value :
       {"8", "0", "-1", "8X", "08G", "0x10", "1.5.G", "1G,1G", "0=1G,0=2G", "=1G", "10000=1G", "99999999999G", "101%", "1G,", ","}) {
    Outcome ours = run_with_library({program("demo")}, {{"XLOG_BUDGET", value}});
    BOOST_TEST_CONTEXT(value) {
      BOOST_TEST(ours.status == 3);  // the program says that cuInit failed, with 1
      BOOST_TEST(ours.out.find("cuInit(0): 1\n") != std::string::npos);
      BOOST_TEST(ours.err.starts_with("xlog: XLOG_BUDGET="));
      BOOST_TEST(std::count(ours.err.begin(), ours.err.end(), '\n') == 1);
    }
  }
  BOOST_TEST(run_with_library({program("demo")}, {{"XLOG_BUDGET", "8"}}).err ==
             "xlog: XLOG_BUDGET=8: \"8\" has no unit: 8 bytes is \"8B\", 8 GiB is \"8G\"; give a size such as 8G or 50%, or "
             "0=8GiB,1=50%,GPU-uuid=4G; no GPU work is started\n");
}

BOOST_AUTO_TEST_CASE(another_option_that_cannot_be_read_is_one_line) {
  Outcome ours = run_with_library({program("demo")}, {{"XLOG_BACKTRACE", "deep"}, {"XLOG_BUDGET", "4G"}});
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.err == "xlog: XLOG_BACKTRACE=deep: give off, or a depth from 1 to 128; ignored\n");
}

// What the limit counts: 1,048,577 bytes take two MiB.
BOOST_AUTO_TEST_CASE(counting_what_is_taken) {
  auto granted = [](const std::string& count_what) {
    TempFolder folder;
    run_with_library({program("rounding")}, {{"XLOG_BUDGET", "100M"}, {"XLOG_BUDGET_COUNT", count_what}, {"XLOG_LOG", folder / "x.csv"}});
    auto rows = rows_of(log_in(folder));
    return count(rows, "result", "ok") - count(rows, "action", "exit");
  };
  BOOST_TEST(granted("bytes") == 99);
  BOOST_TEST(granted("taken") == 50);
}
