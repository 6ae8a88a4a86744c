// AsyncCudaResource: order across streams, frees that wait without making a stream wait, settling, shutdown.
#include <atomic>
#include <set>
#include <thread>

#include "tests/stack/harness.h"

using namespace stack_tests;

BOOST_TEST_DONT_PRINT_LOG_VALUE(Error)
BOOST_TEST_DONT_PRINT_LOG_VALUE(BlockState)

namespace {

struct AsyncFixture {
  StreamPool streams{*Gpu::get().api, 0};
  StreamId s = streams.acquire().id;
  StreamId u = streams.acquire().id;
  StreamId v = streams.acquire().id;
  AsyncCudaResource resource{streams};
  Current current{streams};

  AsyncFixture() { Gpu::get().seed(0); }
  DeviceBlock allocate(size_t bytes, StreamId on) {
    ResourceResult<DeviceBlock> result = resource.allocate(bytes, on);
    BOOST_REQUIRE(result.ok());
    return std::move(*result);
  }
  void use(const DeviceBlock& block, StreamId on, Access access, unsigned char value) {
    BOOST_REQUIRE(resource.prepare_block_use(block.id(), on, access).ok());
    fill(streams, on, block, value);
    BOOST_REQUIRE(resource.finish_block_use(block.id(), on, access).ok());
  }
  uint64_t event_operations() {
    StreamPool::Counters all = streams.counters();
    return all.records + all.waits + all.queries;
  }
  void settle() { BOOST_TEST(resource.reap_pending(ReapGoal{.patience_ns = 2'000'000'000}).ok()); }
};

}  // namespace

// The free waits for recorded uses: the block's memory is not given out while a late write to it is on its way.
BOOST_FIXTURE_TEST_CASE(a_recorded_use_keeps_the_memory, AsyncFixture) {
  for (unsigned round = 1; round <= 64; ++round) {
    Gpu::get().seed(round);
    Gate gate(streams);
    DeviceBlock a = allocate(4096, s);
    fill(streams, s, a, 0x00);
    BOOST_REQUIRE(resource.prepare_block_use(a.id(), u, Access::write).ok());
    gate.hold(u);
    fill(streams, u, a, 0xCD);
    BOOST_TEST(resource.record_block_use(a, u).ok());
    BOOST_TEST(resource.deallocate(a).ok());
    BOOST_TEST((a.state == BlockState::retired));
    DeviceBlock b = allocate(4096, s);
    fill(streams, s, b, 0xBB);
    sync(streams, s);
    gate.open();
    sync(streams, u);
    BOOST_TEST(all_are(read_now(b), 0xBB));
    BOOST_TEST(resource.deallocate(b).ok());
  }
  settle();
  BOOST_TEST(resource.bytes_outstanding() == 0);
}

// Its twin: the same without telling the resource. This must corrupt, or the test above proves nothing.
BOOST_FIXTURE_TEST_CASE(an_unrecorded_use_corrupts, AsyncFixture) {
  Gpu::get().judge_uses(false);
  int corrupt = 0;
  for (unsigned round = 1; round <= 64; ++round) {
    Gpu::get().seed(round);
    Gate gate(streams);
    DeviceBlock a = allocate(4096, s);
    fill(streams, s, a, 0x00);
    sync(streams, s);
    gate.hold(u);
    fill(streams, u, a, 0xCD);
    BOOST_TEST(resource.deallocate(a).ok());
    DeviceBlock b = allocate(4096, s);
    fill(streams, s, b, 0xBB);
    sync(streams, s);
    gate.open();
    sync(streams, u);
    corrupt += all_are(read_now(b), 0xBB) ? 0 : 1;
    BOOST_TEST(resource.deallocate(b).ok());
  }
  BOOST_TEST(corrupt >= 1);
  Gpu::get().judge_uses(true);
}

// Without a gate, as a program would: the memory does come back, and what comes back holds the last write.
BOOST_FIXTURE_TEST_CASE(memory_comes_back_after_its_uses, AsyncFixture) {
  std::set<uint64_t> seen;
  int reused = 0;
  for (unsigned round = 1; round <= 64; ++round) {
    Gpu::get().seed(round);
    DeviceBlock a = allocate(4096, s);
    reused += seen.insert(a.ptr).second ? 0 : 1;
    fill(streams, s, a, 0x00);
    use(a, u, Access::write, 0xCD);
    BOOST_TEST(resource.deallocate(a).ok());
    DeviceBlock b = allocate(4096, s);
    reused += seen.insert(b.ptr).second ? 0 : 1;
    fill(streams, s, b, 0xBB);
    sync(streams, s);
    sync(streams, u);
    BOOST_TEST(all_are(read_now(b), 0xBB));
    BOOST_TEST(resource.deallocate(b).ok());
  }
  BOOST_TEST(reused > 0);
}

BOOST_FIXTURE_TEST_CASE(a_slow_consumer_does_not_stall_the_allocation_stream, AsyncFixture) {
  Gate gate(streams);
  DeviceBlock a = allocate(4096, s);
  BOOST_REQUIRE(resource.prepare_block_use(a.id(), u, Access::read).ok());
  gate.hold(u);
  BOOST_REQUIRE(resource.finish_block_use(a.id(), u, Access::read).ok());
  BOOST_TEST(resource.deallocate(a).ok());
  for (int i = 0; i < 100; ++i) {
    DeviceBlock b = allocate(4096, s);
    fill(streams, s, b, 0xBB);
    BOOST_TEST(resource.deallocate(b).ok());
  }
  BOOST_TEST(becomes_idle(streams, s));
  BOOST_TEST(resource.pending_bytes() >= 4096);
  // One slow stream does not hide what another has finished.
  DeviceBlock c = allocate(1024, s);
  use(c, v, Access::write, 1);
  BOOST_TEST(resource.deallocate(c).ok());
  BOOST_TEST(becomes_idle(streams, v));
  BOOST_TEST(becomes_idle(streams, s));
  for (int i = 0; i < 100 && resource.pending_bytes() > 4096; ++i) {
    BOOST_TEST(resource.reap_pending().ok());
  }
  BOOST_TEST(resource.pending_bytes() == 4096);
  gate.open();
  sync(streams, u);
  settle();
  BOOST_TEST(resource.bytes_outstanding() == 0);
}

// Nothing is recorded until another stream needs it, and one event then stands for all before it.
BOOST_FIXTURE_TEST_CASE(event_operations_are_few, AsyncFixture) {
  uint64_t before = event_operations();
  for (int i = 0; i < 100; ++i) {
    DeviceBlock block = allocate(4096, s);
    fill(streams, s, block, 1);
    BOOST_REQUIRE(resource.prepare_block_use(block.id(), s, Access::write).ok());
    BOOST_REQUIRE(resource.finish_block_use(block.id(), s, Access::write).ok());
    BOOST_TEST(resource.deallocate(block).ok());
  }
  BOOST_TEST(event_operations() == before);

  DeviceBlock block = allocate(4096, s);
  before = event_operations();
  BOOST_REQUIRE(resource.prepare_block_use(block.id(), u, Access::read).ok());
  BOOST_TEST(event_operations() - before <= 2);
  BOOST_REQUIRE(resource.finish_block_use(block.id(), u, Access::read).ok());
  BOOST_TEST(event_operations() - before <= 2);
  before = event_operations();
  for (int i = 0; i < 100; ++i) {  // known by now
    BOOST_REQUIRE(resource.prepare_block_use(block.id(), u, Access::read).ok());
    BOOST_REQUIRE(resource.finish_block_use(block.id(), u, Access::read).ok());
  }
  BOOST_TEST(event_operations() == before);
  // Ping-pong: each pair waits for the other's last write.
  for (int i = 0; i < 100; ++i) {
    before = event_operations();
    StreamId on = i % 2 == 0 ? s : u;
    BOOST_REQUIRE(resource.prepare_block_use(block.id(), on, Access::read_write).ok());
    BOOST_REQUIRE(resource.finish_block_use(block.id(), on, Access::read_write).ok());
    BOOST_TEST(event_operations() - before <= 2);
  }
  BOOST_TEST(resource.deallocate(block).ok());
}

BOOST_FIXTURE_TEST_CASE(readers_for_ever_cost_one_note_a_stream, AsyncFixture) {
  DeviceBlock block = allocate(4096, s);
  BOOST_TEST(resource.pending_use_count(block.ptr) == 0);
  for (int i = 0; i < 10'000; ++i) {
    StreamId on = i % 3 == 0 ? s : i % 3 == 1 ? u : v;
    BOOST_REQUIRE(resource.prepare_block_use(block.id(), on, Access::read).ok());
    BOOST_REQUIRE(resource.finish_block_use(block.id(), on, Access::read).ok());
  }
  BOOST_TEST(resource.pending_use_count(block.ptr) == 2);
  BOOST_TEST(resource.deallocate(block).ok());
  BOOST_TEST(resource.pending_use_count(block.ptr) == -1);
}

// A write that was never prepared does not drop the read before it.
BOOST_FIXTURE_TEST_CASE(no_interleaving_loses_a_use, AsyncFixture) {
  {
    Gate gate(streams);
    DeviceBlock a = allocate(4096, s);
    BOOST_REQUIRE(resource.prepare_block_use(a.id(), u, Access::read).ok());
    gate.hold(u);
    BOOST_REQUIRE(resource.finish_block_use(a.id(), u, Access::read).ok());
    BOOST_REQUIRE(resource.finish_block_use(a.id(), v, Access::write).ok());
    BOOST_TEST(resource.deallocate(a).ok());
    BOOST_TEST(becomes_idle(streams, v));
    BOOST_TEST(resource.reap_pending().ok());
    BOOST_TEST(resource.pending_bytes() == 4096);
  }
  settle();
  BOOST_TEST(resource.pending_bytes() == 0);
  {  // given back between the launch and the finish: what was launched by then is waited for, and the finish says so
    Gate gate(streams);
    DeviceBlock a = allocate(4096, s);
    BlockId id = a.id();
    BOOST_REQUIRE(resource.prepare_block_use(id, u, Access::write).ok());
    gate.hold(u);
    fill(streams, u, a, 0xCD);
    BOOST_TEST(resource.deallocate(a).ok());
    DeviceBlock b = allocate(4096, s);
    fill(streams, s, b, 0xBB);
    BOOST_TEST(becomes_idle(streams, s));
    BOOST_TEST((resource.finish_block_use(id, u, Access::write).error == Error::use_after_free));
    gate.open();
    sync(streams, u);
    BOOST_TEST(all_are(read_now(b), 0xBB));
    BOOST_TEST(resource.deallocate(b).ok());
  }
  {  // a use recorded beside an open one does not close it
    Gate gate(streams);
    DeviceBlock a = allocate(4096, s);
    BOOST_REQUIRE(resource.prepare_block_use(a.id(), u, Access::write).ok());
    BOOST_REQUIRE(resource.record_block_use(a, u).ok());
    sync(streams, u);
    BOOST_TEST(streams.is_done(u, streams.mark(u)));  // what was recorded is known to be done
    gate.hold(u);
    BOOST_TEST(resource.deallocate(a).ok());
    BOOST_TEST(resource.reap_pending().ok());
    BOOST_TEST(resource.pending_bytes() == 4096);
  }
  settle();
}

// 4 workers x 200 x 1024 B on 4 streams, and a reaper; then 20 rounds of 40.
BOOST_FIXTURE_TEST_CASE(reap_race, AsyncFixture) {
  StreamId on[] = {s, u, v, streams.acquire().id};
  auto race = [&](int iterations) {
    std::atomic<int> running{4};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (StreamId each : on) {
      threads.emplace_back([&, each] {
        for (int i = 0; i < iterations; ++i) {
          ResourceResult<DeviceBlock> block = resource.allocate(1024, each);
          wrong += block.ok() && resource.deallocate(*block).ok() ? 0 : 1;
        }
        --running;
      });
    }
    threads.emplace_back([&] {
      while (running != 0) {
        wrong += resource.reap_pending().ok() ? 0 : 1;
      }
    });
    for (std::thread& each : threads) {
      each.join();
    }
    BOOST_TEST(wrong == 0);
    settle();
    BOOST_TEST(resource.pending_bytes() == 0);
    BOOST_TEST(resource.bytes_outstanding() == 0);
  };
  race(200);
  for (int round = 0; round < 20; ++round) {
    race(40);
  }
}

BOOST_FIXTURE_TEST_CASE(out_of_memory_settles_and_tries_again, AsyncFixture) {
  if (!Gpu::get().simulated()) {
    return;
  }
  Gpu::get().sim_faults("cuMemAllocFromPoolAsync:1:2");
  DeviceBlock block = allocate(4096, s);
  Gpu::get().sim_faults("");
  BOOST_TEST(resource.deallocate(block).ok());
}

// A device that failed is told as it is.
BOOST_FIXTURE_TEST_CASE(a_device_fault_is_no_budget_fault, AsyncFixture) {
  if (!Gpu::get().simulated()) {
    return;
  }
  DeviceLedger ledger;
  GlobalDeviceBudget budget(resource, 4096, ledger);
  Gate gate(streams);
  gate.hold(s);
  ResourceResult<DeviceBlock> block = budget.allocate(4096, s);
  BOOST_REQUIRE(block.ok());
  BOOST_TEST(budget.deallocate(*block).ok());
  Gpu::get().sim_faults("cuEventQuery:1+:700,cuStreamQuery:1+:700");
  BOOST_TEST(budget.reap_pending().code == CUDA_ERROR_ILLEGAL_ADDRESS);
  Status refused = budget.allocate(4096, u).status();
  BOOST_TEST((refused.error == Error::driver));
  BOOST_TEST(refused.code == CUDA_ERROR_ILLEGAL_ADDRESS);
  Gpu::get().sim_faults("");
}

// Somebody freed a block past the resource, and the driver gave its address out again.
BOOST_FIXTURE_TEST_CASE(a_block_that_was_freed_past_us, AsyncFixture) {
  DeviceBlock lost = allocate(4096, s);
  uint64_t ptr = lost.ptr;
  BOOST_REQUIRE(Gpu::get().api->cuMemFreeAsync(ptr, handle(streams, s)) == CUDA_SUCCESS);
  std::vector<DeviceBlock> blocks;
  uint64_t bytes = 0;
  do {
    blocks.push_back(allocate(4096, s));
    bytes += 4096;
  } while (blocks.back().ptr != ptr && blocks.size() < 64);
  BOOST_REQUIRE(blocks.back().ptr == ptr);
  BOOST_TEST(resource.bytes_outstanding() == bytes);
  BOOST_TEST((resource.deallocate(lost).error == Error::use_after_free));
  for (DeviceBlock& each : blocks) {
    BOOST_TEST(resource.deallocate(each).ok());
  }
}

BOOST_FIXTURE_TEST_CASE(an_orderly_shutdown, AsyncFixture) {
  DeviceBlock a = allocate(1000, s);
  DeviceBlock b = allocate(24, s);
  use(b, u, Access::write, 1);
  DeviceBlock c = allocate(4096, v);
  BOOST_TEST(resource.deallocate(c).ok());
  AsyncCudaResource::Leaks leaks = resource.shutdown(2'000'000'000);
  BOOST_TEST(leaks.blocks == 2);
  BOOST_TEST(leaks.bytes == 1024);
  BOOST_TEST(leaks.unsettled_bytes == 0);
  BOOST_TEST((resource.allocate(64, s).status().error == Error::stream_misuse));
  BOOST_TEST((resource.deallocate(a).error == Error::use_after_free));
}

// A stream that is never idle: what is done comes to be known, however much is enqueued and asked for after it.
BOOST_FIXTURE_TEST_CASE(old_work_is_known_to_be_done_on_a_busy_stream, AsyncFixture) {
  Tick old = streams.mark(s);
  BOOST_TEST(streams.order(u, s, old).ok());
  sync(streams, s);
  Gate gate(streams);
  gate.hold(s);
  for (int i = 0; i < 20; ++i) {
    BOOST_TEST(streams.order(v, s, streams.mark(s)).ok());
  }
  BOOST_TEST(streams.is_done(s, old));
  BOOST_TEST(!streams.is_done(s, streams.mark(s)));
}

// Frees that were asked about are not held up by those that follow.
BOOST_FIXTURE_TEST_CASE(later_frees_do_not_hide_earlier_ones, AsyncFixture) {
  Gate first(streams);
  Gate second(streams);
  DeviceBlock a = allocate(4096, s);
  DeviceBlock b = allocate(512, s);
  first.hold(s);
  BOOST_TEST(resource.deallocate(a).ok());
  BOOST_TEST(resource.reap_pending().ok());
  BOOST_TEST(resource.pending_bytes() == 4096);
  second.hold(s);
  BOOST_TEST(resource.deallocate(b).ok());
  BOOST_TEST(resource.pending_bytes() == 4608);
  first.open();
  BOOST_TEST(resource.reap_pending(ReapGoal{.bytes = 4096, .patience_ns = 2'000'000'000}).ok());
  BOOST_TEST(resource.pending_bytes() == 512);
}

BOOST_AUTO_TEST_CASE(streams_of_a_pool) {
  StreamPool streams(*Gpu::get().api, 0, 3);
  BOOST_TEST(streams.max_streams() == 3);
  std::set<uint32_t> indices;
  for (int i = 0; i < 3; ++i) {
    AcquiredStream acquired = streams.acquire();
    BOOST_TEST((acquired.error == StreamPoolError::none));
    BOOST_TEST(streams.resolve(acquired.id) != nullptr);
    indices.insert(acquired.id.index());
  }
  BOOST_TEST((indices == std::set<uint32_t>{1, 2, 3}));
  BOOST_TEST((streams.acquire().error == StreamPoolError::capacity));
  BOOST_TEST(streams.non_default_len() == 3);
  BOOST_TEST(streams.resolve(kDefaultStream) == CU_STREAM_LEGACY);
  BOOST_TEST(StreamPool(*Gpu::get().api, 0, 0).max_streams() == 1);
  if (Gpu::get().simulated()) {
    StreamPool failing(*Gpu::get().api, 0);
    Gpu::get().sim_faults("cuStreamCreate:1:2");
    BOOST_TEST((failing.acquire().error == StreamPoolError::fork_failed));
    Gpu::get().sim_faults("");
    BOOST_TEST(failing.acquire().id.index() == 1);
  }
  BOOST_TEST(!StreamPool(*Gpu::get().api, 99).status().ok());
}

// A stream of the pool starts after what the default stream had.
BOOST_FIXTURE_TEST_CASE(a_stream_is_forked_from_the_default_one, AsyncFixture) {
  Gate gate(streams);
  DeviceBlock block = allocate(4096, s);
  sync(streams, s);
  gate.hold(kDefaultStream);
  fill(streams, kDefaultStream, block, 0xAA);
  StreamId forked = streams.acquire().id;
  fill(streams, forked, block, 0xBB);
  gate.open();
  sync(streams, forked);
  BOOST_TEST(all_are(read_now(block), 0xBB));
  BOOST_TEST(resource.deallocate(block).ok());
}
