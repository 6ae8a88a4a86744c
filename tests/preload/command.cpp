// The command `xlog`, as people type it.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "support/process.h"

using namespace xlog::test;
namespace data = boost::unit_test::data;

namespace {

std::string xlog_command() { return build_folder() + "/xlog"; }

size_t lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

std::string only_folder(const TempFolder& folder) {
  auto names = folder.files();
  return names.size() == 1 ? folder / names[0] : "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(run_needs_no_option) {
  TempFolder folder;
  Outcome ours = run({xlog_command(), "run", "--", program("demo")}, {}, folder.path());
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.out == run({program("demo")}).out);
  BOOST_TEST(lines(ours.err) <= 12);
  BOOST_TEST(ours.err.find("peak 992.00 MiB") != std::string::npos);
  BOOST_TEST(ours.err.find("load_weights") != std::string::npos);
  BOOST_TEST(ours.err.find("xlog: next: xlog report xlog.demo.") != std::string::npos);
  // Names are in the folder: it can be read elsewhere.
  std::string stacks;
  for (const auto& each : std::vector<std::string>{only_folder(folder)}) {
    stacks = run({"bash", "-c", "cat " + each + "/*.stacks.csv"}).out;
  }
  BOOST_TEST(stacks.find(",main,") != std::string::npos);
  BOOST_TEST(stacks.find("demo.cpp,") != std::string::npos);
}

