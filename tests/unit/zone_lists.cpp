// The zones that a check behind a launch looks at: how many records it visits, whatever is live.
#include <boost/test/unit_test.hpp>

#include <memory>
#include <set>
#include <vector>

#include "runtime/guard/guard_record.h"

using namespace xlog;

namespace {

constexpr size_t kLive = 100'000;
constexpr size_t kMost = 2048;

CUcontext context_at(uintptr_t n) { return reinterpret_cast<CUcontext>(n << 4); }

struct Blocks {
  Blocks() : records(std::make_unique<GuardRecords>()), all(kLive) { records->list_zones(); }
  GuardRecord& add(size_t i, CUcontext context) {
    all[i] = {};
    all[i].ptr = 4096 * (i + 1);
    all[i].bytes = 100;
    all[i].zone = 16;
    all[i].written = true;
    all[i].context = context;
    records->add_live(all[i]);
    return all[i];
  }
  std::vector<uint64_t> next(CUcontext context) {
    std::vector<uint64_t> visited;
    records->next_zones(context, kMost, [&](const ZoneList::Zone& zone) { visited.push_back(zone.at); });
    return visited;
  }
  std::unique_ptr<GuardRecords> records;
  std::vector<GuardRecord> all;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_check_visits_no_more_zones_than_it_takes_and_all_in_turn) {
  Blocks blocks;
  for (size_t i = 0; i < kLive; ++i) {
    blocks.add(i, context_at(1));
  }
  std::set<uint64_t> seen;
  for (size_t i = 0; i * kMost < kLive; ++i) {
    std::vector<uint64_t> visited = blocks.next(context_at(1));
    BOOST_TEST(visited.size() == kMost);
    seen.insert(visited.begin(), visited.end());
  }
  BOOST_TEST(seen.size() == kLive);
  BOOST_TEST(blocks.next(context_at(2)).empty());
}

BOOST_AUTO_TEST_CASE(zones_that_are_gone_reported_or_of_another_sort_are_not_visited) {
  Blocks blocks;
  for (size_t i = 0; i < 100; ++i) {
    blocks.add(i, context_at(i % 50 + 1));  // any number of contexts
  }
  BOOST_TEST(blocks.next(context_at(50)).size() == 2);
  blocks.records->remove_live(blocks.all[49]);
  BOOST_TEST((blocks.next(context_at(50)) == std::vector<uint64_t>{blocks.all[99].ptr + 100}));
  blocks.records->set_reported(blocks.all[99]);
  BOOST_TEST(blocks.next(context_at(50)).empty());
  blocks.records->remove_live(blocks.all[99]);
  blocks.records->add_live(blocks.all[49]);  // its free was refused
  BOOST_TEST(blocks.next(context_at(50)).size() == 1);
  GuardRecord& ordered = blocks.all[100] = {};
  ordered.ordered = ordered.written = true;
  ordered.context = context_at(1);
  blocks.records->add_live(ordered);
  BOOST_TEST(blocks.next(context_at(1)).size() == 2);
  for (size_t i = 0; i < 100; i += 50) {
    blocks.records->remove_live(blocks.all[i]);
  }
  BOOST_TEST(blocks.next(context_at(1)).empty());
  blocks.add(101, context_at(60));  // in the list that the first context has left
  BOOST_TEST(blocks.next(context_at(60)).size() == 1);
  BOOST_TEST(blocks.next(context_at(1)).empty());
}
