// `xlog check`: what it passes, what it fails, and what it does not judge.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/log_text.h"

using namespace xlog::test;
using nlohmann::json;

namespace {

Outcome checked(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {build_folder() + "/xlog", "check"});
  return run(arguments);
}

Outcome checked(const LogText& log, std::vector<std::string> arguments) {
  TempFolder folder;
  log.write(folder);
  arguments.push_back(folder / "x.csv");
  return checked(arguments);
}

LogText small_log() {
  LogText log;
  log.allocate({.ptr = 0x1000, .bytes = 100, .stack = 1, .generation = 1}).free({.ptr = 0x1000, .bytes = 100, .generation = 1});
  return log;
}

}  // namespace

BOOST_AUTO_TEST_CASE(check_says_why_it_does_not_judge) {
  LogText twice = small_log();
  twice.free({.ptr = 0x1000, .bytes = 100, .generation = 1}).mark(xlog::action::exit);
  Outcome plain = checked(twice, {"--max-peak", "1G"});
  BOOST_TEST(plain.status == 2);
  BOOST_TEST(plain.out == "");
  BOOST_TEST(plain.err.find("seq 3: the end of a block that is not live\n") != std::string::npos, plain.err);
  BOOST_TEST(plain.err.ends_with("xlog: the log is not whole, so nothing is checked\n"));
  Outcome machine = checked(twice, {"--max-peak", "1G", "--json"});
  BOOST_TEST(machine.status == 2);
  json told = json::parse(machine.out);
  BOOST_TEST(told["good"] == false);
  BOOST_TEST(told["judged"] == false);
  BOOST_TEST(told["doubts"].size() == 1);
  Outcome github = checked(twice, {"--max-peak", "1G", "--github"});
  BOOST_TEST(github.status == 2);
  BOOST_TEST(github.out.starts_with("::error title=xlog check%3A not judged::the log contradicts itself"), github.out);
  // Of either run that is compared.
  TempFolder folder;
  twice.write(folder, "before");
  small_log().mark(xlog::action::exit).write(folder, "after");
  BOOST_TEST(checked({"--baseline", folder / "before.csv", folder / "after.csv"}).status == 2);
  BOOST_TEST(checked({"--write-baseline", folder / "b.json", folder / "before.csv"}).status == 2);
  BOOST_TEST(checked({"--write-baseline", folder / "b.json", folder / "after.csv"}).status == 0);
  BOOST_TEST(checked({"--baseline", folder / "b.json", folder / "after.csv"}).status == 0);
}

BOOST_AUTO_TEST_CASE(an_end_that_is_not_marked) {
  Outcome told = checked(small_log(), {"--no-leaks"});
  BOOST_TEST(told.status == 0);
  BOOST_TEST(told.err.find("x.csv: the log ends without an end mark: the process was killed or is running") != std::string::npos);
  Outcome required = checked(small_log(), {"--require-end"});
  BOOST_TEST(required.status == 1);
  BOOST_TEST(required.out.starts_with("require-end: "));
  LogText whole = small_log().mark(xlog::action::exit);
  BOOST_TEST(checked(whole, {"--require-end"}).status == 0);
  BOOST_TEST(checked(whole, {"--require-end"}).err == "");
}

BOOST_AUTO_TEST_CASE(a_log_without_allocations) {
  LogText empty = LogText().mark(xlog::action::exit);
  BOOST_TEST(checked(empty, {"--no-leaks"}).status == 2);
  BOOST_TEST(checked(empty, {"--no-leaks", "--allow-empty"}).status == 0);
  // What was only refused is something that can be judged.
  LogText refused = LogText().allocate({.bytes = 5, .result = "CUDA_ERROR_OUT_OF_MEMORY"}).mark(xlog::action::exit);
  BOOST_TEST(checked(refused, {"--no-refusals"}).status == 1);
}

