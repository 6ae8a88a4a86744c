// What an unmodified program pays for device memory: microseconds an iteration, the best of five rounds.
//   backend pair BYTES THREADS      cudaMalloc + cudaFree
//   backend driver BYTES            cuMemAlloc + cuMemFree
//   backend kernel BYTES            cudaMalloc + small kernel + cudaFree
//   backend storm BYTES THREADS     200 times cudaMallocAsync + cudaFreeAsync in a stream of each thread's own: all of them together
//   backend calls wait|ordered BYTES   the driver calls that a backend makes for cuMemAlloc + cuMemFree, and nothing else
#include <cuda.h>
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#define MUST(call)                                                  \
  do {                                                              \
    if ((call) != 0) {                                              \
      std::printf("%s:%d: %s failed\n", __FILE__, __LINE__, #call); \
      std::exit(3);                                                 \
    }                                                               \
  } while (0)

__global__ void touch(int* data) { data[threadIdx.x] = static_cast<int>(threadIdx.x); }

template <class Round>
static double best(int iterations, Round round) {
  double least = 1e9;
  round(iterations / 10 + 1);
  for (int i = 0; i < 5; ++i) {
    auto start = std::chrono::steady_clock::now();
    round(iterations);
    double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / iterations;
    least = us < least ? us : least;
  }
  return least;
}

static void pairs(size_t bytes, int n) {
  for (int i = 0; i < n; ++i) {
    void* p = nullptr;
    MUST(cudaMalloc(&p, bytes));
    MUST(cudaFree(p));
  }
}

// The calls of the backend for a block that is not kept, in its order; see runtime/resource/pool_source.cpp. `ordered`: the
// previous block is freed once the event over its work is done.
static double calls(bool ordered, size_t bytes, int iterations) {
  CUcontext context = nullptr;
  CUdevice device = 0;
  CUmemoryPool pool = nullptr;
  CUmemPoolProps properties{};
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr p = 0;
  CUdeviceptr freed = 0;
  int off = 0;
  cuuint64_t all = UINT64_MAX;
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  MUST(cuMemPoolCreate(&pool, &properties));
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  auto exchange = [&] { MUST(cuThreadExchangeStreamCaptureMode(&mode)); };
  return best(iterations, [&](int n) {
    for (int i = 0; i < n; ++i) {
      MUST(cuCtxGetDevice(&device));
      MUST(cuCtxGetCurrent(&context));
      if (ordered && freed != 0) {
        exchange();
        while (cuEventQuery(event) != CUDA_SUCCESS) {
        }
        MUST(cuMemFreeAsync(freed, stream));
        exchange();
      }
      exchange();
      MUST(cuMemAllocFromPoolAsync(&p, bytes, pool, stream));
      MUST(cuStreamSynchronize(stream));
      exchange();
      if (ordered) {
        exchange();
        MUST(cuCtxRecordEvent(context, event));
        exchange();
        freed = p;
      } else {
        MUST(cuCtxRecordEvent(context, event));
        exchange();
        MUST(cuEventSynchronize(event));
        exchange();
        exchange();
        MUST(cuMemFreeAsync(p, stream));
        exchange();
      }
    }
  });
}

int main(int argc, char** argv) {
  const char* what = argc > 2 ? argv[1] : "";
  MUST(cudaFree(nullptr));
  double us = 0;
  if (std::strcmp(what, "calls") == 0 && argc > 3) {
    us = calls(std::strcmp(argv[2], "ordered") == 0, std::strtoull(argv[3], nullptr, 10), 5000);
  } else if (std::strcmp(what, "pair") == 0 && argc > 3) {
    size_t bytes = std::strtoull(argv[2], nullptr, 10);
    int threads = std::atoi(argv[3]);
    us = best(bytes > (size_t{256} << 20) ? 200 : 4000, [&](int n) {
      std::vector<std::thread> all;
      for (int t = 1; t < threads; ++t) {
        all.emplace_back([&] { pairs(bytes, n / threads); });
      }
      pairs(bytes, n / threads);
      for (std::thread& each : all) {
        each.join();
      }
    });
  } else if (std::strcmp(what, "storm") == 0 && argc > 3) {
    size_t bytes = std::strtoull(argv[2], nullptr, 10);
    std::vector<cudaStream_t> streams(std::strtoull(argv[3], nullptr, 10));
    for (cudaStream_t& each : streams) {
      MUST(cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking));
    }
    us = best(1, [&](int) {
      std::vector<std::thread> all;
      for (cudaStream_t stream : streams) {
        all.emplace_back([=] {
          for (int i = 0; i < 200; ++i) {
            void* p = nullptr;
            MUST(cudaMallocAsync(&p, bytes, stream));
            MUST(cudaFreeAsync(p, stream));
          }
        });
      }
      for (std::thread& each : all) {
        each.join();
      }
      MUST(cudaDeviceSynchronize());
    });
  } else if (std::strcmp(what, "driver") == 0) {
    size_t bytes = std::strtoull(argv[2], nullptr, 10);
    us = best(4000, [&](int n) {
      for (int i = 0; i < n; ++i) {
        CUdeviceptr p = 0;
        MUST(cuMemAlloc(&p, bytes));
        MUST(cuMemFree(p));
      }
    });
  } else if (std::strcmp(what, "kernel") == 0) {
    size_t bytes = std::strtoull(argv[2], nullptr, 10);
    us = best(4000, [&](int n) {
      for (int i = 0; i < n; ++i) {
        int* p = nullptr;
        MUST(cudaMalloc(&p, bytes));
        touch<<<1, 128>>>(p);
        MUST(cudaFree(p));
      }
      MUST(cudaDeviceSynchronize());
    });
  } else {
    std::printf("backend pair|storm BYTES THREADS | driver BYTES | kernel BYTES | calls wait|ordered BYTES\n");
    return 2;
  }
  std::printf("%.3f\n", us);
  return 0;
}
