// What a limit knows of pools, over a driver in memory that has one pool.
#include <boost/test/unit_test.hpp>

#include "runtime/base/driver_api.h"
#include "runtime/resource/global_device_budget.h"
#include "runtime/resource/native_resource.h"

using namespace xlog;

namespace {

constexpr uint64_t kMiB = 1 << 20;

struct PoolDriver {
  DriverApi api;
  static inline uint64_t reserved = 0;
  static inline uint64_t used = 0;
  static inline uint64_t growth = 0;  // of the next allocation
  static inline uint64_t next = 0;
  static inline uint64_t held = 0;  // of what is reserved, what a trim does not get: blocks, and frees that are not done
  static inline int readings = 0;
  static inline int allocations = 0;

  PoolDriver() {
    reserved = used = growth = held = 0;
    next = 0x1000;
    readings = allocations = 0;
    api.cuMemAllocAsync = [](CUdeviceptr* p, size_t bytes, CUstream) {
      if (bytes >= kNeverServed) {
        return CUDA_ERROR_OUT_OF_MEMORY;
      }
      reserved += growth;
      used += bytes;
      ++allocations;
      return *p = next += 0x200, CUDA_SUCCESS;
    };
    api.cuMemFreeAsync = [](CUdeviceptr, CUstream) { return CUDA_SUCCESS; };
    api.cuMemAlloc_v2 = [](CUdeviceptr* p, size_t bytes) {
      *p = bytes < kNeverServed ? next += 0x200 : 0;
      return bytes < kNeverServed ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    };
    api.cuMemFree_v2 = [](CUdeviceptr) { return CUDA_SUCCESS; };
    api.cuCtxGetCurrent = [](CUcontext* c) { return *c = nullptr, CUDA_SUCCESS; };
    api.cuMemPoolGetAttribute = [](CUmemoryPool, CUmemPool_attribute attribute, void* out) {
      ++readings;
      *static_cast<cuuint64_t*>(out) = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ? reserved : used;
      return CUDA_SUCCESS;
    };
    api.cuMemPoolTrimTo = [](CUmemoryPool, size_t keep) {
      uint64_t least = keep > held ? keep : held;
      reserved = reserved > least ? least : reserved;
      return CUDA_SUCCESS;
    };
  }
};

struct Pools {
  PoolDriver driver;
  NativeResource native{driver.api, 0, true, BudgetCount::bytes};
  DeviceLedger ledger;
  GlobalDeviceBudget budget{native, 256 * kMiB, ledger};