BOOST_AUTO_TEST_CASE(what_a_log_was_told_to_leave_out) {
  TempFolder folder;
  small_log().mark(xlog::action::exit).write(folder);
  spit(folder / "x.run.json", json({{"options", {{"XLOG_LOG_MIN", "1MiB"}}}}).dump());
  Outcome partial = checked({"--no-leaks", folder / "x.csv"});
  BOOST_TEST(partial.status == 2);
  BOOST_TEST(partial.err.find("blocks are left out of the log, as XLOG_LOG_MIN or XLOG_LOG_SAMPLE says (--allow-partial") !=
             std::string::npos);
  BOOST_TEST(checked({"--no-leaks", "--allow-partial", folder / "x.csv"}).status == 0);
  LogText off = small_log().mark(xlog::action::log_off).mark(xlog::action::log_on).mark(xlog::action::exit);
  BOOST_TEST(checked(off, {"--no-leaks"}).status == 2);
  BOOST_TEST(checked(off, {"--no-leaks", "--allow-partial"}).status == 0);
}

BOOST_AUTO_TEST_CASE(an_annotation_cannot_be_forged) {
  TempFolder folder;
  small_log().mark(xlog::action::exit).write(folder);
  spit(folder / "x.run.json", json({{"gpus", {{{"ordinal", 0}, {"name", "A\n::error::forged 100%\x1b[0m"}}}}}).dump());
  Outcome github = checked({"--max-peak", "1B", "--github", folder / "x.csv"});
  BOOST_TEST(github.status == 1);
  BOOST_TEST(github.out.starts_with("::error title=xlog max-peak::GPU 0 (A%0A::error::forged 100%25\\x1b[0m): peak 100 B"), github.out);
  BOOST_TEST(std::count(github.out.begin(), github.out.end(), '\n') == 1);
  Outcome plain = checked({"--max-peak", "1B", folder / "x.csv"});
  BOOST_TEST(std::count(plain.out.begin(), plain.out.end(), '\n') == 1);
}

// Real programs: one keeps what it makes in each step until its exit, one frees it.
BOOST_AUTO_TEST_CASE(a_program_that_grows) {
  for (bool grows : {true, false}) {
    TempFolder folder;
    std::vector<std::string> command = {build_folder() + "/xlog", "run", "--quiet", "--", program("script")};
    for (int i = 0; i < 24; ++i) {
      command.emplace_back("+4");
      if (!grows) {
        command.push_back("-" + std::to_string(i));
      }
    }
    BOOST_TEST(run(command, {}, folder.path()).status == 0);
    Outcome told = checked({"--no-growth", "--require-end", folder.path() + "/" + folder.files().at(0)});
    BOOST_TEST(told.status == (grows ? 1 : 0), told.out << told.err);
    if (grows) {
      BOOST_TEST(told.out.find("no-growth: GPU 0 (Simulated GPU): 96.00 MiB in 24 blocks, allocated all through the second half") == 0,
                 told.out);
    }
  }
}

// What grew over the second half is told also where all of it was freed in the end.
BOOST_AUTO_TEST_CASE(the_first_line_says_what_grows) {
  constexpr uint64_t kSecond = 1'000'000'000;
  LogText log;
  for (uint64_t i = 0; i < 80; ++i) {
    log.allocate({.ptr = 0x100000 + i * 0x10000, .bytes = 4096, .time = kSecond + i * kSecond, .stack = 1, .generation = i});
  }
  log.mark(xlog::action::exit);
  for (uint64_t i = 0; i < 80; ++i) {
    log.free({.ptr = 0x100000 + i * 0x10000, .bytes = 4096, .time = 81 * kSecond + i, .generation = i});
  }
  TempFolder folder;
  log.write(folder);
  Outcome told = run({build_folder() + "/xlog", "report", folder / "x.csv"});
  std::string text = told.out;
  std::replace(text.begin(), text.end(), '\n', ' ');  // the sentence is broken at the width of the terminal
  BOOST_TEST(text.find("Everything was freed, 320.00 KiB of it only at the exit. Still growing: f1 app.cpp:1, from ") != text.npos,
             told.out);
}
