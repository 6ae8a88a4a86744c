// What a report says that a backend would have saved.
#include "tools/analysis/savings.h"

#include <boost/test/unit_test.hpp>

namespace xlog::tools {

BOOST_AUTO_TEST_CASE(a_cache_saves_only_what_comes_again) {
  SavingModel model;
  Saving first = model.allocation(4096, 36'000);
  BOOST_TEST(first.by(Saver::async_wait) == 35'000);
  BOOST_TEST(first.by(Saver::cache_wait) == 0);
  model.free(4096, 31'000);
  BOOST_TEST(model.allocation(4097, 36'000).by(Saver::cache_ordered) == 0);
  BOOST_TEST(model.allocation(4096, 36'000).by(Saver::cache_ordered) == 35'600);
  BOOST_TEST(model.allocation(4096, 36'000).by(Saver::cache_ordered) == 0);
}

BOOST_AUTO_TEST_CASE(waiting_for_kernels_is_saved_only_in_order) {
  SavingModel model;
  Saving freed = model.free(1 << 20, 1'000'000);  // an idle free of that takes 31.6 us
  BOOST_TEST(freed.by(Saver::async_wait) == 30'800);
  BOOST_TEST(freed.by(Saver::cache_wait) == 30'800);
  BOOST_TEST(freed.by(Saver::async_ordered) == 999'200);
  BOOST_TEST((freed.best() == Saver::async_ordered));
}

BOOST_AUTO_TEST_CASE(nothing_is_saved_of_what_is_fast_already) {
  SavingModel model;
  Saving all = model.allocation(4096, 700);
  all.add(model.free(4096, 500));
  BOOST_TEST(all.spent == 1'200);
  BOOST_TEST(all.by(all.best()) == 0);
}

}  // namespace xlog::tools
