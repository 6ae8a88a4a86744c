// The program behaves as if the library were not there: same output, same exit status, whatever is switched on.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <regex>

#include "support/process.h"

using namespace xlog::test;
namespace data = boost::unit_test::data;

namespace {

const std::string kPlugins = build_folder() + "/programs/plugins";

std::vector<Environment> modes(const TempFolder& folder) {
  return {{},
          {{"XLOG_LOG", folder / "log/"}},
          {{"XLOG_BUDGET", "100%"}},
          {{"XLOG_BUDGET", "100%"}, {"XLOG_LOG", folder / "log/"}, {"XLOG_BACKTRACE", "off"}},
          {{"XLOG_BACKEND", "direct"}, {"XLOG_LOG", folder / "log/"}}};
}

bool is_direct(const Environment& mode) { return mode.count("XLOG_BACKEND") != 0; }

void same_in_every_mode(const std::vector<std::string>& command, const Environment& extra = {}) {
  Outcome native = run(command, extra);
  TempFolder folder;
  for (Environment mode : modes(folder)) {
    mode.insert(extra.begin(), extra.end());
    Outcome ours = run_with_library(command, mode);
    BOOST_TEST_CONTEXT(command[0] << (is_direct(mode) ? " direct" : "") << " log " << mode.count("XLOG_LOG") << " budget "
                                  << mode.count("XLOG_BUDGET")) {
      BOOST_TEST(ours.status == native.status);
      BOOST_TEST(ours.out == native.out);
      BOOST_TEST(ours.err == native.err);
    }
  }
}

}  // namespace

// Every answer of the driver that was recorded on an H100, but for the handle that async memory has under direct.
BOOST_AUTO_TEST_CASE(answers_of_the_driver) {
  Outcome native = run({program("conformance")});
  std::string recorded = slurp("tests/gpu/conformance.expected");
  BOOST_TEST(native.out == recorded);
  TempFolder folder;
  for (Environment mode : modes(folder)) {
    if (is_direct(mode)) {
      continue;  // async memory is plain memory there: IPC works, attributes say so
    }
    BOOST_TEST(run_with_library({program("conformance")}, mode).out == recorded);
  }
}

// C01, C02, C03
BOOST_AUTO_TEST_CASE(resolver_in_both_abis) {
  Outcome native = run({program("resolver")});
  TempFolder folder;
  for (Environment mode : modes(folder)) {
    if (!is_direct(mode)) {
      BOOST_TEST(run_with_library({program("resolver")}, mode).out == native.out);
    }
  }
  BOOST_TEST(native.out.find("linked: cuMemAllocFromPoolAsync_ptsz") != native.out.npos);
}

BOOST_AUTO_TEST_CASE(each_variant_is_logged_once_by_its_name) {
  TempFolder folder;
  run_with_library({program("resolver")}, {{"XLOG_LOG", folder / "x.csv"}});
  auto rows = rows_of(log_in(folder));
  BOOST_TEST(count(rows, "api", "cuMemAllocAsync") == 3);
  BOOST_TEST(count(rows, "api", "cuMemAllocAsync_ptsz") == 5);
  BOOST_TEST(count(rows, "api", "cuMemAllocFromPoolAsync_ptsz") == 1);
  BOOST_TEST(count(rows, "action", "allocate") == count(rows, "action", "deallocate"));
}

// C16
BOOST_AUTO_TEST_CASE(dlsym_keeps_scope_errno_and_dlerror) {
  Outcome native = run({program("loader"), kPlugins});
  BOOST_TEST(native.out.find("cuInit: 0") != native.out.npos);
  same_in_every_mode({program("loader"), kPlugins});
  TempFolder odd;  // a copy of the library at an odd path works alike
  std::string copy = odd / "libod d.so";
  run({"cp", build_folder() + "/libxlog.so", odd / "libodd.so.7"});
  BOOST_TEST(run_with_library({program("loader"), kPlugins}, {{"LD_PRELOAD", odd / "libodd.so.7"}}).out == native.out);
}

