// Zones and what is read from them, the records of freed blocks, the quarantine's order: without a driver.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <numeric>
#include <vector>

#include "runtime/base/command_line.h"
#include "runtime/base/options.h"
#include "runtime/guard/fence_sample.h"
#include "runtime/guard/launches.h"
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
  quarantine->begin_free(out);
  BOOST_TEST(!quarantine->holds(0x1000));
  quarantine->put_back(out);  // the driver did not take it
  BOOST_TEST(quarantine->holds(0x1000));
  BOOST_TEST(quarantine->given_up() == 0);
  BOOST_TEST(quarantine->take_oldest(399, out));
  BOOST_TEST(out.ptr == 0x1000);
  quarantine->begin_free(out);
  quarantine->freed();
  BOOST_TEST(quarantine->given_up() == 1);
  BOOST_TEST(quarantine->take_of(reinterpret_cast<CUcontext>(1), out));
  BOOST_TEST(out.ptr == 0x2000);
  BOOST_TEST(quarantine->take_oldest(0, out));
  BOOST_TEST(out.ptr == 0x3000);
  BOOST_TEST(quarantine->take_oldest(0, out));
  BOOST_TEST(!quarantine->take_oldest(0, out));
  BOOST_TEST(quarantine->bytes() == 0);
}

// One in N, at random: every block for 1, none for 0, and another choice each time.
BOOST_AUTO_TEST_CASE(a_sample_of_one_in_n) {
  FenceSample sample;
  FenceSample other;
  int taken = 0;
  int differ = 0;
  for (int i = 0; i < 10000; ++i) {
    BOOST_TEST(sample.takes_next(1));
    BOOST_TEST(!sample.takes_next(0));
    bool one = sample.takes_next(10);
    taken += one ? 1 : 0;
    differ += one != other.takes_next(10) ? 1 : 0;
  }
  BOOST_TEST(taken > 850);
  BOOST_TEST(taken < 1150);
  BOOST_TEST(differ > 500);
}

BOOST_AUTO_TEST_CASE(the_parts_of_a_fence) {
  static const char* value;
  auto parse = [](const char* text, Options& out) {
    value = text;
    return parse_options([](const char* name) noexcept { return std::string_view(name) == "XLOG_GUARD" ? value : nullptr; },
                         [](std::string_view, bool) noexcept {}, out);
  };
  Options options;
  BOOST_TEST(parse("fence", options));
  BOOST_TEST(options.guards());
  BOOST_TEST(options.guard.zone == 0U);
  BOOST_TEST(options.guard.fence.one_in == 1U);
  BOOST_TEST(options.guard.fence.align == 512U);
  BOOST_TEST(options.guard.fence.most == UINT64_MAX);
  BOOST_TEST(parse("fence:1/100:before:32:1MiB-2G", options));
  BOOST_TEST(options.guard.fence.one_in == 100U);
  BOOST_TEST(options.guard.fence.before);
  BOOST_TEST(options.guard.fence.align == 32U);
  BOOST_TEST(options.guard.fence.least == 1U << 20);
  BOOST_TEST(options.guard.fence.most == 2ULL << 30);
  BOOST_TEST(parse("fence:-4K", options));
  BOOST_TEST(options.guard.fence.least == 0U);
  BOOST_TEST(options.guard.fence.most == 4096U);
  for (const char* bad : {"fence:", "fence:8", "fence:24", "fence:1024", "fence:1/", "fence:1/0", "fence:-", "fence:2M-1M", "fence:1-2",
                          "fence:after", "fence:1M", "fences", "canary:fence", "fence 1/2"}) {
    BOOST_TEST(!parse(bad, options), bad);
  }
}

BOOST_AUTO_TEST_CASE(launches_are_counted_by_name_and_the_last_are_known) {
  auto all = std::make_unique<Launches>();
  DriverApi driver;
  driver.cuFuncGetName = [](const char** name, CUfunction function) {
    *name = reinterpret_cast<const char*>(function);
    return CUDA_SUCCESS;
  };
  auto note = [&](const char* name) { return all->note(driver, reinterpret_cast<CUfunction>(const_cast<char*>(name))); };
  std::string long_name(300, 'k');
  BOOST_TEST(note("_Z3addPfi").of_name == 1U);
  BOOST_TEST(note("_Z3subPfi").of_name == 1U);
  Launch third = note("_Z3addPfi");
  BOOST_TEST(third.of_name == 2U);
  BOOST_TEST(third.number == 3U);
  BOOST_TEST(third.is_kernel());
  BOOST_TEST(!all->note(driver, nullptr).is_kernel());
  Launch cut = note(long_name.c_str());
  BOOST_TEST(!cut.is_kernel());  // a tool would not know it by this
  BOOST_TEST(cut.text() == std::string(103, 'k'));
  Launch last[Launches::kLast];
  BOOST_REQUIRE(all->last(last) == 5U);
  BOOST_TEST(last[0].text() == cut.text());
  BOOST_TEST(last[1].text() == "graph");
  BOOST_TEST(last[4].text() == "_Z3addPfi");
  for (int i = 0; i < 20; ++i) {
    note("_Z3mulPfi");
  }
  BOOST_TEST(all->last(last) == Launches::kLast);
  driver.cuFuncGetName = nullptr;
  BOOST_TEST(note("no names").text() == "?");
}

BOOST_AUTO_TEST_CASE(words_as_a_shell_takes_them) {
  for (const auto& [word, shown] : {std::pair{"./a.out", "./a.out"},
                                    {"", "''"},
                                    {"two words", "'two words'"},
                                    {"it's", "'it'\\''s'"},
                                    {"$HOME", "'$HOME'"},
                                    {"a\nb", "'a?b'"}}) {
    Text<100> out;
    put_shell_word(out, word);
    BOOST_TEST(out.view() == shown);
  }
}

}  // namespace xlog
