// heap_pairs PAIRS DEPTH: malloc/free pairs under a call stack of DEPTH frames, nanoseconds a pair: what heaptrack adds to one.
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

__attribute__((noinline)) void run_pairs(long pairs) {
  for (long i = 0; i < pairs; ++i) {
    void* p = std::malloc(1024);
    __asm__ volatile("" : "+r"(p)::"memory");
    std::free(p);
  }
}

__attribute__((noinline)) void at_depth(int depth, long pairs) {
  depth <= 0 ? run_pairs(pairs) : at_depth(depth - 1, pairs);
  __asm__ volatile("" ::: "memory");
}

}  // namespace

int main(int argc, char** argv) {
  long pairs = argc > 1 ? std::atol(argv[1]) : 1'000'000;
  int depth = argc > 2 ? std::atoi(argv[2]) : 32;
  at_depth(depth, 1000);
  auto start = std::chrono::steady_clock::now();
  at_depth(depth, pairs);
  std::printf("pair %.1f\n", std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / pairs);
}