BOOST_AUTO_TEST_CASE(without_any_driver) {
  TempFolder empty;
  Environment none{{"LD_LIBRARY_PATH", empty.path()}};
  BOOST_TEST(run({program("loader"), kPlugins}, none).out.find("no driver") != std::string::npos);
  same_in_every_mode({program("loader"), kPlugins}, none);
}

// C18
BOOST_AUTO_TEST_CASE(stacks_where_taking_one_is_delicate) { same_in_every_mode({program("unwind"), kPlugins}); }

// C10, C12, C13, C15, C17, C29 without limits
BOOST_DATA_TEST_CASE(programs, data::make({"info", "unseen", "ordered"}), name) { same_in_every_mode({program(name)}); }

BOOST_AUTO_TEST_CASE(contexts_that_end) {
  Outcome native = run({program("reset")});
  TempFolder folder;
  for (const Environment& mode : modes(folder)) {
    if (!is_direct(mode)) {  // async memory is plain memory there: it ends with its context
      BOOST_TEST(run_with_library({program("reset")}, mode).out == native.out);
    }
  }
}

BOOST_AUTO_TEST_CASE(two_devices) { same_in_every_mode({program("devices")}, {{"XLOG_SIM_DEVICES", "2"}}); }

// C15: every way to end, with the driver there and gone when the exit handlers run.
BOOST_DATA_TEST_CASE(ends_of_a_process,
                     data::make({"return", "exit", "_exit", "quick_exit", "abort", "segv", "kill", "detached"}) * data::make({"0", "1"}),
                     how, gone) {
  same_in_every_mode({program("shutdown"), how}, {{"XLOG_SIM_DEINIT", gone}});
}

// C19
BOOST_AUTO_TEST_CASE(programs_that_know_nothing_of_cuda) {
  TempFolder folder;
  for (const std::vector<std::string>& command : {std::vector<std::string>{"/bin/true"},
                                                  {"/bin/false"},
                                                  {"bash", "-c", "ls / | wc -l"},
                                                  {"bash", "-c", "env -i /bin/echo hello; echo $?"},
                                                  {"bash", "-c", "(ulimit -n 20; ls /proc/self/fd | wc -l)"},
                                                  {"cat", "/dev/null"},
                                                  {"su", "--help"}}) {
    for (const Environment& mode :
         {Environment{}, Environment{{"XLOG_LOG", folder / "log.csv"}, {"XLOG_BUDGET", "1G"}, {"XLOG_VERBOSE", "1"}}}) {
      Outcome native = run(command, {}, folder.path());
      Outcome ours = run_with_library(command, mode, folder.path());
      BOOST_TEST(ours.status == native.status);
      BOOST_TEST(ours.out == native.out);
      BOOST_TEST(ours.err == native.err);
    }
  }
  BOOST_TEST(folder.files().empty());
}

BOOST_AUTO_TEST_CASE(a_program_that_uses_the_gpu_without_options_leaves_nothing) {
  TempFolder folder;
  Outcome ours = run_with_library({program("demo")}, {}, folder.path());
  BOOST_TEST(ours.err.empty());
  BOOST_TEST(folder.files().empty());
}

// Another interposer, before us and behind us, sees each call once; so do we.
BOOST_AUTO_TEST_CASE(other_interposers) {
  std::string counter = kPlugins + "/counter.so";
  std::string ours = build_folder() + "/libxlog.so";
  for (const std::string& order : {ours + ":" + counter, counter + ":" + ours}) {
    TempFolder folder;
    Outcome result = run_with_library({program("demo")}, {{"LD_PRELOAD", order}, {"XLOG_LOG", folder / "x.csv"}});
    auto rows = rows_of(log_in(folder));
    BOOST_TEST(result.err == "counter: 52\n");
    BOOST_TEST(count(rows, "action", "allocate") == 52);
  }
}

