// The library's own words, files and locks, where something comes between: closed and full descriptors, signals,
// cancelled threads, files that others change. The program gets what it gets without the library.
#include <boost/test/unit_test.hpp>

#include "support/process.h"

using namespace xlog::test;

namespace {

const std::string kProgram = program("interruptions");

// Runs a line of the shell in `folder`, where $OURS stands for the program under the library. Ended after 20 seconds.
Outcome shell(const std::string& line, const TempFolder& folder, Environment environment = {}) {
  environment["OURS"] = "env LD_PRELOAD=" + build_folder() + "/libxlog.so " + kProgram;
  return run({"timeout", "-s", "KILL", "20", "bash", "-c", line}, environment, folder.path());
}

// Each of these has something to say.
const Environment kTalkative[] = {{{"XLOG_SUMMARY", "stderr"}},
                                  {{"XLOG_VERBOSE", "1"}},
                                  {{"XLOG_LOG", "/proc/nowhere/x.csv"}},
                                  {{"XLOG_BUDGET", "64M"}, {"XLOG_SUMMARY", "stderr"}}};

}  // namespace

BOOST_AUTO_TEST_CASE(a_message_to_a_pipe_without_a_reader_ends_nobody) {
  TempFolder folder;
  for (const Environment& environment : kTalkative) {
    Outcome ours = shell("mkfifo pipe; exec 3<>pipe 4>pipe 3<&-; $OURS refused 2>&4; s=$?; rm pipe; exit $s", folder, environment);
    BOOST_TEST_CONTEXT(environment.begin()->first) {
      BOOST_TEST(ours.status == 0);
      BOOST_TEST(ours.out == "2\n");
    }
  }
}

