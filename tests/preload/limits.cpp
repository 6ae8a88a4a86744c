// What a limit allows is what the card can lose.
#include <boost/test/unit_test.hpp>

#include "support/process.h"

using namespace xlog::test;

namespace {

std::string limited(const std::string& name, const std::string& what, const std::string& budget) {
  return run_with_library({program(name), what}, {{"XLOG_BUDGET", budget}}).out;
}

}  // namespace

// A pool that keeps what was freed to it holds it of the card: natively the second request is granted on a card that has
// both, and refused on one of that size until the pool is trimmed.
BOOST_AUTO_TEST_CASE(what_pools_keep_counts) {
  BOOST_TEST(limited("pool_limits", "keeps", "8G") ==
             "7 GiB in stream order: 0\n"
             "freed, and kept by the pool: 1024 of 8192 MiB free\n"
             "7 GiB of plain memory: 2\n"
             "6 GiB from the pool: 0\n"
             "the pool is trimmed: 0\n"
             "trimmed: 8192 of 8192 MiB free\n"
             "7 GiB of plain memory: 0\n");
}

BOOST_AUTO_TEST_CASE(no_estimate_refuses_an_allocation_from_a_pool) {
  BOOST_TEST(limited("pool_limits", "loops", "1G") == "20000 allocations beside 960 MiB: 0 refused\n");
}

BOOST_AUTO_TEST_CASE(any_number_of_pools_is_limited) {
  BOOST_TEST(limited("pool_limits", "many", "1G") ==
             "1100 MiB from pool 0: 2\n"
             "1100 MiB from pool 150: 2\n"
             "1100 MiB from pool 299: 2\n"
             "1 MiB from each of 300 pools: 32 granted\n");
}

BOOST_AUTO_TEST_CASE(a_destroyed_pool_counts_as_long_as_its_blocks) {
  BOOST_TEST(limited("pool_limits", "destroyed", "1G") ==
             "500 MiB beside the blocks of a destroyed pool: 2\n"
             "one of two is freed: 2\n"
             "both are freed: 0\n");
}

BOOST_AUTO_TEST_CASE(pools_of_sixteen_threads_stay_below_the_limit) {
  BOOST_TEST(limited("pool_limits", "threads", "1G") ==
             "served more than 100: 1, other codes: 0, at most 1 GiB is reserved: 1\n"
             "at the end: 1024 of 1024 MiB free\n");
}
