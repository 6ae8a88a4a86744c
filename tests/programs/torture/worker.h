// What the threads of torture.cpp share, and what each of them has.
#pragma once

#include <atomic>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <vector>

#include "programs/program.h"

namespace torture {

inline std::atomic<long> bad{0};

// What would be illegal at the same time is kept apart by three locks, taken in this order. `primary`: the reset of the primary
// context, and its other uses. `global`: a capture in the global mode, and the calls that it refuses to every thread. `captures`: a
// capture in the primary context, and what is refused beside any capture of the context.
struct Gates {
  std::shared_mutex primary;
  std::shared_mutex global;
  std::shared_mutex captures;
};
inline Gates gates;

using Shared = std::shared_lock<std::shared_mutex>;
using Alone = std::unique_lock<std::shared_mutex>;

struct Worker {
  explicit Worker(unsigned seed) : random(seed) {}
  size_t pick(size_t n) { return (random() >> 8) % n; }
  bool sometimes() { return pick(2) == 0; }
  unsigned char value() { return static_cast<unsigned char>(1 + pick(255)); }
  size_t size() {
    constexpr size_t kSizes[] = {1, 100, 512, 4096, 65536, 300'000, 1 << 20, 3 << 20};
    return kSizes[pick(std::size(kSizes))];
  }
  // Counts what must not be; false then.
  bool good(CUresult result, const char* what, int line) {
    if (result != CUDA_SUCCESS && bad++ < 10) {
      std::printf("%s, line %d: %s: %d\n", where, line, what, static_cast<int>(result));
      std::fflush(stdout);
    }
    return result == CUDA_SUCCESS;
  }
  void judge(const std::vector<unsigned char>& read, unsigned char want, int line) {
    for (size_t i = 0; i < read.size(); ++i) {
      if (read[i] != want) {
        if (bad++ < 10) {
          std::printf("%s, line %d: byte %zu of %zu is %d, not %d\n", where, line, i, read.size(), read[i], want);
          std::fflush(stdout);
        }
        return;
      }
    }
  }

  std::minstd_rand random;
  const char* where = "";
};

// A call that must succeed.
#define GOOD(call) worker.good(call, #call, __LINE__)

// The primary context, current for as long as this lives.
class Primary {
 public:
  explicit Primary(Worker& worker) : worker_(worker) {
    CUcontext context = nullptr;
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
  }
  ~Primary() {
    if (worker_.sometimes()) {
      must(cuCtxSetCurrent(nullptr));
      must(cuDevicePrimaryCtxRelease_v2(0));
    } else {
      must(cuDevicePrimaryCtxRelease_v2(0));
      must(cuCtxSetCurrent(nullptr));
    }
  }
  Primary(const Primary&) = delete;
  Primary& operator=(const Primary&) = delete;

 private:
  void must(CUresult result) { worker_.good(result, "the primary context's begin or end", __LINE__); }
  Worker& worker_;
};

// In the relaxed mode a thread may do beside a capture what it likes; otherwise it stays away from captures in the global mode.
class Beside {
 public:
  explicit Beside(Worker& worker) : worker_(worker), relaxed_(worker.pick(3) == 0), shared_(gates.global, std::defer_lock) {
    relaxed_ ? exchange() : shared_.lock();
  }
  ~Beside() {
    if (relaxed_) {
      exchange();
    }
  }
  Beside(const Beside&) = delete;
  Beside& operator=(const Beside&) = delete;

 private:
  void exchange() { worker_.good(cuThreadExchangeStreamCaptureMode(&mode_), "cuThreadExchangeStreamCaptureMode", __LINE__); }
  Worker& worker_;
  bool relaxed_;
  Shared shared_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace torture
