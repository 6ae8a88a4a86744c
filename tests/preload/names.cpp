// The names in the reports on real programs: compiled here with templates and optimisation, with and without what says their
// names, in folders of strange names.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <set>
#include <sstream>

#include "support/process.h"
#include "tools/log/stacks.h"

using namespace xlog::test;
using xlog::tools::Frame;
using xlog::tools::StackFile;
namespace data = boost::unit_test::data;

namespace {

constexpr const char* kHeader = R"(
template <class T> struct device_vector {
  explicit device_vector(size_t n) { must(cuMemAlloc_v2(&p, n * sizeof(T))); }
  CUdeviceptr p = 0;
};
)";

constexpr const char* kProgram = R"(
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cstdlib>
inline void must(CUresult result) { if (result != CUDA_SUCCESS) abort(); }
#include "dv.h"
namespace thrust { template <class T> struct vector { explicit vector(size_t n) : inner(n) {} device_vector<T> inner; }; }
int main() {
  CUcontext context;
  must(cuInit(0));
  must(cuDevicePrimaryCtxRetain(&context, 0));
  must(cuCtxSetCurrent(context));
  device_vector<int> a(10 << 20);
  device_vector<int> b(20 << 20);
  thrust::vector<int> c(30 << 20);
  return 0;
}
)";

// A program that asks for 40, 80 and 120 MiB in lines 13, 14 and 15 of app.cpp; "" where the compiler is not there.
std::string build(const std::string& compiler, const std::string& flags, const std::string& folder) {
  std::filesystem::create_directories(folder);
  spit(folder + "/dv.h", kHeader);
  spit(folder + "/app.cpp", kProgram);
  const char* home = getenv("CUDA_HOME");
  std::string cuda = home != nullptr ? home : "/usr/local/cuda";
  std::string library = std::filesystem::absolute(build_folder() + "/sim");
  std::vector<std::string> command{compiler,  "-w", "-O2", "-Wl,--build-id", "-isystem", cuda + "/include",
                                   "app.cpp", "-o", "app", "-L" + library,   "-lcuda"};
  std::istringstream words(flags);
  for (std::string each; words >> each;) {
    command.push_back(each);
  }
  return run(command, {}, folder).status == 0 ? folder + "/app" : "";
}

std::string tool() { return std::filesystem::absolute(build_folder() + "/xlog"); }

// The one of its kind under `folder`; "" when there is none.
std::string stacks_in(const std::string& folder) {
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
    if (each.path().string().ends_with(".stacks.csv")) {
      return each.path();
    }
  }
  return "";
}

struct Run {
  TempFolder folder;
  std::string summary;
  std::string report(const std::vector<std::string>& options, const Environment& with = {}) const {
    std::vector<std::string> command{tool(), "report"};
    command.insert(command.end(), options.begin(), options.end());
    return ::run(command, with, folder.path()).out;
  }
};

void run_in(Run& out, const std::string& program, const std::vector<std::string>& options = {}, const Environment& with = {}) {
  std::vector<std::string> command{tool(), "run"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), {"--", program});
  Outcome outcome = run(command, with, out.folder.path());
  BOOST_TEST(outcome.status == 0, outcome.err);
  out.summary = outcome.err;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

