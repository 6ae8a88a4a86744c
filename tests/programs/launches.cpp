// launches THREADS ROUNDS: threads that allocate plain and stream-ordered memory, launch kernels that stay inside it, on streams
// of their own and others', free it in every way, and capture now and then.
#include <thread>
#include <vector>

#include "programs/misuse/misuse.h"

namespace {

void rounds(CUcontext context, int seed, int count) {
  MUST(cuCtxSetCurrent(context));
  CUstream stream = misuse::make_stream();
  unsigned random = static_cast<unsigned>(seed) * 7919 + 1;
  std::vector<std::pair<CUdeviceptr, size_t>> live;
  for (int i = 0; i < count; ++i) {
    random = random * 1664525 + 1013904223;
    unsigned choice = random >> 28;
    size_t bytes = (random >> 8) % 5000 + 1;
    if (live.size() < 8) {
      live.emplace_back(must_alloc(bytes), bytes);
    }
    auto& [block, size] = live[(random >> 16) % live.size()];
    misuse::write(block, size, choice % 3 == 0 ? nullptr : stream);
    if (choice < 6) {
      if (choice == 0) {
        MUST(cuStreamSynchronize(nullptr));  // it was written from there, too
        MUST(cuMemFreeAsync(block, stream));
      } else {
        MUST(cuMemFree_v2(block));
      }
      live.erase(live.begin() + static_cast<long>((random >> 16) % live.size()));
    } else if (choice < 8) {
      CUdeviceptr ordered = misuse::must_alloc_async(bytes, stream);
      misuse::write(ordered, bytes, stream);
      MUST(cuMemFreeAsync(ordered, stream));
    } else if (choice == 8) {
      MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
      misuse::write(block, size, stream);
      CUgraph graph = nullptr;
      MUST(cuStreamEndCapture(stream, &graph));
      MUST(cuGraphDestroy(graph));
    } else if (choice == 9) {
      MUST(cuStreamSynchronize(stream));
    }
  }
  MUST(cuStreamSynchronize(stream));
  for (auto& [block, size] : live) {
    MUST(cuMemFree_v2(block));
  }
}

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 4;
  int count = argc > 2 ? std::atoi(argv[2]) : 300;
  misuse::begin(0, nullptr);
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back(rounds, context, i, count);
  }
  for (std::thread& each : all) {
    each.join();
  }
  MUST(cuCtxSynchronize());
  std::printf("done\n");
  return 0;
}
