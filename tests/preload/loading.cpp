// The loader and us: programs whose own runtime starts before everything else, files that come and go, and whose function
// a program reaches when it asks for one.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

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
