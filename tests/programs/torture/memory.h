// Plain memory, physical memory, and blocks that one thread makes and another frees.
#pragma once

#include "programs/torture/worker.h"

namespace torture {

struct Block {
  CUdeviceptr ptr = 0;
  size_t bytes = 0;
  unsigned char value = 0;
};

inline void verify(Worker& worker, const Block& block) {
  std::vector<unsigned char> read(block.bytes, static_cast<unsigned char>(~block.value));
  if (GOOD(cuMemcpyDtoH_v2(read.data(), block.ptr, block.bytes))) {
    worker.judge(read, block.value, __LINE__);
  }
}

// Filled by a set or by a copy.
inline Block make_block(Worker& worker) {
  Block block{0, worker.size(), worker.value()};
  if (!GOOD(cuMemAlloc_v2(&block.ptr, block.bytes))) {
    return {};
  }
  if (worker.sometimes()) {
    GOOD(cuMemsetD8_v2(block.ptr, block.value, block.bytes));
  } else {
    std::vector<unsigned char> data(block.bytes, block.value);
    GOOD(cuMemcpyHtoD_v2(block.ptr, data.data(), block.bytes));
  }
  return block;
}

// A free in one of the ways there are. The caller's context is current before and after.
inline void free_block(Worker& worker, const Block& block) {
  CUcontext own = nullptr;
  switch (worker.pick(4)) {
    case 0:
      GOOD(cuCtxPopCurrent_v2(&own));
      GOOD(cuMemFree_v2(block.ptr));
      GOOD(cuCtxPushCurrent_v2(own));
      break;
    case 1:
      GOOD(cuMemFreeAsync(block.ptr, nullptr));
      break;
    default:
      GOOD(cuMemFree_v2(block.ptr));
  }
}

inline void plain(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  Primary current(worker);
  std::vector<Block> blocks;
  for (size_t i = 0, n = 1 + worker.pick(5); i < n; ++i) {
    blocks.push_back(make_block(worker));
    size_t at = worker.pick(blocks.size());
    if (blocks[at].bytes == blocks.back().bytes) {
      GOOD(cuMemcpyDtoD_v2(blocks[at].ptr, blocks.back().ptr, blocks[at].bytes));
      blocks[at].value = blocks.back().value;
    }
    size_t free = 0;
    size_t total = 0;
    GOOD(cuMemGetInfo_v2(&free, &total));
    HOLDS(free <= total && total != 0);
  }
  for (const Block& each : blocks) {
    verify(worker, each);
    free_block(worker, each);
  }
}

// Two pieces of physical memory, side by side: set and read as one.
inline void mapped(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  Primary current(worker);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  size_t piece = 0;
  GOOD(cuMemGetAllocationGranularity(&piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle handles[2] = {};
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  if (!GOOD(cuMemAddressReserve(&at, 2 * piece, 0, 0, 0))) {
    return;
  }
  bool early = worker.sometimes();  // a mapping keeps the memory
  for (int i = 0; i < 2; ++i) {
    GOOD(cuMemCreate(&handles[i], piece, &properties, 0));
    GOOD(cuMemMap(at + static_cast<size_t>(i) * piece, piece, 0, handles[i], 0));
    if (early) {
      GOOD(cuMemRelease(handles[i]));
    }
  }
  GOOD(cuMemSetAccess(at, 2 * piece, &access, 1));
  Block block{at + piece - 5000, 10'000, worker.value()};
  GOOD(cuMemsetD8_v2(block.ptr, block.value, block.bytes));
  verify(worker, block);
  GOOD(cuMemUnmap(at, 2 * piece));
  for (int i = 0; i < 2 && !early; ++i) {
    GOOD(cuMemRelease(handles[i]));
  }
  GOOD(cuMemAddressFree(at, 2 * piece));
}

// Blocks under way from one thread to another. Each keeps the primary context, and what it was filled by is done.
struct Underway {
  std::mutex lock;
  std::vector<Block> blocks;
};
inline Underway underway;

inline void hand_on(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  Primary current(worker);
  CUcontext kept = nullptr;
  GOOD(cuDevicePrimaryCtxRetain(&kept, 0));
  Block block = make_block(worker);
  verify(worker, block);
  std::lock_guard guard(underway.lock);
  underway.blocks.push_back(block);
}

// A block of another thread, freed with its context current, with none, or with one of this thread's own.
inline bool take_one(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  Block block;
  {
    std::lock_guard guard(underway.lock);
    if (underway.blocks.empty()) {
      return false;
    }
    size_t at = worker.pick(underway.blocks.size());
    block = underway.blocks[at];
    underway.blocks[at] = underway.blocks.back();
    underway.blocks.pop_back();
  }
  {
    Primary current(worker);
    verify(worker, block);
  }
  CUcontext own = nullptr;
  bool other = worker.pick(4) == 0;
  if (other) {
    GOOD(cuCtxCreate_v2(&own, 0, 0));
  }
  GOOD(cuMemFree_v2(block.ptr));
  if (other) {
    GOOD(cuCtxDestroy_v2(own));
  }
  GOOD(cuDevicePrimaryCtxRelease_v2(0));
  return true;
}

inline void take(Worker& worker) { take_one(worker); }

inline void take_all() {
  Worker worker(1);
  worker.where = "take_all";
  while (take_one(worker)) {
  }
}

}  // namespace torture
