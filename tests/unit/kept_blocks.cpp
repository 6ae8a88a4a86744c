// Blocks that wait to be given out again: by exactly their size and context, more of them than there are buckets.
#include "runtime/resource/kept_blocks.h"

#include <boost/test/unit_test.hpp>
#include <memory>

namespace xlog {

namespace {

// A block of the context with this incarnation; all of them have the same handle.
KeptBlock block(uint64_t incarnation, CUdeviceptr ptr, size_t bytes, size_t taken) {
  return {.ptr = ptr, .bytes = bytes, .taken = taken, .context = reinterpret_cast<CUcontext>(4096), .incarnation = incarnation};
}

}  // namespace

BOOST_AUTO_TEST_CASE(kept_blocks_come_back_by_size_and_context) {
  auto kept = std::make_unique<KeptBlocks>();
  uint64_t bytes = 0;
  for (size_t size = 1; size <= 3000; ++size) {
    for (uint64_t c : {1, 2}) {
      kept->keep(kept->make(block(c, size * 10 + c, size, size)));
      bytes += size;
    }
  }
  BOOST_TEST(kept->bytes() == bytes);
  BOOST_TEST(kept->take(1, 3001) == 0);
  BOOST_TEST(kept->take(3, 5) == 0);
  for (size_t size = 3000; size >= 1501; --size) {
    BOOST_TEST(kept->take(1, size) == size * 10 + 1);
    BOOST_TEST(kept->take(1, size) == 0);
  }
  KeptBlock oldest;
  BOOST_TEST(kept->take_oldest(oldest, [](const KeptBlock&) {}));
  BOOST_TEST(oldest.ptr == 11);
  size_t others = 0;
  kept->drop_all_of(2, [&](const KeptBlock& each) {
    BOOST_TEST(each.incarnation == 2U);
    ++others;
  });
  BOOST_TEST(others == 3000);
  while (kept->take_oldest(oldest, [](const KeptBlock&) {})) {
  }
  BOOST_TEST(kept->bytes() == 0);
}

BOOST_AUTO_TEST_CASE(the_newest_of_a_size_comes_back_first) {
  auto kept = std::make_unique<KeptBlocks>();
  for (CUdeviceptr ptr : {512, 1024, 1536}) {
    kept->keep(kept->make(block(1, ptr, 100, 512)));
  }
  BOOST_TEST(kept->take(1, 100) == 1536);
  KeptBlock oldest;
  BOOST_TEST(kept->take_oldest(oldest, [](const KeptBlock&) {}));
  BOOST_TEST(oldest.ptr == 512);
}

// A context that has ended and one that has its handle now: neither gets what was the other's.
BOOST_AUTO_TEST_CASE(a_block_of_an_ended_context_is_not_given_out_in_the_next) {
  auto kept = std::make_unique<KeptBlocks>();
  kept->keep(kept->make(block(7, 512, 100, 512)));
  BOOST_TEST(kept->take(8, 100) == 0);
  BOOST_TEST(kept->take(7, 100) == 512);
}

}  // namespace xlog