// A stub that comes back to us through dlsym: the second time round is the driver's.
BOOST_AUTO_TEST_CASE(a_library_that_forwards_to_us) {
  for (const std::string& order :
       {build_folder() + "/libxlog.so:" + kPlugins + "/forwarder.so", kPlugins + "/forwarder.so:" + build_folder() + "/libxlog.so"}) {
    TempFolder folder;
    Outcome native = run({program("demo")});
    Outcome ours = run_with_library({program("demo")}, {{"LD_PRELOAD", order}, {"XLOG_LOG", folder / "x.csv"}});
    BOOST_TEST(ours.status == native.status);
    BOOST_TEST(ours.out == native.out);
    BOOST_TEST(count(rows_of(log_in(folder)), "action", "allocate") == 52);
  }
}

// C18: a handler that allocates, whatever it interrupts: forwarded, never a deadlock, and the log stays in order.
BOOST_AUTO_TEST_CASE(handlers_that_allocate) {
  TempFolder folder;
  const char* rounds = getenv("XLOG_STORMS");
  std::string handlers = rounds != nullptr ? rounds : "5000";
  Outcome ours = run_with_library({program("signals"), handlers},
                                  {{"LD_LIBRARY_PATH", build_folder() + "/noop"}, {"XLOG_LOG", folder / "x.csv"}, {"XLOG_BUDGET", "1G"}});
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.out == "handlers ran: " + handlers + "\n");
  BOOST_TEST(run({build_folder() + "/xlog", "report", "--verify", log_in(folder)}).status == 0);
}

// C14, C18, so often as XLOG_STORMS says. A child has no log of its own but when it allocates, here in a directory.
BOOST_AUTO_TEST_CASE(storms) {
  const char* given = getenv("XLOG_STORMS");
  std::string rounds = given != nullptr ? given : "100";
  TempFolder folder;
  Outcome ours = run_with_library({program("storms"), kPlugins, rounds},
                                  {{"LD_LIBRARY_PATH", build_folder() + "/noop"}, {"XLOG_LOG", folder / "run/"}, {"XLOG_BUDGET", "1G"}});
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.err == "");
  std::string out = std::regex_replace(ours.out, std::regex("in a constructor: 0\n"), "");
  BOOST_TEST(out == "libraries that come and go: " + rounds + "\nconstructors that allocate: " + rounds +
                        "\nthreads that free when they are gone: " + rounds + "\nchildren: " + rounds + "\n");
  Outcome verified = run({build_folder() + "/xlog", "report", "--verify", folder / "run"});
  BOOST_TEST(verified.status == 0, verified.out);
}

// The README's bound on what an entry takes of the caller's stack.
BOOST_AUTO_TEST_CASE(the_stack_of_an_entry) {
  TempFolder folder;
  Outcome native = run({program("stack_depth")});
  Outcome ours = run_with_library({program("stack_depth")}, {{"XLOG_LOG", folder / "x.csv"}, {"XLOG_BUDGET", "1G"}});
  BOOST_REQUIRE(native.status == 0);
  BOOST_REQUIRE(ours.status == 0);
  BOOST_TEST_MESSAGE("natively " << native.out << "under the library " << ours.out);
  BOOST_TEST(std::stol(ours.out) - std::stol(native.out) <= 12 * 1024);
}

BOOST_AUTO_TEST_CASE(descriptors_are_the_programs) {
  TempFolder folder;
  for (const std::string& log : {folder / "log.csv", std::string("/dev/null")}) {
    Outcome native = run({program("descriptors"), folder / "own"});
    Outcome ours = run_with_library({program("descriptors"), folder / "own"}, {{"XLOG_LOG", log}});
    BOOST_TEST(ours.out == native.out);
    BOOST_TEST(ours.status == native.status);
  }
}
