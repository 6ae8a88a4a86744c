// What a check says of logs that do not hold all of a run, and of memory that grows.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "support/log_text.h"
#include "tools/analysis/whole_log.h"

using namespace xlog;
using namespace xlog::tools;
using test::LogText;
using test::TempFolder;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMiB = 1 << 20;

WholeLog examine_text(const std::string& text) {
  TempFolder folder;
  test::spit(folder / "x.csv", text);
  std::vector<std::string> problems;
  return examine_log(analyse(find_logs({folder / "x.csv"}, problems), {.resolve = false}));
}

WholeLog examined(const LogText& log) {
  TempFolder folder;
  log.write(folder);
  std::vector<std::string> problems;
  return examine_log(analyse(find_logs({folder / "x.csv"}, problems), {.resolve = false}));
}

bool has_doubt(const WholeLog& whole, const std::string& text) {
  for (const std::string& each : whole.doubts) {
    if (each.find(text) != each.npos) {
      return true;
    }
  }
  for (const std::string& each : whole.doubts) {
    BOOST_TEST_MESSAGE(each);
  }
  return false;
}

LogText good_log() {
  LogText log;
  log.allocate({.ptr = 0x1000, .bytes = 777, .stack = 1, .generation = 1}).allocate({.ptr = 0x2000, .stack = 2, .generation = 2});
  log.free({.ptr = 0x1000, .bytes = 777, .generation = 1}).free({.ptr = 0x2000, .generation = 2}).mark(action::exit);
  return log;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  BOOST_REQUIRE(at != text.npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_whole_log_has_no_doubts) {
  WholeLog whole = examined(good_log());
  BOOST_TEST(whole.doubts.empty());
  BOOST_TEST(whole.open_ends.empty());
  BOOST_TEST(whole.growth.empty());
  // Without its last row it is as that of a process that was killed.
  std::string text = good_log().text();
  text.erase(text.rfind('\n', text.size() - 2) + 1);
  BOOST_TEST(examine_text(text).doubts.empty());
  BOOST_TEST(examine_text(text).open_ends.size() == 1);
}

// Each cell in the place of one that was good.
BOOST_DATA_TEST_CASE(a_cell_that_cannot_be_read,
                     boost::unit_test::data::make({",777,", ",777,", ",777,", ",777,", ",777,", ",0x1000,", ",0,", ",0,", ",ok,", ",1,"}) ^
                         boost::unit_test::data::make({",-1,", ",18446744073709551616,", ", 5,", ",,", ",5.0,", ",0xzz,", ",-1,", ",,",
                                                       ",,", ",x,"}),
                     from, to) {
  std::string text = good_log().text();
  size_t row = text.find('\n') + 1;
  std::string broken = text.substr(0, row) + replaced(text.substr(row), from, to);
  WholeLog whole = examine_text(broken);
  BOOST_TEST((has_doubt(whole, "row with seq") || has_doubt(whole, "row 1 has no")));
}

BOOST_AUTO_TEST_CASE(a_log_of_five_columns) {
  WholeLog whole = examine_text("thread,time,action,ptr,bytes\n1,1000,allocate,0x1000,512\n1,2000,deallocate,0x1000,512\n");
  BOOST_TEST(has_doubt(whole, "row 1 has no number that can be read in \"seq\", and"));
}

BOOST_AUTO_TEST_CASE(rows_that_are_missing) {
  std::string text = good_log().text();
  // Cut in its last row.
  BOOST_TEST(has_doubt(examine_text(text.substr(0, text.size() - 5)), "the last row is not whole"));
  // A row of the middle is gone: also beside a place that a call has claimed and not filled.
  size_t second = text.find("\n7,1000002000") + 1;
  BOOST_REQUIRE(second != 0);
  std::string without = text.substr(0, second) + text.substr(text.find('\n', second) + 1);
  BOOST_TEST(has_doubt(examine_text(without), "1 row missing between the first and the last"));
  std::string filled =
      text.substr(0, second) + std::string(text.find('\n', second) - second + 1, '\n') + text.substr(text.find('\n', second) + 1);
  BOOST_TEST(!has_doubt(examine_text(filled), "missing between"));
  Event lost;
  lost.action = action::lost;
  lost.bytes = 5;
  BOOST_TEST(has_doubt(examined(good_log().put(lost)), "5 rows could not be written"));
  BOOST_TEST(has_doubt(examined(good_log().raw("something else\n")), "1 line is no row of a log"));
}

BOOST_AUTO_TEST_CASE(contradictions) {
  LogText twice = good_log();
  twice.free({.ptr = 0x1000, .bytes = 777, .generation = 1});
  BOOST_TEST(has_doubt(examined(twice), "the log contradicts itself in 1 row"));
  LogText same;
  same.allocate({.ptr = 0x1000, .generation = 1}).allocate({.ptr = 0x1000, .generation = 2});
  BOOST_TEST(has_doubt(examined(same), "1 allocation at the address of a block that was live; the first has seq 2"));
  // Unless the log says that the first had ended out of sight.
  Event ended;
  ended.action = action::ended_unseen;
  ended.ptr = 0x1000;
  ended.generation = 1;
  ended.result = "ok";
  BOOST_TEST(examined(same.put(ended)).doubts.empty());
}

// A script that leaks 4 MiB a step, and whose memory goes with its interpreter.
BOOST_AUTO_TEST_CASE(memory_that_grows_until_the_exit) {
  auto run = [](uint64_t steps, bool is_freed_in_its_step, bool is_freed_at_exit) {
    LogText log;
    for (uint64_t i = 0; i < 40; ++i) {  // weights, in the beginning
      log.allocate({.ptr = 0x100000000 + i * kMiB, .bytes = kMiB, .time = kSecond + i, .stack = 1, .generation = 1000 + i});
    }
    for (uint64_t i = 0; i < steps; ++i) {
      log.allocate({.ptr = 0x200000000 + i * 4 * kMiB, .bytes = 4 * kMiB, .time = (2 + i) * kSecond, .stack = 2, .generation = i});
      if (is_freed_in_its_step) {
        log.free({.ptr = 0x200000000 + i * 4 * kMiB, .bytes = 4 * kMiB, .time = (2 + i) * kSecond + 1, .generation = i});
      }
    }
    uint64_t end = (2 + steps) * kSecond;
    Event mark;
    mark.action = action::exit;
    mark.result = "ok";
    mark.time = end;
    log.put(mark);
    for (uint64_t i = 0; is_freed_at_exit && i < 40; ++i) {
      log.free({.ptr = 0x100000000 + i * kMiB, .bytes = kMiB, .time = end + 1, .generation = 1000 + i});
    }
    for (uint64_t i = 0; is_freed_at_exit && !is_freed_in_its_step && i < steps; ++i) {
      log.free({.ptr = 0x200000000 + i * 4 * kMiB, .bytes = 4 * kMiB, .time = end + 2, .generation = i});
    }
    return examined(log);
  };
  for (bool is_freed_at_exit : {true, false}) {
    WholeLog leaks = run(20, false, is_freed_at_exit);
    BOOST_TEST(leaks.doubts.empty());
    BOOST_REQUIRE(leaks.growth.size() == 1);
    BOOST_TEST(leaks.growth[0].stack.stack == 2);
    BOOST_TEST(leaks.growth[0].blocks == 20);
    BOOST_TEST(leaks.growth[0].bytes == 80 * kMiB);
    BOOST_TEST(run(20, true, is_freed_at_exit).growth.empty());  // the weights are no growth
  }
}

// By time: few of the rows are the leak's, and most come at the end. By rows: the program waited before it worked.
BOOST_AUTO_TEST_CASE(growth_among_many_rows_and_behind_a_long_wait) {
  LogText busy;
  LogText waited;
  waited.allocate({.ptr = 0x9000000, .time = 1, .stack = 3, .generation = 1});
  for (uint64_t i = 0; i < 20; ++i) {
    busy.allocate({.ptr = 0x1000000 + i * kMiB, .bytes = kMiB, .time = (1 + i) * kSecond, .stack = 1, .generation = i});
    waited.allocate({.ptr = 0x1000000 + i * kMiB, .bytes = kMiB, .time = 1000 * kSecond + i, .stack = 1, .generation = 100 + i});
  }
  for (uint64_t i = 0; i < 1000; ++i) {
    busy.allocate({.ptr = 0x9000000, .time = 20 * kSecond + 1 + i, .stack = 2, .generation = 1000 + i});
    busy.free({.ptr = 0x9000000, .time = 20 * kSecond + 1 + i, .generation = 1000 + i});
  }
  BOOST_TEST(examined(busy).growth.size() == 1);
  BOOST_TEST(examined(waited).growth.size() == 1);
  // Twenty blocks in the beginning, kept for long, are none.
  LogText begun;
  for (uint64_t i = 0; i < 20; ++i) {
    begun.allocate({.ptr = 0x1000000 + i * kMiB, .bytes = kMiB, .time = kSecond + i, .stack = 1, .generation = i});
  }
  begun.allocate({.ptr = 0x9000000, .time = 1000 * kSecond, .stack = 2, .generation = 1000});
  BOOST_TEST(examined(begun).growth.empty());
}
