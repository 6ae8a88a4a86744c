// The sources of plain memory below the shim's leaf, by many threads at once: what the sanitizers are to see of them. What
// they do for a program is in preload/backends.cpp.
#include <boost/test/data/test_case.hpp>
#include <random>
#include <thread>

#include "runtime/resource/cache_source.h"
#include "runtime/resource/native_resource.h"
#include "runtime/resource/pool_source.h"
#include "tests/stack/harness.h"

namespace stack_tests {

// In zeroed memory, as the shim keeps them.
struct PlainSources {
  explicit PlainSources(Maker maker, const PlainSettings& settings, bool limited)
      : context(*Gpu::get().api, 0), native(*Gpu::get().api, 0, limited, BudgetCount::bytes) {
    Gpu::get().set_current(context.handle());
    if (maker == Maker::pool) {
      native.set_source(pool.emplace(*Gpu::get().api, 0, gate, settings), maker);
    } else {
      native.set_source(cache.emplace(*Gpu::get().api, gate, settings), maker);
    }
    if (limited) {
      budget.emplace(native, uint64_t{64} << 20, ledger);
    }
  }
  DeviceMemoryResource& top() { return budget ? static_cast<DeviceMemoryResource&>(*budget) : native; }

  DeviceContext context;
  CaptureGate gate{};
  NativeResource native;
  std::optional<PoolSource> pool;
  std::optional<CacheSource> cache;
  DeviceLedger ledger;
  std::optional<GlobalDeviceBudget> budget;
};

static AllocationRequest plain(const PlainSources& sources, size_t bytes) {
  return {.bytes = bytes, .kind = Kind::plain, .api = "cuMemAlloc_v2", .device = 0, .context = sources.context.handle()};
}

// Eight threads, one of which begins and ends captures as far as the gate is concerned, and one of which is always short
// of memory. All live blocks fit under the limit, so none may be refused.
BOOST_DATA_TEST_CASE(plain_sources_by_many_threads,
                     boost::unit_test::data::make({0, 1}) * boost::unit_test::data::make({false, true}) *
                         boost::unit_test::data::make({false, true}),
                     which, ordered, limited) {
  PlainSettings settings{
      .ordered = ordered, .most_pending = 16 << 20, .keep = 32 << 20, .limit = limited ? uint64_t{64} << 20 : UINT64_MAX};
  auto sources = std::make_unique<PlainSources>(which == 0 ? Maker::pool : Maker::cache, settings, limited);
  std::atomic<int> refused{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < 8; ++t) {
    all.emplace_back([&, t] {
      Gpu::get().set_current(sources->context.handle());
      std::minstd_rand random(t + 1);
      CUstream stream = nullptr;
      Gpu::get().api->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      for (int i = 0; i < 150; ++i) {
        if (t == 0) {
          sources->gate.begin({.handle = stream}, sources->context.handle());
          sources->gate.ended({.handle = stream}, sources->context.handle());
        }
        if (t == 1 && i % 16 == 0) {
          sources->native.source()->relieve();
        }
        DeviceBlock block;
        if (!sources->top().allocate(plain(*sources, size_t{1} << (random() % 23)), block).ok()) {
          ++refused;
          continue;
        }
        failed += Gpu::get().memset8(block.ptr, 1, block.bytes, stream) != CUDA_SUCCESS;
        FreeRequest request{.api = "cuMemFree_v2", .ordered = random() % 8 == 0, .stream_arg = {.handle = stream}};
        failed += !sources->top().deallocate(block, request).ok();
      }
      Gpu::get().api->cuStreamSynchronize(stream);
      Gpu::get().api->cuStreamDestroy_v2(stream);
    });
  }
  for (std::thread& each : all) {
    each.join();
  }
  BOOST_TEST(refused == 0);
  BOOST_TEST(failed == 0);
  static_cast<void>(sources->top().reap_pending({.patience_ns = 1'000'000'000}));
  static_cast<void>(sources->top().take_released());
  BOOST_TEST(sources->native.bytes_outstanding() == 0);
  sources->native.source()->relieve();
  BOOST_TEST(sources->native.source()->idle_bytes() == 0);
  PlainSource* source = sources->native.source();
  source->context_ended(sources->context.handle());
}

}  // namespace stack_tests
