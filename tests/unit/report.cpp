// From a log that stays as it is to the report on it: golden files. `make golden` writes them anew after a look at the
// difference.
#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "support/process.h"
#include "tools/report/format.h"
#include "tools/report/report.h"

using namespace xlog;
using namespace xlog::tools;

namespace {

Report golden_report() {
  std::vector<std::string> problems;
  return analyse(find_logs({"tests/golden/training"}, problems), {.resolve = false});
}

void compare(const std::string& name, const std::string& text) {
  std::string path = "tests/golden/" + name;
  if (std::getenv("XLOG_GOLDEN") != nullptr) {
    test::spit(path, text);
  }
  BOOST_TEST(text == test::slurp(path));
}

}  // namespace

BOOST_AUTO_TEST_CASE(golden_text) { compare("training.txt", report_text(golden_report(), {})); }
BOOST_AUTO_TEST_CASE(golden_text_with_all_frames) {
  compare("training.all-frames.txt", report_text(golden_report(), {.all_frames = true}));
}
BOOST_AUTO_TEST_CASE(golden_json) { compare("training.json", report_json(golden_report(), {})); }
BOOST_AUTO_TEST_CASE(golden_summary) {
  compare("training.summary.txt",
          summary_text(golden_report(), "the program was killed by signal 9 (Killed)", 2'000'000'000, "xlog.train.1"));
}

// The golden run's calls are short; here each takes a hundred times as long.
BOOST_AUTO_TEST_CASE(what_a_backend_would_have_saved_is_told_where_it_is_much) {
  BOOST_TEST(report_text(golden_report(), {}).find("Estimate") == std::string::npos);
  test::TempFolder folder;
  std::string csv = test::slurp("tests/golden/training/train.100.csv");
  for (size_t at = csv.find(",50000,"); at != csv.npos; at = csv.find(",50000,", at)) {
    csv.replace(at, 7, ",5000000,");
  }
  test::spit(folder / "train.100.csv", csv);
  for (const char* name : {"train.100.stacks.csv", "train.100.run.json"}) {
    test::spit(folder / name, test::slurp(std::string("tests/golden/training/") + name));
  }
  std::vector<std::string> problems;
  std::string text = report_text(analyse(find_logs({folder.path()}, problems), {.resolve = false}), {});
  BOOST_TEST(text.find("Estimate: of ") != text.npos);
  BOOST_TEST(text.find("async, ordered") != text.npos);
  BOOST_TEST(text.find("  by async, wait, most for\n") != text.npos);
}

BOOST_AUTO_TEST_CASE(a_cache_is_not_called_the_user_of_the_memory) {
  std::string text = report_text(golden_report(), {});
  BOOST_TEST(text.find("PyTorch's caching allocator: what is inside is not visible") != text.npos);
  Frame frame{.module = "/usr/lib/libc10_cuda.so", .build_id = "", .offset = 1, .function = "f", .file = "", .line = 0};
  Stack stack{{&frame}};
  BOOST_TEST(cache_of(stack, {}) == "PyTorch's caching allocator");
  BOOST_TEST(cache_of(stack, {{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"}}).empty());
}

BOOST_AUTO_TEST_CASE(numbers_for_people) {
  BOOST_TEST(count_text(0) == "0");
  BOOST_TEST(count_text(999) == "999");
  BOOST_TEST(count_text(1234567) == "1,234,567");
  BOOST_TEST(time_text(999) == "999 ns");
  BOOST_TEST(time_text(1500) == "1.5 us");
  BOOST_TEST(time_text(2'000'000'000) == "2.0 s");
  BOOST_TEST(share_text(1, 3) == "33.3 %");
  BOOST_TEST(share_text(1, 0) == "0.0 %");
  BOOST_TEST(plural(1, "block") == "1 block");
  BOOST_TEST(plural(2, "block") == "2 blocks");
}
