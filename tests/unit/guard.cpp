// Zones and what is read from them, the records of freed blocks, the quarantine's order: without a driver.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/guard/quarantine.h"
#include "runtime/guard/zone.h"

namespace xlog {

BOOST_AUTO_TEST_CASE(a_zone_is_of_its_block_and_generation) {
  std::vector<unsigned char> zone(256);
  std::vector<unsigned char> other(256);
  fill_zone(zone_seed(0x7000, 1), 0, zone.data(), zone.size());
  for (uint64_t seed : {zone_seed(0x7000, 2), zone_seed(0x7200, 1)}) {
    fill_zone(seed, 0, other.data(), other.size());
    long same = std::inner_product(zone.begin(), zone.end(), other.begin(), 0L, std::plus<>(), std::equal_to<>());
    BOOST_TEST(same < 10);
  }
  for (size_t from : {1UL, 7UL, 8UL, 100UL}) {  // in parts
    fill_zone(zone_seed(0x7000, 1), from, other.data(), 100);
    BOOST_TEST(std::equal(zone.begin() + static_cast<long>(from), zone.begin() + static_cast<long>(from) + 100, other.begin()));
  }
}

BOOST_AUTO_TEST_CASE(every_single_bad_byte_is_found) {
  std::vector<unsigned char> zone(64);
  for (size_t at = 0; at < zone.size(); ++at) {
    fill_zone(9, 0, zone.data(), zone.size());
    zone[at] ^= 1;
    Damage damage;
    look_at_zone(9, 0, zone.data(), 32, damage);
    look_at_zone(9, 32, zone.data() + 32, 32, damage);
    BOOST_TEST(damage.count == 1);
    BOOST_TEST(damage.first == at);
    BOOST_TEST(damage.last == at);
    BOOST_TEST(damage.found[0] == zone[at]);
    std::vector<unsigned char> filled(64, kPoisonFreed);
    filled[at] = 0;
    Damage of_fill;
    look_at_fill(kPoisonFreed, 1000, filled.data(), filled.size(), of_fill);
    BOOST_TEST(of_fill.count == 1);
    BOOST_TEST(of_fill.first == 1000 + at);
  }
  std::vector<unsigned char> all(64, 0);
  Damage damage;
  look_at_fill(kPoisonFreed, 0, all.data(), all.size(), damage);
  BOOST_TEST(damage.count == 64);
  BOOST_TEST(damage.shown == 16);
}

BOOST_AUTO_TEST_CASE(the_last_freed_are_remembered) {
  auto records = std::make_unique<GuardRecords>();
  for (uint64_t i = 1; i <= 1500; ++i) {
    GuardRecord* record = records->make();
    BOOST_REQUIRE(record != nullptr);
    record->ptr = i % 1400 * 0x1000;
    record->generation = i;
    records->add_live(*record);
    records->remove_live(*record);
    records->remember(record);
  }
  GuardRecord found{};
  BOOST_TEST(!records->find_freed(300UL * 0x1000, found));
  BOOST_TEST(records->find_freed(1000UL * 0x1000, found));
  BOOST_TEST(records->find_freed(50UL * 0x1000, found));
  BOOST_TEST(found.generation == 1450);  // the youngest at that address
  size_t live = 0;
  records->each_live([&](GuardRecord&) { ++live; });
  BOOST_TEST(live == 0);
}

BOOST_AUTO_TEST_CASE(the_quarantine_lets_the_oldest_go) {
  auto quarantine = std::make_unique<Quarantine>();
  for (uint64_t i = 1; i <= 4; ++i) {
    DeviceBlock block;
    block.ptr = i * 0x1000;
    block.taken = 100;
    block.context = reinterpret_cast<CUcontext>(i % 2 + 1);
    BOOST_TEST(quarantine->add(block));
  }
  BOOST_TEST(quarantine->bytes() == 400);
  DeviceBlock out;
  BOOST_TEST(!quarantine->take_oldest(400, out));
  BOOST_TEST(quarantine->take_oldest(399, out));
  BOOST_TEST(out.ptr == 0x1000);
  BOOST_TEST(quarantine->holds(0x1000));  // until it is freed below
  quarantine->gone(0x1000);
  BOOST_TEST(!quarantine->holds(0x1000));
  BOOST_TEST(quarantine->take_of(reinterpret_cast<CUcontext>(1), out));
  BOOST_TEST(out.ptr == 0x2000);
  BOOST_TEST(quarantine->take_oldest(0, out));
  BOOST_TEST(out.ptr == 0x3000);
  BOOST_TEST(quarantine->take_oldest(0, out));
  BOOST_TEST(!quarantine->take_oldest(0, out));
  BOOST_TEST(quarantine->bytes() == 0);
}

}  // namespace xlog
