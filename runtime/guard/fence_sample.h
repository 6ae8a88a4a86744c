// Which blocks of a run are fenced when it is one in N: another choice in each process, so that many runs see all of a
// program. Thread-safe; all zero is ready.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/thread.h"

namespace xlog {

class FenceSample {
 public:
  bool takes_next(uint32_t one_in) noexcept {
    if (one_in <= 1) {
      return one_in == 1;
    }
    uint64_t seed = seed_.load(std::memory_order_relaxed);
    if (seed == 0) {
      uint64_t fresh = steady_time() | 1;
      seed = seed_.compare_exchange_strong(seed, fresh, std::memory_order_relaxed) ? fresh : seed;
    }
    uint64_t x = seed + count_.fetch_add(1, std::memory_order_relaxed) * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return (x ^ (x >> 31)) % one_in == 0;
  }

 private:
  std::atomic<uint64_t> seed_{0};
  std::atomic<uint64_t> count_{0};
};

}  // namespace xlog
