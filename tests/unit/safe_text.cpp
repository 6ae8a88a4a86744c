// What comes from logs, paths and other processes, as it reaches each kind of reader.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/log_text.h"
#include "tools/analysis/diff.h"
#include "tools/log/json_value.h"
#include "tools/report/html.h"
#include "tools/report/oom.h"
#include "tools/report/report.h"
#include "tools/report/safe_text.h"
#include "tools/report/stack_text.h"

using namespace xlog;
using namespace xlog::tools;
using test::LogText;
using test::spit;
using test::TempFolder;

BOOST_AUTO_TEST_CASE(nothing_acts_on_a_terminal) {
  BOOST_TEST(terminal_line("GPU 0: 5 MiB, \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80") ==
             "GPU 0: 5 MiB, \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
  BOOST_TEST(terminal_line("a\x1b[31mb\x07\x7f") == "a\\x1b[31mb\\x07\\x7f");
  BOOST_TEST(terminal_line(std::string_view("a\0b", 3)) == "a\\x00b");
  BOOST_TEST(terminal_line("\xc2\x9b"
                           "31m") == "\\u009b31m");  // CSI of C1, as UTF-8
  BOOST_TEST(terminal_line("\x9b"
                           "31m") == "\\x9b31m");  // and as one byte
  BOOST_TEST(terminal_line("a\nb\tc\rd") == "a\\nb\\tc\\rd");
  BOOST_TEST(terminal_text("a\nb\tc\rd") == "a\nb\tc\\rd");
  for (const char* each : {"\xd8\x9c", "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaa", "\xe2\x80\xae",
                           "\xe2\x81\xa6", "\xe2\x81\xa9"}) {
    BOOST_TEST(terminal_line(each).starts_with("\\u"), terminal_line(each));
  }
  // Not UTF-8: alone, cut, too long a form, a surrogate, beyond the last character.
  BOOST_TEST(terminal_line("\xff") == "\\xff");
  BOOST_TEST(terminal_line("a\xe2\x82") == "a\\xe2\\x82");
  BOOST_TEST(terminal_line("\xc0\xaf\xe0\x80\xaf") == "\\xc0\\xaf\\xe0\\x80\\xaf");
  BOOST_TEST(terminal_line("\xed\xa0\x80") == "\\xed\\xa0\\x80");
  BOOST_TEST(terminal_line("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  BOOST_TEST(terminal_text(terminal_line("\x1b\xff\n")) == terminal_line("\x1b\xff\n"));
}

BOOST_AUTO_TEST_CASE(an_annotation_is_one_line_of_one_command) {
  BOOST_TEST(github_error("a,b:c", "100%: x,\r\n::error::y") == "::error title=a%2Cb%3Ac::100%25: x,\\r%0A::error::y");
  BOOST_TEST(github_error("t", "\x1b]8;;x\x07") == "::error title=t::\\x1b]8;;x\\x07");
}

BOOST_AUTO_TEST_CASE(json_means_the_same_and_acts_on_nothing) {
  std::string text = "\x7f \xc2\x9b \xe2\x80\xae </script> \xe2\x80\xa8 \xc3\xa4";
  std::string json = nlohmann::json(text).dump();
  BOOST_TEST(json_for_terminal(json) == "\"\\u007f \\u009b \\u202e </script> \\u2028 \xc3\xa4\"");
  BOOST_TEST(json_for_script(json) == "\"\\u007f \\u009b \\u202e \\u003c/script> \\u2028 \xc3\xa4\"");
  BOOST_TEST(nlohmann::json::parse(json_for_script(json)).get<std::string>() == text);
}

namespace {

constexpr const char* kEvil = "e\x1b[2Jvil\nForged: line\xc2\x9b\xe2\x80\xae\xff";

// All that a log and its companions can say, said by somebody with bad intentions.
std::vector<ProcessLog> evil_logs(const TempFolder& folder) {
  LogText log;
  log.allocate({.ptr = 0x1000,
                .bytes = 4096,
                .stack = 1,
                .kind = "pl\x1b"
                        "ain",
                .tag = "t\x1b"
                       "ag"});
  log.allocate({.bytes = 1 << 20, .result = "CUDA_ERROR_OUT_OF_MEMORY", .message = "m\x1b"});
  Event found;
  found.action = action::finding;
  found.message = "f\x1b";
  found.api = "a\x1b";
  found.thread_name = "n\x1b";
  log.put(found).write(folder);
  nlohmann::json gpu = {{"ordinal", 0}, {"name", std::string("GPU") + "\x1b[2J\nForged: line"}, {"uuid", "u"}};
  nlohmann::json info = {
      {"program", "p\x1b\nForged: line"}, {"pid", 7}, {"arguments", {"a\x1b\nForged: line"}}, {"host", "h\x1b"}, {"gpus", {gpu}}};
  spit(folder / "x.run.json", info.dump());
  spit(folder / "x.stacks.csv", std::string(kStackColumns) + "\n1,0,/m\x1b,b,0x1,f\x1b,s\x1b.cpp,1\n");
  nlohmann::json oom = {{"program", "o\x1b\nForged: line"},
                        {"gpu_name", "g\x1b\nForged: line"},
                        {"api", "a\x1b"},
                        {"device", 0},
                        {"pids_are_of_this_namespace", true},
                        {"processes", {{{"pid", 9}, {"uid", 0}, {"bytes", 1}, {"command", "c\x1b\nForged: line"}}}},
                        {"holders", {{{"stack_id", 1}, {"bytes", 1}, {"blocks", 1}}}}};
  spit(folder / "x.oom.1.json", oom.dump());
  info["pid"] = 8;
  spit(folder / "y.run.json", info.dump());
  for (const char* end : {".csv", ".stacks.csv", ".oom.1.json"}) {
    spit(folder / "y" + end, xlog::test::slurp(folder / "x" + end));
  }
  std::vector<std::string> problems;
  return find_logs({folder / "x.csv", folder / "y.csv"}, problems);
}

void is_safe(const std::string& text) {
  BOOST_TEST(text.find('\x1b') == text.npos, text);
  BOOST_TEST(text.find("\nForged") == text.npos, text);
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_section_of_a_report_forgets_it) {
  TempFolder folder;
  std::vector<ProcessLog> logs = evil_logs(folder);
  Report report = analyse(logs, {.resolve = false});
  report.problems.emplace_back(kEvil);
  is_safe(report_text(report, {}));
  is_safe(report_text(report, {.all_frames = true}));
  is_safe(live_text(report, {}, "now"));
  is_safe(summary_text(report, kEvil, 1, kEvil));
  for (Split split : {Split::stack, Split::thread, Split::kind, Split::tag, Split::process, Split::device, Split::library}) {
    is_safe(split_text(report, {}, split));
    is_safe(split_json(report, split));
  }
  is_safe(report_json(report, {}));
  OomReports oom = read_oom_reports(logs, 5, true);
  BOOST_TEST(oom.count == 2);
  is_safe(oom.text);
  is_safe(oom.json);
  WhatisQuery query{.address = 0x1000, .at = ""};
  is_safe(terminal_text(whatis_text(what_is(query, logs, false), query, true)));
  std::string page;
  std::string problem;
  if (report_html(report, {}, page, problem)) {
    std::string data = page.substr(page.find("\"frames\""));
    BOOST_TEST(page.find("\\u001b") == page.npos);  // shown as \x1b, which the page has as text
    BOOST_TEST(page.find("\\\\x1b[2J\\\\nForged") != page.npos);
  }
}

BOOST_AUTO_TEST_CASE(json_is_read_within_bounds) {
  std::string problem;
  auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  BOOST_TEST(parse_json(nested(kJsonDepth), problem).is_array());
  BOOST_TEST(parse_json(nested(kJsonDepth + 1), problem).is_discarded());
  BOOST_TEST(problem == "nested deeper than 64 levels");
  BOOST_TEST(parse_json(nested(1'000'000), problem).is_discarded());
  BOOST_TEST(parse_json("{\"a\": \"" + std::string(100, '[') + "\\\"[\"}", problem).is_object());  // brackets in strings nest nothing
  BOOST_TEST(parse_json("{", problem).is_discarded());
  BOOST_TEST(problem == "not JSON");
  TempFolder folder;
  LogText().allocate({.ptr = 0x1000}).write(folder);
  std::string deep = "{\"pid\": 7, \"x\": " + nested(70'000) + "}";
  spit(folder / "x.run.json", deep);
  spit(folder / "x.oom.1.json", deep);
  std::vector<std::string> problems;
  std::vector<ProcessLog> logs = find_logs({folder / "x.csv"}, problems);
  BOOST_TEST(logs.at(0).pid == 0);
  OomReports oom = read_oom_reports(logs, 5, false);
  BOOST_REQUIRE(oom.problems.size() == 1);
  BOOST_TEST(oom.problems[0].ends_with("x.oom.1.json: not a report of this tool (nested deeper than 64 levels)"));
  RunSums sums;
  BOOST_TEST(!read_baseline(deep, sums, problem));
  spit(folder / "x.oom.1.json", "{\"holders\": []," + std::string(2 << 20, ' ') + "\"a\": 1}");
  BOOST_TEST(read_oom_reports(logs, 5, false).problems.at(0).find("too large (") != std::string::npos);
}

// The library writes fifty holders, each with a stack of its own.
BOOST_AUTO_TEST_CASE(a_small_report_stays_small) {
  TempFolder folder;
  LogText().allocate({.ptr = 0x1000, .stack = 1}).write(folder);
  std::string stacks = std::string(kStackColumns) + '\n';
  for (int i = 0; i < 400; ++i) {
    stacks += "1," + std::to_string(i) + ",/opt/app,abcd,0x1," + std::string(90, 'f') + ",app.cpp,1\n";
  }
  spit(folder / "x.stacks.csv", stacks);
  std::string holders;
  for (int i = 0; i < 20'000; ++i) {
    holders += std::string(i == 0 ? "" : ",") + (i % 2 == 0 ? "{\"stack_id\":1}" : "{}");
  }
  spit(folder / "x.oom.1.json", "{\"holders\": [" + holders + "]}");
  std::vector<std::string> problems;
  OomReports oom = read_oom_reports(find_logs({folder / "x.csv"}, problems), 5, false);
  BOOST_TEST(oom.count == 1);
  BOOST_TEST(oom.json.size() < 200'000);
}
