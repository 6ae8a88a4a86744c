// The guard above the shim's leaf, by many threads at once: what the sanitizers are to see of it. What it finds, and that no
// program notices it, is in preload/guard.cpp and preload/fence.cpp.
#include <boost/test/data/test_case.hpp>
#include <random>
#include <thread>

#include "runtime/guard/guard_resource.h"
#include "runtime/resource/cache_source.h"
#include "runtime/resource/fence_source.h"
#include "runtime/resource/native_resource.h"
#include "runtime/resource/pool_source.h"
#include "tests/stack/harness.h"

namespace stack_tests {

namespace {

// One way of using it.
struct Way {
  const char* name;
  GuardSettings settings;
  Maker maker = Maker::driver;
};

std::ostream& operator<<(std::ostream& out, const Way& way) { return out << way.name; }

FenceSpec fence(uint32_t one_in) {
  FenceSpec spec;
  spec.one_in = one_in;
  return spec;
}

const Way kWays[] = {{"canary", {.zone = 256}},
                     {"canary, async", {.zone = 256}, Maker::pool},
                     {"canary, cache", {.zone = 4096}, Maker::cache},
                     {"launches", {.zone = 64, .check_launches = 1}},
                     {"launches, async", {.zone = 64, .check_launches = 2}, Maker::pool},
                     {"quarantine", {.zone = 256, .poison_alloc = true, .poison_free = true, .quarantine = 4 << 20}},
                     {"fence", {.fence = fence(1)}},
                     {"fence, some", {.fence = fence(3), .check_launches = 1}}};

// In zeroed memory where the shim keeps them so.
struct Guarded {
  explicit Guarded(const Way& way)
      : context(*Gpu::get().api, 0), native(*Gpu::get().api, 0, false, BudgetCount::bytes), records(std::make_unique<GuardRecords>()) {
    const PlainSettings plain{.most_pending = 16 << 20, .keep = 32 << 20};
    Gpu::get().set_current(context.handle());
    if (way.maker == Maker::pool) {
      native.set_source(pool.emplace(*Gpu::get().api, 0, gate, plain), way.maker);
    } else if (way.maker == Maker::cache) {
      native.set_source(cache.emplace(*Gpu::get().api, gate, plain), way.maker);
    }
    if (way.settings.fence.one_in != 0) {
      native.set_fence(fenced.emplace(*Gpu::get().api, 0, gate, plain, false));
    }
    guard.emplace(native, *Gpu::get().api, gate, way.settings, *records, findings);
  }

  DeviceContext context;
  CaptureGate gate{};
  NativeResource native;
  std::optional<PoolSource> pool;
  std::optional<CacheSource> cache;
  std::optional<FenceSource> fenced;
  std::unique_ptr<GuardRecords> records;
  FindingReporter findings{};
  std::optional<GuardResource> guard;
};

AllocationRequest request_for(const Guarded& guarded, size_t bytes, bool ordered, CUstream stream) {
  AllocationRequest request{.bytes = bytes, .kind = Kind::plain, .api = "cuMemAlloc_v2", .device = 0, .context = guarded.context.handle()};
  if (ordered) {
    request.kind = Kind::async;
    request.api = "cuMemAllocAsync";
    request.stream_arg = {.handle = stream};
  }
  return request;
}

}  // namespace

// Seven threads that use their blocks to the last byte, and one that begins and ends captures as far as the gate is concerned
// and looks at all zones. Nothing is refused, and there is nothing to find.
BOOST_DATA_TEST_CASE(the_guard_by_many_threads, boost::unit_test::data::make(kWays), way) {
  auto guarded = std::make_unique<Guarded>(way);
  std::atomic<int> refused{0};
  std::atomic<int> failed{0};
  std::atomic<uint64_t> launches{0};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < 8; ++t) {
    all.emplace_back([&, t] {
      Gpu::get().set_current(guarded->context.handle());
      std::minstd_rand random(t + 1);
      CUstream stream = nullptr;
      Gpu::get().api->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
      for (int i = 0; i < 100; ++i) {
        if (t == 0) {
          guarded->gate.begin({.handle = stream}, guarded->context.handle());
          guarded->gate.ended({.handle = stream}, guarded->context.handle());
          guarded->guard->check_all("the test", false);
        }
        DeviceBlock block;
        bool ordered = random() % 4 == 0;
        if (!guarded->guard->allocate(request_for(*guarded, random() % 100'000 + 1, ordered, stream), block).ok()) {
          ++refused;
          continue;
        }
        guarded->guard->before_launch();
        failed += Gpu::get().memset8(block.ptr, 1, block.bytes, stream) != CUDA_SUCCESS;
        Launch launch;
        launch.number = ++launches;
        guarded->guard->launched(launch, {.handle = stream}, guarded->context.handle());
        FreeRequest request{.api = "cuMemFree_v2", .ordered = ordered || random() % 8 == 0, .stream_arg = {.handle = stream}};
        failed += !guarded->guard->deallocate(block, request).ok();
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
  BOOST_TEST(guarded->findings.count() == 0U);
  CUcontext context = guarded->context.handle();
  guarded->guard->begin_context_end(context, true, "the test", [](DeviceBlock&) {});
  static_cast<void>(guarded->guard->reap_pending({.patience_ns = 1'000'000'000}));
  static_cast<void>(guarded->guard->take_released());
  BOOST_TEST(guarded->native.bytes_outstanding() == 0U);
  for (PlainSource* source : {guarded->native.source(), static_cast<PlainSource*>(guarded->fenced ? &*guarded->fenced : nullptr)}) {
    if (source != nullptr) {
      source->relieve();
      source->context_ended(context);
    }
  }
  guarded->guard->finish_context_end(context);
}

}  // namespace stack_tests