// DWARF 4 of clang has no table of units by address.
BOOST_DATA_TEST_CASE(templates_are_named_with_the_line_that_uses_them,
                     data::make({"g++", "clang++"}) * data::make({"-g", "-gdwarf-4", "-g -gz"}), compiler, flags) {
  TempFolder folder;
  std::string program = build(compiler, flags, folder / "p");
  if (program.empty()) {
    BOOST_TEST_MESSAGE("skipped: no " << compiler);
    BOOST_TEST(std::string(compiler) != "g++");
    return;
  }
  Run run;
  run_in(run, program);
  BOOST_TEST(has(run.summary, "device_vector<int>::device_vector(unsigned long) dv.h:3 <- main app.cpp:13"), run.summary);
  BOOST_TEST(has(run.summary, "device_vector<int>::device_vector(unsigned long) dv.h:3 <- main app.cpp:14"), run.summary);
  BOOST_TEST(has(run.report({"--all-frames"}), "thrust::vector<int>::vector(unsigned long)  app.cpp:7\n"), run.report({"--all-frames"}));
  BOOST_TEST(has(run.report({"--full"}),
                 "... 1 frame of thrust, in thrust::vector<int>::vector(unsigned long)  app.cpp:7\n      main  app.cpp:15\n"));
  if (std::string(flags) != "-gdwarf-4") {
    return;
  }
  // As the binary tools say it, which take one file for another in version 5.
  StackFile stacks;
  stacks.read(stacks_in(run.folder.path()));
  for (uint64_t id = 1; id <= stacks.size(); ++id) {
    std::string ours;
    uint64_t offset = stacks.find(id)->frames[0]->offset;
    for (const Frame* each : stacks.find(id)->frames) {
      if (each->offset == offset) {
        ours += each->file + ':' + std::to_string(each->line) + '\n';
      }
    }
    std::ostringstream address;
    address << std::hex << offset;
    Outcome theirs =
        ::run({"bash", "-c", "addr2line -i -e '" + program + "' " + address.str() + " | sed 's/ (discriminator.*//; s:/[.]/:/:'"});
    BOOST_TEST(ours == theirs.out);
  }
}

BOOST_AUTO_TEST_CASE(without_lines_functions_are_named_and_without_names_addresses) {
  TempFolder folder;
  Run named;
  run_in(named, build("g++", "-fno-inline", folder / "p"));
  BOOST_TEST(has(named.summary, "device_vector<int>::device_vector(unsigned long) app (stack 1)"), named.summary);
  Run bare;
  run_in(bare, build("g++", "-s", folder / "q"));
  BOOST_TEST(has(bare.summary, "%  app+0x"), bare.summary);
  BOOST_TEST(!has(bare.summary, "libc.so"), bare.summary);
}

BOOST_AUTO_TEST_CASE(debug_information_may_be_beside_the_program) {
  TempFolder folder;
  std::string program = build("g++", "-g", folder / "p");
  run({"bash", "-c", "objcopy --only-keep-debug app app.debug && objcopy --strip-all --add-gnu-debuglink=app.debug app"}, {}, folder / "p");
  Run run;
  run_in(run, program);
  BOOST_TEST(has(run.summary, "dv.h:3 <- main app.cpp:13"), run.summary);
}

BOOST_DATA_TEST_CASE(names_are_found_in_a_folder_of_any_name,
                     data::make({"a,b", "\"q\"\",", "new\nline", "\xff\xfe", "%p%d%%", "sp ace", "\\x41", "\xc3\xa4"}), name) {
  TempFolder folder;
  std::string program = build("g++", "-g", folder / name);
  BOOST_REQUIRE(program != "");
  Run run;
  run_in(run, program);
  BOOST_TEST(has(run.summary, "dv.h:3 <- main app.cpp:13"), run.summary);
  if (std::string(name).find('%') == std::string::npos) {  // which begins a placeholder in the log's path
    Outcome inside = ::run({tool(), "run", "--", program}, {}, folder / name);
    BOOST_TEST(has(inside.err, "dv.h:3 <- main app.cpp:13"), inside.err);
  }
  StackFile stacks;
  stacks.read(stacks_in(run.folder.path()));
  BOOST_REQUIRE(stacks.find(1) != nullptr);
  BOOST_TEST((stacks.find(1)->frames[0]->module == std::filesystem::canonical(program).string()));
  BOOST_TEST((stacks.find(1)->frames[0]->file == std::filesystem::canonical(folder / name).string() + "/dv.h"));
  // As it was before the names, and what was written by the program itself.
  run_with_library({program}, {{"XLOG_LOG", folder / "raw/"}});
  StackFile raw;
  raw.read(stacks_in(folder / "raw"));
  BOOST_REQUIRE(raw.find(1) != nullptr);
  BOOST_TEST((raw.find(1)->frames[0]->module == std::filesystem::canonical(program).string()));
}

