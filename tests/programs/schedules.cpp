// Random programs on random schedules: blocks that are filled, copied between streams and read back, and are freed as
// soon as the work on them is enqueued, as cuMemFree allows. Prints what was wrong; the simulated driver itself ends the
// process at a use before an allocation or after a free. The same lines must come natively and under every backend.
//   schedules [SEEDS [FIRST]]
#include <dlfcn.h>

#include <random>
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kSizes[] = {1, 512, 4096, 65536, 300'000, 1 << 20, 3 << 20, 5 << 20};
constexpr int kSteps = 60;

struct Held {
  CUdeviceptr ptr;
  size_t bytes;
  unsigned char value;
  CUstream last;  // the stream that its contents are in order with
};

struct Reading {
  std::vector<unsigned char> data;
  unsigned char want;
};

class Schedule {
 public:
  Schedule(unsigned seed, CUcontext first, CUcontext second) : random_(seed), contexts_{first, second} {
    for (unsigned flags : {CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING, CU_STREAM_DEFAULT}) {
      CUstream made = nullptr;
      MUST(cuStreamCreate(&made, flags));
      streams_.push_back(made);
    }
    streams_.push_back(nullptr);
    streams_.push_back(CU_STREAM_PER_THREAD);
    MUST(cuEventCreate(&event_, CU_EVENT_DISABLE_TIMING));
  }

  long run() {
    for (int i = 0; i < kSteps; ++i) {
      step();
    }
    while (!held_.empty()) {
      give_back(held_.size() - 1);
    }
    MUST(cuCtxSynchronize());
    for (const Reading& each : readings_) {
      judge(each);
    }
    for (CUstream each : streams_) {
      if (each != nullptr && each != CU_STREAM_PER_THREAD) {
        MUST(cuStreamDestroy_v2(each));
      }
    }
    MUST(cuEventDestroy_v2(event_));
    return wrong_;
  }

 private:
  size_t pick(size_t n) { return random_() % n; }
  CUstream any_stream() { return streams_[pick(streams_.size())]; }

  void order(CUstream before, CUstream after) {
    if (before != after) {
      MUST(cuEventRecord(event_, before));
      MUST(cuStreamWaitEvent(after, event_, 0));
    }
  }

  void judge(const Reading& reading) {
    for (unsigned char each : reading.data) {
      wrong_ += each != reading.want;
    }
  }

  void move_on(Held& block) {
    CUstream next = any_stream();
    order(block.last, next);
    block.last = next;
  }

  void read(Held& block) {
    size_t bytes = block.bytes < 4096 ? block.bytes : 4096;
    readings_.push_back({std::vector<unsigned char>(bytes, static_cast<unsigned char>(~block.value)), block.value});
    size_t offset = block.bytes - bytes;
    MUST(cuMemcpyDtoHAsync_v2(readings_.back().data.data(), block.ptr + offset, bytes, block.last));
  }

  void give_back(size_t i) {
    Held block = held_[i];
    held_[i] = held_.back();
    held_.pop_back();
    if (pick(3) != 0) {
      read(block);
    }
    if (pick(8) == 0) {
      MUST(cuMemFreeAsync(block.ptr, block.last));  // by the other call, in the order of its stream
    } else {
      MUST(cuMemFree_v2(block.ptr));  // waits for what was just enqueued
    }
  }

  // In the relaxed mode plain memory may come and go while a stream captures; none of it becomes a node.
  void capture() {
    CUstream stream = streams_[0];
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUdeviceptr graph_owned = 0;
    size_t nodes = 0;
    CUgraph graph = nullptr;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    MUST(cuMemAllocAsync(&graph_owned, 1 << 20, stream));
    MUST(cuMemFreeAsync(graph_owned, stream));
    if (!held_.empty()) {
      size_t i = pick(held_.size());
      if (held_[i].last != stream) {
        MUST(cuMemFree_v2(held_[i].ptr));
        held_[i] = held_.back();
        held_.pop_back();
      }
    }
    Held fresh{0, kSizes[pick(5)], 7, streams_[1]};
    CUresult result = cuMemAlloc_v2(&fresh.ptr, fresh.bytes);
    if (result == CUDA_SUCCESS) {
      MUST(cuMemsetD8Async(fresh.ptr, fresh.value, fresh.bytes, fresh.last));
      held_.push_back(fresh);
    }
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphGetNodes(graph, nullptr, &nodes));
    MUST(cuGraphDestroy(graph));
    wrong_ += nodes != 2;
  }

  void step() {
    size_t what = pick(20);
    if (held_.empty() || what < 8) {
      make();
    } else if (what < 11) {
      move_on(held_[pick(held_.size())]);
    } else if (what < 13) {
      read(held_[pick(held_.size())]);
    } else if (what == 13) {
      capture();
    } else if (what == 14) {
      free_elsewhere();
    } else {
      give_back(pick(held_.size()));
    }
  }

  // Valid on every stream at once. Two writers in the order of an event, so that the second one's value stands.
  void make() {
    Held fresh{0, kSizes[pick(std::size(kSizes))], static_cast<unsigned char>(random_()), any_stream()};
    CUresult result = cuMemAlloc_v2(&fresh.ptr, fresh.bytes);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      return;
    }
    MUST(result);
    if (pick(2) == 0) {
      CUstream first = any_stream();
      MUST(cuMemsetD8Async(fresh.ptr, 0xee, fresh.bytes, first));
      order(first, fresh.last);
    }
    MUST(cuMemsetD8Async(fresh.ptr, fresh.value, fresh.bytes, fresh.last));
    held_.push_back(fresh);
  }

  // A block is its own context's affair, whichever is current.
  void free_elsewhere() {
    MUST(cuCtxSetCurrent(pick(2) == 0 ? contexts_[1] : nullptr));
    size_t i = pick(held_.size());
    MUST(cuMemFree_v2(held_[i].ptr));
    held_[i] = held_.back();
    held_.pop_back();
    MUST(cuCtxSetCurrent(contexts_[0]));
  }

  std::minstd_rand random_;
  CUcontext contexts_[2];
  std::vector<CUstream> streams_;
  CUevent event_ = nullptr;
  std::vector<Held> held_;
  std::vector<Reading> readings_;
  long wrong_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  unsigned seeds = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 100;
  unsigned first = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  auto reseed = reinterpret_cast<void (*)(unsigned)>(dlsym(RTLD_DEFAULT, "xlog_sim_seed"));
  CUcontext primary = start();
  CUcontext other = nullptr;
  MUST(cuCtxCreate_v2(&other, 0, 0));
  MUST(cuCtxSetCurrent(primary));
  long wrong = 0;
  for (unsigned seed = first; seed < first + seeds; ++seed) {
    if (reseed != nullptr) {
      reseed(seed);
    }
    long now = Schedule(seed, primary, other).run();
    if (now != 0) {
      std::printf("seed %u: %ld wrong\n", seed, now);
    }
    wrong += now;
  }
  std::printf("%u seeds, %ld wrong\n", seeds, wrong);
  return wrong != 0;
}
