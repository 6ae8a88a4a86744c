// Streams of every sort, events, stream-ordered memory, pools, and graphs with memory nodes.
#pragma once

#include "programs/torture/memory.h"

namespace torture {

// A stream of one's own, or one of the two that every thread has.
class AnyStream {
 public:
  explicit AnyStream(Worker& of) : worker(of) {
    switch (worker.pick(4)) {
      case 0:
        break;
      case 1:
        stream_ = CU_STREAM_PER_THREAD;
        break;
      default:
        made_ = GOOD(cuStreamCreate(&stream_, worker.sometimes() ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    }
  }
  // Nothing is left in it: a driver does not come back from the end of a thread whose own stream holds a free behind work.
  ~AnyStream() {
    GOOD(cuStreamSynchronize(stream_));
    if (made_) {
      GOOD(cuStreamDestroy_v2(stream_));
    }
  }
  AnyStream(const AnyStream&) = delete;
  AnyStream& operator=(const AnyStream&) = delete;
  [[nodiscard]] CUstream get() const { return stream_; }

 private:
  Worker& worker;
  CUstream stream_ = nullptr;
  bool made_ = false;
};

// What is put into `after` from now on runs behind what is in `before`.
inline void order(Worker& worker, CUstream before, CUstream after) {
  CUevent event = nullptr;
  GOOD(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  GOOD(cuEventRecord(event, before));
  GOOD(cuStreamWaitEvent(after, event, 0));
  GOOD(cuEventDestroy_v2(event));  // whether or not it has come
}

inline void verify_in(Worker& worker, const Block& block, CUstream stream) {
  std::vector<unsigned char> read(block.bytes, static_cast<unsigned char>(~block.value));
  GOOD(cuMemcpyDtoHAsync_v2(read.data(), block.ptr, block.bytes, stream));
  if (GOOD(cuStreamSynchronize(stream))) {
    worker.judge(read, block.value, __LINE__);
  }
}

// Made in one stream, read in another, freed in either, or by the call that waits.
inline void use_in_order(Worker& worker, CUmemoryPool from) {
  AnyStream first(worker);
  AnyStream second(worker);
  for (size_t i = 0, n = 1 + worker.pick(4); i < n; ++i) {
    Block block{0, worker.size(), worker.value()};
    bool made = from != nullptr ? GOOD(cuMemAllocFromPoolAsync(&block.ptr, block.bytes, from, first.get()))
                                : GOOD(cuMemAllocAsync(&block.ptr, block.bytes, first.get()));
    if (!made) {
      return;
    }
    GOOD(cuMemsetD8Async(block.ptr, block.value, block.bytes, first.get()));
    order(worker, first.get(), second.get());
    verify_in(worker, block, second.get());
    if (worker.pick(3) == 0) {
      GOOD(cuMemFree_v2(block.ptr));
    } else {
      GOOD(cuMemFreeAsync(block.ptr, worker.sometimes() ? first.get() : second.get()));
    }
  }
}

inline void ordered(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  Primary current(worker);
  use_in_order(worker, nullptr);
}

inline void pool(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  Primary current(worker);
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  CUmemoryPool made = nullptr;
  if (!GOOD(cuMemPoolCreate(&made, &properties))) {
    return;
  }
  if (worker.sometimes()) {
    cuuint64_t all = ~cuuint64_t{0};
    GOOD(cuMemPoolSetAttribute(made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  }
  use_in_order(worker, made);
  AnyStream stream(worker);
  Block last{0, worker.size(), worker.value()};
  GOOD(cuMemAllocFromPoolAsync(&last.ptr, last.bytes, made, stream.get()));
  GOOD(cuMemsetD8Async(last.ptr, last.value, last.bytes, stream.get()));
  bool before = worker.sometimes();
  if (before) {
    GOOD(cuMemPoolDestroy(made));  // what is live stays so
  }
  verify_in(worker, last, stream.get());
  GOOD(cuMemFreeAsync(last.ptr, stream.get()));
  if (!before) {
    GOOD(cuMemPoolDestroy(made));  // before its free has come
  }
}

// A graph that makes memory of its own, fills it, copies it to a block that was there before, and ends it.
inline CUgraph capture(Worker& worker, CUstream stream, const Block& target, CUstreamCaptureMode mode) {
  CUgraph graph = nullptr;
  CUdeviceptr own = 0;
  if (!GOOD(cuStreamBeginCapture_v2(stream, mode))) {
    return nullptr;
  }
  GOOD(cuMemAllocAsync(&own, target.bytes, stream));
  GOOD(cuMemsetD8Async(own, target.value, target.bytes, stream));
  if (mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
    CUdeviceptr beside = 0;
    GOOD(cuMemAlloc_v2(&beside, worker.size()));
    GOOD(cuMemFree_v2(beside));
  }
  GOOD(cuMemcpyDtoDAsync_v2(target.ptr, own, target.bytes, stream));
  GOOD(cuMemFreeAsync(own, stream));
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  GOOD(cuStreamIsCapturing(stream, &status));
  HOLDS(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  GOOD(cuStreamEndCapture(stream, &graph));
  return graph;
}

inline void captured(Worker& worker) {
  Shared with(gates.primary);
  constexpr CUstreamCaptureMode kModes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                            CU_STREAM_CAPTURE_MODE_RELAXED};
  CUstreamCaptureMode mode = kModes[worker.pick(3)];
  Shared beside(gates.global, std::defer_lock);
  Alone alone(gates.global, std::defer_lock);
  mode == CU_STREAM_CAPTURE_MODE_GLOBAL ? alone.lock() : beside.lock();
  Primary current(worker);
  Block target = make_block(worker);
  verify(worker, target);
  target.value = worker.value();
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  {
    Shared capturing(gates.captures);
    graph = capture(worker, stream, target, mode);
  }
  GOOD(cuGraphInstantiateWithFlags(&exec, graph, 0));
  if (worker.sometimes()) {
    GOOD(cuGraphDestroy(graph));
    graph = nullptr;
  }
  for (size_t i = 0, n = 1 + worker.pick(3); i < n; ++i) {
    GOOD(cuGraphLaunch(exec, stream));
  }
  verify_in(worker, target, stream);
  GOOD(cuGraphExecDestroy(exec));
  if (graph != nullptr) {
    GOOD(cuGraphDestroy(graph));
  }
  GOOD(cuStreamDestroy_v2(stream));
  GOOD(cuMemFree_v2(target.ptr));
}

// Work of one stream behind another's, asked for and waited for by an event.
inline void events(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  Primary current(worker);
  AnyStream stream(worker);
  Block block = make_block(worker);
  block.value = worker.value();
  CUevent event = nullptr;
  GOOD(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  order(worker, nullptr, stream.get());
  GOOD(cuMemsetD8Async(block.ptr, block.value, block.bytes, stream.get()));
  GOOD(cuEventRecord(event, stream.get()));
  auto either = [](CUresult now) { return now == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : now; };
  GOOD(either(cuEventQuery(event)));
  GOOD(either(cuStreamQuery(stream.get())));
  GOOD(cuEventSynchronize(event));
  GOOD(cuEventQuery(event));
  verify(worker, block);
  GOOD(cuEventDestroy_v2(event));
  free_block(worker, block);
}

// A stream that ends before its work: that is done all the same, and a free waits for it.
inline void destroyed_stream(Worker& worker) {
  Shared with(gates.primary);
  Beside beside(worker);
  Primary current(worker);
  Block block = make_block(worker);
  verify(worker, block);
  block.value = worker.value();
  CUstream stream = nullptr;
  CUevent event = nullptr;
  GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  GOOD(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  GOOD(cuMemsetD8Async(block.ptr, block.value, block.bytes, stream));
  GOOD(cuEventRecord(event, stream));
  GOOD(cuStreamDestroy_v2(stream));
  if (worker.sometimes()) {
    GOOD(cuEventSynchronize(event));
    verify(worker, block);
  }
  GOOD(cuMemFree_v2(block.ptr));
  GOOD(cuEventDestroy_v2(event));
}

}  // namespace torture
