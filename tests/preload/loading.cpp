// The loader and us: programs whose own runtime starts before everything else, files that come and go, and whose function
// a program reaches when it asks for one.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <set>

#include "support/process.h"

using namespace xlog::test;
namespace data = boost::unit_test::data;

namespace {

// Builds a program of one source file, as its author would. "" when this compiler, or its sanitizer, is not here.
std::string build(const std::string& compiler, const std::string& flags, const std::string& source, const TempFolder& folder) {
  std::string out = folder / "program";
  const char* cuda = getenv("CUDA_HOME");
  Outcome built = run({"bash", "-c",
                       compiler + " -g -std=c++20 " + flags + " -I. -Itests -D__CUDA_API_VERSION_INTERNAL -isystem " +
                           (cuda != nullptr ? cuda : "/usr/local/cuda") + "/include " + source + " -o " + out + " -L" + build_folder() +
                           "/sim -Wl,--as-needed -lcuda -pthread"});
  return built.status == 0 ? out : "";
}

const Environment kSanitizers = {{"ASAN_OPTIONS", "protect_shadow_gap=0:detect_leaks=0"}};

}  // namespace

// A sanitizer's runtime replaces functions such as strcmp, and asks dlsym for the real ones before its own copies work.
BOOST_DATA_TEST_CASE(programs_with_a_sanitizer,
                     data::make({"g++", "clang++"}) * data::make({"address", "thread", "memory", "undefined"}) *
                         data::make({"demo", "nothing"}),
                     compiler, sanitizer, what) {
  TempFolder folder;
  std::string source = "tests/programs/demo.cpp";
  if (std::string(what) == "nothing") {
    source = folder / "nothing.cpp";
    spit(source, "int main() { return 0; }\n");
  }
  std::string program = build(compiler, std::string("-fsanitize=") + sanitizer, source, folder);
  Outcome native = program.empty() ? Outcome{-1, "", ""} : run({program}, kSanitizers);
  if (native.status != 0) {
    BOOST_TEST_MESSAGE("skipped: " << compiler << " has no such sanitizer here, or the program does not run without the library");
    BOOST_TEST((std::string(compiler) != "g++" || std::string(sanitizer) != "address"));
    return;
  }
  Environment with = kSanitizers;
  with["XLOG_LOG"] = folder / "log/";
  with["XLOG_BUDGET"] = "100%";
  // The shared runtimes of g++ have to be the first of all, which `xlog run` sees to.
  Outcome ours = run({build_folder() + "/xlog", "run", "--quiet", "--", program}, with, folder.path());
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.out == native.out);
  if (std::string(compiler) == "clang++") {  // its runtimes are part of the program
    Outcome preloaded = run_with_library({program}, with);
    BOOST_TEST(preloaded.status == 0);
    BOOST_TEST(preloaded.out == native.out);
  }
}

BOOST_AUTO_TEST_CASE(doctor_says_that_a_sanitizer_comes_first) {
  TempFolder folder;
  spit(folder / "nothing.cpp", "int main() { return 0; }\n");
  std::string program = build("g++", "-fsanitize=address", folder / "nothing.cpp", folder);
  BOOST_REQUIRE(program != "");
  std::string out = run({build_folder() + "/xlog", "doctor", "--", program}).out;
  BOOST_TEST(out.find("which must come first: xlog run names it before the library in LD_PRELOAD") != out.npos, out);
}

namespace {

const std::string kDoubles = build_folder() + "/programs/plugins/doubles.so";
const std::string kDriver = build_folder() + "/sim/libcuda.so.1";

void same(const std::vector<std::string>& command, const std::string& want, const Environment& with = {{"XLOG_LOG", "/dev/null"}}) {
  Outcome native = run(command);
  Outcome ours = run_with_library(command, with);
  BOOST_TEST(native.out == want);
  BOOST_TEST(ours.out == native.out);
  BOOST_TEST(ours.status == native.status);
}

std::string toolkit_stub() {
  const char* cuda = getenv("CUDA_HOME");
  return std::string(cuda != nullptr ? cuda : "/usr/local/cuda") + "/lib64/stubs/libcuda.so";
}

}  // namespace

// A plugin's function of a listed name is the plugin's, and asking for it changes nothing for anyone else.
BOOST_AUTO_TEST_CASE(a_double_is_reached_by_its_own_handle_alone) {
  same({program("comes_and_goes"), "linked", kDoubles},
       "linked before: 0\nthe double: cuMemAlloc_v2 999, cuInit 998\nlinked after: 0\nRTLD_DEFAULT: 0\n");
  same({program("reached"), "double_first", kDoubles, kDriver},
       "the double: cuMemAlloc_v2 999, cuInit 998\nthe driver: cuInit 0, 100 MiB 0\nthe double: cuMemAlloc_v2 999, cuInit 998\n");
}

