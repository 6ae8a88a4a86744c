// Reading what is not a whole, well-formed log of ours: a report tells what can be told, says what it left out, and goes on.
#include <sys/resource.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "support/log_text.h"
#include "support/process.h"
#include "tools/analysis/analysis.h"
#include "tools/analysis/diff.h"
#include "tools/log/mapped_file.h"
#include "tools/log/row_reader.h"
#include "tools/report/oom.h"
#include "tools/report/report.h"

using namespace xlog;
using namespace xlog::tools;
using test::LogText;
using test::TempFolder;
namespace data = boost::unit_test::data;

namespace {

const std::string kLog = "tests/golden/training/train.100.csv";

Report report_of(const TempFolder& folder, const std::string& text, const std::string& name = "x.csv") {
  test::spit(folder / name, text);
  std::vector<std::string> problems;
  Report report = analyse(find_logs({folder / name}, problems), {.resolve = false});
  report_text(report, {});
  report_json(report, {});
  return report;
}

Report report_of(const std::string& text, const std::string& name = "x.csv") {
  TempFolder folder;
  return report_of(folder, text, name);
}

// The golden log, its cut last row taken off.
std::vector<std::string> golden_lines() {
  std::string text = test::slurp(kLog);
  std::vector<std::string> lines;
  for (size_t at = 0, end = 0; (end = text.find('\n', at)) != text.npos; at = end + 1) {
    lines.push_back(text.substr(at, end - at));
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& each : lines) {
    text += each + '\n';
  }
  return text;
}

// All rows as one text, however they are read.
std::string rows_of(std::string_view text, const RowReader::Settings& settings) {
  RowReader reader(text, settings);
  std::string out;
  while (const Event* row = reader.next()) {
    out += std::to_string(reader.line()) + ' ' + std::to_string(row->seq) + ' ' + std::string(row->action) + ' ' +
           std::to_string(row->ptr) + ' ' + std::string(row->message) + ' ' + std::string(row->thread_name) + '\n';
  }
  return out + std::to_string(reader.empty_lines()) + ' ' + std::to_string(reader.unfinished_rows()) + ' ' +
         std::to_string(reader.foreign_rows()) + ' ' + std::to_string(reader.cut());
}

}  // namespace

BOOST_AUTO_TEST_CASE(cut_at_every_byte_of_the_last_rows) {
  std::vector<std::string> lines = golden_lines();
  std::string whole = joined(lines);
  Report all = report_of(whole);
  size_t last_three = 0;
  for (size_t i = lines.size() - 3; i < lines.size(); ++i) {
    last_three += lines[i].size() + 1;
  }
  TempFolder folder;
  for (size_t cut = whole.size() - last_three; cut <= whole.size(); ++cut) {
    Report report = report_of(folder, whole.substr(0, cut));
    size_t rows = static_cast<size_t>(std::count(whole.begin(), whole.begin() + static_cast<long>(cut), '\n')) - 1;
    BOOST_REQUIRE(report.rows == rows);
    BOOST_REQUIRE(report.processes[0].cut == (whole[cut - 1] != '\n'));
    BOOST_REQUIRE(report.gpus.at(0).peak == all.gpus.at(0).peak);
    BOOST_REQUIRE(report.foreign_rows == 0);
  }
}

