// What the driver says is used of a pool, while blocks of several sizes come and go by each call that makes and frees them.
#include <initializer_list>

#include "programs/program.h"

namespace {

CUmemoryPool make_pool() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  MUST(cuMemPoolCreate(&pool, &properties));
  return pool;
}

void show(const char* what, CUmemoryPool pool) {
  cuuint64_t now = 0;
  cuuint64_t most = 0;
  MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &now));
  MUST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &most));
  std::printf("  %s: used %llu, at most %llu\n", what, static_cast<unsigned long long>(now), static_cast<unsigned long long>(most));
}

CUresult set(CUmemoryPool pool, CUmemPool_attribute attribute, cuuint64_t value) { return cuMemPoolSetAttribute(pool, attribute, &value); }

void come_and_go(CUmemoryPool pool, CUstream stream, bool current) {
  CUdeviceptr all[5] = {};
  size_t count = 0;
  for (size_t bytes : {size_t{1}, size_t{512}, size_t{1000}, size_t{3} << 20, size_t{33} << 20}) {
    MUST(current ? cuMemAllocAsync(&all[count++], bytes, stream) : cuMemAllocFromPoolAsync(&all[count++], bytes, pool, stream));
    show("made", pool);
  }
  MUST(cuMemFreeAsync(all[1], stream));
  MUST(cuStreamSynchronize(stream));
  show("freed in the stream", pool);
  MUST(cuMemFree_v2(all[4]));
  show("freed", pool);
  std::printf("  reset: %d\n", set(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0));
  show("after the reset", pool);
  MUST(cuMemAllocFromPoolAsync(&all[1], 7, pool, stream));
  show("made", pool);
  for (CUdeviceptr each : {all[0], all[1], all[2], all[3]}) {
    MUST(cuMemFreeAsync(each, stream));
  }
  MUST(cuStreamSynchronize(stream));
  show("all freed", pool);
}

}  // namespace

int main() {
  start();
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmemoryPool standard = nullptr;
  MUST(cuDeviceGetDefaultMemPool(&standard, 0));
  std::printf("the default pool\n");
  come_and_go(standard, stream, true);
  CUdeviceptr left = 0;
  for (int i = 0; i < 3; ++i) {  // the handle of a pool may be that of the next one
    CUmemoryPool pool = make_pool();
    std::printf("a pool\n");
    show("empty", pool);
    come_and_go(pool, stream, false);
    CUdeviceptr before = left;
    MUST(cuMemAllocFromPoolAsync(&left, 1000, pool, stream));
    MUST(cuStreamSynchronize(stream));
    if (before != 0) {
      MUST(cuMemFree_v2(before));
      show("a block of the pool before was freed", pool);
    }
    std::printf("  ended: %d\n", cuMemPoolDestroy(pool));
  }
  CUmemoryPool pool = make_pool();
  MUST(cuDeviceSetMemPool(0, pool));
  std::printf("the device's own choice\n");
  come_and_go(pool, stream, true);
  cuuint64_t value = 7;
  std::printf("no pool: %d, no reset: %d", cuMemPoolGetAttribute(nullptr, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value),
              set(nullptr, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0));
  std::printf(", a threshold: %d\n", set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0));
  std::printf("the default pool cannot be ended: %d\n", cuMemPoolDestroy(standard));
  show("and is as before", standard);
  return 0;
}