BOOST_AUTO_TEST_CASE(the_results_of_nvml_are_its_own) {
  TempFolder folder;
  run({"cp", kDoubles, folder / "libnvidia-ml.so.1"});
  same({program("reached"), "nvml", folder / "libnvidia-ml.so.1"}, "nvmlDeviceGetMemoryInfo: 3\n_v2: 3\n");
}

// The limit is on the driver that works: cuInit of the toolkit's stub fails with 34.
BOOST_AUTO_TEST_CASE(a_driver_after_one_that_is_of_no_use) {
  std::vector<std::string> command{program("reached"), "in_turn", toolkit_stub(), kDriver};
  same(command, "a driver: cuInit 34, 100 MiB -1\na driver: cuInit 0, 100 MiB 0\n");
  Outcome limited = run_with_library(command, {{"XLOG_BUDGET", "64M"}});
  BOOST_TEST(limited.out == "a driver: cuInit 34, 100 MiB -1\na driver: cuInit 0, 100 MiB 2\n");
}

BOOST_AUTO_TEST_CASE(a_driver_that_is_closed_and_opened_again) {
  std::string once = "the driver: cuInit 0, 100 MiB 0\nclosed: 0\n";
  std::string refused = "the driver: cuInit 0, 100 MiB 2\nclosed: 0\n";
  std::vector<std::string> command{program("reached"), "again", kDriver};
  same(command, once + once + once);
  BOOST_TEST(run_with_library(command, {{"XLOG_BUDGET", "64M"}}).out == refused + refused + refused);
}

// Two call sites have two stacks, however often a library that neither is in was unloaded.
BOOST_AUTO_TEST_CASE(a_library_that_comes_and_goes_makes_no_stack_new) {
  TempFolder folder;
  Outcome ours = run_with_library({program("comes_and_goes"), "comes_and_goes", kDoubles}, {{"XLOG_LOG", folder / "x.csv"}});
  BOOST_TEST(ours.status == 0);
  auto rows = rows_of(log_in(folder));
  std::set<std::string> stacks;
  for (const Row& row : rows) {
    if (row.at("action") == "allocate" || row.at("action") == "deallocate") {
      stacks.insert(row.at("stack_id"));
    }
  }
  BOOST_TEST(count(rows, "action", "allocate") == 500);
  BOOST_TEST(stacks.size() == 2);
}

// 20,000 times with 300 files there: a walk over them in each dlclose took half a minute.
BOOST_AUTO_TEST_CASE(closing_does_not_look_at_all_files) {
  TempFolder folder;
  std::vector<std::string> command{program("comes_and_goes"), "close_many"};
  for (int i = 0; i < 300; ++i) {
    command.push_back(folder / ("m" + std::to_string(i) + ".so"));
    run({"cp", kDoubles, command.back()});
  }
  auto begin = std::chrono::steady_clock::now();
  BOOST_TEST(run_with_library(command, {{"XLOG_LOG", folder / "x.csv"}}).status == 0);
  BOOST_TEST((std::chrono::steady_clock::now() - begin < std::chrono::seconds(5)));
}

// A limit that does not hold says so.
BOOST_AUTO_TEST_CASE(a_library_in_front_that_keeps_calls_for_itself) {
  std::string ours = build_folder() + "/libxlog.so";
  std::string front = build_folder() + "/programs/plugins/in_front.so:" + ours;
  std::string line =
      "xlog: the limit does not hold: cuMemAlloc_v2 of in_front.so comes before this library's, so that calls do not arrive here\n";
  BOOST_TEST(run({program("sizes")}, {{"LD_PRELOAD", front}, {"XLOG_BUDGET", "1G"}}).err == line);
  BOOST_TEST(run({program("sizes")}, {{"LD_PRELOAD", front}, {"XLOG_LOG", "/dev/null"}}).err == "");
  // One that hands calls on is no reason to say anything.
  std::string counter = build_folder() + "/programs/plugins/counter.so:" + ours;
  BOOST_TEST(run({program("demo")}, {{"LD_PRELOAD", counter}, {"XLOG_BUDGET", "100%"}}).err == "counter: 52\n");
}

BOOST_AUTO_TEST_CASE(a_second_driver_is_the_programs_own) {
  TempFolder folder;
  run({"cp", kDriver, folder / "libcuda.so.1"});
  std::vector<std::string> command{program("reached"), "in_turn", kDriver, folder / "libcuda.so.1"};
  std::string line = "a driver: cuInit 0, 100 MiB 0\n";
  same(command, line + line);
  Outcome limited = run_with_library(command, {{"XLOG_BUDGET", "64M"}});
  BOOST_TEST(limited.out == "a driver: cuInit 0, 100 MiB 2\n" + line);
  BOOST_TEST(limited.err ==
             "xlog: the limit does not hold for a second driver (libcuda.so) that the program opened beside the one in use\n");
}