BOOST_AUTO_TEST_CASE(a_message_to_a_full_pipe_or_socket_is_dropped) {
  TempFolder folder;
  for (const char* kind : {"os.pipe()", "[s.detach() for s in socket.socketpair()]"}) {
    for (const Environment& environment : kTalkative) {
      Outcome ours =
          run({"timeout", "-s", "KILL", "20", "python3", "-c", "import os, socket, subprocess, sys\nends = " + std::string(kind) + R"(
os.set_blocking(ends[1], False)
try:
  while True: os.write(ends[1], b"x" * 4096)
except BlockingIOError: pass
try:
  while True: os.write(ends[1], b"x")
except BlockingIOError: pass
os.set_blocking(ends[1], True)
sys.exit(subprocess.run(sys.argv[1:], stderr=ends[1], env=dict(os.environ, LD_PRELOAD=os.environ["OURS"])).returncode)
)",
               kProgram, "refused"},
              [&] {
                Environment all = environment;
                all["OURS"] = build_folder() + "/libxlog.so";
                return all;
              }());
      BOOST_TEST_CONTEXT(kind << ' ' << environment.begin()->first) {
        BOOST_TEST(ours.status == 0);
        BOOST_TEST(ours.out == "2\n");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_message_arrives_in_a_file_a_pipe_and_a_socket) {
  TempFolder folder;
  Outcome ours = shell("$OURS refused 2>file; $OURS refused 2> >(cat >pipe); sleep 0.2; grep -c 'out of memory' file pipe", folder,
                       {{"XLOG_SUMMARY", "stderr"}});
  BOOST_TEST(ours.out == "2\n2\nfile:1\npipe:1\n");
}

BOOST_AUTO_TEST_CASE(a_message_past_the_file_size_limit_raises_no_signal) {
  TempFolder folder;
  Outcome ours = shell("head -c 4096 /dev/zero >file; ulimit -f 4; $OURS refused 2>>file; s=$?; wc -c <file; exit $s", folder,
                       {{"XLOG_SUMMARY", "stderr"}});
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.out == "2\n4096\n");
}

BOOST_AUTO_TEST_CASE(no_message_goes_into_a_file_that_became_descriptor_2) {
  for (const Environment& environment : kTalkative) {
    TempFolder folder;
    Outcome ours = shell("$OURS data-file file; cat file", folder, environment);
    BOOST_TEST_CONTEXT(environment.begin()->first) { BOOST_TEST(ours.out == "descriptor 2\nDATAMORE"); }
  }
}

// Also where something of ours runs at exit: the driver may be inside a call then, with its locks held. What the C library makes
// of an exit inside malloc is the same without the library, so only a hang counts.
BOOST_AUTO_TEST_CASE(exit_in_a_signal_handler_ends_the_program) {
  for (const Environment& environment : {Environment{{"XLOG_LOG", "log/"}, {"XLOG_BACKTRACE", "off"}},
                                         {{"XLOG_LOG", "log/"}},
                                         {{"XLOG_QUARANTINE", "1G"}, {"XLOG_GUARD", "canary"}}}) {
    TempFolder folder;
    int hung = 0;
    for (int i = 0; i < 30 && hung == 0; ++i) {
      hung += shell("exec $OURS exit-in-handler " + std::to_string(5000 + i * 1777), folder, environment).status == 137 ? 1 : 0;
    }
    BOOST_TEST_CONTEXT(environment.begin()->first) { BOOST_TEST(hung == 0); }
  }
}

BOOST_AUTO_TEST_CASE(a_thread_with_a_cancellation_pending_comes_back_from_its_calls) {
  TempFolder folder;
  for (const char* budget : {"", "1G"}) {
    Environment environment{{"XLOG_LOG", folder / "log/"}, {"XLOG_VERBOSE", "1"}};
    if (*budget != '\0') {
      environment["XLOG_BUDGET"] = budget;
    }
    BOOST_TEST(shell("exec $OURS cancelled", folder, environment).out == "finished 1, goes on\n");
  }
}

// The log, the stacks and the control file are anybody's who may write to them.
BOOST_AUTO_TEST_CASE(files_that_others_cut_replace_or_remove_end_nobody) {
  for (const char* act : {"for f in log/*; do : > $f; done", "rm log/*", "for f in log/*; do rm $f; mkfifo $f; done",
                          "for f in log/*; do echo other > new; mv new $f; done", "truncate -s 100 log/*", "chmod 0 log/*"}) {
    for (const char* count : {"20", "3000"}) {
      TempFolder folder;
      Outcome ours = shell("$OURS paused " + std::string(count) + " go | while read line; do echo $line; [ $line = done ] || { " + act +
                               "; touch go; }; done; exit ${PIPESTATUS[0]}",
                           folder, {{"XLOG_LOG", "log/"}});
      BOOST_TEST_CONTEXT(act) {
        BOOST_TEST(ours.status == 0);
        BOOST_TEST(ours.out == "half\ndone\n");
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_log_that_was_cut_says_how_many_rows_it_lost) {
  TempFolder folder;
  Outcome ours = shell("$OURS paused 20 go | while read line; do [ $line = done ] || { : > log/*[0-9].csv; touch go; }; done", folder,
                       {{"XLOG_LOG", "log/"}});
  BOOST_TEST(ours.err.find("rows cannot be written; later rows are only counted") != std::string::npos);
  auto rows = rows_of(run({"bash", "-c", "echo -n log/*[0-9].csv"}, {}, folder.path()).out.insert(0, folder.path() + '/'));
  BOOST_REQUIRE(rows.size() == 1);
  BOOST_TEST(rows[0].at("action") == "lost");
  BOOST_TEST(std::stoi(rows[0].at("bytes")) >= 40);
}

// Rows and lost rows together are what was to be written.
BOOST_AUTO_TEST_CASE(a_slow_reader_of_a_fifo_is_told_how_many_rows_it_lost) {
  TempFolder folder;
  Outcome ours = shell(
      "mkfifo pipe; exec 4<>pipe; (until [ -e go ]; do sleep 0.01; done; exec cat) <pipe 4>&- >seen & "
      "XLOG_LOG=pipe $OURS paused 3000 go 4>&- | while read line; do echo $line; [ $line = done ] || { touch go; sleep 0.1; }; done; exec "
      "4>&-; wait",
      folder);
  BOOST_TEST(ours.out == "half\ndone\n");
  BOOST_TEST(std::count(ours.err.begin(), ours.err.end(), '\n') == 1);
  uint64_t written = 0;
  uint64_t lost = 0;
  for (const Row& row : rows_of(folder / "seen")) {
    bool counts = row.at("action") == "lost";
    lost += counts ? std::stoull(row.at("bytes")) : 0;
    written += counts ? 0 : 1;
  }
  BOOST_TEST(lost > 1000);
  BOOST_TEST(written + lost >= 12001);
  BOOST_TEST(written + lost <= 12020);
}

BOOST_AUTO_TEST_CASE(a_device_that_takes_nothing_costs_the_rows_and_says_so) {
  TempFolder folder;
  Outcome ours = shell("$OURS pairs 100", folder, {{"XLOG_LOG", "/dev/full"}});
  BOOST_TEST(ours.out == "done\n");
  BOOST_TEST(ours.err.find("log /dev/full: rows cannot be written; later rows are only counted, the program goes on\n") !=
             std::string::npos);
  BOOST_TEST(ours.err.find(" rows were lost, and it does not say so\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_full_disk_keeps_the_count_of_lost_rows) {
  for (const char* size : {"108k", "124k", "128k", "300k"}) {
    TempFolder folder;
    SmallDisk disk(folder.path(), "tmpfs", std::string("size=") + size);
    if (!disk.mounted()) {
      BOOST_TEST_MESSAGE("skipped: not allowed to mount");
      return;
    }
    BOOST_TEST(run_with_library({kProgram, "pairs", "3000"}, {{"XLOG_LOG", folder / "x.csv"}}).status == 0);
    size_t written = 0;
    uint64_t lost = 0;
    for (const Row& row : rows_of(log_in(folder))) {
      lost += row.at("action") == "lost" ? std::stoull(row.at("bytes")) : 0;
      written += row.at("action") == "lost" ? 0 : 1;
    }
    BOOST_TEST_CONTEXT(size) {
      BOOST_TEST(written + lost >= 6001);
      BOOST_TEST(written + lost <= 6020);
    }
  }
}

// As in a container, where each program is process 1, or in a folder where others can plant files.
BOOST_AUTO_TEST_CASE(files_of_another_run_are_not_taken_for_those_of_this_one) {
  for (const char* suffix : {".stacks.csv", ".run.json", ".control"}) {
    TempFolder folder;
    Outcome ours = shell("echo old > x.$$" + std::string(suffix) + "; exec $OURS pairs 10", folder, {{"XLOG_LOG", "x.csv"}});
    BOOST_TEST(ours.out == "done\n");
    BOOST_TEST(ours.err == "");
    size_t numbered = 0;
    for (const std::string& name : folder.files()) {
      numbered += name.find(".1.") != std::string::npos ? 1 : 0;
    }
    BOOST_TEST(folder.files().size() == 4);
    BOOST_TEST(numbered == 3);
  }
}

BOOST_AUTO_TEST_CASE(a_variable_in_the_name_of_a_log_leads_to_no_other_folder) {
  TempFolder folder;
  shell("mkdir in; exec $OURS pairs 1", folder, {{"XLOG_LOG", "in/%q{JOB}/x.csv"}, {"JOB", ".."}});
  BOOST_TEST(folder.files() == std::vector<std::string>{"in"});
}
