// Which frames of a stack are shown first.
#include <boost/test/unit_test.hpp>
#include <deque>

#include "runtime/record/event.h"
#include "tools/log/stacks.h"

using namespace xlog;
using namespace xlog::tools;

namespace {

class Made {
 public:
  Made& native(const char* module, const char* function) { return add(module, function, ""); }
  Made& python(const char* function, const char* file) { return add(std::string(kPythonModule), function, file); }
  [[nodiscard]] std::string shown() const {
    std::string all;
    for (const Frame* each : visible_frames(stack_, false)) {
      all += each->function + ' ';
    }
    return all;
  }

 private:
  Made& add(const std::string& module, const char* function, const char* file) {
    Frame frame;
    frame.module = module;
    frame.function = function;
    frame.file = file;
    frames_.push_back(frame);
    stack_.frames.push_back(&frames_.back());
    return *this;
  }
  std::deque<Frame> frames_;
  Stack stack_;
};

constexpr const char* kLinear = "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py";
constexpr const char* kModule = "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py";

}  // namespace

BOOST_AUTO_TEST_CASE(a_program_s_own_python_is_what_is_shown) {
  Made stack;
  stack.native("/usr/lib/libcuda.so.1", "cuMemAlloc").native("libtorch_cuda.so", "gemm").native("libtorch_cpu.so", "addmm");
  stack.python("forward", kLinear).native("/usr/bin/python3.12", "eval").python("_call_impl", kModule).python("train", "/home/me/model.py");
  stack.python("inner", kLinear).python("main", "/home/me/model.py");
  BOOST_TEST(stack.shown() == "train main ");
}

BOOST_AUTO_TEST_CASE(where_all_python_is_of_packages_all_of_it_is_shown) {
  Made stack;
  stack.native("libtorch_cuda.so", "gemm").python("forward", kLinear).python("run", "/usr/lib/python3.12/runpy.py");
  BOOST_TEST(stack.shown() == "gemm forward run ");
}

BOOST_AUTO_TEST_CASE(without_python_native_frames_are_shown) {
  Made stack;
  stack.native("libcuda.so.1", "cuMemAlloc").native("program", "load").native("program", "main");
  BOOST_TEST(stack.shown() == "load main ");
}
