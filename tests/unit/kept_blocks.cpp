// Blocks that wait to be given out again: by exactly their size and context, more of them than there are buckets.
#include "runtime/resource/kept_blocks.h"

#include <boost/test/unit_test.hpp>
#include <memory>

namespace xlog {

namespace {

CUcontext context(uint64_t n) { return reinterpret_cast<CUcontext>(n * 4096); }

}  // namespace

BOOST_AUTO_TEST_CASE(kept_blocks_come_back_by_size_and_context) {
  auto kept = std::make_unique<KeptBlocks>();
  uint64_t bytes = 0;
  for (size_t size = 1; size <= 3000; ++size) {
    for (uint64_t c : {1, 2}) {
      kept->keep(kept->make(context(c), size * 10 + c, size, size, false));
      bytes += size;
    }
  }
  BOOST_TEST(kept->bytes() == bytes);
  BOOST_TEST(kept->take(context(1), 3001) == 0);
  BOOST_TEST(kept->take(context(3), 5) == 0);
  for (size_t size = 3000; size >= 1501; --size) {
    BOOST_TEST(kept->take(context(1), size) == size * 10 + 1);
    BOOST_TEST(kept->take(context(1), size) == 0);
  }
  KeptBlock oldest;
  BOOST_TEST(kept->take_oldest(oldest));
  BOOST_TEST(oldest.ptr == 11);
  size_t others = 0;
  while (kept->take_of(context(2), oldest)) {
    BOOST_TEST((oldest.context == context(2)));
    ++others;
  }
  BOOST_TEST(others == 3000);
  while (kept->take_oldest(oldest)) {
  }
  BOOST_TEST(kept->bytes() == 0);
}

BOOST_AUTO_TEST_CASE(the_newest_of_a_size_comes_back_first) {
  auto kept = std::make_unique<KeptBlocks>();
  for (CUdeviceptr ptr : {512, 1024, 1536}) {
    kept->keep(kept->make(context(1), ptr, 100, 512, false));
  }
  BOOST_TEST(kept->take(context(1), 100) == 1536);
  KeptBlock oldest;
  BOOST_TEST(kept->take_oldest(oldest));
  BOOST_TEST(oldest.ptr == 512);
}

}  // namespace xlog
