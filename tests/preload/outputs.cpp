// Where the commands write: files of their owner's that are whole or not there, and standard output that is full.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/log_text.h"

using namespace xlog::test;

namespace {

Outcome shell(const std::string& command, const TempFolder& folder) {
  return run({"bash", "-c", "xlog() { " + build_folder() + "/xlog \"$@\"; }; " + command}, {}, folder.path());
}

void write_log(const TempFolder& folder) {
  LogText log;
  log.allocate({.ptr = 0x1000, .bytes = 100, .stack = 1}).allocate({.ptr = 0x2000, .bytes = 200, .stack = 2});
  log.free({.ptr = 0x2000, .bytes = 200}).mark(xlog::action::exit).write(folder);
}

// All that writes a file from a log; FILE stands for its name.
const std::vector<std::string> kWriters = {
    "xlog report --html FILE x.csv",          "xlog check --max-peak 1G --write-baseline FILE x.csv >&2",
    "xlog export folded -o FILE x.csv",       "xlog export trace -o FILE x.csv",
    "xlog export trace --gzip -o FILE x.csv", "xlog export rmm -o FILE x.csv",
    "xlog export speedscope -o FILE x.csv",   "xlog export pprof -o FILE x.csv",
    "xlog export pytorch -o FILE x.csv",      "xlog export openmetrics -o FILE x.csv"};

std::string to(std::string writer, const std::string& file) { return writer.replace(writer.find("FILE"), 4, file); }

}  // namespace

BOOST_AUTO_TEST_CASE(files_are_their_owners_alone) {
  for (const std::string& writer : kWriters) {
    TempFolder folder;
    write_log(folder);
    spit(folder / "out", "before");
    chmod((folder / "out").c_str(), 0644);
    BOOST_TEST(shell("umask 0; " + to(writer, "out"), folder).status == 0, writer);
    struct stat info {};
    BOOST_TEST(stat((folder / "out").c_str(), &info) == 0);
    BOOST_TEST((info.st_mode & 07777) == 0600, writer);
    BOOST_TEST(slurp(folder / "out") != "before");
    BOOST_TEST(folder.files().size() == 3, writer);  // the log, its stacks, and this
  }
}

BOOST_AUTO_TEST_CASE(links_and_pipes_are_refused) {
  for (const std::string& writer : kWriters) {
    TempFolder folder;
    write_log(folder);
    spit(folder / "precious", "precious");
    BOOST_TEST(symlink("precious", (folder / "link").c_str()) == 0);
    BOOST_TEST(symlink("nowhere", (folder / "dangling").c_str()) == 0);
    BOOST_TEST(mkfifo((folder / "pipe").c_str(), 0600) == 0);
    for (const char* target : {"link", "dangling", "pipe", ".", "no/folder"}) {
      Outcome refused = shell("timeout 20 " + build_folder() + to(writer, target).replace(0, 4, "/xlog"), folder);
      BOOST_TEST(refused.status == 2, writer << ' ' << target);
      BOOST_TEST(refused.err.starts_with(std::string("xlog: ") + target), refused.err);
    }
    BOOST_TEST(slurp(folder / "precious") == "precious");
    BOOST_TEST(folder.files().size() == 6, writer);
  }
}

BOOST_AUTO_TEST_CASE(names_that_a_shell_gives) {
  TempFolder folder;
  write_log(folder);
  std::string folded = "main;f1 100\nmain;f2 200\n";
  for (const char* target : {"-", "/dev/stdout", "/dev/fd/1", ">(cat)"}) {
    BOOST_TEST(shell(std::string("xlog export folded -o ") + target + " x.csv; sleep 0.2", folder).out == folded, target);
  }
  BOOST_TEST(shell("xlog export folded -o /dev/null x.csv", folder).status == 0);
  BOOST_TEST(shell("xlog check --no-leaks --suppressions <(echo leak:f1) x.csv", folder).status == 0);
  BOOST_TEST(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  Outcome waits = shell("timeout 20 " + build_folder() + "/xlog check --no-leaks --suppressions pipe x.csv", folder);
  BOOST_TEST(waits.status == 2);
  BOOST_TEST(waits.err == "xlog: pipe is a FIFO, not a file\n");
  BOOST_TEST(shell("timeout 20 " + build_folder() + "/xlog check --baseline pipe x.csv", folder).status == 2);
}

// A command that says nothing is no answer.
BOOST_AUTO_TEST_CASE(standard_output_that_is_full) {
  TempFolder folder;
  write_log(folder);
  std::vector<std::string> commands = {"xlog report x.csv",
                                       "xlog report --json x.csv",
                                       "xlog report --at peak x.csv",
                                       "xlog report --by stack x.csv",
                                       "xlog report --oom x.csv",
                                       "xlog report --verify x.csv",
                                       "xlog check --max-peak 1G x.csv",
                                       "xlog check --max-peak 1G --json x.csv",
                                       "xlog diff x.csv x.csv",
                                       "xlog simulate --gpu 1G x.csv",
                                       "xlog whatis 0x1000 x.csv",
                                       "xlog doctor",
                                       "xlog help",
                                       "xlog completion bash",
                                       "xlog --help"};
  for (const std::string& writer : kWriters) {
    commands.push_back(to(writer, "-"));
    commands.push_back(to(writer, "/dev/full"));
  }
  for (const std::string& command : commands) {
    Outcome full = shell(command.substr(0, command.find(" >&2")) + " > /dev/full", folder);
    BOOST_TEST(full.status == 2, command);
    BOOST_TEST(full.err.find(" cannot be written") != std::string::npos, command << ": " << full.err);
    BOOST_TEST(std::count(full.err.begin(), full.err.end(), '\n') == 1, command << ": " << full.err);
  }
}

BOOST_AUTO_TEST_CASE(a_disk_that_is_full_keeps_nothing) {
  TempFolder folder;
  write_log(folder);
  std::string disk = folder / "disk";
  mkdir(disk.c_str(), 0700);
  SmallDisk small(disk, "tmpfs", "size=4096,mode=0700");
  if (!small.mounted()) {
    BOOST_TEST_MESSAGE("skipped: not allowed to mount");
    return;
  }
  spit(disk + "/page", "the old page");
  Outcome full = shell("xlog report --html disk/page x.csv", folder);
  BOOST_TEST(full.status == 2);
  BOOST_TEST(full.err == "xlog: disk/page cannot be written: No space left on device\n");
  BOOST_TEST(slurp(disk + "/page") == "the old page");
  BOOST_TEST(shell("ls disk", folder).out == "page\n");
}