BOOST_DATA_TEST_CASE(it_ends_as_the_program_ended, data::make({"return", "exit", "_exit", "abort", "segv", "kill"}), how) {
  TempFolder folder;
  Outcome native = run({program("shutdown"), how});
  Outcome ours = run({xlog_command(), "run", "--", program("shutdown"), how}, {}, folder.path());
  BOOST_TEST(ours.status == native.status);
  BOOST_TEST(ours.out == native.out);
  BOOST_TEST(lines(ours.err) <= 12);
  BOOST_TEST(ours.err.find(native.status >= 128 ? "the program was killed by" : "the program exited with 7") != std::string::npos);
  BOOST_TEST(ours.err.find("peak") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_limit_by_option) {
  TempFolder folder;
  Outcome ours = run({xlog_command(), "run", "--limit", "512MiB", "--no-log", "--", program("info")}, {}, folder.path());
  BOOST_TEST(ours.out.starts_with("device total 536870912\n"));
  BOOST_TEST(folder.files().empty());
}

BOOST_AUTO_TEST_CASE(per_tensor_is_a_set_of_variables) {
  TempFolder folder;
  Outcome ours = run({xlog_command(), "run", "--per-tensor", "--no-log", "--", "/usr/bin/env"}, {}, folder.path());
  for (const char* want : {"PYTORCH_NO_CUDA_MEMORY_CACHING=1\n", "XLA_PYTHON_CLIENT_ALLOCATOR=platform\n", "XLOG_BACKEND=async\n",
                           "XLOG_ASYNC_FREE=ordered\n"}) {
    BOOST_TEST(ours.out.find(want) != std::string::npos, want);
  }
  BOOST_TEST(ours.err.starts_with("xlog: per tensor: the framework's own cache is off"));
  BOOST_TEST(std::count(ours.err.begin(), ours.err.end(), '\n') == 1);
  Outcome chosen = run({xlog_command(), "run", "--per-tensor", "--backend", "cache", "--no-log", "--", "/usr/bin/env"}, {}, folder.path());
  BOOST_TEST(chosen.out.find("XLOG_BACKEND=cache\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(options_are_checked_before_the_start) {
  TempFolder folder;
  for (const auto& [environment, want] :
       std::vector<std::pair<Environment, std::string>>{{{{"XLOG_BUDGET", "8"}}, "has no unit"},
                                                        {{{"XLOG_BUGDET", "8G"}}, "did you mean XLOG_BUDGET?"},
                                                        {{{"XLOG_BACKEND", "fast"}}, "give native, direct, async or cache"}}) {
    Outcome ours = run({xlog_command(), "run", "--", program("demo")}, environment, folder.path());
    BOOST_TEST(ours.status == 2);
    BOOST_TEST(ours.out.empty());
    BOOST_TEST(ours.err.find(want) != std::string::npos);
  }
  BOOST_TEST(folder.files().empty());
}

BOOST_AUTO_TEST_CASE(a_command_that_is_not_there) {
  TempFolder folder;
  BOOST_TEST(run({xlog_command(), "run", "--", "./nowhere"}, {}, folder.path()).status == 127);
  BOOST_TEST(run({xlog_command(), "run", "--", folder.path()}, {}, folder.path()).status == 126);
  BOOST_TEST(folder.files().empty());
  BOOST_TEST(run({xlog_command(), "run"}).status == 2);
  BOOST_TEST(run({xlog_command(), "fly"}).status == 2);
}

BOOST_AUTO_TEST_CASE(signals_are_handed_on) {
  TempFolder folder;
  Outcome ours =
      run({"bash", "-c",
           xlog_command() +
               " run --quiet -- bash -c 'trap \"echo got it; exit 5\" TERM; echo ready; for i in $(seq 100); do sleep 0.05; done' > out & "
               "until grep -q ready out; do sleep 0.02; done; kill -TERM $!; wait $!; echo $? >> out; cat out"},
          {}, folder.path());
  BOOST_TEST(ours.out == "ready\ngot it\n5\n");
}

BOOST_AUTO_TEST_CASE(an_existing_preload_is_kept) {
  TempFolder folder;
  Outcome ours = run({xlog_command(), "run", "--quiet", "--", program("demo")},
                     {{"LD_PRELOAD", build_folder() + "/programs/plugins/counter.so"}}, folder.path());
  BOOST_TEST(ours.err.find("counter: 52\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(env_prints_exports_that_work) {
  TempFolder folder;
  Outcome ours = run(
      {"bash", "-c", "eval \"$(" + xlog_command() + " env --limit 512M)\"; env | grep -E '^(LD_PRELOAD|XLOG)' | sort; " + program("info")},
      {}, folder.path());
  BOOST_TEST(ours.out.find("LD_PRELOAD=" + build_folder() + "/libxlog.so\n") != std::string::npos);
  BOOST_TEST(ours.out.find("XLOG_BUDGET=512M\n") != std::string::npos);
  BOOST_TEST(run({xlog_command(), "report", "xlog.logs"}, {}, folder.path()).status == 0);  // and there is a log
  BOOST_TEST(ours.out.find("device total 536870912\n") != std::string::npos);
  BOOST_TEST(run({xlog_command(), "env", "--limit", "512"}).status == 2);
}

BOOST_AUTO_TEST_CASE(help_names_the_commands_and_the_options) {
  std::string out = run({xlog_command(), "help"}).out;
  for (const char* each : {"run ", "report ", "env ", "doctor ", "XLOG_BUDGET"}) {
    BOOST_TEST(out.find(each) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(doctor_says_what_would_load) {
  TempFolder folder;
  auto examine = [&](const std::string& what) { return run({xlog_command(), "doctor", "--", what}); };
  BOOST_TEST(examine(program("demo")).status == 0);
  BOOST_TEST(examine(program("demo")).out.find("the library loads into it") != std::string::npos);
  BOOST_TEST(examine("nowhere").out.find("not found") != std::string::npos);
  run({"bash", "-c", "echo 'int main(){}' | gcc -xc -static -o " + folder.path() + "/static -"});
  BOOST_TEST(examine(folder / "static").out.find("statically linked") != std::string::npos);
  run({"bash", "-c", "cp /bin/true " + folder.path() + "/set; chmod u+s " + folder.path() + "/set"});
  BOOST_TEST(examine(folder / "set").out.find("setuid") != std::string::npos);
  spit(folder / "script", "#!/usr/bin/env bash\n");
  run({"chmod", "+x", folder / "script"});
  BOOST_TEST(examine(folder / "script").out.find("is a script for bash") != std::string::npos);
  std::string thirty_two = slurp("/bin/true");
  thirty_two[4] = 1;
  spit(folder / "old", thirty_two);
  run({"chmod", "+x", folder / "old"});
  BOOST_TEST(examine(folder / "old").out.find("32-bit") != std::string::npos);
  std::string musl = slurp("/bin/true");
  size_t at = musl.find("/lib64/ld-linux-x86-64.so.2");
  musl.replace(at, 27, "/lib/ld-musl-x86_64.so.1\0\0\0", 27);
  spit(folder / "musl", musl);
  run({"chmod", "+x", folder / "musl"});
  BOOST_TEST(examine(folder / "musl").out.find("musl") != std::string::npos);
  TempFolder empty;
  BOOST_TEST(run({xlog_command(), "doctor"}, {{"LD_LIBRARY_PATH", empty.path()}}).out.find("no NVIDIA driver") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(report_of_nothing_of_a_folder_and_of_files) {
  TempFolder folder;
  BOOST_TEST(run({xlog_command(), "report"}, {}, folder.path()).status == 2);
  BOOST_TEST(run({xlog_command(), "report", "nowhere"}, {}, folder.path()).status == 2);
  run({xlog_command(), "run", "--quiet", "--", program("demo")}, {}, folder.path());
  Outcome newest = run({xlog_command(), "report"}, {}, folder.path());
  BOOST_TEST(newest.status == 0);
  BOOST_TEST(newest.out == run({xlog_command(), "report", folder.files()[0]}, {}, folder.path()).out);
  BOOST_TEST(newest.out.find("\nPeak 992.00 MiB on GPU 0") != std::string::npos);
  auto json = nlohmann::json::parse(run({xlog_command(), "report", "--json"}, {}, folder.path()).out);
  BOOST_TEST(json["gpus"][0]["peak_bytes"] == 1040187392);
  BOOST_TEST(json["gpus"][0]["allocations"] == 52);
  BOOST_TEST(json["gpus"][0]["never_freed"][0]["bytes"] == 335544320);
  BOOST_TEST(json["processes"][0]["end_mark"] == true);
}

// Two processes on one GPU at a time: what they held together.
BOOST_AUTO_TEST_CASE(several_processes_are_one_run) {
  TempFolder folder;
  run({xlog_command(), "run", "--quiet", "--", "bash", "-c", program("demo") + " & " + program("demo") + "; wait"}, {}, folder.path());
  auto json = nlohmann::json::parse(run({xlog_command(), "report", "--json"}, {}, folder.path()).out);
  BOOST_TEST(json["processes"].size() == 2);
  BOOST_TEST(json["gpus"].size() == 1);
  BOOST_TEST(json["gpus"][0]["allocations"] == 104);
  BOOST_TEST(json["gpus"][0]["live_bytes"] == 671088640);
  BOOST_TEST(json["contradictions"] == 0);
}

BOOST_AUTO_TEST_CASE(as_the_first_process_of_a_container) {
  TempFolder folder;
  if (run({"unshare", "--pid", "--fork", "true"}).status != 0) {
    BOOST_TEST_MESSAGE("skipped: not allowed to make a pid namespace");
    return;
  }
  std::string first = "unshare --pid --fork --kill-child " + xlog_command() + " run --quiet -- ";
  Outcome ended = run({"bash", "-c", first + program("shutdown") + " kill"}, {}, folder.path());
  BOOST_TEST(ended.status == 128 + 9);
  Outcome told = run(
      {"bash", "-c",
       first + "bash -c '(sleep 0.1 &) ; trap \"echo got it; exit 5\" TERM; echo ready; for i in $(seq 100); do sleep 0.05; done' > out & "
               "until grep -q ready out; do sleep 0.02; done; kill -TERM $(pgrep -P $!); wait $!; echo $? >> out; cat out"},
      {}, folder.path());
  BOOST_TEST(told.out == "ready\ngot it\n5\n");
}

BOOST_AUTO_TEST_CASE(bad_logs_are_said_to_be_bad) {
  TempFolder folder;
  auto report = [&](const std::string& text) {
    spit(folder / "x.csv", text);
    return run({xlog_command(), "report", "x.csv"}, {}, folder.path());
  };
  std::string header =
      "thread,time,action,ptr,bytes,stream,device,tag,query_id,seq,generation,kind,api,result,message,live_bytes,elapsed_ns,stack_id,"
      "thread_name\n";
  BOOST_TEST(report("").out.find("the file is empty") != std::string::npos);
  BOOST_TEST(report("").status == 2);
  BOOST_TEST(report("a,b,c\n1,2,3\n").out.find("not an xlog log") != std::string::npos);
  BOOST_TEST(report("a,b,c\n1,2,3\n").status == 2);
  BOOST_TEST(report(header).out.find("\nNo device memory call is in the log.\n") != std::string::npos);
  BOOST_TEST(report(header).status == 0);
  Outcome foreign = report(header + "what is this\n1,1,allocate,0x200,512,,0,,,1,1,plain,cuMemAlloc_v2,ok,,512,10,,main\n");
  BOOST_TEST(foreign.out.find("1 line not of this log skipped") != std::string::npos);
  BOOST_TEST(foreign.out.find("peak 512 B") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_stood_at_an_address) {
  auto ask = [](const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {xlog_command(), "whatis"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run(command);
  };
  Outcome known = ask({"0x7f0000000123", "tests/golden/training"});
  BOOST_TEST(known.status == 0);
  BOOST_TEST(known.out.starts_with("0x7f0000000123 in "));
  BOOST_TEST(ask({"0x7f0020000000", "--at", "500us", "tests/golden/training"}).status == 1);
  BOOST_TEST(ask({"0x10", "tests/golden/training"}).status == 1);
  BOOST_TEST(ask({"nothing", "tests/golden/training"}).status == 2);
  BOOST_TEST(ask({"0x10", "--at", "soon", "tests/golden/training"}).status == 2);
  BOOST_TEST(ask({"0x10", "no/such/log"}).status == 2);
  BOOST_TEST(ask({}).status == 2);
}

// A terminal of 80 columns and 24 lines, by script(1).
BOOST_AUTO_TEST_CASE(on_a_terminal_there_are_colours_and_a_pager) {
  TempFolder folder;
  std::string log = std::filesystem::absolute("tests/golden/training");
  auto on_terminal = [&](const std::string& command, const Environment& with) {
    Environment all = {{"TERM", "xterm"}, {"COLUMNS", ""}};
    all.insert(with.begin(), with.end());
    std::string sized = "stty rows 24 cols 80; " + xlog_command() + " report " + command + " " + log;
    return run({"script", "-qec", sized, "/dev/null"}, all, folder.path()).out;
  };
  std::string paged = folder / "paged";
  std::string pager = "cat > " + paged;
  BOOST_TEST(on_terminal("", {{"XLOG_PAGER", pager}}).find("Out of memory") == std::string::npos);
  BOOST_TEST(slurp(paged).find("\x1b[1;31mGPU 0 (NVIDIA Example): 1 request refused") != std::string::npos, slurp(paged));
  BOOST_TEST(on_terminal("", {{"XLOG_PAGER", ""}, {"NO_COLOR", "1"}}).find("\x1b[1m") == std::string::npos);
  BOOST_TEST(on_terminal("", {{"XLOG_PAGER", ""}}).find("\x1b[1m") != std::string::npos);
  BOOST_TEST(on_terminal("", {{"XLOG_PAGER", "no-such-pager 2>/dev/null"}}).find("Out of memory") != std::string::npos);
  BOOST_TEST(run({xlog_command(), "report", log}).out.find('\x1b') == std::string::npos);
  BOOST_TEST(run({xlog_command(), "report", "--color", "always", log}).out.find("\x1b[1m") != std::string::npos);
}
