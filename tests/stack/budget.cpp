// GlobalDeviceBudget over real resources: edges, what is pending, promises, many runtimes on one GPU, threads.
#include <atomic>
#include <thread>

#include "tests/stack/harness.h"

using namespace stack_tests;

BOOST_TEST_DONT_PRINT_LOG_VALUE(Error)
BOOST_TEST_DONT_PRINT_LOG_VALUE(LogAction)

namespace {

constexpr uint64_t kLimit = 16 << 10;

// The order of the specification: budget outermost.
struct BudgetStack {
  StreamPool streams{*Gpu::get().api, 0};
  StreamId s = streams.acquire().id;
  StreamId u = streams.acquire().id;
  AsyncCudaResource async{streams};
  InMemorySink sink;
  LoggingResource logging{async, sink};
  GlobalDeviceBudget budget{logging, kLimit};

  BudgetStack() { Gpu::get().seed(0); }
  XlogDeviceRuntime runtime = std::move(*XlogDeviceRuntime::with_resource(0, streams, budget));
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(budget_edges, BudgetStack) {
  ResourceResult<DeviceBlock> block = runtime.allocate(4096, s);
  BOOST_REQUIRE(block.ok());
  BOOST_TEST(runtime.deallocate(*block).ok());
  sync(streams, s);
  BOOST_TEST(runtime.reap_pending().ok());
  std::vector<LogRecord> records = sink.snapshot();
  BOOST_REQUIRE(records.size() == 3);
  BOOST_TEST((records[0].action == LogAction::allocate));
  BOOST_TEST((records[1].action == LogAction::deallocate));
  BOOST_TEST((records[2].action == LogAction::reap_pending));
  BOOST_TEST(budget.reserved_bytes() == 0);
  sink.clear();

  Status refused = runtime.allocate(kLimit + 1, s).status();
  BOOST_TEST((refused.error == Error::out_of_budget));
  BOOST_TEST(refused.requested == kLimit + 1);
  BOOST_TEST(refused.remaining == kLimit);
  BOOST_TEST(sink.is_empty());

  ResourceResult<DeviceBlock> most = runtime.allocate(12288, s);
  BOOST_REQUIRE(most.ok());
  refused = runtime.allocate(8192, s).status();
  BOOST_TEST((refused.error == Error::out_of_budget));
  BOOST_TEST(refused.requested == 8192);
  BOOST_TEST(refused.current == 12288);
  BOOST_TEST(refused.remaining == 4096);
  BOOST_TEST(refused.limit == kLimit);
  ResourceResult<DeviceBlock> rest = runtime.allocate(4096, s);  // exactly at the limit
  BOOST_REQUIRE(rest.ok());
  BOOST_TEST((runtime.allocate(1, s).status().error == Error::out_of_budget));
  BOOST_TEST(runtime.deallocate(*most).ok());
  BOOST_TEST(runtime.deallocate(*rest).ok());
  BudgetSnapshot snapshot;
  BOOST_TEST(runtime.resource().budget_snapshot(snapshot));
  BOOST_TEST(snapshot.limit == kLimit);
}

// A handle that is refused releases nothing.
BOOST_FIXTURE_TEST_CASE(a_bogus_deallocate_releases_nothing, BudgetStack) {
  ResourceResult<DeviceBlock> block = runtime.allocate(4096, s);
  DeviceBlock bogus;
  bogus.ptr = 0xdeadbeef00;
  bogus.bytes = 4096;
  bogus.device = 0;
  BOOST_TEST((runtime.deallocate(bogus).error == Error::use_after_free));
  BOOST_TEST(budget.reserved_bytes() == 4096);
  BOOST_TEST(runtime.deallocate(*block).ok());
}

// The sum of what a loop allocates passes the limit many times: what is pending is settled, not refused.
BOOST_FIXTURE_TEST_CASE(a_loop_reaps_and_goes_on, BudgetStack) {
  for (int i = 0; i < 64; ++i) {
    ResourceResult<DeviceBlock> block = runtime.allocate(12288, i % 2 == 0 ? s : u);
    BOOST_REQUIRE(block.ok());
    fill(streams, block->alloc_stream, *block, 1);
    BOOST_TEST(runtime.deallocate(*block).ok());
  }
}

// What is pending on a stream is that stream's at once, also while the free has not come due; another stream waits.
BOOST_FIXTURE_TEST_CASE(pending_bytes_belong_to_their_stream, BudgetStack) {
  Gate gate(streams);
  gate.hold(s);
  ResourceResult<DeviceBlock> block = runtime.allocate(12288, s);
  BOOST_REQUIRE(block.ok());
  BOOST_TEST(runtime.deallocate(*block).ok());
  BOOST_TEST(budget.reserved_bytes() == 12288);
  BOOST_TEST((runtime.allocate(8192, u).status().error == Error::out_of_budget));
  ResourceResult<DeviceBlock> again = runtime.allocate(16384, s);
  BOOST_REQUIRE(again.ok());
  BOOST_TEST(budget.reserved_bytes() == 16384);
  BOOST_TEST(runtime.deallocate(*again).ok());
  BOOST_TEST(budget.reserved_bytes() == 16384);
  gate.open();
  BOOST_TEST(runtime.allocate(16384, u).ok());  // comes due while it waits
}

BOOST_FIXTURE_TEST_CASE(promised_bytes, BudgetStack) {
  {
    ResourceResult<MemoryReservation> promise = runtime.reserve_memory(10000);
    BOOST_REQUIRE(promise.ok());
    BOOST_TEST(budget.reserved_bytes() == 10000);
    Status refused = runtime.allocate(8192, s).status();
    BOOST_TEST((refused.error == Error::out_of_budget));
    BOOST_TEST(refused.current == 10000);
    BOOST_TEST((runtime.reserve_memory(8192).status().error == Error::out_of_budget));
    ResourceResult<DeviceBlock> a = runtime.allocate(*promise, 6000, s);
    ResourceResult<DeviceBlock> b = runtime.allocate(*promise, 3000, u);
    BOOST_REQUIRE(a.ok());
    BOOST_REQUIRE(b.ok());
    BOOST_TEST(promise->remaining() == 1000);
    BOOST_TEST(budget.reserved_bytes() == 10000);
    refused = runtime.allocate(*promise, 1001, s).status();
    BOOST_TEST((refused.error == Error::out_of_budget));
    BOOST_TEST(refused.current == 9000);
    BOOST_TEST(refused.limit == 10000);
    BOOST_TEST(refused.remaining == 1000);
    if (Gpu::get().simulated()) {  // what the driver refuses goes back to the promise
      Gpu::get().sim_faults("cuMemAllocFromPoolAsync:1+:2");
      BOOST_TEST((runtime.allocate(*promise, 1000, s).status().error == Error::driver));
      Gpu::get().sim_faults("");
      BOOST_TEST(promise->remaining() == 1000);
    }
    BOOST_TEST(runtime.deallocate(*a).ok());
    BOOST_TEST(runtime.deallocate(*b).ok());
    MemoryReservation moved = std::move(*promise);
    BOOST_TEST(moved.remaining() == 1000);
    BOOST_TEST(promise->remaining() == 0);
  }
  sync(streams, s);
  sync(streams, u);
  BOOST_TEST(runtime.reap_pending().ok());
  BOOST_TEST(budget.reserved_bytes() == 0);
  XlogDeviceRuntime bare = std::move(*XlogDeviceRuntime::with_resource(0, streams, async));
  BOOST_TEST((bare.reserve_memory(1).status().error == Error::driver));  // nothing that could promise
}

// However many runtimes a process composes for a GPU, they share what it has.
BOOST_AUTO_TEST_CASE(one_budget_a_physical_gpu) {
  BudgetStack first;
  ResourceResult<DeviceBlock> a = first.runtime.allocate(8192, first.s);
  BOOST_REQUIRE(a.ok());
  {
    BudgetStack second;
    ResourceResult<DeviceBlock> b = second.runtime.allocate(8192, second.s);
    BOOST_REQUIRE(b.ok());
    BOOST_TEST((first.runtime.allocate(1, first.s).status().error == Error::out_of_budget));
    // What is pending in the other is settled for this one.
    BOOST_TEST(second.runtime.deallocate(*b).ok());
    sync(second.streams, second.s);
    ResourceResult<DeviceBlock> c = first.runtime.allocate(4096, first.u);
    BOOST_REQUIRE(c.ok());
    BOOST_TEST(first.runtime.deallocate(*c).ok());
    ResourceResult<DeviceBlock> left_behind = second.runtime.allocate(4096, second.s);
    BOOST_REQUIRE(left_behind.ok());
    // A resource that is budgeted only now brings along what it has out.
    DeviceLedger ledger;
    GlobalDeviceBudget late(second.async, kLimit, ledger);
    BOOST_TEST(late.reserved_bytes() == 4096);
    sync(first.streams, first.u);
  }
  BOOST_TEST(first.runtime.reap_pending().ok());
  BOOST_TEST(first.budget.reserved_bytes() == 8192);  // the second took its own along when it ended
  BOOST_TEST(first.runtime.deallocate(*a).ok());
}

// A limit of one user below the limit of the GPU: both count, and both are told.
BOOST_FIXTURE_TEST_CASE(a_budget_over_a_budget, BudgetStack) {
  DeviceLedger mine;
  GlobalDeviceBudget user(budget, 8192, mine);
  for (int i = 0; i < 16; ++i) {
    ResourceResult<DeviceBlock> block = user.allocate(8192, i % 3 == 0 ? u : s);
    BOOST_REQUIRE(block.ok());
    BOOST_TEST((user.allocate(1, s).status().error == Error::out_of_budget));
    BOOST_TEST(user.deallocate(*block).ok());
    BOOST_TEST(user.reserved_bytes() <= 8192);
  }
  sync(streams, s);
  sync(streams, u);
  BOOST_TEST(user.reap_pending().ok());
  BOOST_TEST(user.reserved_bytes() == 0);
  BOOST_TEST(budget.reserved_bytes() == 0);
}

// Exact under threads, without a lock around it all: never above the limit, nothing lost afterwards.
BOOST_AUTO_TEST_CASE(exact_under_threads_on_async) {
  StreamPool streams(*Gpu::get().api, 0);
  AsyncCudaResource async(streams);
  DeviceLedger ledger;
  GlobalDeviceBudget budget(async, 64 << 10, ledger);
  std::atomic<uint64_t> live{0};
  std::atomic<int> wrong{0};
  std::atomic<int> served{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    StreamId on = streams.acquire().id;
    threads.emplace_back([&, on, t] {
      for (size_t i = 0; i < 300; ++i) {
        size_t bytes = 1 + (i * 7919 + t * 104729) % 20000;
        ResourceResult<DeviceBlock> block = budget.allocate(bytes, on);
        if (block.ok()) {
          ++served;
          wrong += live.fetch_add(bytes) + bytes > 64 << 10 ? 1 : 0;
          live.fetch_sub(bytes);
          wrong += budget.deallocate(*block).ok() ? 0 : 1;
        } else {
          wrong += block.status().error == Error::out_of_budget ? 0 : 1;
        }
      }
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
  BOOST_TEST(wrong == 0);
  BOOST_TEST(served > 1000);
  BOOST_TEST(budget.reap_pending(ReapGoal{.patience_ns = 2'000'000'000}).ok());
  BOOST_TEST(budget.reserved_bytes() == 0);
  BOOST_TEST(async.bytes_outstanding() == 0);
}
