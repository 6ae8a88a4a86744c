// What is typed and what is said: suggestions, versions, exports for a shell, completion, and sentences on names that are no log.
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <filesystem>

#include "support/process.h"

using namespace xlog::test;
namespace data = boost::unit_test::data;
namespace fs = std::filesystem;

namespace {

const std::string kXlog = build_folder() + "/xlog";
const char* const kCommands[] = {"run",    "report", "check", "diff",   "simulate",   "export",
                                 "whatis", "env",    "log",   "doctor", "completion", "help"};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// An answer that does not come is a failure, with status 124.
Outcome command(std::vector<std::string> arguments, const std::string& folder = "") {
  arguments.insert(arguments.begin(), {"timeout", "20", kXlog});
  return run(arguments, {}, folder);
}

bool is_here(const std::string& shell) { return run({"bash", "-c", "command -v " + shell}).status == 0; }

}  // namespace

BOOST_AUTO_TEST_CASE(what_is_nearly_right_is_suggested) {
  for (const auto& [arguments, want] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"reprt"}, "there is no command reprt; did you mean `report`? (xlog --help)"},
           {{"foo"}, "there is no command foo (xlog --help)"},
           {{"report", "--jsn"}, "report has no option --jsn; did you mean `--json`? (xlog report --help)"},
           {{"run", "--limt=8G", "--", "true"}, "run has no option --limt; did you mean `--limit`? (xlog run --help)"},
           {{"--vers"}, "there is no option --vers; did you mean `--version`? (xlog --help)"},
           {{"diff", "a", "b", "c"}, "diff does not take \"c\" (xlog diff --help)"},
           {{"run"}, "run: command is required (xlog run --help)"},
           {{"report", "--top", "-1"}, "report: --top: \"-1\" is no number of 0 or more (xlog report --help)"},
           {{"diff", "--top=-1", "a", "b"}, "diff: --top: \"-1\" is no number of 0 or more (xlog diff --help)"},
           {{"export", "rmm", "--device", "-1"}, "export: --device: \"-1\" is no number of 0 or more (xlog export --help)"},
           {{"log", "on", "-1"}, "log: pid: \"-1\" is no number of 0 or more (xlog log --help)"}}) {
    Outcome ours = command(arguments);
    BOOST_TEST(ours.status == 2);
    BOOST_TEST(ours.err == "xlog: " + want + '\n');
    BOOST_TEST(ours.out == "");
  }
}

BOOST_AUTO_TEST_CASE(every_command_says_its_version) {
  std::string version = slurp("VERSION");
  Outcome all = command({"--version"});
  BOOST_TEST(all.out == "xlog " + version);
  BOOST_TEST(all.status == 0);
  for (const char* each : kCommands) {
    BOOST_TEST(command({each, "--version"}).out == "xlog " + version, each);
  }
  BOOST_TEST(has(command({"help", "--man"}).out, "xlog " + version.substr(0, version.size() - 1)));
  Outcome alone = command({});
  BOOST_TEST(alone.status == 0);
  BOOST_TEST(has(alone.out, "xlog run -- COMMAND"));
  for (const char* each : kCommands) {
    BOOST_TEST(has(alone.out, std::string("\n  ") + each + ' '), each);
  }
}

BOOST_AUTO_TEST_CASE(exports_run_nothing_that_a_name_or_a_value_holds) {
  TempFolder folder;
  std::string name = "a'; touch X #\n`touch X`$(touch X)\\";
  fs::create_directories(folder / name);
  std::string value = "t'; touch X; '\"`touch X`$(touch X)";
  Outcome ours =
      run({"bash", "-c",
           "eval \"$(\"$0\" env --tag \"$1\" --query-id \"$1\" --log-max 1GiB -o \"$2\")\"; printf '%s|' \"$XLOG_TAG\" \"$XLOG_QUERY_ID\" "
           "\"$XLOG_LOG\"",
           kXlog, value, name},
          {}, folder / name);
  BOOST_TEST(ours.out == value + '|' + value + '|' + (folder / name) + '/' + name + "/|");
  BOOST_TEST(fs::is_empty(folder / name));
  // Nothing is printed before everything was checked.
  for (const auto& [environment, arguments] :
       std::vector<std::pair<Environment, std::vector<std::string>>>{{{{"XLOG_BUDGET", "8"}}, {kXlog, "env"}},
                                                                     {{}, {kXlog, "env", "--tag", std::string(200, 'x')}},
                                                                     {{{"XLOG_BUGDET", "8G"}}, {kXlog, "env"}}}) {
    Outcome refused = run(arguments, environment);
    BOOST_TEST(refused.status == 2);
    BOOST_TEST(refused.out == "");
    BOOST_TEST(refused.err != "");
  }
}

