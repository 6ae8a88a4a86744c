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
inline int expected_failure = 0;  // a code that one call of the driver is made to fail with
inline std::atomic<long> failures{0};

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
  // Makes a call that must succeed; where the driver was made to fail one call, it must at the second attempt. Counts what must not
  // be; false then.
  template <class Call>
  bool good(Call call, const char* what, int line) {
    CUresult result = call();
    if (result != CUDA_SUCCESS && static_cast<int>(result) == expected_failure) {
      ++failures;
      result = call();
    }
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

  void judge(bool right, const char* what, int line) {
    if (!right && bad++ < 10) {
      std::printf("%s, line %d: not so: %s\n", where, line, what);
      std::fflush(stdout);
    }
  }

  std::minstd_rand random;
  const char* where = "";
};

// What must be so, and a call that must succeed.
#define HOLDS(condition) worker.judge(condition, #condition, __LINE__)
#define GOOD(call) worker.good([&] { return call; }, #call, __LINE__)

// The primary context, current for as long as this lives.
class Primary {
 public:
  explicit Primary(Worker& of) : worker(of) {
    CUcontext context = nullptr;
    GOOD(cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cuCtxSetCurrent(context));
  }
  ~Primary() {
    bool current = worker.sometimes();
    if (!current) {
      GOOD(cuCtxSetCurrent(nullptr));
    }
    GOOD(cuDevicePrimaryCtxRelease_v2(0));
    if (current) {
      GOOD(cuCtxSetCurrent(nullptr));
    }
  }
  Primary(const Primary&) = delete;
  Primary& operator=(const Primary&) = delete;

 private:
  Worker& worker;
};

// In the relaxed mode a thread may do beside a capture what it likes; otherwise it stays away from captures in the global mode.
class Beside {
 public:
  explicit Beside(Worker& of) : worker(of), relaxed_(of.pick(3) == 0), shared_(gates.global, std::defer_lock) {
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
  void exchange() { GOOD(cuThreadExchangeStreamCaptureMode(&mode_)); }
  Worker& worker;
  bool relaxed_;
  Shared shared_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace torture
