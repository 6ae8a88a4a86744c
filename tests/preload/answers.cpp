// The commands that answer from a log, as people type them.
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/log_text.h"
#include "tools/command/commands.h"

using namespace xlog::test;
namespace tools = xlog::tools;

namespace {

std::string xlog_command() { return build_folder() + "/xlog"; }

Outcome answer(std::vector<std::string> arguments, const std::string& folder = "") {
  arguments.insert(arguments.begin(), xlog_command());
  return run(arguments, {}, folder);
}

// 300 bytes at the peak, 100 never freed.
LogText small_run() {
  LogText log;
  log.allocate({.ptr = 0x1000, .bytes = 100, .stack = 1}).allocate({.ptr = 0x2000, .bytes = 200, .stack = 2});
  log.free({.ptr = 0x2000, .bytes = 200}).mark(xlog::action::exit);
  return log;
}

}  // namespace

BOOST_AUTO_TEST_CASE(check_answers_by_its_exit_status) {
  TempFolder folder;
  small_run().write(folder);
  std::string log = folder / "x.csv";
  Outcome good = answer({"check", "--max-peak", "300B", "--no-findings", "--no-refusals", log});
  BOOST_TEST(good.status == 0);
  BOOST_TEST(good.out == "good: peak 300 B, 2 allocations\n");
  Outcome high = answer({"check", "--max-peak", "299B", log});
  BOOST_TEST(high.status == 1);
  BOOST_TEST(high.out == "max-peak: GPU 0: peak 300 B, 1 B above 299 B; most of it by f2 app.cpp:2\n");
  Outcome leaks = answer({"check", "--no-leaks", "--github", log});
  BOOST_TEST(leaks.status == 1);
  BOOST_TEST(leaks.out == "::error title=xlog no-leaks::GPU 0: 100 B in 1 block never freed, made by f1 app.cpp:1\n");
  spit(folder / "known", "leak:f1\n");
  BOOST_TEST(answer({"check", "--no-leaks", "--suppressions", folder / "known", log}).status == 0);
  BOOST_TEST(answer({"check", "--no-leaks", "--suppressions", folder / "none", log}).status == 2);
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"check", log},
                                             {"check", "--max-peak", "8", log},
                                             {"check", "--no-leaks", folder / "nowhere.csv"},
                                             {"check", "--baseline", folder / "known", log},
                                             {"check", "--max-peak", "1G", "--tolerance", "2", log}}) {
    BOOST_TEST(answer(wrong).status == 2);
  }
}

