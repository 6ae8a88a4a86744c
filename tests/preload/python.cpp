// Stacks of Python programs have the interpreter's functions, files and lines, as the interpreter itself tells them.
#include <boost/test/unit_test.hpp>
#include <sstream>

#include "support/process.h"
#include "tools/log/stacks.h"

using namespace xlog::test;
using xlog::tools::Frame;
using xlog::tools::Stack;
using xlog::tools::StackFile;

namespace {

std::vector<std::string> words(const std::string& text, char between) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string each; std::getline(stream, each, between);) {
    out.push_back(each);
  }
  return out;
}

// XLOG_PYTHONS=/a/bin/python3.9:/b/bin/python3.13 for more than those that are found.
std::vector<std::string> interpreters() {
  const char* given = getenv("XLOG_PYTHONS");
  std::string found =
      run({"bash", "-c",
           "for v in 3 3.9 3.10 3.11 3.12 3.13 3.14 3.15; do python$v -c 'import sys; print(sys.executable)' 2>/dev/null; done; true"})
          .out;
  std::vector<std::string> all = words(found, '\n');
  for (const std::string& each : words(given != nullptr ? given : "", ':')) {
    all.push_back(each);
  }
  return all;
}

std::string python_part(const Stack& stack) {
  std::string out;
  for (const Frame* each : stack.frames) {
    if (each->module == "[python]") {
      out += (out.empty() ? "" : "; ") + each->function + ' ' + each->file + ' ' + std::to_string(each->line);
    }
  }
  return out;
}

bool is_native_between(const Stack& stack, const std::string& inner, const std::string& outer) {
  auto is = [](const std::string& function) { return [&function](const Frame* each) { return each->function.ends_with(function); }; };
  auto from = std::find_if(stack.frames.begin(), stack.frames.end(), is(inner));
  auto to = std::find_if(from, stack.frames.end(), is(outer));
  return to != stack.frames.end() && std::any_of(from, to, [](const Frame* each) { return each->module != "[python]"; });
}

}  // namespace

BOOST_AUTO_TEST_CASE(python_functions_stand_between_the_native_frames) {
  auto pythons = interpreters();
  BOOST_REQUIRE(!pythons.empty());
  for (const std::string& python : pythons) {
    BOOST_TEST_CONTEXT(python) {
      TempFolder folder;
      Environment with{{"XLOG_LOG", folder / "x.csv"}, {"XLOG_BACKTRACE", "128"}, {"PYTHONIOENCODING", "utf-8"}};
      Outcome ours = run_with_library({python, "tests/programs/python_frames.py"}, with);
      BOOST_TEST(ours.status == 0);
      BOOST_TEST(ours.err == "");
      std::string log = log_in(folder);
      StackFile stacks;
      stacks.read(log.substr(0, log.size() - 4) + ".stacks.csv");
      std::map<std::string, const Stack*> by_size;
      for (const Row& row : rows_of(log)) {
        if (row.at("action") == "allocate") {
          by_size[row.at("bytes")] = stacks.find(std::stoull(row.at("stack_id")));
        }
      }
      auto lines = words(ours.out, '\n');
      BOOST_TEST(lines.size() >= 12);
      for (const std::string& line : lines) {
        size_t space = line.find(' ');
        const Stack* stack = by_size[line.substr(0, space)];
        BOOST_REQUIRE(stack != nullptr);
        BOOST_TEST(python_part(*stack) == line.substr(space + 1));
        BOOST_TEST(stack->frames.front()->module != "[python]");
        if (line.find("through_native.<locals>.<lambda>") != line.npos) {
          // From 3.14 on it may be built so that its evaluator has no native frame of its own: all stands behind.
          bool may_stand_behind = run({python, "-c", "import sys; print(sys.version_info >= (3, 14))"}).out == "True\n";
          bool stands_behind = may_stand_behind && stack->frames.back()->module == "[python]";
          BOOST_TEST((stands_behind || is_native_between(*stack, "<lambda>", "through_native")));
        }
      }
    }
  }
}

// A report names the line of the script, not the interpreter's.
BOOST_AUTO_TEST_CASE(a_report_shows_the_lines_of_the_script) {
  TempFolder folder;
  run_with_library({"python3", "tests/programs/python_frames.py"}, {{"XLOG_LOG", folder / "x.csv"}});
  std::string report = run({build_folder() + "/xlog", "report", folder.path()}).out;
  BOOST_TEST(report.find("python_frames.py:") != report.npos, report);
  BOOST_TEST(report.find("_PyEval_EvalFrameDefault") == report.npos, report);
}