  static CUmemoryPool handle(uintptr_t n) { return reinterpret_cast<CUmemoryPool>(n * 0x100); }
  Status allocate(uint64_t bytes, DeviceBlock& out, uintptr_t pool = 1) {
    return budget.allocate({.bytes = bytes, .kind = Kind::async, .pool = handle(pool)}, out);
  }
  Status allocate_plain(uint64_t bytes, DeviceBlock& out) { return budget.allocate({.bytes = bytes, .kind = Kind::plain}, out); }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_pool_is_read_only_when_its_bound_does_not_fit, Pools) {
  DeviceBlock block;
  PoolDriver::growth = 32 * kMiB;
  BOOST_TEST(allocate(kMiB, block).ok());
  BOOST_TEST(PoolDriver::readings == 1);  // when it was met
  PoolDriver::growth = 0;                 // the rest comes from what it has
  for (int i = 1; i < 8; ++i) {
    BOOST_TEST(allocate(kMiB, block).ok());
  }
  BOOST_TEST(PoolDriver::readings == 1);
  BOOST_TEST(budget.reserved_bytes() == 256 * kMiB);
  BOOST_TEST(allocate(kMiB, block).ok());
  BOOST_TEST(PoolDriver::readings > 1);
  BOOST_TEST(budget.reserved_bytes() == 64 * kMiB);
  budget.measure();
  BOOST_TEST(budget.reserved_bytes() == 32 * kMiB);
}

BOOST_FIXTURE_TEST_CASE(what_a_pool_keeps_counts_for_everybody, Pools) {
  DeviceBlock block;
  PoolDriver::growth = PoolDriver::held = 192 * kMiB;
  BOOST_TEST(allocate(192 * kMiB, block).ok());
  BOOST_TEST(budget.deallocate(block, {.ordered = true}).ok());
  DeviceBlock other;
  BOOST_TEST(!allocate_plain(65 * kMiB, other).ok());
  BOOST_TEST(allocate_plain(64 * kMiB, other).ok());
  PoolDriver::held = 0;  // the program has synchronised: the pool gives up what it holds, as on a full card
  BOOST_TEST(allocate_plain(192 * kMiB, other).ok());
  BOOST_TEST(PoolDriver::reserved == 0U);
  BOOST_TEST(budget.reserved_bytes() == 256 * kMiB);
}

BOOST_FIXTURE_TEST_CASE(a_pool_that_holds_enough_is_asked, Pools) {
  DeviceBlock block;
  PoolDriver::growth = PoolDriver::reserved = 0;
  PoolDriver::growth = PoolDriver::held = 256 * kMiB;
  BOOST_TEST(allocate(256 * kMiB, block).ok());
  PoolDriver::used = 0;  // all of it was freed to the pool, and is not done
  PoolDriver::growth = 0;
  BOOST_TEST(allocate(100 * kMiB, block).ok());
  BOOST_TEST(budget.reserved_bytes() == 256 * kMiB);
  // It grows all the same: the block goes back, and so does the growth.
  PoolDriver::used = 0;
  PoolDriver::growth = 128 * kMiB;
  BOOST_TEST((allocate(100 * kMiB, block).error == Error::out_of_budget));
  BOOST_TEST(block.ptr == 0);
  BOOST_TEST(PoolDriver::reserved == 256 * kMiB);
  BOOST_TEST(budget.reserved_bytes() == 256 * kMiB);
}

BOOST_FIXTURE_TEST_CASE(a_pool_without_room_is_not_asked, Pools) {
  DeviceBlock block;
  BOOST_TEST((allocate(257 * kMiB, block).error == Error::out_of_budget));
  PoolDriver::growth = PoolDriver::held = 256 * kMiB;
  BOOST_TEST(allocate(256 * kMiB, block).ok());
  int before = PoolDriver::allocations;
  BOOST_TEST((allocate(kMiB, block).error == Error::out_of_budget));
  BOOST_TEST(PoolDriver::allocations == before);
}

// Where less than a slab is left the driver takes a smaller step.
BOOST_FIXTURE_TEST_CASE(room_for_less_than_a_slab, Pools) {
  DeviceBlock block;
  DeviceBlock plain;
  BOOST_TEST(allocate_plain(250 * kMiB, plain).ok());
  PoolDriver::growth = 4 * kMiB;
  BOOST_TEST(allocate(3 * kMiB, block).ok());
  BOOST_TEST(budget.reserved_bytes() == 254 * kMiB);
  BOOST_TEST(!allocate(3 * kMiB, block).ok());
}

BOOST_FIXTURE_TEST_CASE(a_destroyed_pool_counts_until_its_last_block_is_gone, Pools) {
  DeviceBlock first;
  DeviceBlock second;
  PoolDriver::growth = 32 * kMiB;
  BOOST_TEST(allocate(kMiB, first).ok());
  PoolDriver::growth = 0;
  BOOST_TEST(allocate(kMiB, second).ok());
  uint64_t number = native.begin_pool_end(handle(1));
  native.finish_pool_end(number, handle(1), false);  // the call failed
  number = native.begin_pool_end(handle(1));
  native.finish_pool_end(number, handle(1), true);
  // Another pool of the same handle.
  PoolDriver::reserved = 0;
  PoolDriver::growth = 64 * kMiB;
  DeviceBlock other;
  BOOST_TEST(allocate(64 * kMiB, other).ok());
  BOOST_TEST(budget.reserved_bytes() == 96 * kMiB);
  BOOST_TEST(budget.deallocate(first, {}).ok());
  BOOST_TEST(budget.settle({}).ok());
  BOOST_TEST(budget.reserved_bytes() == 96 * kMiB);
  BOOST_TEST(budget.deallocate(second, {}).ok());
  BOOST_TEST(budget.settle({}).ok());
  BOOST_TEST(budget.reserved_bytes() == 64 * kMiB);
}
