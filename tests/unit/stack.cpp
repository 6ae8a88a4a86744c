// The stack of resources over a driver in memory.
#include <sys/resource.h>

#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

#include "runtime/base/driver_api.h"
#include "runtime/native_device.h"
#include "runtime/resource/address_table.h"

using namespace xlog;

namespace {

// A driver of one device: its memory is a counter, its streams say what they are told to.
struct FakeDriver {
  DriverApi api;
  static inline std::atomic<uint64_t> next{0x1000};
  static inline std::atomic<int> fail_alloc{0};  // that many next allocations fail
  static inline std::atomic<int> fail_free{0};
  static inline std::atomic<bool> forbidden{false};  // a capture forbids to allocate
  static inline std::atomic<bool> done{false};       // what the events say
  static inline std::atomic<uint64_t> events{0};
  static inline CUstream recorded_in{};
  static inline int over_context = 0;
  static inline const CUcontext current = reinterpret_cast<CUcontext>(0x4000);
  static inline std::atomic<int> allocations{0};

  FakeDriver() {
    next = 0x1000;
    fail_alloc = 0;
    fail_free = 0;
    forbidden = false;
    done = false;
    events = 0;
    recorded_in = nullptr;
    over_context = 0;
    allocations = 0;
    api.cuMemAlloc_v2 = [](CUdeviceptr* p, size_t bytes) {
      if (bytes >= kNeverServed) {
        *p = 0;
        return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_ERROR_OUT_OF_MEMORY;
      }
      if (fail_alloc > 0 && fail_alloc.fetch_sub(1) > 0) {
        *p = 0;
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
      ++allocations;
      *p = next.fetch_add(0x200);
      return CUDA_SUCCESS;
    };
    api.cuMemAllocPitch_v2 = [](CUdeviceptr* p, size_t* pitch, size_t width, size_t, unsigned) {
      *pitch = (width + 511) / 512 * 512;
      *p = next.fetch_add(0x200);
      return CUDA_SUCCESS;
    };
    api.cuMemAllocAsync = [](CUdeviceptr* p, size_t, CUstream) { return *p = next.fetch_add(0x200), CUDA_SUCCESS; };
    api.cuMemFree_v2 = [](CUdeviceptr) { return fail_free > 0 && fail_free.fetch_sub(1) > 0 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS; };
    api.cuMemFreeAsync = [](CUdeviceptr, CUstream) { return CUDA_SUCCESS; };
    api.cuCtxGetCurrent = [](CUcontext* c) { return *c = current, CUDA_SUCCESS; };
    api.cuCtxPushCurrent_v2 = [](CUcontext) { return CUDA_SUCCESS; };
    api.cuCtxPopCurrent_v2 = [](CUcontext*) { return CUDA_SUCCESS; };
    api.cuEventCreate = [](CUevent* e, unsigned) { return *e = reinterpret_cast<CUevent>(++events * 16), CUDA_SUCCESS; };
    api.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
    api.cuEventRecord = [](CUevent, CUstream s) { return recorded_in = s, CUDA_SUCCESS; };
    api.cuCtxRecordEvent = [](CUcontext, CUevent) { return ++over_context, CUDA_SUCCESS; };
    api.cuEventQuery = [](CUevent) { return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; };
  }
};

CUstream stream(uintptr_t n) { return reinterpret_cast<CUstream>(0x1000 + n); }  // 1 and 2 are the special handles
AllocationRequest plain(size_t bytes) { return {.bytes = bytes, .kind = Kind::plain, .api = "cuMemAlloc_v2"}; }
FreeRequest free_plain() { return {.api = "cuMemFree_v2"}; }
FreeRequest free_ordered(uintptr_t on) { return {.api = "cuMemFreeAsync", .ordered = true, .stream_arg = {stream(on), false}}; }

DeviceBlock make_block(uint64_t ptr, size_t bytes, uint64_t generation) {
  DeviceBlock block;
  block.ptr = ptr;
  block.bytes = bytes;
  block.generation = {generation};
  return block;
}

struct BudgetFixture {
  FakeDriver driver;
  NativeResource native{driver.api, 0, true, BudgetCount::bytes};
  DeviceLedger ledger;
  GlobalDeviceBudget budget{native, 1000, ledger};
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(exactly_at_the_limit_and_one_more, BudgetFixture) {
  DeviceBlock block;
  BOOST_TEST(budget.allocate(plain(1000), block).ok());
  DeviceBlock more;
  Status refused = budget.allocate(plain(1), more);
  BOOST_TEST((refused.error == Error::out_of_budget));
  BOOST_TEST(refused.code == CUDA_ERROR_OUT_OF_MEMORY);
  BOOST_TEST(refused.requested == 1);
  BOOST_TEST(refused.current == 1000);
  BOOST_TEST(refused.remaining == 0);
  BOOST_TEST(refused.limit == 1000);
  BOOST_TEST(more.ptr == 0);
  BOOST_TEST(budget.deallocate(block, free_plain()).ok());
  BOOST_TEST(budget.reserved_bytes() == 0);
  BOOST_TEST(budget.allocate(plain(1000), block).ok());
}

BOOST_FIXTURE_TEST_CASE(above_the_limit_the_driver_is_not_asked, BudgetFixture) {
  DeviceBlock block;
  BOOST_TEST(!budget.allocate(plain(1001), block).ok());
  BOOST_TEST(!budget.allocate(plain(SIZE_MAX), block).ok());
  BOOST_TEST(FakeDriver::allocations == 0);
}

BOOST_FIXTURE_TEST_CASE(what_the_driver_would_refuse_for_another_reason_has_its_code, BudgetFixture) {
  DeviceBlock block;
  FakeDriver::forbidden = true;
  Status status = budget.allocate(plain(1001), block);
  BOOST_TEST((status.error == Error::driver));
  BOOST_TEST(status.code == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

BOOST_FIXTURE_TEST_CASE(refusals_of_the_driver_leak_nothing, BudgetFixture) {
  DeviceBlock block;
  FakeDriver::fail_alloc = 1000;
  for (int i = 0; i < 1000; ++i) {
    Status status = budget.allocate(plain(600), block);
    BOOST_TEST((status.error == Error::driver));
    BOOST_TEST(status.code == CUDA_ERROR_OUT_OF_MEMORY);
  }
  BOOST_TEST(budget.allocate(plain(1000), block).ok());
}

BOOST_FIXTURE_TEST_CASE(a_free_that_fails_keeps_its_bytes, BudgetFixture) {
  DeviceBlock block;
  BOOST_TEST(budget.allocate(plain(700), block).ok());
  FakeDriver::fail_free = 1;
  BOOST_TEST(budget.deallocate(block, free_plain()).code == CUDA_ERROR_ILLEGAL_ADDRESS);
  BOOST_TEST(budget.reserved_bytes() == 700);
  BOOST_TEST(budget.deallocate(block, free_plain()).ok());
  BOOST_TEST(budget.reserved_bytes() == 0);
}

BOOST_FIXTURE_TEST_CASE(a_pitch_is_charged_as_it_is, BudgetFixture) {
  DeviceBlock block;
  size_t pitch = 0;
  AllocationRequest request{.bytes = 100, .kind = Kind::pitch, .width_bytes = 100, .height = 1, .element_bytes = 4, .pitch_out = &pitch};
  BOOST_TEST(budget.allocate(request, block).ok());
  BOOST_TEST(budget.reserved_bytes() == 512);
  DeviceBlock second;  // 512 more do not fit, though 100 would
  BOOST_TEST(!budget.allocate(request, second).ok());
  BOOST_TEST(budget.reserved_bytes() == 512);
}

BOOST_FIXTURE_TEST_CASE(a_free_in_a_stream_counts_until_its_event_is_done, BudgetFixture) {
  DeviceBlock block;
  BOOST_TEST(budget.allocate(plain(700), block).ok());
  BOOST_TEST(budget.deallocate(block, free_ordered(1)).ok());
  BOOST_TEST(FakeDriver::recorded_in == stream(1));
  BOOST_TEST(budget.reserved_bytes() == 700);
  DeviceBlock other;
  BOOST_TEST(budget.allocate(plain(300), other).ok());   // beside it
  BOOST_TEST(!budget.allocate(plain(700), block).ok());  // the free is not done
  FakeDriver::done = true;
  BOOST_TEST(budget.allocate(plain(700), block).ok());
  BOOST_TEST(budget.reserved_bytes() == 1000);
}

BOOST_FIXTURE_TEST_CASE(any_number_of_frees_is_remembered, BudgetFixture) {
  DeviceLedger large;
  GlobalDeviceBudget wide(native, 1 << 20, large);
  for (int round = 0; round < 3; ++round) {
    FakeDriver::done = false;
    for (uintptr_t on = 1; on <= 2000; ++on) {
      DeviceBlock block;
      BOOST_REQUIRE(wide.allocate(plain(1), block).ok());
      BOOST_REQUIRE(wide.deallocate(block, free_ordered(on)).ok());
    }
    BOOST_TEST(wide.reap_pending().ok());
    BOOST_TEST(wide.reserved_bytes() == 2000);
    FakeDriver::done = true;
    BOOST_TEST(wide.reap_pending().ok());
    BOOST_TEST(wide.reserved_bytes() == 0);
  }
  BOOST_TEST(FakeDriver::events == 2000);  // those of the first round are used again
}

BOOST_FIXTURE_TEST_CASE(a_context_that_ends_settles_its_own_frees, BudgetFixture) {
  DeviceBlock block;
  BOOST_TEST(budget.allocate(plain(400), block).ok());
  BOOST_TEST(budget.deallocate(block, free_ordered(1)).ok());
  native.begin_context_end(FakeDriver::current, true);
  // Another context of the same handle: its free is its own.
  BOOST_TEST(budget.allocate(plain(300), block).ok());
  BOOST_TEST(budget.deallocate(block, free_ordered(2)).ok());
  native.finish_context_end(FakeDriver::current, true);
  BOOST_TEST(budget.settle({}).ok());
  BOOST_TEST(budget.reserved_bytes() == 300);
  native.begin_context_end(FakeDriver::current, true);
  native.finish_context_end(FakeDriver::current, false);  // the call failed
  BOOST_TEST(budget.settle({}).ok());
  BOOST_TEST(budget.reserved_bytes() == 300);
  FakeDriver::done = true;
  BOOST_TEST(budget.settle({}).ok());
  BOOST_TEST(budget.reserved_bytes() == 0);
}

// A record there would end the capture of another thread.
BOOST_AUTO_TEST_CASE(nothing_is_recorded_in_the_legacy_stream_beside_a_capture) {
  FakeDriver driver;
  CaptureGate gate{};
  NativeResource native{driver.api, 0, true, BudgetCount::bytes, &gate};
  DeviceLedger ledger;
  GlobalDeviceBudget budget{native, 1000, ledger};
  FakeDriver::done = true;
  gate.begin({.handle = stream(1)}, FakeDriver::current);
  DeviceBlock block;
  BOOST_TEST(budget.allocate(plain(400), block).ok());
  BOOST_TEST(budget.deallocate(block, {.ordered = true}).ok());
  BOOST_TEST(budget.settle({}).ok());
  BOOST_TEST(budget.reserved_bytes() == 400);
  BOOST_TEST(FakeDriver::recorded_in == nullptr);
  BOOST_TEST(FakeDriver::over_context == 0);
  gate.ended({.handle = stream(1)}, FakeDriver::current);
  BOOST_TEST(budget.settle({}).ok());
  BOOST_TEST(budget.reserved_bytes() == 0);
  BOOST_TEST(FakeDriver::over_context == 1);
}

BOOST_FIXTURE_TEST_CASE(a_limit_of_nothing, BudgetFixture) {
  DeviceLedger empty;
  GlobalDeviceBudget none(native, 0, empty);
  DeviceBlock block;
  BOOST_TEST(!none.allocate(plain(1), block).ok());
}

BOOST_FIXTURE_TEST_CASE(exact_under_threads, BudgetFixture) {
  std::atomic<uint64_t> live{0};
  std::atomic<bool> passed{false};
  std::atomic<bool> failed{false};
  std::vector<std::thread> all;
  for (int t = 0; t < 8; ++t) {
    all.emplace_back([&, t] {
      for (size_t i = 0; i < 20000; ++i) {
        DeviceBlock block;
        size_t bytes = (i * 7 + static_cast<size_t>(t) * 13) % 400 + 1;
        if (budget.allocate(plain(bytes), block).ok()) {
          passed = passed || live.fetch_add(bytes) + bytes > 1000;
          live.fetch_sub(bytes);
          failed = failed || !budget.deallocate(block, free_plain()).ok();
        }
      }
    });
  }
  for (auto& each : all) {
    each.join();
  }
  BOOST_TEST(!passed);
  BOOST_TEST(!failed);
  BOOST_TEST(budget.reserved_bytes() == 0);
}

BOOST_AUTO_TEST_CASE(what_the_driver_takes) {
  BOOST_TEST(plain_taken(1) == 512);
  BOOST_TEST(plain_taken(512) == 512);
  BOOST_TEST(plain_taken(513) == 1024);
  BOOST_TEST(plain_taken(1 << 20) == 1 << 20);
  BOOST_TEST(plain_taken((1 << 20) + 1) == 2 << 20);
  BOOST_TEST(plain_taken((2 << 20) + 1) == 4 << 20);
  BOOST_TEST(plain_taken(SIZE_MAX) == SIZE_MAX);
  BOOST_TEST(least_pitched(SIZE_MAX, 2) == SIZE_MAX);
}

BOOST_AUTO_TEST_CASE(texts_of_the_errors) {
  Text<400> out;
  put_status(out, Status::out_of_budget(UINT64_MAX, 5, 10));
  BOOST_TEST(out.view() ==
             "out of budget: current 5 bytes, requested 18446744073709551615 bytes, required 18446744073709551620 bytes, limit 10 bytes, "
             "remaining 5 bytes");
  out.clear();
  put_status(out, Status::from(CUDA_ERROR_ILLEGAL_ADDRESS));
  BOOST_TEST(out.view() == "CUDA driver error 700: CUDA_ERROR_ILLEGAL_ADDRESS");
  out.clear();
  put_status(out, Status::use_after_free({7}));
  BOOST_TEST(out.view() == "use-after-free on generation 7");
}

// C12(c): no host memory for the books. The block is let go of, so that nothing stays charged for it.
BOOST_AUTO_TEST_CASE(no_memory_for_the_registry) {
  static BlockRegistry registry;
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  rlimit none{1 << 20, before.rlim_max};
  DeviceBlock ended;
  setrlimit(RLIMIT_AS, &none);
  bool out_of_sight = registry.insert(make_block(512, 7, 1), ended);
  setrlimit(RLIMIT_AS, &before);
  BOOST_TEST(out_of_sight);
  BOOST_TEST(ended.bytes == 7);
  DeviceBlock found;
  BOOST_TEST(!registry.take(512, found));
}

BOOST_AUTO_TEST_CASE(the_registry_keeps_every_block) {
  static BlockRegistry registry;
  DeviceBlock ended;
  constexpr uint64_t kBlocks = 20000;
  for (uint64_t i = 1; i <= kBlocks; ++i) {
    BOOST_REQUIRE(!registry.insert(make_block(i * 512, i, i), ended));
  }
  BOOST_TEST(registry.size() == kBlocks);
  for (uint64_t i = 1; i <= kBlocks; i += 2) {
    DeviceBlock found;
    BOOST_REQUIRE(registry.take(i * 512, found));
    BOOST_REQUIRE(found.bytes == i);
    BOOST_REQUIRE(!registry.take(i * 512, found));
  }
  for (uint64_t i = 2; i <= kBlocks; i += 2) {
    DeviceBlock found;
    BOOST_REQUIRE(registry.take(i * 512, found));
    BOOST_REQUIRE(!registry.insert(std::move(found), ended));
  }
  BOOST_TEST(registry.insert(make_block(1024, 1, 99), ended));
  BOOST_TEST(ended.generation.value == 2);
  DeviceBlock found;
  BOOST_TEST(!registry.take(0, found));
  std::vector<DeviceBlock> taken(kBlocks);
  size_t n = registry.take_if([](const DeviceBlock& b) { return b.generation.value % 4 == 0; }, taken.data(), taken.size());
  BOOST_TEST(n == kBlocks / 4);
  BOOST_TEST(registry.size() == kBlocks / 4);
}
