// `xlog run`: its options, what it says, what ends it, and what it leaves.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>

#include "support/process.h"
#include "tools/command/library_options.h"

using namespace xlog::test;
namespace fs = std::filesystem;

namespace {

const std::string kXlog = build_folder() + "/xlog";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t lines(const std::string& text) { return static_cast<size_t>(std::count(text.begin(), text.end(), '\n')); }

// Runs `xlog run OPTIONS -- COMMAND`.
Outcome xlog_run(const TempFolder& folder, std::vector<std::string> options, const std::vector<std::string>& command,
                 const Environment& environment = {}) {
  options.insert(options.begin(), {kXlog, "run"});
  options.push_back("--");
  options.insert(options.end(), command.begin(), command.end());
  return run(options, environment, folder.path());
}

// What is below the folder, but for folders.
std::vector<std::string> all_files(const std::string& folder, const std::string& suffix) {
  std::vector<std::string> found;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    if (each.is_regular_file() && each.path().native().ends_with(suffix)) {
      found.push_back(each.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> logs_below(const std::string& folder) {
  std::vector<std::string> found = all_files(folder, ".csv");
  std::erase_if(found, [](const std::string& each) { return each.ends_with(".stacks.csv"); });
  return found;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_option_of_the_library_has_a_flag) {
  TempFolder folder;
  std::vector<std::string> options;
  std::vector<std::string> wanted;
  for (const auto& each : xlog::tools::library_options()) {
    std::string flag = each.flags.substr(0, each.flags.find(','));
    std::string value = each.is_switch                          ? "1"
                        : each.is_path                          ? "/tmp/a name"
                        : each.row->form.starts_with("a size")  ? "64MiB"
                        : each.row->form.starts_with("text of") ? "a tag"
                        : each.words.empty()                    ? "no value is known"
                                                                : each.words.back();
    options.push_back(flag);
    if (!each.is_switch) {
      options.push_back(value);
    }
    wanted.push_back(std::string(each.row->name) + '=' + value);
  }
  BOOST_TEST(options.size() > 40);
  Outcome ours = xlog_run(folder, options, {"/usr/bin/env"});
  BOOST_TEST(ours.status == 0, ours.err);
  for (const std::string& each : wanted) {
    BOOST_TEST(has('\n' + ours.out, '\n' + each + '\n'), each);
  }
  BOOST_TEST(has(xlog_run(folder, {"--no-log", "--nvml=0"}, {"/usr/bin/env"}).out, "XLOG_NVML=0\n"));
  BOOST_TEST(
      has(xlog_run(folder, {"--guard-check", "sometimes"}, {"/usr/bin/env"}).err, "--guard-check: give free, exit, launch or launch:N"));
}

BOOST_AUTO_TEST_CASE(what_the_environment_sets_applies_and_is_said) {
  TempFolder folder;
  Outcome one = xlog_run(folder, {"--no-log"}, {program("info")}, {{"XLOG_BUDGET", "512MiB"}});
  BOOST_TEST(one.out.starts_with("device total 536870912\n"));
  BOOST_TEST(one.err == "xlog: XLOG_BUDGET=512MiB of the environment applies\n");
  Outcome two = xlog_run(folder, {"--no-log"}, {"true"}, {{"XLOG_BUDGET", "512MiB"}, {"XLOG_TAG", "t"}});
  BOOST_TEST(two.err == "xlog: XLOG_BUDGET=512MiB, XLOG_TAG=t of the environment apply\n");
  Outcome replaced = xlog_run(folder, {"--no-log", "--limit", "1GiB"}, {program("info")}, {{"XLOG_BUDGET", "512MiB"}});
  BOOST_TEST(replaced.out.starts_with("device total 1073741824\n"));
  BOOST_TEST(replaced.err == "");
  BOOST_TEST(xlog_run(folder, {"--no-log", "--quiet"}, {"true"}, {{"XLOG_TAG", "t"}}).err == "");
}

// The summary is on this run alone, whatever else is in the folder.
BOOST_AUTO_TEST_CASE(a_log_that_the_environment_names_is_summed_up) {
  TempFolder folder;
  Outcome lost = xlog_run(folder, {}, {program("demo")}, {{"XLOG_LOG", "nowhere/x.csv"}});
  BOOST_TEST(has(lost.err, "xlog: no log of this run is at XLOG_LOG=/"), lost.err);
  BOOST_TEST(lines(lost.err) == 3, lost.err);
  Outcome named = xlog_run(folder, {}, {program("demo")}, {{"XLOG_LOG", "x.%h.%r.%q{NONE}%t.csv"}});
  BOOST_TEST(has(named.err, "allocation calls: 84 calls"), named.err);
  fs::remove(logs_below(folder.path()).at(0));
  for (int i = 1; i <= 2; ++i) {
    Outcome ours = xlog_run(folder, {}, {program("demo")}, {{"XLOG_LOG", "a[b]%%/"}});
    std::vector<std::string> logs = logs_below(folder.path());
    BOOST_TEST(logs.size() == static_cast<size_t>(i));
    BOOST_TEST(has(ours.err, "peak 992.00 MiB, 320.00 MiB never freed"), ours.err);
    BOOST_TEST(has(ours.err, "allocation calls: 84 calls"), ours.err);
    BOOST_TEST(has(ours.err, "xlog: next: xlog report 'a[b]%/demo."), ours.err);
  }
  for (const std::string& each : all_files(folder.path(), ".stacks.csv")) {
    BOOST_TEST(has(slurp(each), ",main,"), each);
  }
}

BOOST_AUTO_TEST_CASE(the_log_goes_where_o_says) {
  TempFolder folder;
  for (int i = 1; i <= 2; ++i) {
    Outcome ours = xlog_run(folder, {"-o", "deep/er/o%d"}, {program("demo")}, {{"XLOG_LOG", "elsewhere/"}});
    BOOST_TEST(has(ours.err, "allocation calls: 84 calls"), ours.err);
    BOOST_TEST(logs_below(folder / "deep/er/o%d").size() == static_cast<size_t>(i));
  }
  BOOST_TEST(!fs::exists(folder / "elsewhere"));
  for (const char* made : {"deep", "deep/er", "deep/er/o%d"}) {
    BOOST_TEST((fs::status(folder / made).permissions() == fs::perms::owner_all), made);
  }
  BOOST_TEST(xlog_run(folder, {"-o", "x", "--no-log"}, {"true"}).status == 2);
  BOOST_TEST(xlog_run(folder, {"-o", "x", "--log", "y"}, {"true"}).status == 2);
}

BOOST_AUTO_TEST_CASE(a_limit_for_a_gpu_that_is_not_there_is_an_error_before_the_start) {
  TempFolder folder;
  auto limited = [&](const std::string& limit, const Environment& environment) {
    return xlog_run(folder, {"--no-log", "--limit", limit}, {"echo", "started"}, environment);
  };
  for (const char* limit : {"5=1G", "0=1G,2=1G", "GPU-0123abcd=1G"}) {
    Outcome ours = limited(limit, {{"XLOG_SIM_DEVICES", "2"}});
    BOOST_TEST(ours.status == 2, limit);
    BOOST_TEST(ours.out == "");
    BOOST_TEST(ours.err.starts_with("xlog: --limit " + std::string(limit) + ": "), ours.err);
    BOOST_TEST(has(ours.err, "sees 2 GPUs, numbers 0 to 1\n"), ours.err);
  }
  BOOST_TEST(limited("1=1G", {{"XLOG_SIM_DEVICES", "2"}}).out == "started\n");
  BOOST_TEST(has(limited("1=1G", {}).err, "there is no GPU 1; a program that is started here sees one GPU, number 0"));
  BOOST_TEST(has(xlog_run(folder, {"--no-log"}, {"echo"}, {{"XLOG_BUDGET", "7=1G"}}).err, "xlog: XLOG_BUDGET=7=1G: there is no GPU 7"));
  // What cannot be known is not complained of: no driver, one that does not start, one list for processes that see one GPU each.
  BOOST_TEST(limited("5=1G", {{"LD_LIBRARY_PATH", folder.path()}}).out == "started\n");
  BOOST_TEST(limited("5=1G", {{"XLOG_SIM_FAIL", "cuInit:1+:100"}}).out == "started\n");
  BOOST_TEST(limited("0=1G,5=1G", {{"CUDA_VISIBLE_DEVICES", "0"}}).out == "started\n");
}

BOOST_AUTO_TEST_CASE(signals_to_the_command_alone_reach_the_program_and_end_both) {
  TempFolder folder;
  if (run({"python3", "-c", ""}).status != 0) {
    BOOST_TEST_MESSAGE("skipped: no python3");
    return;
  }
  // A program that sets its own handler gets the signal also where the command was started with it ignored (nohup, `&` in a script).
  spit(folder / "drive.py",
       "import signal, subprocess, sys\n"
       "handles = '''import signal, sys, time\n"
       "for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, lambda *a: sys.exit(0))\n"
       "print(\"ready\", flush=True); time.sleep(60)'''\n"
       "dies = '''import signal, time\n"
       "for s in (signal.SIGINT, signal.SIGTERM): signal.signal(s, signal.SIG_DFL)\n"
       "print(\"ready\", flush=True); time.sleep(60)'''\n"
       "for number in (signal.SIGINT, signal.SIGTERM):\n"
       "  for program in (handles, dies):\n"
       "    for before in (signal.SIG_DFL, signal.SIG_IGN):\n"
       "      p = subprocess.Popen([sys.argv[1], 'run', '--quiet', '--no-log', '--', 'python3', '-c', program], stdout=subprocess.PIPE,\n"
       "                           preexec_fn=lambda: signal.signal(number, before))\n"
       "      p.stdout.readline()\n"
       "      p.send_signal(number)\n"
       "      print(p.wait(timeout=30), end=' ')\n");
  BOOST_TEST(run({"python3", folder / "drive.py", kXlog}, {}, folder.path()).out == "0 0 -2 -2 0 0 -15 -15 ");
}

BOOST_AUTO_TEST_CASE(where_no_folder_can_be_made_the_log_goes_elsewhere) {
  TempFolder folder;
  auto from_proc = [&](const Environment& environment) { return run({kXlog, "run", "--", program("demo")}, environment, "/proc"); };
  auto place = [](const Outcome& ours) {
    size_t at = ours.err.find(": the log goes to ");
    return at == std::string::npos ? "" : ours.err.substr(at + 18, ours.err.find('\n', at) - at - 18);
  };
  Outcome state = from_proc({{"XDG_STATE_HOME", folder / "state"}, {"HOME", folder / "home"}});
  BOOST_TEST(state.status == 0);
  BOOST_TEST(state.err.starts_with("xlog: no log folder can be made in /proc (no folder can be made there): the log goes to "), state.err);
  BOOST_TEST(place(state).starts_with(folder / "state/xlog/xlog.demo."));
  BOOST_TEST(logs_below(place(state)).size() == 1);
  BOOST_TEST((fs::status(place(state)).permissions() == fs::perms::owner_all));
  BOOST_TEST((fs::status(folder / "state/xlog").permissions() == fs::perms::owner_all));
  BOOST_TEST(has(state.err, "xlog: next: xlog report " + place(state)));
  Outcome home = from_proc({{"HOME", folder / "home"}});
  BOOST_TEST(place(home).starts_with(folder / "home/.local/state/xlog/xlog.demo."));
  // Whoever can write there can plant what he likes: a link, a folder of another's.
  for (const char* make : {"mkdir planted other && ln -s ../other planted/xlog", "rm planted/xlog && mkdir -m 777 planted/xlog",
                           "rm -r planted && echo > planted"}) {
    run({"bash", "-c", make}, {}, folder.path());
    std::string made = place(from_proc({{"XDG_STATE_HOME", folder / "planted"}}));
    BOOST_TEST(made.starts_with("/tmp/xlog.demo."), made);
    BOOST_TEST((fs::status(made).permissions() == fs::perms::owner_all));
    BOOST_TEST(logs_below(made).size() == 1);
    fs::remove_all(made);
  }
  BOOST_TEST(fs::is_empty(folder / "other"));
  Outcome named = run({kXlog, "run", "-o", "/proc/logs", "--", program("demo")}, {{"XDG_STATE_HOME", folder / "state"}});
  BOOST_TEST(named.err.starts_with("xlog: no log can be written in /proc/logs (no folder can be made there): the log goes to "), named.err);
  run({"bash", "-c",
       "mkdir gone && cd gone && rmdir ../gone && XDG_STATE_HOME=" + (folder / "last") + ' ' + kXlog + " run -- " + program("demo")},
      {}, folder.path());
  BOOST_TEST(logs_below(folder / "last").size() == 1);
}

BOOST_AUTO_TEST_CASE(a_percent_in_a_name_does_not_cost_the_log) {
  TempFolder folder;
  fs::create_directories(folder / "p%q 100%");
  fs::copy(program("demo"), folder / "p%q 100%/de%mo");
  Outcome ours = run({kXlog, "run", "./de%mo"}, {}, folder / "p%q 100%");
  BOOST_TEST(logs_below(folder.path()).size() == 1);
  BOOST_TEST(has(ours.err, "peak 992.00 MiB"), ours.err);
  run({"bash", "-c", "eval \"$(" + kXlog + " env)\"; ./de%mo"}, {}, folder / "p%q 100%");
  BOOST_TEST(logs_below(folder / "p%q 100%/xlog.logs").size() == 1);
  BOOST_TEST(has(xlog_run(folder, {"--log", "x%z"}, {"true"}).err, "after a % stands p, h, r, t or q{VARIABLE}"));
}

BOOST_AUTO_TEST_CASE(the_run_is_recorded_beside_each_log) {
  TempFolder folder;
  std::string script = program("demo") + "; " + program("demo") + "; exit 3";
  Outcome ours = xlog_run(folder, {"--quiet"}, {"bash", "-c", script});
  BOOST_TEST(ours.status == 3);
  std::vector<std::string> infos = all_files(folder.path(), ".run.json");
  BOOST_TEST(infos.size() == 2);
  for (const std::string& each : infos) {
    auto info = nlohmann::json::parse(slurp(each));
    BOOST_TEST(info["program"] == program("demo"));
    BOOST_TEST(info["run"]["program"] == "bash");
    BOOST_TEST((info["run"]["arguments"] == nlohmann::json{"bash", "-c", script}));
    BOOST_TEST(info["run"]["exit_status"] == 3);
    BOOST_TEST(info["run"]["host"] == info["host"]);
    BOOST_TEST(info["run"]["start_ns"].get<uint64_t>() <= info["start_ns"].get<uint64_t>());
    BOOST_TEST(info["run"]["duration_ns"].get<uint64_t>() > 0);
    BOOST_TEST((fs::status(each).permissions() == (fs::perms::owner_read | fs::perms::owner_write)));
  }
  TempFolder killed;
  xlog_run(killed, {"--quiet"}, {program("shutdown"), "segv"});
  BOOST_TEST(nlohmann::json::parse(slurp(all_files(killed.path(), ".run.json").at(0)))["run"]["signal"] == 11);
}

BOOST_AUTO_TEST_CASE(nothing_in_a_value_makes_a_line_of_its_own) {
  TempFolder folder;
  const std::string forged = "\nxlog: all is well \x1b[2J\xc2\x9b";
  Outcome refused = xlog_run(folder, {}, {"true"}, {{"XLOG_BUDGET", "8" + forged}});
  BOOST_TEST(refused.status == 2);
  BOOST_TEST(lines(refused.err) == 1, refused.err);
  BOOST_TEST(has(refused.err, "XLOG_BUDGET=8?xlog: all is well ?[2J?: "), refused.err);
  BOOST_TEST(lines(xlog_run(folder, {"--limit", "8" + forged}, {"true"}).err) == 1);
  BOOST_TEST(lines(xlog_run(folder, {"--no-log"}, {"true"}, {{"XLOG_TAG", forged}}).err) == 1);
  BOOST_TEST(lines(xlog_run(folder, {"--no-log"}, {"./no" + forged}).err) == 1);
  BOOST_TEST(lines(run({kXlog, "nothing" + forged}).err) == 1);
  // The library's own warnings.
  for (const Environment& each : {Environment{{"XLOG_BUDGET", "8" + forged}}, Environment{{"XLOG_BUDGETS" + forged, "1"}},
                                  Environment{{"XLOG_BACKTRACE", forged}, {"XLOG_BUDGET", "1G"}}}) {
    Outcome bare = run_with_library({program("info")}, each);
    BOOST_TEST(lines(bare.err) - (bare.status == 0 ? 0 : lines(run({program("info")}, {{"XLOG_SIM_FAIL", "cuInit:1+:1"}}).err)) == 1,
               bare.err);
    BOOST_TEST(!has(bare.err, "\nxlog: all is well"), bare.err);
    BOOST_TEST(!has(bare.err, "\x1b"));
  }
}
