// The tables and the parser under a report, against the plain way to do the same.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "tools/analysis/address_map.h"
#include "tools/analysis/block_map.h"
#include "tools/log/row_reader.h"

using namespace xlog;
using namespace xlog::tools;

BOOST_AUTO_TEST_SUITE(tables)

BOOST_AUTO_TEST_CASE(blocks_are_found_until_they_are_erased) {
  std::minstd_rand random(1);
  BlockMap map;
  std::map<uint64_t, uint64_t> plain;
  for (uint64_t round = 0; round < 200'000; ++round) {
    uint64_t ptr = random() % 3000 * (random() % 2 == 0 ? 512 : 2 << 20);
    LiveBlock* found = map.find(ptr);
    auto expected = plain.find(ptr);
    BOOST_REQUIRE_EQUAL(found != nullptr, expected != plain.end());
    if (found == nullptr) {
      LiveBlock block;
      block.ptr = ptr;
      block.bytes = round;
      map.insert(block);
      plain[ptr] = round;
    } else {
      BOOST_REQUIRE_EQUAL(found->bytes, expected->second);
      map.erase(found);
      plain.erase(expected);
    }
    BOOST_REQUIRE_EQUAL(map.size(), plain.size());
  }
  size_t seen = 0;
  map.each([&](const LiveBlock& block) {
    ++seen;
    BOOST_TEST(plain.at(block.ptr) == block.bytes);
  });
  BOOST_TEST(seen == plain.size());
}

// So many that some have the same 32 bits of hash.
BOOST_AUTO_TEST_CASE(blocks_whose_hashes_are_the_same) {
  constexpr uint64_t kMany = 400'000;
  BlockMap map;
  for (uint64_t i = 1; i <= kMany; ++i) {
    LiveBlock block;
    block.ptr = i * 512;
    BOOST_REQUIRE(map.find(block.ptr) == nullptr);
    map.insert(block);
  }
  for (uint64_t i = 1; i <= kMany; ++i) {
    LiveBlock* found = map.find(i * 512);
    BOOST_REQUIRE(found != nullptr && found->ptr == i * 512);
    map.erase(found);
  }
  BOOST_TEST(map.size() == 0U);
}

BOOST_AUTO_TEST_CASE(holes_in_any_order_of_blocks) {
  constexpr uint64_t kStep = 512;
  std::minstd_rand random(2);
  for (int round = 0; round < 500; ++round) {
    AddressMap map;
    std::vector<bool> held(80);
    for (int i = 0; i < 12; ++i) {
      size_t at = 1 + random() % 60;
      size_t steps = 1 + random() % 8;
      map.add(at * kStep, steps * kStep - random() % kStep);
      std::fill_n(held.begin() + static_cast<long>(at), steps, true);
    }
    uint64_t bytes = 0;
    uint64_t count = 0;
    for (size_t i = 1; i < held.size(); ++i) {
      bytes += held[i] ? kStep : 0;
      count += held[i] && !held[i - 1] ? 1 : 0;
    }
    std::vector<std::pair<uint64_t, uint64_t>> live;
    Holes holes = map.holes(live);
    BOOST_REQUIRE_EQUAL(holes.bytes, bytes);
    BOOST_REQUIRE_EQUAL(holes.count, count);
  }
}

// Between digits of the fields beside it, and with each character a wrong one.
BOOST_AUTO_TEST_CASE(numbers_of_all_lengths) {
  auto bytes_of = [](const std::string& number) {
    std::string text = "time,thread,bytes,action,ptr,seq\n999999999999,11111111," + number + ",allocate,0x7,77777777\n";
    RowReader reader(text);
    const Event* row = reader.next();
    BOOST_REQUIRE(row != nullptr);
    BOOST_TEST(row->time == 999999999999U);
    BOOST_TEST(row->seq == 77777777U);
    return row->bytes;
  };
  const std::string digits = "18446744073709551614";
  for (size_t size = 1; size <= digits.size(); ++size) {
    std::string number = digits.substr(0, size);
    BOOST_TEST(bytes_of(number) == std::stoull(number));
    for (size_t i = 0; i < size; ++i) {
      for (char wrong : {'/', ':', 'a', ' ', '-', '\x80', '\0'}) {
        std::string bad = number;
        bad[i] = wrong;
        BOOST_TEST(bytes_of(bad) == kNone);
      }
    }
  }
  BOOST_TEST(bytes_of("") == kNone);
  BOOST_TEST(bytes_of("000000000000000000000000000000000000012") == 12U);
}

// A header as we write it and one in another order say the same of a row, wherever it lies in the steps that are searched at
// once, with the end of the file close behind it.
BOOST_AUTO_TEST_CASE(rows_at_every_offset) {
  std::string ours =
      "thread,time,action,ptr,bytes,stream,device,tag,query_id,seq,generation,kind,api,result,message,live_bytes,"
      "elapsed_ns,stack_id,thread_name\n";
  for (size_t more = 0; more < 200; ++more) {
    std::string name(more, 'n');
    std::string row = "7,100,allocate,0x700,42,,0,tag,,5,6,plain,cuMemAlloc_v2,ok,,43,44,45," + name + "\n";
    for (const std::string& end : {std::string(), std::string("\r")}) {
      std::string text = ours + row + row.substr(0, row.size() - 1) + end + "\n";
      RowReader reader(text);
      for (uint64_t line = 2; line <= 3; ++line) {
        const Event* event = reader.next();
        BOOST_REQUIRE(event != nullptr);
        BOOST_TEST(reader.line() == line);
        BOOST_TEST(event->ptr == 0x700U);
        BOOST_TEST(event->stream == kNone);
        BOOST_TEST(event->query_id == "");
        BOOST_TEST(event->stack_id == 45U);
        BOOST_TEST(event->thread_name == name);
      }
      BOOST_TEST(reader.next() == nullptr);
    }
    std::string too_many = ours + row.substr(0, row.size() - 1) + ",more\n" + row;
    RowReader reader(too_many);
    BOOST_REQUIRE(reader.next() != nullptr);
    BOOST_TEST(reader.line() == 3U);
    BOOST_TEST(reader.foreign_rows() == 1U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
