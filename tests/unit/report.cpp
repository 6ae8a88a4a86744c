// From a log that stays as it is to the report on it: golden files. `make golden` writes them anew after a look at the
// difference.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <sstream>

#include "support/process.h"
#include "tools/analysis/simulate.h"
#include "tools/report/export.h"
#include "tools/report/format.h"
#include "tools/report/oom.h"
#include "tools/report/report.h"

using namespace xlog;
using namespace xlog::tools;

namespace {

std::vector<ProcessLog> golden_logs(const std::string& name) {
  std::vector<std::string> problems;
  return find_logs({"tests/golden/" + name}, problems);
}

Report golden_report(const std::string& name = "training") { return analyse(golden_logs(name), {.resolve = false}); }

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

// Of programs on an H200 (tests/gpu/results/answers-h200.txt says how they were made): PyTorch fills the GPU beside a neighbour,
// and PyTorch without its cache meets a limit.
BOOST_DATA_TEST_CASE(golden_of_a_card, boost::unit_test::data::make({"h200-driver", "h200-tensors"}), name) {
  Report report = golden_report(name);
  BOOST_TEST(report.contradiction_count == 0);
  compare(std::string(name) + ".txt", report_text(report, {}));
  compare(std::string(name) + ".by-library.txt", split_text(report, {}, Split::library));
  compare(std::string(name) + ".oom.txt", read_oom_reports(golden_logs(name), 5, false).text);
  std::ostringstream folded;
  export_folded(report, What::peak, folded);
  compare(std::string(name) + ".folded", folded.str());
  compare(std::string(name) + ".baseline.json", baseline_json(sums_of(report)));
}

BOOST_AUTO_TEST_CASE(golden_simulation) {
  SimulateOptions options{.gpu_bytes = uint64_t{2} << 30, .context_bytes = uint64_t{500} << 20, .resolve = false};
  compare("h200-tensors.simulation.txt", simulation_text(simulate(golden_logs("h200-tensors"), options), options));
}

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
  BOOST_TEST(text.find("Estimate: ") != text.npos);
  BOOST_TEST(text.find("async, ordered") != text.npos);
  BOOST_TEST(text.find(" would be saved by async, wait, most for\n") != text.npos);
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
