// What pools hold under a limit: `pool_limits keeps | loops | many | destroyed | backend | threads`.
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kMiB = 1 << 20;

void show(const char* what, CUresult result) { std::printf("%s: %d\n", what, result); }

void show_free(const char* what) {
  size_t free = 0;
  size_t total = 0;
  MUST(cuMemGetInfo_v2(&free, &total));
  std::printf("%s: %zu of %zu MiB free\n", what, free / kMiB, total / kMiB);
}

CUmemoryPool make_pool(bool keeps) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool pool = nullptr;
  MUST(cuMemPoolCreate(&pool, &properties));
  cuuint64_t threshold = keeps ? UINT64_MAX : 0;
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  return pool;
}

// As CuPy, TensorFlow and RMM set their pools.
void keeps(CUstream stream) {
  CUmemoryPool pool = nullptr;
  cuuint64_t threshold = UINT64_MAX;
  MUST(cuDeviceGetDefaultMemPool(&pool, 0));
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  CUdeviceptr block = 0;
  show("7 GiB in stream order", cuMemAllocAsync(&block, 7168 * kMiB, stream));
  MUST(cuMemFreeAsync(block, stream));
  show_free("freed, and kept by the pool");
  MUST(cuStreamSynchronize(stream));
  show_free("synchronised");
  CUdeviceptr plain = 0;
  show("7 GiB of plain memory", cuMemAlloc_v2(&plain, 7168 * kMiB));
  show_free("taken from the pool");
  show("6 GiB from the pool", cuMemAllocAsync(&block, 6144 * kMiB, stream));
  MUST(cuMemFree_v2(plain));
  show("7 GiB from the pool", cuMemAllocAsync(&block, 7168 * kMiB, stream));
  MUST(cuMemFreeAsync(block, stream));
  MUST(cuStreamSynchronize(stream));
  show("the pool is trimmed", cuMemPoolTrimTo(pool, 0));
  show_free("trimmed");
}

// A program that allocates and frees at its limit is never refused by an estimate.
void loops(CUstream stream) {
  CUmemoryPool pool = make_pool(true);
  CUdeviceptr large = 0;
  int refused = 0;
  MUST(cuMemAllocFromPoolAsync(&large, 960 * kMiB, pool, stream));
  for (size_t i = 0; i < 20000; ++i) {
    CUdeviceptr block = 0;
    refused += cuMemAllocFromPoolAsync(&block, 1 + i * 7919 % (60 * kMiB), pool, stream) != CUDA_SUCCESS ? 1 : 0;
    if (block != 0) {
      MUST(cuMemFreeAsync(block, stream));
    }
  }
  std::printf("20000 allocations beside 960 MiB: %d refused\n", refused);
}

void many(CUstream stream) {
  std::vector<CUmemoryPool> pools(300);
  for (CUmemoryPool& each : pools) {
    each = make_pool(true);
  }
  CUdeviceptr block = 0;
  for (size_t i : {0, 150, 299}) {
    std::printf("1100 MiB from pool %zu: %d\n", i, cuMemAllocFromPoolAsync(&block, 1100 * kMiB, pools[i], stream));
  }
  int granted = 0;
  for (CUmemoryPool each : pools) {  // 32 MiB of each pool make 1 GiB
    granted += cuMemAllocFromPoolAsync(&block, kMiB, each, stream) == CUDA_SUCCESS ? 1 : 0;
  }
  std::printf("1 MiB from each of 300 pools: %d granted\n", granted);
}

void destroyed(CUstream stream) {
  CUdeviceptr blocks[2] = {};
  CUdeviceptr plain = 0;
  CUmemoryPool pool = make_pool(true);
  for (CUdeviceptr& each : blocks) {
    MUST(cuMemAllocFromPoolAsync(&each, 300 * kMiB, pool, stream));
  }
  MUST(cuStreamSynchronize(stream));
  MUST(cuMemPoolDestroy(pool));
  for (int i = 0; i < 50; ++i) {  // whose handle may be the same
    MUST(cuMemPoolDestroy(make_pool(true)));
  }
  show("500 MiB beside the blocks of a destroyed pool", cuMemAlloc_v2(&plain, 500 * kMiB));
  MUST(cuMemFreeAsync(blocks[0], stream));
  MUST(cuStreamSynchronize(stream));
  show("one of two is freed", cuMemAlloc_v2(&plain, 500 * kMiB));
  MUST(cuMemFreeAsync(blocks[1], stream));
  MUST(cuStreamSynchronize(stream));
  show("both are freed", cuMemAlloc_v2(&plain, 500 * kMiB));
}

// Sixteen threads with pools of their own: whatever is granted, the pools never hold more than the limit for long.
void threads(CUcontext context) {
  std::atomic<int> served{0};
  std::atomic<int> odd{0};
  std::vector<CUmemoryPool> pools(16);
  std::vector<std::thread> all;
  for (CUmemoryPool& pool : pools) {
    pool = make_pool(true);
    all.emplace_back([&, pool] {
      MUST(cuCtxSetCurrent(context));
      CUstream stream = nullptr;
      MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      for (size_t i = 0; i < 300; ++i) {
        CUdeviceptr block = 0;
        CUresult result = cuMemAllocFromPoolAsync(&block, 1 + i * 104729 % (90 * kMiB), pool, stream);
        served += result == CUDA_SUCCESS ? 1 : 0;
        odd += result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY ? 1 : 0;
        if (result == CUDA_SUCCESS) {
          MUST(cuMemFreeAsync(block, stream));
        }
        MUST(cuStreamSynchronize(stream));
        MUST(cuMemPoolTrimTo(pool, 0));
      }
    });
  }
  for (std::thread& each : all) {
    each.join();
  }
  cuuint64_t sum = 0;
  for (CUmemoryPool pool : pools) {
    cuuint64_t reserved = 0;
    MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    sum += reserved;
  }
  std::printf("served more than 100: %d, other codes: %d, at most 1 GiB is reserved: %d\n", served > 100, odd.load(), sum <= 1024 * kMiB);
  show_free("at the end");
}

// What a backend keeps of freed plain memory is lost to the card, too.
void backend(CUstream stream) {
  CUdeviceptr block = 0;
  for (int i = 0; i < 3; ++i) {
    show("900 MiB of plain memory", cuMemAlloc_v2(&block, 900 * kMiB));
    MUST(cuMemFree_v2(block));
    show("900 MiB in stream order", cuMemAllocAsync(&block, 900 * kMiB, stream));
    usleep(150'000);  // so that the log looks at what the driver has in use
    MUST(cuMemFreeAsync(block, stream));
    MUST(cuStreamSynchronize(stream));
  }
  // Beside memory of another kind the backend keeps less.
  CUdeviceptr pooled = 0;
  show("600 MiB in stream order", cuMemAllocAsync(&pooled, 600 * kMiB, stream));
  for (size_t mib : {300, 320, 340}) {
    MUST(cuMemAlloc_v2(&block, mib * kMiB));
    usleep(150'000);
    MUST(cuMemFree_v2(block));
  }
}

}  // namespace

int main(int, char** arguments) {
  std::string_view what = arguments[1];
  CUcontext context = start();
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  if (what == "keeps") {
    keeps(stream);
  } else if (what == "loops") {
    loops(stream);
  } else if (what == "many") {
    many(stream);
  } else if (what == "destroyed") {
    destroyed(stream);
  } else if (what == "backend") {
    backend(stream);
  } else if (what == "threads") {
    threads(context);
  }
  return 0;
}
