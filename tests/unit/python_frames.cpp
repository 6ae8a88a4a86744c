// Python frames in memory made by hand; real interpreters are in tests/preload/python.
#include <boost/test/unit_test.hpp>
#include <memory>

#include "runtime/base/python_frames.h"
#include "runtime/base/python_lines.h"

using namespace xlog;

namespace {

char code_type;
char* the_thread = nullptr;

// A thread of CPython 3.9 with frames of one code object.
class Interpreter {
 public:
  Interpreter() {
    put(code_, 8, &code_type);
    put(thread_, 24, frames_[0]);
    for (int i = 0; i < 2; ++i) {
      put(frames_[i], 32, code_);
      put(frames_[i], 24, i == 0 ? frames_[1] : nullptr);
      put(frames_[i], 104, 10 * (i + 1));
    }
    the_thread = thread_;
  }
  [[nodiscard]] static PythonApi api(const char* (*version)()) {
    PythonApi out;
    out.this_thread = [] { return static_cast<void*>(the_thread); };
    out.version = version;
    out.code_type = &code_type;
    return out;
  }
  template <class T>
  static void put(char* object, size_t offset, T value) {
    std::memcpy(object + offset, &value, sizeof value);
  }
  char thread_[200] = {};
  char frames_[2][200] = {};
  char code_[200] = {};
};

size_t frames_of(const PythonApi& api, PythonFrame (&out)[4]) {
  auto frames = std::make_unique<PythonFrames>();
  frames->use(api);
  return frames->take(out, 4);
}

}  // namespace

BOOST_AUTO_TEST_CASE(frames_of_a_known_version) {
  Interpreter python;
  PythonFrame out[4];
  BOOST_REQUIRE(frames_of(Interpreter::api([] { return "3.9.18 (main)"; }), out) == 2);
  BOOST_TEST(out[0].code == python.code_);
  BOOST_TEST(out[0].at == 10);
  BOOST_TEST(out[1].at == 20);
}

BOOST_AUTO_TEST_CASE(no_frames_of_an_interpreter_that_is_not_known) {
  Interpreter python;
  PythonFrame out[4];
  BOOST_TEST(frames_of(Interpreter::api([] { return "3.99.0"; }), out) == 0);
  BOOST_TEST(frames_of(Interpreter::api([] { return "4.9.0"; }), out) == 0);
  BOOST_TEST(frames_of(Interpreter::api([] { return "3.13.0"; }), out) == 0);  // it would say where its frames are
  PythonApi counting = Interpreter::api([] { return "3.9.18"; });
  counting.traces_references = true;
  BOOST_TEST(frames_of(counting, out) == 0);
  the_thread = nullptr;
  BOOST_TEST(frames_of(Interpreter::api([] { return "3.9.18"; }), out) == 0);
}

BOOST_AUTO_TEST_CASE(no_frames_where_they_are_not_as_the_version_says) {
  Interpreter python;
  PythonFrame out[4];
  Interpreter::put(python.frames_[1], 24, reinterpret_cast<char*>(16));  // no memory there
  BOOST_TEST(frames_of(Interpreter::api([] { return "3.9.18"; }), out) == 0);
  Interpreter::put(python.frames_[1], 24, static_cast<char*>(nullptr));
  Interpreter::put(python.code_, 8, &the_thread);
  BOOST_TEST(frames_of(Interpreter::api([] { return "3.9.18"; }), out) == 0);
}

BOOST_AUTO_TEST_CASE(lines_of_damaged_tables) {
  for (unsigned minor : {9U, 10U, 11U, 13U}) {
    for (unsigned fill = 0; fill < 256; ++fill) {
      for (size_t size : {0, 1, 2, 3, 7}) {
        std::unique_ptr<uint8_t[]> table(new uint8_t[size]);
        std::fill(table.get(), table.get() + size, static_cast<uint8_t>(fill));
        python_line(minor, {table.get(), size}, 1, 1000);  // reads nothing beyond: the sanitizer says
      }
    }
  }
}
