// Contexts that begin and end in any order, and frees of their blocks from elsewhere: the library is not to be seen.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "support/process.h"

using namespace xlog::test;
namespace data = boost::unit_test::data;

namespace {

const std::vector<std::string> kModes = {"XLOG_BUDGET=100%",    "XLOG_BACKEND=async",  "XLOG_BACKEND=async XLOG_ASYNC_FREE=ordered",
                                         "XLOG_BACKEND=cache",  "XLOG_GUARD=canary",   "XLOG_GUARD=fence",
                                         "XLOG_QUARANTINE=64M", "XLOG_BACKEND=direct", "XLOG_BACKEND=cache XLOG_ASYNC_FREE=ordered"};

Environment environment_of(const std::string& mode, Environment extra) {
  std::istringstream words(mode);
  for (std::string word; words >> word;) {
    extra[word.substr(0, word.find('='))] = word.substr(word.find('=') + 1);
  }
  return extra;
}

void check_as_natively(const std::vector<std::string>& arguments, const std::string& mode, const Environment& extra = {}) {
  std::vector<std::string> command{program("contexts")};
  command.insert(command.end(), arguments.begin(), arguments.end());
  Outcome native = run(command, extra);
  Outcome ours = run_with_library(command, environment_of(mode, extra));
  BOOST_TEST_CONTEXT(mode << '\n' << ours.err) {
    BOOST_TEST(native.status == 0);
    BOOST_TEST(ours.out == native.out);
    BOOST_TEST(ours.status == 0);
  }
}

}  // namespace

BOOST_DATA_TEST_CASE(contexts_as_natively,
                     data::make(kModes) * data::make({"primary", "created", "no-current", "ends-under-work", "freed"}), mode, which) {
  check_as_natively({which}, mode, {{"XLOG_SIM_SEED", "1"}});
}
BOOST_DATA_TEST_CASE(a_free_waits_in_the_context_of_its_block, data::make(kModes), mode) {
  if (mode.find("ordered") == std::string::npos) {  // there a free does not wait
    check_as_natively({"other-current"}, mode, {{"XLOG_SIM_DEVICES", "2"}});
  }
}
BOOST_DATA_TEST_CASE(work_under_way_at_the_end_of_a_context, data::make(kModes) * data::xrange(2, 8), mode, seed) {
  check_as_natively({"ends-under-work"}, mode, {{"XLOG_SIM_SEED", std::to_string(seed)}});
}
BOOST_DATA_TEST_CASE(a_free_in_stream_order_never_waits, data::make(kModes) * data::make({"600", "20000"}), mode, count) {
  if (mode.find("fence") == std::string::npos || std::string(count) == "600") {
    check_as_natively({"many-in-order", count}, mode, {{"XLOG_SIM_MEMORY", "68719476736"}});
  }
}
BOOST_AUTO_TEST_CASE(a_capture_ends_with_its_thread) {
  BOOST_TEST(run_with_library({program("contexts"), "thread-ends"}, {{"XLOG_BACKEND", "async"}}).out == "served by a pool: 1\n");
}
BOOST_DATA_TEST_CASE(any_number_of_blocks_ends_with_a_context, data::make(kModes), mode) {
  if (mode.find("GUARD") == std::string::npos) {  // what zones take is not to be had for blocks
    check_as_natively({"many-end", "6000"}, mode, {{"XLOG_SIM_MEMORY", "17179869184"}});
  }
}