// However a log is split into stretches, and whoever parses them, its rows are the same.
BOOST_AUTO_TEST_CASE(stretches_do_not_show) {
  std::vector<std::string> lines = golden_lines();
  lines[3] = "\"quoted";
  lines[5] += "\r";
  lines.insert(lines.begin() + 7, 40, "");
  lines.insert(lines.begin() + 50, "5,1,piece");
  std::string text = joined(lines) + "cut";
  std::string expected = rows_of(text, {});
  BOOST_TEST(expected.find("allocate") != text.npos);
  for (unsigned threads : {0U, 1U, 3U}) {
    ReadAhead helpers(threads);
    for (size_t stretch : {1, 2, 17, 64, 200, 1000, 100000}) {
      BOOST_TEST(rows_of(text, {.stretch = stretch}) == expected);
      for (size_t ahead : {1, 2, 7}) {
        BOOST_REQUIRE(rows_of(text, {.helpers = &helpers, .stretch = stretch, .stretches_ahead = ahead}) == expected);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_out_of_order) {
  std::vector<std::string> lines = golden_lines();
  std::swap(lines[2], lines[3]);
  Report report = report_of(joined(lines));
  BOOST_TEST(report.contradiction_count >= 1);
  BOOST_TEST(report.rows == lines.size() - 1);
  std::reverse(lines.begin() + 1, lines.end());
  BOOST_TEST(report_of(joined(lines)).contradiction_count > 5);
}

BOOST_AUTO_TEST_CASE(columns_that_are_not_known) {
  std::vector<std::string> lines = golden_lines();
  uint64_t peak = report_of(joined(lines)).gpus.at(0).peak;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (int column = 19; column < 300; ++column) {
      lines[i] += i == 0 ? ",new" + std::to_string(column) : ",\"a,b\"";
    }
  }
  Report report = report_of(joined(lines));
  BOOST_TEST(report.rows == lines.size() - 1);
  BOOST_TEST(report.gpus.at(0).peak == peak);
  lines[0] += std::string(2000, ',');
  BOOST_TEST(report_of(joined(lines)).problems.size() == 1);
}

BOOST_AUTO_TEST_CASE(a_line_without_end) {
  std::vector<std::string> lines = golden_lines();
  size_t rows = lines.size() - 1;
  lines.insert(lines.begin() + 4, std::string(64 << 20, 'x'));
  lines.insert(lines.begin() + 8, '"' + std::string(64 << 20, 'y'));
  Report report = report_of(joined(lines));
  BOOST_TEST(report.rows == rows);
  BOOST_TEST(report.foreign_rows == 2);
  BOOST_REQUIRE(report.notes.size() == 2);
  BOOST_TEST(report.notes[0].ends_with("x.csv:5: not a row of this log"));
  BOOST_TEST(report.notes[1].ends_with("x.csv:9: not a row of this log"));
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_text) {
  std::vector<std::string> lines = golden_lines();
  lines.insert(lines.begin() + 3, std::string(300, '\0'));
  lines.insert(lines.begin() + 6, std::string("1,2,\0\xff\xfe,4", 10));
  lines[9].replace(lines[9].size() - 4, 4, "\xff\x00\x01", 3);
  Report report = report_of(joined(lines));
  BOOST_TEST(report.foreign_rows == 1);
  BOOST_TEST(report.rows == lines.size() - 3);
}

BOOST_AUTO_TEST_CASE(two_logs_in_one_file) {
  std::string text = joined(golden_lines());
  Report report = report_of(text + text);
  BOOST_REQUIRE(report.foreign_rows == 1);  // the second header
  BOOST_TEST(report.notes[0].find(":" + std::to_string(golden_lines().size() + 1) + ": not a row") != text.npos);
  BOOST_TEST(report.contradiction_count > 0);
}

BOOST_DATA_TEST_CASE(what_is_no_log,
                     data::make({std::string(), std::string("\n"), std::string("a,b,c\n1,2,3\n"), std::string("thread,time,action\n"),
                                 std::string("\"\n"), std::string("thread,time,action,ptr,bytes"), std::string("\0\n", 2)})) {
  BOOST_TEST(report_of(sample).problems.size() == 1);
  BOOST_TEST(report_of(sample).rows == 0);
}

BOOST_AUTO_TEST_CASE(numbers_that_do_not_fit) {
  std::vector<std::string> lines = golden_lines();
  for (const char* number : {"18446744073709551615", "18446744073709551616", "-1", "1e9", " 7", "0x7", "99999999999999999999999"}) {
    std::vector<std::string> changed = lines;
    size_t bytes = changed[1].find(",536870912,");
    changed[1].replace(bytes + 1, 9, number);
    report_of(joined(changed));
  }
}

// RMM's own logs, of each of its dialects (its history, logging_resource_adaptor).
BOOST_AUTO_TEST_CASE(logs_of_rmm) {
  struct Dialect {
    const char* when;
    const char* text;
  };
  const Dialect kDialects[] = {
      {"since November 2024",
       "Thread,Time,Action,Pointer,Size,Stream\n"
       "7,23:59:59.999000,allocate,0x7f0000000000,1000,0\n"
       "8,00:00:00.001000,allocate,0x7f0000100000,500,0x2\n"
       "7,00:00:00.002000,allocate failure,(nil),99999999,0\n"
       "7,00:00:00.003000,allocate,(nil),0,0\n"
       "7,00:00:00.003500,free,(nil),0,0\n"
       "8,00:00:00.004000,free,0x7f0000000000,1000,0\n"},
      {"since April 2021",
       "Thread,Time,Action,Pointer,Size,Stream\n"
       "7,10:00:00.000100,allocate,0x7f0000000000,1000,0x0\n"
       "8,10:00:00.000200,allocate,0x7f0000100000,500,0x2\n"
       "7,10:00:00.000300,allocate failure,0x0,99999999,0x0\n"
       "8,10:00:00.000400,free,0x7f0000000000,1000,0x0\n"},
      {"since June 2020",
       "Thread,Time,Action,Pointer,Size,Stream\n"
       "7,10:00:00:000100,allocate,0x7f0000000000,1000,0\n"
       "8,10:00:00:000200,allocate,0x7f0000100000,500,140234\n"
       "8,10:00:00:000400,free,0x7f0000000000,1000,0\n"},
      {"0.14",
       "Time,Action,Pointer,Size,Stream\n"
       "10:00:00:000100,allocate,0x7f0000000000,1000,0\n"
       "10:00:00:000200,allocate,0x7f0000100000,500,2\n"
       "10:00:00:000400,free,0x7f0000000000,1000,0\n"},
      {"the C library",
       "Event Type,Device ID,Address,Stream,Size (bytes),Free Memory,Total Memory,Current Allocs,Start,End,Elapsed,Location\n"
       "Alloc,0,0x7f0000000000,0,1000,0,0,1,41.7014,41.7016,0.000156924,/a/rmm_alloc.cu:85\n"
       "Alloc,0,0x7f0000100000,0,500,0,0,2,41.8014,41.8016,0.000156924,/a/rmm_alloc.cu:85\n"
       "Free,0,0x7f0000000000,0,1000,0,0,1,41.9014,41.9016,0.000156924,/a/rmm_alloc.cu:85\n"},
  };
  for (const Dialect& each : kDialects) {
    BOOST_TEST_CONTEXT(each.when) {
      Report report = report_of(each.text);
      BOOST_TEST(report.problems.empty());
      BOOST_TEST(report.foreign_rows == 0);
      BOOST_TEST(report.contradiction_count == 0);
      BOOST_REQUIRE(report.gpus.size() == 1);
      BOOST_TEST(report.gpus[0].peak == 1500);
      BOOST_TEST(report.gpus[0].live == 500);
      BOOST_TEST(report.gpus[0].allocations == 2);
      bool fails = std::string_view(each.text).find("failure") != std::string_view::npos;
      BOOST_TEST(report.gpus[0].refusals == (fails ? 1 : 0));
      BOOST_TEST(report.last_time > report.first_time);
      BOOST_TEST(report.last_time - report.first_time < 1'000'000'000);  // midnight is no day
    }
  }
  BOOST_TEST(report_of(kDialects[0].text, "log.dev3.csv").gpus[0].ordinal == 3);
}

// A number in a log is a name: what it is called 300 million takes no more memory than what is called 1.
BOOST_AUTO_TEST_CASE(a_high_number_takes_no_memory) {
  auto most_resident = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss >> 10;  // MiB
  };
  TempFolder folder;
  for (uint64_t high : {uint64_t{300'000'000}, uint64_t{1} << 31, uint64_t{1} << 40, UINT64_MAX - 1}) {
    LogText log;
    log.allocate({.ptr = 0x7f0000001000, .bytes = 100, .thread = high, .stack = high, .stream = high});
    log.allocate({.ptr = 0x7f0000002000, .bytes = 10, .stack = 1, .device = high});
    log.free({.ptr = 0x7f0000001000, .bytes = 100, .thread = high, .stack = high, .stream = high});
    log.write(folder);
    std::string stacks = test::slurp(folder / "x.stacks.csv");
    stacks += std::to_string(high) + ",0,/opt/app,abcd,0x1,main,app.cpp,99\n";
    test::spit(folder / "x.stacks.csv", stacks);
    long before = most_resident();
    std::vector<std::string> problems;
    std::vector<ProcessLog> logs = find_logs({folder / "x.csv"}, problems);
    BOOST_TEST(analyse(logs, {.resolve = false}).gpus.at(0).peak == 100);
    BOOST_TEST(what_is({.address = 0x7f0000001010, .at = {}}, logs, false).found());
    BOOST_TEST(most_resident() - before < 256, high);
  }
}

// Companions that somebody else wrote, or that are of another version.
BOOST_AUTO_TEST_CASE(companions_with_other_types) {
  TempFolder folder;
  test::spit(folder / "x.csv", joined(golden_lines()));
  std::string wrong[] = {"7", "[]", "\"text\"", "null", "{\"a\": 1}", "[[1]]", "-1", "1e99", "true"};
  for (const std::string& value : wrong) {
    std::string info = "{";
    for (const char* name : {"program", "arguments", "host", "pid", "parent", "start_ns", "gpus", "options", "environment"}) {
      info += (info == "{" ? "\"" : ", \"") + std::string(name) + "\": " + value;
    }
    std::string oom = "{\"holders\": [" + value + "]";
    for (const char* name : {"processes", "pids_are_of_this_namespace", "time_ns", "device", "live_bytes", "stack_id", "unseen_bytes"}) {
      oom += ", \"" + std::string(name) + "\": " + value;
    }
    test::spit(folder / "x.run.json", info + "}");
    test::spit(folder / "x.oom.1.json", oom + "}");
    std::vector<std::string> problems;
    std::vector<ProcessLog> logs = find_logs({folder / "x.csv"}, problems);
    BOOST_TEST(analyse(logs, {.resolve = false}).gpus.at(0).peak == 738197504);
    BOOST_TEST(read_oom_reports(logs, 5, false).count == 1);
    RunSums sums;
    std::string problem;
    read_baseline("{\"what\": \"xlog baseline\", \"peak_bytes\": " + value + ", \"stacks\": [" + value + "]}", sums, problem);
    read_baseline(value, sums, problem);
  }
}