// A log that does not hold all of the run proves nothing.
BOOST_AUTO_TEST_CASE(check_does_not_pass_what_it_cannot_see) {
  TempFolder folder;
  spit(folder / "empty.csv", "");
  BOOST_TEST(answer({"check", "--max-peak", "1G", folder / "empty.csv"}).status == 2);
  LogText().write(folder, "none");
  BOOST_TEST(answer({"check", "--no-leaks", folder / "none.csv"}).status == 2);
  xlog::Event lost;
  lost.action = xlog::action::lost;
  lost.bytes = 5;
  small_run().put(lost).write(folder, "lost");
  BOOST_TEST(answer({"check", "--max-peak", "1G", folder / "lost.csv"}).status == 2);
  small_run().raw("something else\n").write(folder, "foreign");
  Outcome foreign = answer({"check", "--max-peak", "1G", folder / "foreign.csv"});
  BOOST_TEST(foreign.status == 2);
  BOOST_TEST(foreign.err.find("foreign.csv:6: not a row of this log") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(check_against_a_baseline) {
  constexpr uint64_t kMiB = 1 << 20;
  TempFolder folder;
  auto run_of = [&](const std::string& name, uint64_t first, uint64_t second) {
    LogText()
        .allocate({.ptr = 0x1000, .bytes = first, .stack = 1})
        .allocate({.ptr = 0x2000, .bytes = second, .stack = 2})
        .write(folder, name);
    return folder / (name + ".csv");
  };
  std::string before = run_of("before", 100 * kMiB, 100 * kMiB);
  BOOST_TEST(answer({"check", "--write-baseline", folder / "baseline.json", before}).status == 0);
  for (const std::string& baseline : {before, folder / "baseline.json"}) {
    auto check = [&](const std::string& log, const std::string& tolerance) {
      return answer({"check", "--baseline", baseline, "--tolerance", tolerance, log});
    };
    BOOST_TEST(check(before, "0%").status == 0);
    // The peak is as it was; one stack holds more.
    Outcome moved = check(run_of("moved", 110 * kMiB, 90 * kMiB), "2%");
    BOOST_TEST(moved.status == 1);
    BOOST_TEST(moved.out == "baseline: 110.00 MiB at the peak, was 100.00 MiB, by f1 app.cpp:1\n");
    BOOST_TEST(check(run_of("moved", 110 * kMiB, 90 * kMiB), "10%").status == 0);
    BOOST_TEST(check(run_of("grown", 101 * kMiB, 101 * kMiB), "2%").status == 0);
    BOOST_TEST(check(run_of("less", kMiB, kMiB), "0%").status == 0);
  }
  // A log is told by two processes, too.
  BOOST_TEST(answer({"check", "--max-peak", "150M", before, before}).status == 1);
}

BOOST_AUTO_TEST_CASE(simulate_answers_by_its_exit_status) {
  TempFolder folder;
  LogText().allocate({.ptr = 0x40000000, .bytes = uint64_t{4} << 30, .stack = 1}).write(folder);
  BOOST_TEST(answer({"simulate", "--gpu", "4G", folder / "x.csv"}).status == 0);
  Outcome small = answer({"simulate", "--gpu", "4G", "--context", "2M", folder / "x.csv"});
  BOOST_TEST(small.status == 1);
  BOOST_TEST(small.out.find("GPU 0 with 4.00 GiB: does not fit: 1 request would be refused; it needs 4.00 GiB") == 0);
  BOOST_TEST(answer({"simulate", "--gpu", "50%", folder / "x.csv"}).status == 2);
  BOOST_TEST(answer({"simulate", folder / "x.csv"}).status == 2);
}

BOOST_AUTO_TEST_CASE(reports_of_a_moment_and_by_something) {
  TempFolder folder;
  small_run().write(folder);
  std::string log = folder / "x.csv";
  BOOST_TEST(answer({"report", "--at", "peak", log}).out.find("GPU 0: 300 B in 2 blocks live at 1.0 us after the first call") == 0);
  BOOST_TEST(answer({"report", "--at", "0us", log}).out.find("GPU 0: 100 B in 1 block live") == 0);
  BOOST_TEST(answer({"report", "--at", "end", log}).out.find("GPU 0: 100 B in 1 block live at the end") == 0);
  BOOST_TEST(answer({"report", "--at", "tomorrow", log}).status == 2);
  BOOST_TEST(answer({"report", "--by", "library", log}).out.find("1  app\n") == std::string::npos);
  BOOST_TEST(answer({"report", "--by", "library", log}).out.find("2         0  app\n") != std::string::npos);
  BOOST_TEST(answer({"report", "--by", "colour", log}).status == 2);
}

BOOST_AUTO_TEST_CASE(folded_stacks) {
  TempFolder folder;
  small_run().write(folder);
  BOOST_TEST(answer({"export", "folded", folder / "x.csv"}).out == "main;f1 100\nmain;f2 200\n");
  BOOST_TEST(answer({"export", "folded", "--what", "live", folder / "x.csv"}).out == "main;f1 100\n");
}

BOOST_AUTO_TEST_CASE(a_trace_for_a_viewer) {
  TempFolder folder;
  Outcome demo = run({xlog_command(), "run", "--", program("demo")}, {}, folder.path());
  BOOST_TEST(demo.status == 0);
  auto trace = nlohmann::json::parse(answer({"export", "trace", folder / folder.files()[0]}).out);
  uint64_t highest = 0;
  size_t calls = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "C") {
      highest = std::max(highest, event["args"]["live bytes"].get<uint64_t>());
    }
    calls += event["ph"] == "X" ? 1 : 0;
  }
  BOOST_TEST(highest == uint64_t{992} << 20);
  BOOST_TEST(calls > 50);
}

