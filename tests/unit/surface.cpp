// What is known of physical memory and of graphs, without a driver.
#include <boost/test/unit_test.hpp>

#include <memory>

#include "runtime/graph_memory.h"
#include "runtime/physical_memory.h"

namespace xlog {

namespace {

constexpr uint64_t kMiB = 1 << 20;
CUgraphExec exec(uint64_t n) { return reinterpret_cast<CUgraphExec>(n * 4096); }

// As the runtime keeps it: all zero.
template <class T>
struct Zeroed {
  alignas(T) unsigned char bytes[sizeof(T)] = {};
  T* operator->() { return reinterpret_cast<T*>(bytes); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(physical_memory_ends_with_the_last_hold_or_mapping) {
  PhysicalMemory memory;
  memory.created(10);
  BOOST_TEST(memory.release(10));  // never mapped
  BOOST_TEST(!memory.release(10));

  memory.created(20);
  memory.mapped(0x1000, 0x100, 20);
  memory.mapped(0x5000, 0x100, 20);
  BOOST_TEST(memory.retained(20));
  BOOST_TEST(!memory.release(20));
  BOOST_TEST(!memory.release(20));
  {
    PhysicalMemory::Unmapped range;
    memory.unmap(0x1000, 0x100, range);
    BOOST_TEST(range.ended() == 0);
  }
  BOOST_TEST(memory.retained(20));  // held again
  {
    PhysicalMemory::Unmapped range;
    memory.unmap(0x5000, 0x100, range);
    BOOST_TEST(range.ended() == 0);
  }
  BOOST_TEST(memory.release(20));
  BOOST_TEST(!memory.retained(20));
}

BOOST_AUTO_TEST_CASE(a_call_that_fails_changes_nothing) {
  PhysicalMemory memory;
  memory.created(1);
  BOOST_TEST(memory.release(1));
  memory.release_failed(1, true);
  memory.mapped(0x1000, 0x100, 1);
  BOOST_TEST(!memory.release(1));
  for (int i = 0; i < 2; ++i) {
    PhysicalMemory::Unmapped range;
    memory.unmap(0x1000, 0x100, range);
    BOOST_TEST(range.ended() == 1);
    BOOST_TEST(range.begin()->handle == 1);
    if (i == 0) {
      memory.unmap_failed(range);
    }
  }
  memory.created(2);
  BOOST_TEST(memory.retained(2));
  BOOST_TEST(!memory.release(2));
  memory.release_failed(2, false);
  BOOST_TEST(!memory.release(2));
  BOOST_TEST(memory.release(2));
}

BOOST_AUTO_TEST_CASE(ranges_with_and_without_gaps) {
  for (uint64_t step : {0x100, 0x300}) {  // without gaps, with
    PhysicalMemory memory;
    constexpr uint64_t kCount = 300;
    for (uint64_t i = 0; i < kCount; ++i) {
      memory.created(1 + i);
      memory.mapped(0x10000 + i * step, 0x100, 1 + i);
      BOOST_TEST(!memory.release(1 + i));
    }
    memory.mapped(0x10, 0x100, 999);  // not known: not created here
    PhysicalMemory::Unmapped few;
    memory.unmap(0x10000 + 10 * step, 5 * step, few);
    BOOST_TEST(few.ended() == 5);
    PhysicalMemory::Unmapped range;
    memory.unmap(0x10000, kCount * step, range);
    BOOST_TEST(range.ended() == kCount - 5);
    PhysicalMemory::Unmapped again;
    memory.unmap(0, 1 << 30, again);
    BOOST_TEST(again.ended() == 0);
    BOOST_TEST((again.begin() == again.end()));
  }
}

BOOST_AUTO_TEST_CASE(a_graph_needs_the_most_that_its_nodes_hold_at_once) {
  GraphFootprint footprint;
  BOOST_TEST(!footprint.any());
  footprint.allocates(1, 1, 0);          // a step of 32 MiB
  footprint.allocates(2, 33 * kMiB, 0);  // two
  footprint.frees(1);
  footprint.allocates(3, 20 * kMiB, 0);
  footprint.frees(3);
  footprint.frees(77);
  footprint.allocates(4, 64 * kMiB, 1);
  footprint.allocates(5, 64 * kMiB, 99);  // no such GPU
  BOOST_TEST(footprint.any());
  BOOST_TEST(footprint.most().bytes[0] == 96 * kMiB);
  BOOST_TEST(footprint.most().bytes[1] == 64 * kMiB);
}

BOOST_AUTO_TEST_CASE(what_a_launch_takes_more) {
  auto graphs = std::make_unique<Zeroed<GraphMemory>>();
  GraphMemory& memory = *graphs->operator->();
  uint32_t devices = 0;
  BOOST_TEST(!memory.find(exec(1), devices));
  GraphNeed need;
  need.bytes[0] = 64 * kMiB;
  memory.instantiated(exec(1), need);
  memory.instantiated(exec(2), need);
  BOOST_TEST(memory.find(exec(1), devices));
  BOOST_TEST(devices == 1);
  BOOST_TEST(memory.missing(exec(1), 0, 0) == 64 * kMiB);
  BOOST_TEST(memory.missing(exec(1), 0, 32 * kMiB) == 32 * kMiB);
  memory.launched(exec(1));
  memory.launched(exec(1));
  BOOST_TEST(memory.missing(exec(1), 0, 64 * kMiB) == 0);
  BOOST_TEST(memory.missing(exec(2), 0, 64 * kMiB) == 64 * kMiB);  // the first may run beside it
  memory.destroyed(exec(1));
  BOOST_TEST(memory.missing(exec(2), 0, 64 * kMiB) == 0);
  memory.launched(exec(2));
  memory.trimmed(0);
  BOOST_TEST(memory.missing(exec(2), 0, 0) == 64 * kMiB);
  BOOST_TEST(!memory.find(exec(1), devices));
}

BOOST_AUTO_TEST_CASE(blocks_stand_for_what_is_reserved) {
  auto graphs = std::make_unique<Zeroed<GraphMemory>>();
  GraphMemory& memory = *graphs->operator->();
  uint64_t standing = 0;
  auto settle = [&](uint64_t reserved) {
    DeviceBlock block;
    while (memory.pop(0, reserved, block)) {
      standing -= block.bytes;
    }
    uint64_t growth = memory.grew(0, reserved);
    if (growth != 0) {
      DeviceBlock made;
      made.ptr = memory.name();
      made.bytes = growth;
      standing += growth;
      memory.push(0, std::move(made));
    }
    BOOST_TEST(standing == reserved);
  };
  for (uint64_t reserved = 1; reserved < 500; ++reserved) {  // more growths than there are places
    settle(reserved);
  }
  settle(250);
  settle(250);
  settle(0);
  settle(7);
}

}  // namespace xlog