BOOST_AUTO_TEST_CASE(names_that_are_no_log_have_each_their_own_sentence) {
  TempFolder folder;
  fs::create_directories(folder / "empty");
  fs::create_directories(folder / "runs/xlog.a");
  fs::create_directories(folder / "other");
  fs::create_directories(folder / "one");
  spit(folder / "other/README", "");
  spit(folder / "other/x.csv", "a,b\n1,2\n");
  spit(folder / "one/README", "");
  for (const char* each : {"train.100.csv", "train.100.stacks.csv"}) {
    fs::copy(std::string("tests/golden/training/") + each, folder / "runs/xlog.a");
  }
  run({"mkfifo", "fifo"}, {}, folder.path());
  for (const auto& [name, want] : std::map<std::string, std::string>{
           {"empty", "empty: the folder is empty"},
           {"runs", "runs: no log is in the folder itself, but in 1 folder below it: name one, such as runs/xlog.a"},
           {"other", "other: none of the 2 files in the folder is a log"},
           {"one", "one: the one file in the folder is no log"},
           {"nowhere", "nowhere: no such file or folder"},
           {"other/README/x", "other/README/x: Not a directory"},
           {"fifo", "fifo is a FIFO, not a log"},
           {"/dev/null", "/dev/null is a device, not a log"}}) {
    for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{
             {"report"}, {"check", "--no-leaks"}, {"simulate", "--gpu", "1G"}, {"whatis", "0x10"}, {"export", "trace"}}) {
      std::vector<std::string> arguments = verb;
      arguments.push_back(name);
      Outcome ours = command(arguments, folder.path());
      BOOST_TEST(ours.status == 2, verb[0] << " " << name);
      BOOST_TEST(ours.err == "xlog: " + want + '\n');
    }
  }
  // Root may read everything: as another user, from a folder that user can reach.
  fs::permissions(folder.path(), fs::perms::all);
  fs::permissions(folder / "runs", fs::perms::none);
  Outcome locked = geteuid() == 0 ? run({"setpriv", "--reuid", "65534", "--clear-groups", kXlog, "report", "runs"}, {}, folder.path())
                                  : command({"report", "runs"}, folder.path());
  BOOST_TEST(locked.err == "xlog: runs: the folder cannot be read: Permission denied\n");
  fs::permissions(folder / "runs", fs::perms::all);
}

BOOST_AUTO_TEST_CASE(what_is_no_file_is_answered_at_once) {
  TempFolder folder;
  std::string log = fs::absolute("tests/golden/training/train.100.csv");
  run({"mkfifo", "fifo", "n.stacks.csv", "n.run.json"}, {}, folder.path());
  run({"chmod", "+x", "fifo"}, {}, folder.path());
  std::string rows = slurp(log);
  spit(folder / "n.csv", rows.substr(0, rows.rfind('\n') + 1));  // its last row is not whole
  for (const auto& [arguments, want] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"check", "--no-leaks", "--suppressions", "fifo", log}, "fifo is a FIFO, not a file"},
           {{"report", "--suppressions", "fifo", log}, "fifo is a FIFO, not a file"},
           {{"report", "--suppressions", ".", log}, ". is a folder, not a file"},
           {{"report", "--suppressions", "/dev/zero", log}, "/dev/zero is a device, not a file"},
           {{"check", "--baseline", "fifo", log}, "fifo is a FIFO, not a file"},
           {{"check", "--baseline", "/dev/zero", log}, "/dev/zero is a device, not a file"},
           {{"check", "--write-baseline", "fifo", "n.csv"}, "fifo is not written: it is no regular file"},
           {{"report", "--html", "fifo", "n.csv"}, "fifo is not written: it is no regular file"},
           {{"export", "folded", "-o", "fifo", "n.csv"}, "fifo is not written: it is no regular file"},
           {{"diff", "fifo", log}, "fifo is a FIFO, not a log"}}) {
    Outcome ours = command(arguments, folder.path());
    BOOST_TEST(ours.status == 2, arguments[0] << ' ' << arguments[1]);
    BOOST_TEST(has(ours.err, "xlog: " + want + '\n'), ours.err);
  }
  BOOST_TEST(command({"report", "n.csv"}, folder.path()).status == 0);
  Outcome examined = command({"doctor", "--", "./fifo"}, folder.path());
  BOOST_TEST(examined.status == 1);
  BOOST_TEST(has(examined.out, "./fifo is a FIFO, not a program"));
  BOOST_TEST(has(command({"doctor", "--", "."}, folder.path()).out, ". is a folder, not a program"));
  BOOST_TEST(command({"run", "--", "./fifo"}, folder.path()).status == 126);
}

