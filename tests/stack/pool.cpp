// PoolResource: reuse, joining, chunks that change their stream, what goes back to the upstream.
#include <atomic>
#include <set>
#include <thread>

#include "tests/stack/harness.h"

using namespace stack_tests;

BOOST_TEST_DONT_PRINT_LOG_VALUE(Error)

namespace {

constexpr size_t kChunk = 2 << 20;

struct PoolFixture {
  StreamPool streams{*Gpu::get().api, 0};
  StreamId s = streams.acquire().id;
  StreamId u = streams.acquire().id;
  AsyncCudaResource async{streams};
  DeviceLedger ledger;
  GlobalDeviceBudget upstream{async, 2 * kChunk, ledger};
  PoolResource pool{upstream, streams, {.chunk_bytes = kChunk}};
  Current current{streams};

  PoolFixture() { Gpu::get().seed(0); }
  DeviceBlock allocate(size_t bytes, StreamId on) {
    ResourceResult<DeviceBlock> result = pool.allocate(bytes, on);
    BOOST_REQUIRE(result.ok());
    return std::move(*result);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(what_is_freed_is_the_next_of_its_stream, PoolFixture) {
  Gate gate(streams);
  gate.hold(s);
  DeviceBlock a = allocate(1000, s);
  uint64_t ptr = a.ptr;
  BOOST_TEST(a.taken == 1024);
  BOOST_TEST(pool.deallocate(a).ok());
  DeviceBlock b = allocate(1000, s);  // while the stream stands still
  BOOST_TEST(b.ptr == ptr);
  DeviceBlock c = allocate(1000, u);  // another stream may not have any of it
  BOOST_TEST((c.ptr < ptr || c.ptr >= ptr + kChunk));
  BOOST_TEST(pool.held_bytes() == 2 * kChunk);
  BOOST_TEST(pool.deallocate(b).ok());
  BOOST_TEST(pool.deallocate(c).ok());
}

// A chunk cut into pieces is one piece again, whatever the order of the frees.
BOOST_FIXTURE_TEST_CASE(free_neighbours_join, PoolFixture) {
  for (int order = 0; order < 3; ++order) {
    std::vector<DeviceBlock> blocks;
    std::set<uint64_t> pointers;
    for (int i = 0; i < 16; ++i) {
      blocks.push_back(allocate(kChunk / 16, s));
      pointers.insert(blocks.back().ptr);
    }
    BOOST_TEST(pool.held_bytes() == kChunk);
    BOOST_TEST(pointers.size() == 16);
    BOOST_TEST(*pointers.rbegin() - *pointers.begin() == kChunk - kChunk / 16);
    for (size_t i = 0; i < 16; ++i) {
      size_t at = order == 0 ? i : order == 1 ? 15 - i : (i * 7) % 16;
      BOOST_TEST(pool.deallocate(blocks[at]).ok());
    }
    DeviceBlock whole = allocate(kChunk, s);
    BOOST_TEST(pool.held_bytes() == kChunk);
    BOOST_TEST(pool.deallocate(whole).ok());
  }
}

// A chunk of which nothing is in use changes its stream: when its work is done, or under pressure by a wait on the GPU.
BOOST_FIXTURE_TEST_CASE(an_unused_chunk_changes_its_stream, PoolFixture) {
  DeviceBlock a = allocate(kChunk, s);
  fill(streams, s, a, 0xAA);
  uint64_t first = a.ptr;
  BOOST_TEST(pool.deallocate(a).ok());
  sync(streams, s);
  DeviceBlock b = allocate(kChunk, u);
  BOOST_TEST(b.ptr == first);
  BOOST_TEST(pool.held_bytes() == kChunk);
  DeviceBlock keep = allocate(kChunk, s);  // the upstream has no third
  Gate gate(streams);
  gate.hold(u);
  fill(streams, u, b, 0xCD);
  BOOST_TEST(pool.deallocate(b).ok());
  DeviceBlock c = allocate(kChunk, s);
  BOOST_TEST(c.ptr == first);
  fill(streams, s, c, 0xBB);
  gate.open();
  sync(streams, s);
  sync(streams, u);
  BOOST_TEST(all_are(read_now(c), 0xBB));
  BOOST_TEST(pool.deallocate(c).ok());
  BOOST_TEST(pool.deallocate(keep).ok());
}

BOOST_FIXTURE_TEST_CASE(what_is_not_used_goes_back, PoolFixture) {
  DeviceBlock a = allocate(1000, s);
  DeviceBlock b = allocate(1000, u);
  BOOST_TEST(ledger.reserved() == 2 * kChunk);
  BOOST_TEST(pool.trim() == 0);
  BOOST_TEST(pool.deallocate(a).ok());
  {
    Gate gate(streams);
    gate.hold(u);
    fill(streams, u, b, 1);
    BOOST_TEST(pool.deallocate(b).ok());
    sync(streams, s);
    BOOST_TEST(pool.trim() == kChunk);  // the other's work is not done
  }
  sync(streams, u);
  BOOST_TEST(pool.trim() == kChunk);
  BOOST_TEST(pool.held_bytes() == 0);
  BOOST_TEST(upstream.reap_pending(ReapGoal{.patience_ns = 2'000'000'000}).ok());
  BOOST_TEST(ledger.reserved() == 0);
}

// Many chunks in one arena: each that goes back is one, and the rest go on.
BOOST_FIXTURE_TEST_CASE(chunks_come_and_go, PoolFixture) {
  GlobalDeviceBudget wide(async, uint64_t{1} << 30, ledger);
  PoolResource many(wide, streams, {.chunk_bytes = kChunk});
  for (int round = 0; round < 5; ++round) {
    std::vector<DeviceBlock> blocks;
    std::set<uint64_t> pointers;
    for (int i = 0; i < 24; ++i) {
      ResourceResult<DeviceBlock> block = many.allocate(kChunk / 2, i % 8 == 7 ? u : s);
      BOOST_REQUIRE(block.ok());
      BOOST_TEST(pointers.insert(block->ptr).second);
      fill(streams, block->alloc_stream, *block, static_cast<unsigned char>(i));
      blocks.push_back(std::move(*block));
    }
    for (int i = 0; i < 24; i += 2) {  // whole chunks and halves
      BOOST_TEST(many.deallocate(blocks[static_cast<size_t>(i)]).ok());
    }
    BOOST_TEST(many.deallocate(blocks[1]).ok());
    BOOST_TEST(many.deallocate(blocks[9]).ok());
    sync(streams, s);
    sync(streams, u);
    uint64_t held = many.held_bytes();
    uint64_t given_back = many.trim();
    BOOST_TEST(given_back >= 2 * kChunk);
    BOOST_TEST(many.held_bytes() == held - given_back);
    for (size_t i = 3; i < 24; i += 2) {
      if (i != 9) {
        BOOST_TEST(all_are(read_now(blocks[i]), static_cast<unsigned char>(i)));
        BOOST_TEST(many.deallocate(blocks[i]).ok());
      }
    }
    BOOST_TEST(many.bytes_outstanding() == 0);
    sync(streams, s);
    sync(streams, u);
    many.trim();
    BOOST_TEST(many.held_bytes() == 0);
  }
}

// Where the upstream has no whole chunk any more, a request is still served with what there is, and at once.
BOOST_FIXTURE_TEST_CASE(less_than_a_chunk_is_left, PoolFixture) {
  ResourceResult<DeviceBlock> most = upstream.allocate(2 * kChunk - 8192, u);
  BOOST_REQUIRE(most.ok());
  DeviceBlock small = allocate(4096, s);
  BOOST_TEST(pool.held_bytes() == 4096);
  BOOST_TEST(pool.deallocate(small).ok());
  BOOST_TEST(upstream.deallocate(*most).ok());
}

// Pressure: a request that fits only when everything unused has gone back to the upstream.
BOOST_FIXTURE_TEST_CASE(pressure_makes_one_of_two_chunks, PoolFixture) {
  DeviceBlock a = allocate(kChunk, s);
  DeviceBlock b = allocate(kChunk, u);
  BOOST_TEST((pool.allocate(512, s).status().error == Error::out_of_budget));
  BOOST_TEST(pool.deallocate(a).ok());
  BOOST_TEST(pool.deallocate(b).ok());
  DeviceBlock both = allocate(2 * kChunk, s);
  BOOST_TEST(pool.held_bytes() == 2 * kChunk);
  BOOST_TEST(pool.deallocate(both).ok());
}

// A block with a use elsewhere is nobody's until the use is done.
BOOST_FIXTURE_TEST_CASE(a_use_elsewhere_keeps_the_range, PoolFixture) {
  Gate gate(streams);
  DeviceBlock a = allocate(kChunk, s);
  uint64_t ptr = a.ptr;
  BOOST_REQUIRE(pool.prepare_block_use(a.id(), u, Access::write).ok());
  gate.hold(u);
  fill(streams, u, a, 0xCD);
  BOOST_REQUIRE(pool.finish_block_use(a.id(), u, Access::write).ok());
  BOOST_TEST(pool.deallocate(a).ok());
  BOOST_TEST(pool.pending_bytes() == kChunk);
  DeviceBlock b = allocate(kChunk, s);
  BOOST_TEST(b.ptr != ptr);
  fill(streams, s, b, 0xBB);
  BOOST_TEST(becomes_idle(streams, s));
  gate.open();
  sync(streams, u);
  DeviceBlock c = allocate(kChunk, s);
  BOOST_TEST(c.ptr == ptr);
  BOOST_TEST(pool.pending_bytes() == 0);
  BOOST_TEST(pool.deallocate(b).ok());
  BOOST_TEST(pool.deallocate(c).ok());
}

BOOST_FIXTURE_TEST_CASE(threads_on_streams_of_their_own, PoolFixture) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  GlobalDeviceBudget wide(async, uint64_t{1} << 30, ledger);
  PoolResource shared(wide, streams, {.chunk_bytes = kChunk});
  for (int t = 0; t < 8; ++t) {
    StreamId on = streams.acquire().id;
    threads.emplace_back([&, on] {
      std::vector<DeviceBlock> blocks;
      for (size_t i = 0; i < 3000; ++i) {
        ResourceResult<DeviceBlock> block = shared.allocate(1 + i * 7919 % 100'000, on);
        wrong += block.ok() ? 0 : 1;
        if (block.ok()) {
          blocks.push_back(std::move(*block));
        }
        if (blocks.size() > 20) {
          size_t at = i * 31 % blocks.size();
          wrong += shared.deallocate(blocks[at]).ok() ? 0 : 1;
          std::swap(blocks[at], blocks.back());
          blocks.pop_back();
        }
      }
      for (DeviceBlock& block : blocks) {
        wrong += shared.deallocate(block).ok() ? 0 : 1;
      }
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
  BOOST_TEST(wrong == 0);
  BOOST_TEST(shared.bytes_outstanding() == 0);
  BOOST_TEST(shared.trim(2'000'000'000) != 0);
  BOOST_TEST(shared.held_bytes() == 0);
}
