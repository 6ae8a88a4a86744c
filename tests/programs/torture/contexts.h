// Contexts that begin and end with everything in them, and threads that do.
#pragma once

#include <thread>

#include "programs/torture/streams.h"

namespace torture {

// A context of the thread's own, which takes with it the blocks, streams and events that are left in it.
inline void created(Worker& worker) {
  Beside beside(worker);
  CUcontext own = nullptr;
  if (!GOOD(cuCtxCreate_v2(&own, 0, 0))) {
    return;
  }
  std::vector<Block> blocks;
  for (size_t i = 0, n = worker.pick(4); i < n; ++i) {
    blocks.push_back(make_block(worker));
  }
  CUstream stream = nullptr;
  CUevent event = nullptr;
  GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  GOOD(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  Block pooled{0, worker.size(), worker.value()};
  GOOD(cuMemAllocAsync(&pooled.ptr, pooled.bytes, stream));
  GOOD(cuMemsetD8Async(pooled.ptr, pooled.value, pooled.bytes, stream));
  verify_in(worker, pooled, stream);
  GOOD(cuMemFreeAsync(pooled.ptr, stream));
  GOOD(cuEventRecord(event, stream));
  for (const Block& each : blocks) {
    verify(worker, each);
    if (worker.sometimes()) {
      free_block(worker, each);
    }
  }
  if (worker.sometimes()) {
    GOOD(cuStreamDestroy_v2(stream));
    GOOD(cuEventDestroy_v2(event));
  }
  if (worker.sometimes()) {
    CUcontext popped = nullptr;
    GOOD(cuCtxPopCurrent_v2(&popped));
    HOLDS(popped == own);
  }
  GOOD(cuCtxDestroy_v2(own));
  CUcontext current = own;
  GOOD(cuCtxGetCurrent(&current));
  HOLDS(current == nullptr);
}

// The primary context, reset with everything in it.
inline void reset(Worker& worker) {
  if (take_one(worker)) {  // what is under way keeps the context
    return;
  }
  Alone without(gates.primary);
  {
    std::lock_guard guard(underway.lock);
    if (!underway.blocks.empty()) {
      return;
    }
  }
  Beside beside(worker);
  CUcontext context = nullptr;
  GOOD(cuDevicePrimaryCtxRetain(&context, 0));
  GOOD(cuCtxSetCurrent(context));
  for (size_t i = 0, n = worker.pick(4); i < n; ++i) {
    verify(worker, make_block(worker));
  }
  CUstream stream = nullptr;
  GOOD(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
  GOOD(cuCtxSetCurrent(nullptr));
  GOOD(cuDevicePrimaryCtxReset_v2(0));
  GOOD(cuDevicePrimaryCtxRelease_v2(0));
}

// A green context, which is a view of the primary context and keeps it: what is made in it stays when it ends.
inline void green(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  CUdevResource whole{};
  CUdevResource part{};
  unsigned parts = 1;
  CUdevResourceDesc description = nullptr;
  CUgreenCtx made = nullptr;
  CUcontext view = nullptr;
  CUstream stream = nullptr;
  GOOD(cuDeviceGetDevResource(0, &whole, CU_DEV_RESOURCE_TYPE_SM));
  GOOD(cuDevSmResourceSplitByCount(&part, &parts, &whole, nullptr, 0, 16));
  GOOD(cuDevResourceGenerateDesc(&description, &part, 1));
  Primary* primary = worker.sometimes() ? new Primary(worker) : nullptr;
  if (!GOOD(cuGreenCtxCreate(&made, description, 0, CU_GREEN_CTX_DEFAULT_STREAM))) {
    delete primary;
    return;
  }
  GOOD(cuCtxFromGreenCtx(&view, made));
  GOOD(cuCtxPushCurrent_v2(view));
  Block block = make_block(worker);
  verify(worker, block);
  GOOD(cuGreenCtxStreamCreate(&stream, made, CU_STREAM_NON_BLOCKING, 0));
  block.value = worker.value();
  GOOD(cuMemsetD8Async(block.ptr, block.value, block.bytes, stream));
  verify_in(worker, block, stream);
  GOOD(cuStreamDestroy_v2(stream));
  GOOD(cuCtxPopCurrent_v2(&view));
  if (primary == nullptr) {
    GOOD(cuMemFree_v2(block.ptr));
  }
  GOOD(cuGreenCtxDestroy(made));
  if (primary != nullptr) {
    verify(worker, block);
    free_block(worker, block);
  }
  delete primary;
}

// A context that is attached to ends when it was detached from once more.
inline void detached(Worker& worker) {
  Beside beside(worker);
  CUcontext own = nullptr;
  CUcontext again = nullptr;
  if (!GOOD(cuCtxCreate_v2(&own, 0, 0))) {
    return;
  }
  Block block = make_block(worker);
  GOOD(cuCtxAttach(&again, 0));
  GOOD(cuCtxDetach(again));
  verify(worker, block);
  if (worker.sometimes()) {
    free_block(worker, block);
  }
  GOOD(cuCtxDetach(own));
}

// What waits for all of a context is refused beside any capture in it.
inline void whole_context(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  Alone alone(gates.captures);
  Primary current(worker);
  Block block = make_block(worker);
  block.value = worker.value();
  AnyStream stream(worker);
  GOOD(cuCtxSynchronize());
  GOOD(cuMemsetD8Async(block.ptr, block.value, block.bytes, stream.get()));
  GOOD(cuCtxSynchronize());
  verify(worker, block);
  free_block(worker, block);
}

// A thread that lives for a few blocks, so that its number and its own stream come back.
inline void short_thread(Worker& worker) {
  std::thread([&worker] { worker.sometimes() ? ordered(worker) : plain(worker); }).join();
}

}  // namespace torture