BOOST_AUTO_TEST_CASE(a_byte_order_mark_is_no_fault) {
  TempFolder folder;
  std::string text = slurp("tests/golden/training/train.100.csv");
  spit(folder / "mark.csv", "\xef\xbb\xbf" + text);
  spit(folder / "plain.csv", text);
  BOOST_TEST(command({"report", "mark.csv"}, folder.path()).out.substr(0, 60) ==
             command({"report", "plain.csv"}, folder.path()).out.substr(0, 60));
  spit(folder / "wide.csv", std::string("\xff\xfet\0h\0r\0\n\0", 10));
  Outcome wide = command({"report", "wide.csv"}, folder.path());
  BOOST_TEST(has(wide.out + wide.err, "it was saved as UTF-16; save it as UTF-8"));
}

BOOST_AUTO_TEST_CASE(a_moment_outside_the_log_is_said_to_be) {
  const std::string log = "tests/golden/training";
  BOOST_TEST(has(command({"report", "--at", "999s", log}).err,
                 "xlog: --at 999s is after the last row, which is 13.0 ms after the first: what was live at the end follows\n"));
  BOOST_TEST(has(command({"report", "--at", "5", log}).err, "xlog: --at 5 is before the first row: nothing was live then"));
  BOOST_TEST(!has(command({"report", "--at", "1ms", log}).err, "--at"));
  BOOST_TEST(!has(command({"report", "--at", "end", log}).err, "--at"));
  BOOST_TEST(has(command({"whatis", "0x10", "--at", "999s", log}).err, "xlog: --at 999s is after the last row of "));
  BOOST_TEST(has(command({"whatis", "0x10", "--at", "5", log}).err, "xlog: --at 5 is before the first row of "));
  BOOST_TEST(!has(command({"whatis", "0x10", "--at", "1ms", log}).err, "--at"));
}

// The page of the log is one of those that a process has mapped, not the first.
BOOST_AUTO_TEST_CASE(each_mapped_control_file_is_tried) {
  TempFolder folder;
  if (run({"python3", "-c", ""}).status != 0) {
    BOOST_TEST_MESSAGE("skipped: no python3");
    return;
  }
  spit(folder / "maps.py",
       "import mmap, os, subprocess, sys\n"
       "kept = []\n"
       "for name, text in (('a', b'not a page of ours'), ('b', b'xlogctl1' + bytes(8)), ('c', b''), ('d', b'xlog')):\n"
       "  with open(name + '.control', 'wb+') as f:\n"
       "    f.write(text.ljust(4096, b'\\0')); f.flush()\n"
       "    kept.append(mmap.mmap(f.fileno(), 4096))\n"
       "p = subprocess.run([sys.argv[1], 'log', 'on', str(os.getpid())], capture_output=True, text=True)\n"
       "print(p.returncode, kept[1][8], p.stdout + p.stderr)\n");
  Outcome ours = run({"python3", "maps.py", kXlog}, {}, folder.path());
  BOOST_TEST(ours.out.starts_with("0 1 "), ours.out + ours.err);
  BOOST_TEST(has(ours.out, "the log " + (folder / "b.csv") + " will be on"), ours.out);
}

