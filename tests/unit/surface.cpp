// What is known of physical memory and of graphs, without a driver.
#include <boost/test/unit_test.hpp>

#include <map>
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

BOOST_AUTO_TEST_CASE(a_graph_needs_the_union_of_its_ranges) {
  DriverApi driver;
  constexpr uint64_t kBase = uint64_t{1} << 40;
  auto needs = [&](auto... ranges) {
    GraphFootprint footprint(driver);
    BOOST_TEST(footprint.empty());
    (footprint.add(kBase + ranges.at * kMiB, ranges.mib * kMiB, ranges.device, ranges.child), ...);
    std::map<int, uint64_t> all;
    footprint.each_device([&](int device, uint64_t bytes) { all[device] = bytes / kMiB; });
    return all;
  };
  struct Range {
    uint64_t at, mib;
    int device = 0;
    uint32_t child = 0;
  };
  using Needs = std::map<int, uint64_t>;
  BOOST_TEST((needs(Range{0, 256}) == Needs{{0, 256}}));
  BOOST_TEST((needs(Range{0, 100}) == Needs{{0, 128}}));
  BOOST_TEST((needs(Range{0, 256}, Range{256, 256}) == Needs{{0, 512}}));  // two branches
  BOOST_TEST((needs(Range{0, 256}, Range{0, 256}) == Needs{{0, 256}}));    // two in a row
  BOOST_TEST((needs(Range{0, 256}, Range{0, 64}, Range{128, 200}) == Needs{{0, 352}}));
  BOOST_TEST((needs(Range{0, 1}, Range{2, 1}, Range{31, 1}) == Needs{{0, 32}}));  // side by side in a step
  BOOST_TEST((needs(Range{16, 256}) == Needs{{0, 288}}));                         // where it lies across steps
  BOOST_TEST((needs(Range{0, 32, 1}, Range{0, 64, 99}, Range{320, 64}) == Needs{{0, 64}, {1, 32}, {99, 64}}));
  BOOST_TEST((needs(Range{0, 256, 0, 1}) == Needs{{0, 288}}));  // a child takes a step more
  BOOST_TEST((needs(Range{0, 32}, Range{16, 256, 0, 1}, Range{512, 64, 0, 2}) == Needs{{0, 32 + 288 + 96}}));
}

BOOST_AUTO_TEST_CASE(what_a_launch_takes_more) {
  auto graphs = std::make_unique<Zeroed<GraphMemory>>();
  GraphMemory& memory = *graphs->operator->();
  BOOST_TEST(memory.promises(exec(1)) == nullptr);
  DriverApi driver;
  auto instantiate = [&](uint64_t n) {
    GraphFootprint footprint(driver);
    footprint.add(uint64_t{1} << 40, 64 * kMiB, 33, 0);  // any ordinal
    BOOST_TEST(memory.instantiated(exec(n), footprint));
  };
  auto missing = [&](uint64_t n, uint64_t reserved, bool granted = true) {
    GraphMemory::Promise* promise = memory.promises(exec(n));
    BOOST_REQUIRE(promise != nullptr);
    BOOST_TEST(promise->device == 33);
    uint64_t bytes = memory.missing(exec(n), *promise, reserved);
    if (!granted) {
      memory.refused(exec(n), *promise);
    }
    memory.put(promise);
    return bytes / kMiB;
  };
  auto destroy = [&](uint64_t n, bool done) {
    GraphMemory::Exec ending;
    BOOST_TEST(memory.begin_end(exec(n), ending));
    BOOST_TEST(memory.promises(exec(n)) == nullptr);
    memory.finish_end(ending, done);
  };
  instantiate(1);
  instantiate(2);
  BOOST_TEST(missing(1, 0, false) == 64);
  BOOST_TEST(missing(1, 32 * kMiB, false) == 32);
  BOOST_TEST(missing(1, 0) == 64);
  BOOST_TEST(missing(1, 64 * kMiB) == 0);
  BOOST_TEST(missing(2, 64 * kMiB, false) == 64);  // the first may run beside it
  destroy(1, false);                               // the driver refused
  BOOST_TEST(missing(2, 64 * kMiB, false) == 64);
  destroy(1, true);
  BOOST_TEST(missing(2, 64 * kMiB) == 0);
  memory.trimmed(33);
  BOOST_TEST(missing(2, 0) == 64);
  // The handle of another graph that is gone, seen again: what is idle is promised once.
  instantiate(2);
  instantiate(1);
  BOOST_TEST(missing(1, 64 * kMiB) == 0);
  BOOST_TEST(missing(2, 64 * kMiB) == 64);
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
  for (uint64_t reserved = 1; reserved < 500; ++reserved) {
    settle(reserved);
  }
  settle(250);
  settle(250);
  settle(0);
  settle(7);
}

}  // namespace xlog