// What killed it is told at the end, and in full by the command that is named.
BOOST_AUTO_TEST_CASE(a_run_that_dies_out_of_memory) {
  TempFolder folder;
  Outcome ours = run({xlog_command(), "run", "--limit", "512M", "--", program("demo")}, {}, folder.path());
  BOOST_TEST(ours.status == 3);
  BOOST_TEST(ours.err.find("xlog: GPU 0 (Simulated GPU): out of memory at the end: asked for 48.00 MiB with 480.00 MiB in use, refused by "
                           "the limit, by must_alloc(unsigned long) program.h:35 <- (anonymous namespace)::load_weights() demo.cpp:") !=
             std::string::npos);
  std::string log = folder.files()[0];
  BOOST_TEST(ours.err.find("xlog: next: xlog report --oom " + log) != std::string::npos);
  Outcome told = answer({"report", "--oom", log}, folder.path());
  BOOST_TEST(told.status == 0);
  BOOST_TEST(told.out.find("Out of memory: demo (pid ") == 0);
  BOOST_TEST(told.out.find("load_weights") != std::string::npos);
  BOOST_TEST(told.out.find("by library: demo 480.00 MiB") != std::string::npos);
  BOOST_TEST(answer({"report", "--oom", log, "--json"}, folder.path()).out.find("load_weights") != std::string::npos);
  spit(folder / (log + "/" + "demo.1.csv"), slurp("tests/golden/training/train.100.csv"));
  spit(folder / (log + "/" + "demo.1.oom.1.json"), "{\"holders\": 7}");
  Outcome broken = answer({"report", "--oom", log}, folder.path());
  BOOST_TEST(broken.status == 2);
  BOOST_TEST(broken.err.find("demo.1.oom.1.json: not a report of this tool") != std::string::npos);
  BOOST_TEST(broken.out.find("Out of memory: demo (pid ") == 0);
}

BOOST_AUTO_TEST_CASE(the_commands_describe_themselves) {
  Outcome man = answer({"help", "--man"});
  BOOST_TEST(man.out.starts_with(".TH XLOG 1 \"\" \"xlog "));
  for (const char* part : {".SS report", "\\-\\-suppressions", "XLOG_SUMMARY", ".SH EXIT STATUS"}) {
    BOOST_TEST(man.out.find(part) != std::string::npos, part);
  }
  for (const char* shell : {"bash", "zsh", "fish"}) {
    BOOST_TEST(answer({"completion", shell}).status == 0);
  }
  TempFolder folder;
  spit(folder / "xlog.bash", answer({"completion", "bash"}).out);
  auto complete = [&](const std::string& words, int word) {
    return run({"bash", "-c",
                "source " + folder / "xlog.bash" + "; COMP_WORDS=(" + words + "); COMP_CWORD=" + std::to_string(word) +
                    "; _xlog; echo \"${COMPREPLY[*]}\""})
        .out;
  };
  BOOST_TEST(complete("xlog sim", 1) == "simulate\n");
  BOOST_TEST(complete("xlog check --max", 2) == "--max-peak\n");
  BOOST_TEST(complete("xlog check xlog.", 2) == "\n");  // files, by the shell
  for (const char* command : {"run", "report", "check", "diff", "simulate", "export", "whatis", "env", "log", "doctor"}) {
    Outcome help = answer({command, "--help"});
    BOOST_TEST(help.status == 0);
    BOOST_TEST(help.out.rfind(std::string("xlog ") + command) > help.out.find("--help"), command);  // an example
  }
}

BOOST_AUTO_TEST_CASE(long_reads_show_how_far_they_are) {
  BOOST_TEST(tools::progress_line(50, 100, 499'999'999).empty());
  BOOST_TEST(tools::progress_line(0, 100, 1'000'000'000).empty());
  BOOST_TEST(tools::progress_line(25, 100, 1'000'000'000) == "xlog: reading [##########..............................]  25 %, 3.0 s left");
  LogText log;
  for (int i = 0; i < 100'000; ++i) {
    log.allocate({.ptr = 0x1000}).free({.ptr = 0x1000});
  }
  std::vector<uint64_t> told;
  tools::Report report = log.report({.resolve = false, .progress = [&](uint64_t done, uint64_t whole) {
                                       BOOST_REQUIRE(done <= whole);
                                       told.push_back(done);
                                     }});
  BOOST_TEST(report.rows == 200'000);
  BOOST_TEST(told.size() == 3);
  BOOST_TEST(std::is_sorted(told.begin(), told.end()));
  TempFolder folder;
  log.write(folder);
  BOOST_TEST(answer({"report", folder / "x.csv"}).err.empty());  // no terminal, no bar
}
