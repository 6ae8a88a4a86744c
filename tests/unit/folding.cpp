// Whose a frame is, and how a stack is shown and named.
#include <boost/test/unit_test.hpp>
#include <deque>
#include <filesystem>

#include "runtime/record/event.h"
#include "support/log_text.h"
#include "tools/analysis/diff.h"
#include "tools/log/libraries.h"
#include "tools/report/report.h"
#include "tools/report/stack_text.h"

using namespace xlog;
using namespace xlog::tools;
using test::LogText;
using test::TempFolder;

namespace {

std::string level_of(const Ownership& it) {
  constexpr const char* kLevels[] = {"own", "library", "support", "plumbing"};
  return kLevels[static_cast<size_t>(it.level)] + (it.owner.empty() ? "" : ": " + it.owner);
}

std::string of(const std::string& module, const std::string& function, const std::string& file = "") {
  return level_of(ownership_of({.module = module, .build_id = "", .function = function, .file = file}));
}

std::string of_python(const std::string& file) { return of(std::string(kPythonModule), "f", file); }

std::string row(int stack, int depth, const std::string& module, const std::string& function, const std::string& file, int line) {
  return std::to_string(stack) + ',' + std::to_string(depth) + ',' + module + ",ab,0x" + std::to_string(100 * stack + depth) + ',' +
         function + ',' + file + ',' + std::to_string(line) + '\n';
}

// Each of the stacks has allocated and holds its number of MiB.
Report report_of(const TempFolder& folder, const std::string& stacks, int count) {
  LogText log;
  for (int i = 1; i <= count; ++i) {
    log.allocate({.ptr = static_cast<uint64_t>(i) << 24, .bytes = static_cast<uint64_t>(i) << 20, .stack = static_cast<uint64_t>(i)});
  }
  log.write(folder);
  test::spit(folder / "x.stacks.csv", std::string(kStackColumns) + '\n' + stacks);
  test::spit(folder / "x.run.json", R"({"environment": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}})");
  std::vector<std::string> problems;
  return analyse(find_logs({folder / "x.csv"}, problems), {.resolve = false});
}

std::string name(const Report& report, uint64_t stack) {
  for (size_t i = 0; i < report.places.size(); ++i) {
    if (report.places[i].stack == stack) {
      return holder_name(report, static_cast<uint32_t>(i));
    }
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(whose_a_frame_is) {
  BOOST_TEST(of("/home/me/app", "main") == "own");
  BOOST_TEST(of("/usr/bin/app", "load(int)") == "own");
  BOOST_TEST(of("/home/me/libmodel.so", "load(int)") == "own");
  BOOST_TEST(of("/home/me/app", "thrust::device_vector<int>::device_vector(unsigned long)") == "library: thrust");
  BOOST_TEST(of("/home/me/app", "void thrust::detail::f<user::g>(int)") == "support: thrust");
  BOOST_TEST(of("/home/me/app", "std::vector<thrust::a> user::make<std::b>()") == "own");
  BOOST_TEST(of("/home/me/app", "cub::DeviceScan::f()") == "library: cub");
  BOOST_TEST(of("/home/me/app", "rmm::mr::pool_memory_resource::allocate(unsigned long)") == "support: RMM");
  BOOST_TEST(of("/home/me/app", "std::vector<int>::vector(unsigned long)") == "support: the C++ library");
  BOOST_TEST(of("/home/me/app", "__gnu_cxx::new_allocator<int>::allocate()") == "support: the C++ library");
  BOOST_TEST(of("/home/me/app", "libcudart_static_5382377d5c772c9d197c0cda9fd9742ee6ad893c") == "plumbing: the CUDA runtime");
  BOOST_TEST(of("/home/me/app", "cudaMalloc") == "plumbing: the CUDA runtime");
  BOOST_TEST(of("/home/me/app", "cudaError cudaMalloc<float>(float**, unsigned long)") == "plumbing: the CUDA runtime");
  BOOST_TEST(of("/home/me/app", "cudaMallocOrDie(unsigned long)") == "own");
  BOOST_TEST(of("/home/me/app", "_start") == "plumbing: the C library");
  BOOST_TEST(of("/home/me/app", "_start_training(int)") == "own");
  BOOST_TEST(of("/lib/x86_64-linux-gnu/libc.so.6", "__libc_start_call_main") == "plumbing: the C library");
  BOOST_TEST(of("/usr/bin/python3.12", "_PyEval_EvalFrameDefault") == "plumbing: Python");
  BOOST_TEST(of("/usr/lib/python3/dist-packages/torch/lib/libtorch_cpu.so", "at::native::addmm()") == "library: PyTorch");
  BOOST_TEST(of("/x/libtorch_cuda.so", "at::_ops::empty::call()") == "support: PyTorch");
  BOOST_TEST(of("/v/lib/python3.12/site-packages/nvidia/cublas/lib/libcublas.so.12", "cublasCreate") == "library: nvidia");
  BOOST_TEST(of("/usr/local/cuda/lib64/libcublas.so.12.6", "cublasCreate") == "library: libcublas.so");
  BOOST_TEST(of("/home/me/app", "Eigen::MatrixXd::f()", "/usr/include/eigen3/Eigen/Core") == "library: eigen3");
  BOOST_TEST(of_python("/home/me/train.py") == "own");
  BOOST_TEST(of_python("<stdin>") == "own");
  BOOST_TEST(of_python("<frozen runpy>") == "plumbing: Python");
  BOOST_TEST(of_python("/usr/lib/python3.12/threading.py") == "library: Python's library");
  BOOST_TEST(of_python("/v/lib/python3.12/site-packages/torch/nn/linear.py") == "library: PyTorch");
  BOOST_TEST(of_python("/v/lib/python3.12/site-packages/mypkg/a.py") == "library: mypkg");
}

BOOST_AUTO_TEST_CASE(a_source_file_of_this_folder_is_the_program_s_wherever_its_library_is) {
  std::string here = std::filesystem::current_path();
  BOOST_TEST(of("/usr/local/lib/libmine.so", "f()", here + "/src/f.cpp") == "own");
  BOOST_TEST(of("/usr/local/lib/libmine.so", "f()", here + "-other/src/f.cpp") == "library: libmine.so");
  BOOST_TEST(of("/usr/local/lib/libmine.so", "thrust::f()", here + "/src/f.cpp") == "library: thrust");
  BOOST_TEST(of_python(here + "/venv/lib/python3.12/site-packages/numpy/core.py") == "library: numpy");
}

BOOST_AUTO_TEST_CASE(what_a_library_has_between_the_program_s_own_frames_is_a_line) {
  std::deque<Frame> frames;
  Stack stack;
  auto add = [&](const char* module, const char* function) {
    frames.push_back({.module = module, .build_id = "", .function = function, .file = "a.cpp", .line = 7});
    stack.frames.push_back(&frames.back());
  };
  add("/usr/lib/libcuda.so.1", "cuMemAlloc");
  add("/home/me/app", "cudaMalloc");
  add("/home/me/app", "thrust::detail::allocate()");
  add("/home/me/app", "thrust::device_vector<int>::device_vector(unsigned long)");
  add("/home/me/app", "load(int)");
  add("/home/me/app", "std::function<void ()>::operator()() const");
  add("/home/me/app", "main");
  add("/lib/libc.so.6", "__libc_start_call_main");
  add("/home/me/app", "_start");
  BOOST_TEST(stack_text(&stack, {}, false, 3, "") ==
             "... 4 frames of thrust, in thrust::device_vector<int>::device_vector(unsigned long)  a.cpp:7\n"
             "load(int)  a.cpp:7\n"
             "... 1 frame of the C++ library, in std::function<void ()>::operator()() const  a.cpp:7\n"
             "main  a.cpp:7\n");
  std::string all = stack_text(&stack, {}, true, 3, "");
  BOOST_TEST(std::count(all.begin(), all.end(), '\n') == 9);
  BOOST_TEST(library_of(&stack, {}) == "app");
}

BOOST_AUTO_TEST_CASE(holders_have_names_of_their_own) {
  TempFolder folder;
  std::string app = "/home/me/app";
  std::string torch = "/v/site-packages/torch/lib/libtorch_cuda.so";
  std::string stacks;
  // A header's function is named with the file that calls it; of two with the same, the callers follow.
  stacks += row(1, 0, app, "vec::vec()", "vec.h", 4) + row(1, 1, app, "main", "app.cpp", 12);
  stacks += row(2, 0, app, "load()", "app.cpp", 30) + row(2, 1, app, "run()", "app.cpp", 40) + row(2, 2, app, "main", "app.cpp", 12);
  stacks += row(3, 0, app, "load()", "app.cpp", 30) + row(3, 1, app, "run()", "app.cpp", 40) + row(3, 2, app, "main", "app.cpp", 13);
  // What differs within a library.
  stacks += row(4, 0, torch, "at::native::relu()", "", 0) + row(4, 1, app, "step()", "app.cpp", 50) + row(4, 2, app, "main", "app.cpp", 12);
  stacks +=
      row(5, 0, torch, "at::native::linear()", "", 0) + row(5, 1, app, "step()", "app.cpp", 50) + row(5, 2, app, "main", "app.cpp", 12);
  // Nothing but the address.
  stacks += row(6, 0, app, "same()", "app.cpp", 60) + row(7, 0, app, "same()", "app.cpp", 60);
  Report report = report_of(folder, stacks, 7);
  BOOST_TEST(name(report, 1) == "vec::vec() vec.h:4 <- main app.cpp:12");
  BOOST_TEST(name(report, 2) == "load() app.cpp:30 <- run() app.cpp:40 <- main app.cpp:12");
  BOOST_TEST(name(report, 3) == "load() app.cpp:30 <- run() app.cpp:40 <- main app.cpp:13");
  BOOST_TEST(name(report, 4) == "step() app.cpp:50 -> at::native::relu() libtorch_cuda.so");
  BOOST_TEST(name(report, 5) == "step() app.cpp:50 -> at::native::linear() libtorch_cuda.so");
  BOOST_TEST(name(report, 6) == "same() app.cpp:60 (stack 6)");
  BOOST_TEST(name(report, 7) == "same() app.cpp:60 (stack 7)");
  std::string by_stack = split_text(report, {}, *parse_split("stack"));
  BOOST_TEST(std::count(by_stack.begin(), by_stack.end(), '\n') == 2 + 7, by_stack);
  std::string diff = diff_text({}, sums_of(report), What::peak, 20);
  BOOST_TEST(diff.find("same() app.cpp:60 (stack 6) and 1 more") != diff.npos, diff);  // told apart by a line, which a rebuild moves
}

BOOST_AUTO_TEST_CASE(the_library_is_that_of_the_program_s_own_frame) {
  TempFolder folder;
  std::string c10 = "/v/site-packages/torch/lib/libc10_cuda.so";
  std::string stacks;
  stacks += row(1, 0, c10, "", "", 0) + row(1, 1, "[python]", "forward", "/v/site-packages/torch/nn/linear.py", 5) +
            row(1, 2, "[python]", "train", "/home/me/train.py", 5);
  stacks += row(2, 0, c10, "", "", 0) + row(2, 1, "[python]", "forward", "/v/site-packages/torch/nn/linear.py", 5);
  Report report = report_of(folder, stacks, 2);
  std::string by_library = split_text(report, {}, *parse_split("library"));
  BOOST_TEST(by_library.find("1         0  train.py\n") != by_library.npos, by_library);
  BOOST_TEST(by_library.find("1         0  libc10_cuda.so\n") != by_library.npos, by_library);
  std::string by_module = split_text(report, {}, *parse_split("module"));
  BOOST_TEST(by_module.find("2         0  libc10_cuda.so\n") != by_module.npos, by_module);
}