BOOST_AUTO_TEST_CASE(bash_completes_commands_options_and_values) {
  TempFolder folder;
  spit(folder / "script", command({"completion", "bash"}).out);
  fs::create_directories(folder / "logs");
  spit(folder / "lock", "");
  auto complete = [&](const std::string& words) {
    std::string out =
        run({"bash", "-c",
             "source ./script; set -- xlog " + words +
                 "; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _xlog; printf '%s\\n' \"${COMPREPLY[@]}\" | sort -u | tr '\\n' ' '"},
            {}, folder.path())
            .out;
    return out;
  };
  for (const auto& [words, want] :
       std::vector<std::pair<std::string, std::string>>{{"re", "report "},
                                                        {"--", "--help --version "},
                                                        {"run --back", "--backend --backtrace "},
                                                        {"run --backend ''", "async cache direct native "},
                                                        {"run --backend = as", "async "},
                                                        {"run --limit 8G --guard-check ''", "exit free launch "},
                                                        {"run -o lo", "logs "},
                                                        {"run --summary st", "stderr "},
                                                        {"run --summary lo", "lock logs "},
                                                        {"run --limit ''", " "},
                                                        {"run -- ls --al", " "},
                                                        {"run ls lo", "lock logs "},
                                                        {"run --limit 8G -- prin", "printenv printf "},
                                                        {"report lo", "lock logs "},
                                                        {"report --html lo", "lock logs "},
                                                        {"report --by st", "stack stream "},
                                                        {"export ''", "folded openmetrics pprof pytorch rmm speedscope trace "},
                                                        {"export --what peak fo", "folded "},
                                                        {"log ''", "off on "},
                                                        {"completion z", "zsh "},
                                                        {"check --no-l", "--no-leaks "}}) {
    BOOST_TEST(complete(words) == want, words << ": " << complete(words));
  }
  for (const char* each : kCommands) {
    BOOST_TEST(has(complete("''"), each), each);
    BOOST_TEST(has(complete(std::string(each) + " --"), "--version"), each);
  }
}

BOOST_AUTO_TEST_CASE(zsh_completes_commands_options_and_values) {
  if (!is_here("zsh") || !is_here("python3")) {
    BOOST_TEST_MESSAGE("skipped: no zsh, or no python3");
    return;
  }
  TempFolder folder;
  spit(folder / "script", command({"completion", "zsh"}).out);
  fs::create_directories(folder / "logs");
  Outcome ours = run({"python3", fs::absolute("tests/support/complete-zsh.py"), "./script", "xlog repo", "xlog run --backend as",
                      "xlog run --guard-ch", "xlog run --async-free=ord", "xlog export fol", "xlog report --by thr", "xlog run -o lo"},
                     {{"HOME", folder.path()}}, folder.path());
  BOOST_TEST(ours.out ==
                 "xlog report\nxlog run --backend async\nxlog run --guard-check\nxlog run --async-free=ordered\nxlog export folded\n"
                 "xlog report --by thread\nxlog run -o logs\n",
             ours.out + ours.err);
}

BOOST_AUTO_TEST_CASE(fish_completes_commands_options_and_values) {
  if (!is_here("fish")) {
    BOOST_TEST_MESSAGE("skipped: no fish");
    return;
  }
  TempFolder folder;
  spit(folder / "script", command({"completion", "fish"}).out);
  fs::create_directories(folder / "logs");
  for (const auto& [line, want] : std::vector<std::pair<std::string, std::string>>{{"xlog repo", "report "},
                                                                                   {"xlog run --backend ", "async cache direct native "},
                                                                                   {"xlog run --guard-ch", "--guard-check "},
                                                                                   {"xlog export --what ", "live peak total "},
                                                                                   {"xlog log ", "off on "},
                                                                                   {"xlog run -o lo", "logs/ "},
                                                                                   {"xlog report lo", "logs/ "}}) {
    Outcome ours = run({"fish", "--no-config", "-c", "source ./script; complete -C '" + line + "' | cut -f1 | sort | tr '\\n' ' '"},
                       {{"HOME", folder.path()}}, folder.path());
    BOOST_TEST(ours.out == want, line << ": " << ours.out << ours.err);
  }
}
