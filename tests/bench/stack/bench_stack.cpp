// bench_stack cpu|gpu: what the resources of the stack cost a pair (allocate + deallocate). Figures of one line were
// taken in turns in this run; each is the smallest of its turns, as on a shared machine that is the least disturbed one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/base/driver_api.h"
#include "runtime/library/driver_loader.h"
#include "runtime/resource/async_cuda_resource.h"
#include "runtime/resource/direct_cuda_resource.h"
#include "runtime/resource/global_device_budget.h"
#include "runtime/resource/logging_resource.h"
#include "runtime/resource/pool_resource.h"

using namespace xlog;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kTurns = 40;
constexpr size_t kBytes = 4096;

double nanoseconds(int pairs, const std::function<void()>& pair) {
  auto start = Clock::now();
  for (int i = 0; i < pairs; ++i) {
    pair();
  }
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / pairs;
}

// Nanoseconds a pair of each variant, in turns; `rest` between them is not counted.
std::vector<double> in_turns(int pairs, const std::vector<std::function<void()>>& variants, const std::function<void()>& rest) {
  std::vector<double> best(variants.size(), 1e18);
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < variants.size(); ++i) {
      best[i] = std::min(best[i], nanoseconds(pairs, variants[i]));
      rest();
    }
  }
  return best;
}

void pair_of(DeviceMemoryResource& resource, StreamId on) {
  ResourceResult<DeviceBlock> block = resource.allocate(kBytes, on);
  if (!block.ok() || !resource.deallocate(*block).ok()) {
    std::fprintf(stderr, "a pair failed\n");
    std::exit(1);
  }
}

// Nanoseconds a pair in a thread, the mean of the threads: each on a stream of its own, with the resource that is its own
// or everybody's.
double threaded(const std::vector<DeviceMemoryResource*>& resources, const std::vector<StreamId>& ids, int pairs) {
  std::atomic<size_t> ready{0};
  std::vector<std::thread> threads;
  std::vector<double> each(ids.size());
  for (size_t t = 0; t < ids.size(); ++t) {
    threads.emplace_back([&, t] {
      DeviceMemoryResource& resource = *resources[t % resources.size()];
      pair_of(resource, ids[t]);
      ++ready;
      while (ready < ids.size()) {
      }
      each[t] = nanoseconds(pairs, [&] { pair_of(resource, ids[t]); });
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return std::accumulate(each.begin(), each.end(), 0.0) / static_cast<double>(each.size());
}

int cpu(StreamPool& streams) {
  DirectCudaResource direct(streams.context());
  DirectCudaResource below(streams.context());
  DeviceLedger ledger;
  GlobalDeviceBudget budget(below, uint64_t{1} << 30, ledger);
  NullSink sink;
  LoggingResource logging(budget, sink);
  auto best = in_turns(20'000, {[&] { pair_of(direct, {}); }, [&] { pair_of(budget, {}); }, [&] { pair_of(logging, {}); }}, [] {});
  std::printf("  direct                     %.0f ns a pair\n", best[0]);
  std::printf("  budget + direct            adds %.0f ns\n", best[1] - best[0]);
  std::printf("  logging(null) + budget + direct adds %.0f ns (at most 120)\n", best[2] - best[0]);
  return 0;
}

int gpu(StreamPool& streams) {
  const DriverApi& driver = streams.context().driver();
  std::vector<StreamId> ids;
  for (int i = 0; i < 16; ++i) {
    ids.push_back(streams.acquire().id);
  }
  DeviceContext::Scope scope(streams.context());
  AsyncCudaResource async(streams);
  auto settle = [&] {
    for (StreamId id : ids) {
      driver.cuStreamSynchronize(streams.resolve(id));
    }
    static_cast<void>(async.reap_pending());
  };
  // The raw pair runs on a pool with the same settings, so that the driver does the same work for both.
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  CUmemoryPool pool = nullptr;
  int off = 0;
  cuuint64_t all = UINT64_MAX;
  if (driver.cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS) {
    return 1;
  }
  driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
  driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
  CUstream stream = streams.resolve(ids[0]);
  auto raw_default = [&] {
    CUdeviceptr ptr = 0;
    driver.cuMemAllocAsync(&ptr, kBytes, stream);
    driver.cuMemFreeAsync(ptr, stream);
  };
  auto raw_own = [&] {
    CUdeviceptr ptr = 0;
    driver.cuMemAllocFromPoolAsync(&ptr, kBytes, pool, stream);
    driver.cuMemFreeAsync(ptr, stream);
  };
  auto best = in_turns(1000, {raw_default, raw_own, [&] { pair_of(async, ids[0]); }}, settle);
  std::printf("  cuMemAllocAsync + cuMemFreeAsync, default pool  %.0f ns a pair\n", best[0]);
  std::printf("  the same from a pool of its own                 %.0f ns\n", best[1]);
  std::printf(
      "  Async                                           %.0f ns, %.2f of the default pool's pair, %.2f of its own pool's (at most 1.3)\n",
      best[2], best[2] / best[0], best[2] / best[1]);

  PoolResource suballocator(async, streams);
  std::vector<std::unique_ptr<PoolResource>> apart;
  std::vector<DeviceMemoryResource*> own;
  for (size_t i = 0; i < ids.size(); ++i) {
    own.push_back(apart.emplace_back(std::make_unique<PoolResource>(async, streams)).get());
  }
  double one = 1e18;
  double sixteen = 1e18;
  double sixteen_apart = 1e18;
  for (int turn = 0; turn < kTurns; ++turn) {
    one = std::min(one, threaded({&suballocator}, {ids[0]}, 20'000));
    sixteen = std::min(sixteen, threaded({&suballocator}, ids, 20'000));
    sixteen_apart = std::min(sixteen_apart, threaded(own, ids, 20'000));
  }
  std::printf("  Pool, 1 thread    %.0f ns a pair (at most 500)\n", one);
  std::printf("  Pool, 16 threads  %.0f ns a pair in each, %.1f ns a pair in all\n", sixteen, sixteen / 16);
  std::printf("  16 threads with a pool each, which share nothing: %.0f ns; the shared pool is %.2f of that\n", sixteen_apart,
              sixteen / sixteen_apart);

  // A block that two streams use in turn: each use waits for the other's.
  ResourceResult<DeviceBlock> block = async.allocate(kBytes, ids[0]);
  StreamPool::Counters before = streams.counters();
  int turn = 0;
  constexpr int kUses = 2000;
  double use = nanoseconds(kUses, [&] {
    StreamId on = ids[++turn % 2];
    static_cast<void>(async.prepare_block_use(block->id(), on, Access::read_write));
    static_cast<void>(async.finish_block_use(block->id(), on, Access::read_write));
  });
  StreamPool::Counters after = streams.counters();
  double events = static_cast<double>(after.records + after.waits + after.queries - before.records - before.waits - before.queries) / kUses;
  std::printf("  prepare + finish, two streams in turn  %.0f ns, %.2f event operations (at most 2)\n", use, events);
  settle();
  static_cast<void>(async.deallocate(*block));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* reason = nullptr;
  const DriverApi* driver = load_driver(&reason);
  if (driver == nullptr) {
    std::fprintf(stderr, "bench_stack: %s\n", reason);
    return 1;
  }
  StreamPool streams(*driver, 0);
  if (!streams.status().ok()) {
    std::fprintf(stderr, "bench_stack: no device\n");
    return 1;
  }
  return argc > 1 && std::strcmp(argv[1], "gpu") == 0 ? gpu(streams) : cpu(streams);
}
