// The short report: it fits on a screen, and says what a report is about, what was found and what to try next.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/log_text.h"
#include "support/process.h"
#include "tools/report/brief_name.h"
#include "tools/report/header.h"
#include "tools/report/lines.h"
#include "tools/report/report.h"

using namespace xlog::tools;
using xlog::test::LogText;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

Report golden(const std::string& name) {
  std::vector<std::string> problems;
  return analyse(find_logs({"tests/golden/" + name}, problems), {.resolve = false});
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_short_report_fits_on_a_screen) {
  for (const char* name : {"training", "h200-driver", "h200-tensors"}) {
    Report report = golden(name);
    for (size_t width : {size_t{40}, size_t{80}, size_t{120}}) {
      std::vector<std::string> lines = lines_of(short_report_text(report, {}, {.width = width}));
      BOOST_TEST(lines.size() <= 40);
      BOOST_TEST(lines.size() > 10);
      for (const std::string& each : lines) {
        BOOST_TEST((columns_of(each) <= width || each.find(' ') == each.npos || each.starts_with("All of it")), each);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(many_gpus_leave_a_short_report_short) {
  LogText log;
  for (uint64_t i = 0; i < 8; ++i) {
    log.allocate({.ptr = 0x100000 * (i + 1), .bytes = 100 + i, .stack = 1, .device = i});
    log.allocate({.bytes = 1 << 20, .device = i, .result = "CUDA_ERROR_OUT_OF_MEMORY"});
  }
  std::vector<std::string> lines = lines_of(short_report_text(log.report(), {}, {.width = 100}));
  BOOST_TEST(lines.size() <= 40);
  BOOST_TEST(lines.back().starts_with("All of it: xlog report --full "), lines.back());
}

BOOST_AUTO_TEST_CASE(a_short_report_says_what_to_try) {
  std::string text = short_report_text(golden("training"), {}, {.width = 200});
  BOOST_TEST(text.find("  try: xlog report --oom tests/golden/training/train.100.csv\n") != text.npos, text);
  BOOST_TEST(text.find("  try: xlog run --per-tensor -- COMMAND   (PyTorch's caching allocator hides 512.00 MiB)\n") != text.npos, text);
  text = short_report_text(golden("h200-driver"), {}, {.width = 200});
  BOOST_TEST(text.find("  try: xlog run --backend async -- COMMAND\n") != text.npos, text);
}

BOOST_AUTO_TEST_CASE(colours_are_asked_for) {
  Report report = golden("training");
  BOOST_TEST(short_report_text(report, {}, {.width = 80}).find('\x1b') == std::string::npos);
  std::string coloured = short_report_text(report, {}, {.width = 80, .colour = true});
  BOOST_TEST(coloured.find("\x1b[1;31mGPU 0 (NVIDIA Example): 1 request refused for want of memory\x1b[0m\n") != coloured.npos, coloured);
}

BOOST_AUTO_TEST_CASE(a_header_says_how_the_program_ended) {
  xlog::test::TempFolder folder;
  LogText log;
  log.allocate({.ptr = 0x1000, .bytes = 100, .stack = 1});
  log.write(folder);
  nlohmann::json info = {
      {"program", "/opt/app"}, {"arguments", {"app", "-x"}}, {"pid", 7}, {"host", "node1"}, {"start_ns", 1'700'000'000'000'000'000}};
  info["run"] = {{"arguments", {"app", "-x"}}, {"start_ns", 1'700'000'000'000'000'000}, {"duration_ns", 2'000'000'000}, {"exit_status", 3}};
  auto header = [&] {
    xlog::test::spit(folder / "x.run.json", info.dump());
    std::vector<std::string> problems;
    return header_of(analyse(find_logs({folder.path()}, problems), {.resolve = false}));
  };
  BOOST_TEST(header().at(0) == "app -x  (pid 7)");
  BOOST_TEST(header().at(1) == "on node1, 2023-11-14 22:13:20 UTC, ran for 2.0 s, exited with 3");
  info["run"].erase("exit_status");
  info["run"]["signal"] = 9;
  BOOST_TEST(header().at(1) == "on node1, 2023-11-14 22:13:20 UTC, ran for 2.0 s, killed by signal 9");
  info["run"]["arguments"] = {"sh"};  // the command was another program, which started this one
  BOOST_TEST(header().at(1).find("ran for") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(brief_names_have_no_parameters) {
  BOOST_TEST(brief_name("load(int) app.cpp:12 <- (anonymous namespace)::run() app.cpp:30") == "load app.cpp:12 <- run app.cpp:30");
  BOOST_TEST(brief_name("a<b<c>, d>::f(x (*)(y)) [clone .isra.0] f.cpp:1") == "a::f f.cpp:1");
  BOOST_TEST(brief_name("step(std::vector<unsigned long long, std::alloc... demo.cpp:21") == "step demo.cpp:21");
  BOOST_TEST(brief_name("f copy(2).cpp:1") == "f copy(2).cpp:1");
  BOOST_TEST(brief_name("Module.cuda.<locals>.<lambda> module.py:1097") == "Module.cuda.<locals>.<lambda> module.py:1097");
  BOOST_TEST(brief_name("<module> train.py:2") == "<module> train.py:2");
  BOOST_TEST(brief_name("f(a, b") == "f(a, b");
  BOOST_TEST(brief_name("") == "");
}

BOOST_AUTO_TEST_CASE(holders_stay_apart_where_their_names_are_cut) {
  LogText log;
  std::string rows = std::string(xlog::kStackColumns) + "\n";
  for (uint64_t i = 1; i <= 3; ++i) {
    log.allocate({.ptr = 0x1000 * i, .bytes = 1000 * i, .stack = i});
    const char* parameters = i == 1 ? "(int)" : i == 2 ? "(long)" : "(char)";
    rows += std::to_string(i) + ",0,/bin/app,b,0x" + std::to_string(i) + ",the_same_function_of_a_rather_long_name" + parameters +
            ",app.cpp,1\n";
  }
  xlog::test::TempFolder folder;
  log.write(folder);
  xlog::test::spit(folder / "x.stacks.csv", rows);
  std::vector<std::string> problems;
  Report report = analyse(find_logs({folder.path()}, problems), {.resolve = false});
  std::string text = short_report_text(report, {}, {.width = 90});
  for (const char* each : {"(int) app.cpp:1", "(long) app.cpp:1", "(char) app.cpp:1"}) {
    BOOST_TEST(text.find(each) != text.npos, text);
  }
}

BOOST_AUTO_TEST_CASE(lines_are_broken_and_shortened_by_characters) {
  BOOST_TEST(columns_of("\xc3\xbc\xe2\x82\xac") == 2);
  BOOST_TEST(shortened("\xc3\xbc\xc3\xbc\xc3\xbc", 2) == "\xc3\xbc\xe2\x80\xa6");
  BOOST_TEST(shortened("abc", 3) == "abc");
  BOOST_TEST(shortened_in_the_middle("abcdefgh", 5) == "ab\xe2\x80\xa6gh");
  BOOST_TEST(shortened_in_the_middle("abcdefgh", 8) == "abcdefgh");
  std::vector<std::string> lines = wrapped("one two three", 7, "  ");
  BOOST_TEST((lines == std::vector<std::string>{"one two", "  three"}));
}
