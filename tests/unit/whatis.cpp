// What stood at an address, and when.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/log_text.h"
#include "support/process.h"
#include "tools/analysis/moment.h"
#include "tools/report/report.h"

using namespace xlog;
using namespace xlog::tools;

namespace {

struct Answer {
  std::string text;
  bool found = false;
  size_t problems = 0;
};

Answer ask(uint64_t address, const std::string& at = "") {
  std::vector<std::string> problems;
  WhatisQuery query{.address = address, .at = at};
  WhatisAnswer answer = what_is(query, find_logs({"tests/golden/training"}, problems), false);
  return {whatis_text(answer, query, false), answer.found(), answer.problems.size() + problems.size()};
}

bool has(const Answer& answer, const char* words) { return answer.text.find(words) != std::string::npos; }

}  // namespace

BOOST_AUTO_TEST_CASE(addresses_and_moments) {
  BOOST_TEST(*parse_address("0x7f0000000000") == 0x7f0000000000);
  BOOST_TEST(*parse_address("7f00") == 0x7f00);
  for (const char* wrong : {"", "0x", "0xg", "12 ", "-1", "0x10000000000000000"}) {
    BOOST_TEST(!parse_address(wrong).has_value(), wrong);
  }
  BOOST_TEST(*parse_moment("1700000000001000000", 5) == 1700000000001000000);
  BOOST_TEST(*parse_moment("1.5s", 100) == 1'500'000'100);
  BOOST_TEST(*parse_moment("20ms", 100) == 20'000'100);
  BOOST_TEST(*parse_moment("7ns", 100) == 107);
  for (const char* wrong : {"", "s", "1.5", "-1s", "3h", "nan"}) {
    BOOST_TEST(!parse_moment(wrong, 0).has_value(), wrong);
  }
}

BOOST_AUTO_TEST_CASE(a_live_block_and_its_neighbours) {
  Answer first = ask(0x7f0000000000 + 291);
  BOOST_TEST(first.found);
  BOOST_TEST(has(first, "live: offset 291 (0x123) of 0x7f0000000000, 512.00 MiB (536,870,912 bytes, plain) on GPU 0"));
  BOOST_TEST(has(first, "allocated 0 ns after the first row, thread 100, by"));
  BOOST_TEST(!has(first, "below:"));
  BOOST_TEST(has(first, "above: "));
  Answer last_byte = ask(0x7f0000000000 + 536870911);
  BOOST_TEST(has(last_byte, "live: offset 536,870,911"));
}

// One past the end of the first block, where the second begins; that one was freed after the end mark.
BOOST_AUTO_TEST_CASE(a_freed_block_with_both_stacks) {
  Answer answer = ask(0x7f0020000000);
  BOOST_TEST(answer.found);
  BOOST_TEST(has(answer, ": free now"));
  BOOST_TEST(has(answer, "was: offset 0 (0x0) of 0x7f0020000000, 64.00 MiB"));
  BOOST_TEST(has(answer, "freed 13.0 ms after the first row, cuMemFree_v2, by"));
  BOOST_TEST(has(answer, "below: 0x7f0000000000, 512.00 MiB"));
  BOOST_TEST(has(answer, "ends 0 B before the address"));
  Answer before = ask(0x7f0020000000, "12ms");
  BOOST_TEST(has(before, "live: offset 0"));
  Answer too_early = ask(0x7f0020000000, "500us");
  BOOST_TEST(!too_early.found);
  BOOST_TEST(has(too_early, "in no block of this log"));
  BOOST_TEST(has(ask(0x7f0020000000, "1700000000012000000"), "live: offset 0"));
}

BOOST_AUTO_TEST_CASE(addresses_of_nothing) {
  Answer answer = ask(0x10);
  BOOST_TEST(!answer.found);
  BOOST_TEST(has(answer, "in no block of this log"));
  BOOST_TEST(has(answer, "above: 0x7f0000000000"));
  BOOST_TEST(ask(0x10, "soon").problems == 1);
  BOOST_TEST(!ask(0x7f9000000000).found);  // pinned host memory
}

// Of an address that a cache has given out again and again, a program is told the last blocks and how many there were.
BOOST_AUTO_TEST_CASE(an_address_of_many_blocks_makes_a_short_answer) {
  test::LogText log;
  for (uint64_t i = 1; i <= 40; ++i) {
    log.allocate({.ptr = 0x7f0000001000, .bytes = i, .time = 10 * i, .stack = 1, .generation = i});
    log.free({.ptr = 0x7f0000001000, .bytes = i, .time = 10 * i + 5, .generation = i});
  }
  test::TempFolder folder;
  log.write(folder);
  std::vector<std::string> problems;
  WhatisQuery query{.address = 0x7f0000001000, .at = {}};
  auto here = nlohmann::json::parse(whatis_json(what_is(query, find_logs({folder / "x.csv"}, problems), false), query))["processes"][0];
  BOOST_TEST(here["past_count"] == 40);
  BOOST_REQUIRE(here["past"].size() == 16);
  BOOST_TEST(here["past"].front()["generation"] == 25);
  BOOST_TEST(here["past"].back()["ended"]["time_ns"] == 405);
  BOOST_TEST(here["now"].is_null());
}
