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
