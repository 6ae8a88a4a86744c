// Blocks that come and go as fast as they can, with kernels that verify what they read: stress SECONDS [THREADS].
// Every block is filled and verified in the order of a stream (non-blocking, blocking, legacy or the thread's own), often
// of two, and freed right after the last kernel was launched. Prints the number of wrong words, and whether the memory
// that a limit leaves is the same at the end as at the start.
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

#define MUST(call)                                                                              \
  do {                                                                                          \
    cudaError_t must_result = (call);                                                           \
    if (must_result != cudaSuccess) {                                                           \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(must_result)); \
      std::fflush(stdout);                                                                      \
      std::_Exit(3);                                                                            \
    }                                                                                           \
  } while (0)

__global__ void fill(unsigned* data, size_t words, unsigned seed, int spin) {
  for (long start = clock64(); clock64() - start < spin;) {
  }
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += size_t{gridDim.x} * blockDim.x) {
    data[i] = seed ^ static_cast<unsigned>(i * 2654435761U);
  }
}

__global__ void verify(const unsigned* data, size_t words, unsigned seed, int spin, unsigned long long* wrong) {
  for (long start = clock64(); clock64() - start < spin;) {
  }
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += size_t{gridDim.x} * blockDim.x) {
    if (data[i] != (seed ^ static_cast<unsigned>(i * 2654435761U))) {
      atomicAdd(wrong, 1ULL);
    }
  }
}

__global__ void copy(unsigned* to, const unsigned* from, size_t words) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += size_t{gridDim.x} * blockDim.x) {
    to[i] = from[i];
  }
}

static constexpr size_t kSizes[] = {4, 512, 4096, 65536, 1 << 20, (1 << 20) + 4, 3 << 20, 8 << 20};

struct Block {
  unsigned* data;
  size_t words;
  unsigned seed;
  cudaStream_t stream;
};

class Worker {
 public:
  Worker(unsigned seed, const std::vector<cudaStream_t>& streams, unsigned long long* wrong)
      : random_(seed), streams_(streams), wrong_(wrong) {
    MUST(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
  }

  void run(std::chrono::steady_clock::time_point end) {
    std::vector<Block> held;
    for (; std::chrono::steady_clock::now() < end; ++pairs) {
      held.push_back(make());
      if (random_() % 4 == 0) {
        held.push_back(duplicate(held[random_() % held.size()]));
      }
      while (held.size() > 24 || (!held.empty() && random_() % 2 == 0)) {
        size_t i = random_() % held.size();
        give_back(held[i]);
        held[i] = held.back();
        held.pop_back();
      }
    }
    for (Block& each : held) {
      give_back(each);
    }
    MUST(cudaEventDestroy(event_));
  }
  long pairs = 0;

 private:
  int spin() { return random_() % 16 == 0 ? 200'000 : 0; }
  cudaStream_t any_stream() { return streams_[random_() % streams_.size()]; }
  unsigned* allocate(size_t words) {
    unsigned* data = nullptr;
    MUST(cudaMalloc(&data, words * 4));
    return data;
  }
  static unsigned blocks(size_t words) { return static_cast<unsigned>(words / 4096 + 1); }

  void move_to(Block& block, cudaStream_t next) {
    MUST(cudaEventRecord(event_, block.stream));
    MUST(cudaStreamWaitEvent(next, event_, 0));
    block.stream = next;
  }
  Block make() {
    size_t words = kSizes[random_() % std::size(kSizes)] / 4;
    Block block{allocate(words), words, static_cast<unsigned>(random_()), any_stream()};
    fill<<<blocks(words), 128, 0, block.stream>>>(block.data, words, block.seed, spin());
    return block;
  }
  Block duplicate(Block& of) {
    Block block{allocate(of.words), of.words, of.seed, of.stream};
    copy<<<blocks(of.words), 128, 0, of.stream>>>(block.data, of.data, of.words);
    return block;
  }
  void give_back(Block& block) {
    if (random_() % 2 == 0) {
      move_to(block, any_stream());
    }
    verify<<<blocks(block.words), 128, 0, block.stream>>>(block.data, block.words, block.seed, spin(), wrong_);
    if (random_() % 16 == 0) {
      MUST(cudaFreeAsync(block.data, block.stream));
    } else {
      MUST(cudaFree(block.data));
    }
  }

  std::minstd_rand random_;
  std::vector<cudaStream_t> streams_;
  unsigned long long* wrong_;
  cudaEvent_t event_ = nullptr;
};

int main(int argc, char** argv) {
  int seconds = argc > 1 ? std::atoi(argv[1]) : 10;
  int threads = argc > 2 ? std::atoi(argv[2]) : 8;
  unsigned long long* wrong = nullptr;
  MUST(cudaMalloc(&wrong, sizeof *wrong));
  MUST(cudaMemset(wrong, 0, sizeof *wrong));
  std::vector<cudaStream_t> shared(10);
  for (size_t i = 0; i < shared.size(); ++i) {
    MUST(cudaStreamCreateWithFlags(&shared[i], i < 8 ? cudaStreamNonBlocking : cudaStreamDefault));
  }
  shared.push_back(nullptr);
  shared.push_back(cudaStreamPerThread);
  MUST(cudaDeviceSynchronize());
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  MUST(cudaMemGetInfo(&before, &total));
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::atomic<long> pairs{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      MUST(cudaSetDevice(0));
      Worker worker(static_cast<unsigned>(t) + 1, shared, wrong);
      worker.run(end);
      pairs += worker.pairs;
    });
  }
  for (std::thread& each : all) {
    each.join();
  }
  MUST(cudaDeviceSynchronize());
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // frees in the streams of threads that are gone count for a second
  MUST(cudaMemGetInfo(&after, &total));
  unsigned long long found = 0;
  MUST(cudaMemcpy(&found, wrong, sizeof found, cudaMemcpyDeviceToHost));
  std::printf("wrong words: %llu\n", found);
  if (std::getenv("XLOG_BUDGET") != nullptr) {
    std::printf("left of the limit, end - start: %lld\n", static_cast<long long>(after) - static_cast<long long>(before));
  }
  std::fprintf(stderr, "%ld blocks in %d s\n", pairs.load(), seconds);
  return found == 0 ? 0 : 1;
}