BOOST_AUTO_TEST_CASE(a_python_file_in_a_folder_of_any_name) {
  for (const char* name : {"a,\"b\"", "\xff\xfe", "new\nline", "\xc3\xa4 \\x41"}) {
    TempFolder folder;
    std::string script = folder / name + "/script.py";
    std::filesystem::create_directory(folder / name);
    std::filesystem::copy_file("tests/programs/python_frames.py", script);
    run_with_library({"python3", script}, {{"XLOG_LOG", folder / "log/"}});
    StackFile stacks;
    stacks.read(stacks_in(folder / "log"));
    bool found = false;
    for (uint64_t id = 1; id <= stacks.size(); ++id) {
      for (const Frame* each : stacks.find(id)->frames) {
        found = found || (each->module == "[python]" && each->file == script);
      }
    }
    BOOST_TEST(found, name);
  }
}

// What `make demo` shows.
BOOST_AUTO_TEST_CASE(the_holders_of_the_demonstration_have_names_of_their_own) {
  Run run;
  run_in(run, std::filesystem::absolute(program("demo")), {"--limit", "1G"});
  std::set<std::string> holders;
  std::istringstream lines(run.summary);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("xlog:   ")) {
      holders.insert(line.substr(line.find(" %  ") + 4));
      BOOST_TEST(has(line, " demo.cpp:"), line);
    }
  }
  BOOST_TEST(holders.size() == 3, run.summary);
  // Two of them have a line that was inlined into the function in which it stands.
  std::istringstream source(slurp("tests/programs/demo.cpp"));
  std::string line;
  for (int number = 1; std::getline(source, line); ++number) {
    if (has(line, "history.push_back(must_alloc") || has(line, "p = must_alloc(64")) {
      BOOST_TEST(has(run.summary, " demo.cpp:" + std::to_string(number)), run.summary);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_path_is_written_whole) {
  TempFolder folder;
  std::string deep = folder.path();
  for (int i = 0; i < 12; ++i) {
    deep += '/' + std::string(200, static_cast<char>('a' + i));
  }
  std::string program = build("g++", "-g", deep);
  BOOST_REQUIRE(program != "");
  Run run;
  run_in(run, program);
  BOOST_TEST(has(run.summary, "dv.h:3 <- main app.cpp:13"), run.summary);
}

BOOST_AUTO_TEST_CASE(names_come_from_the_cache_the_second_time) {
  TempFolder folder;
  std::string program = build("g++", "-g", folder / "p");
  Environment with{{"XDG_CACHE_HOME", folder / "cache"}};
  for (int i = 0; i < 2; ++i) {
    Run run;
    run_in(run, program, {}, with);
    BOOST_TEST(has(run.summary, "dv.h:3 <- main app.cpp:13"), run.summary);
    BOOST_TEST(std::filesystem::is_directory(folder / "cache/xlog"));
  }
}

namespace {

// Takes connections, counts them, and never answers.
class Silent {
 public:
  Silent() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    listen(socket_, 16);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~Silent() { close(socket_); }
  Silent(const Silent&) = delete;
  Silent& operator=(const Silent&) = delete;
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] bool was_asked() const {
    int connection = accept(socket_, nullptr, nullptr);
    if (connection >= 0) {
      close(connection);
    }
    return connection >= 0;
  }

 private:
  int socket_;
  int port_ = 0;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_server_is_asked_unless_it_is_wanted_and_then_not_for_ever) {
  TempFolder folder;
  std::string program = build("g++", "-s", folder / "p");
  Silent server;
  Environment with{{"DEBUGINFOD_URLS", server.url()}, {"HOME", folder.path()}};
  Run run;
  auto start = std::chrono::steady_clock::now();
  run_in(run, program, {}, with);
  run.report({}, with);
  BOOST_TEST(!server.was_asked());
  BOOST_TEST(seconds_since(start) < 20);
  if (::run({"bash", "-c", "/sbin/ldconfig -p | grep -q libdebuginfod.so.1"}).status != 0) {
    BOOST_TEST_MESSAGE("skipped: no libdebuginfod here");
    return;
  }
  start = std::chrono::steady_clock::now();
  run.report({"--debuginfod", "2"}, with);
  BOOST_TEST(server.was_asked());
  BOOST_TEST(seconds_since(start) < 10);
  Run allowed;
  start = std::chrono::steady_clock::now();
  run_in(allowed, program, {"--debuginfod", "2"}, with);
  BOOST_TEST(server.was_asked());
  BOOST_TEST(seconds_since(start) < 10);
}
