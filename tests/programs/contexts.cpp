// The lives of contexts, and frees of their blocks from elsewhere. The first argument says which; each prints what it found, and the
// same with and without the library.
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "programs/program.h"

extern "C" CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode);

namespace {

constexpr size_t kBytes = 65536;

CUcontext retain(int device = 0) {
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  return context;
}

void relax() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cuThreadExchangeStreamCaptureMode(&mode);
}

CUstream make_stream() {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

// A kernel of the simulated driver that runs until its flag is set.
class StandingKernel {
 public:
  explicit StandingKernel(CUstream stream) {
    CUmodule module = nullptr;
    CUfunction stand = nullptr;
    MUST(cuModuleLoadData(&module, "x"));
    MUST(cuModuleGetFunction(&stand, module, "stand"));
    MUST(cuMemAllocHost_v2(reinterpret_cast<void**>(&flag_), 4));
    *flag_ = 0;
    void* arguments[] = {&flag_};
    MUST(cuLaunchKernel(stand, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  }
  void end() { __atomic_store_n(flag_, 1, __ATOMIC_RELEASE); }
  void end_later() {
    helper_ = std::thread([this] {
      usleep(200'000);
      ended = true;
      end();
    });
  }
  void join() { helper_.join(); }
  std::atomic<bool> ended{false};

 private:
  uint32_t* flag_ = nullptr;
  std::thread helper_;
};

// Memory that is made, written, read back and freed by several threads, each within its own hold of a context.
int use_memory(unsigned char seed) {
  int wrong = 0;
  std::vector<unsigned char> there(kBytes);
  std::vector<unsigned char> back(kBytes);
  CUdeviceptr blocks[4] = {};
  for (int i = 0; i < 4; ++i) {
    std::memset(there.data(), seed * 16 + i, kBytes);
    wrong += cuMemAlloc_v2(&blocks[i], kBytes) != CUDA_SUCCESS || cuMemcpyHtoD_v2(blocks[i], there.data(), kBytes) != CUDA_SUCCESS;
  }
  for (int i = 0; i < 4; ++i) {
    wrong += cuMemcpyDtoH_v2(back.data(), blocks[i], kBytes) != CUDA_SUCCESS || back[777] != seed * 16 + i;
    wrong += i == 0 ? 0 : cuMemFree_v2(blocks[i]) != CUDA_SUCCESS;  // the first goes with its context, or is freed by nobody
  }
  return wrong + (cuMemFree_v2(blocks[0]) != CUDA_SUCCESS);
}

template <class Begin, class End>
void threads_that_hold(int rounds, Begin begin, End end) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (unsigned char t = 1; t <= 4; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < rounds; ++i) {
        CUcontext context = nullptr;
        if (begin(context) == CUDA_SUCCESS) {
          wrong += use_memory(t);
          end(context);
        }
      }
    });
  }
  for (std::thread& each : all) {
    each.join();
  }
  std::printf("%d wrong\n", wrong.load());
}

void primary() {
  threads_that_hold(
      2000,
      [](CUcontext& context) {
        CUresult result = cuDevicePrimaryCtxRetain(&context, 0);
        return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
      },
      [](CUcontext) {
        cuCtxSetCurrent(nullptr);
        cuDevicePrimaryCtxRelease_v2(0);
      });
}

void created() {
  threads_that_hold(
      2000, [](CUcontext& context) { return cuCtxCreate_v2(&context, 0, 0); }, [](CUcontext context) { cuCtxDestroy_v2(context); });
}

// A free while something captures, with another GPU current: it waits for the kernel in the block's context.
void other_current() {
  CUcontext first = retain(0);
  CUcontext second = retain(1);
  MUST(cuCtxSetCurrent(first));
  CUstream works = make_stream();
  CUstream captures = make_stream();
  CUdeviceptr block = must_alloc(1 << 20);
  StandingKernel kernel(works);
  relax();
  MUST(cuStreamBeginCapture_v2(captures, CU_STREAM_CAPTURE_MODE_RELAXED));
  kernel.end_later();
  MUST(cuCtxSetCurrent(second));
  CUresult freed = cuMemFree_v2(block);
  std::printf("free: %d, the kernel had ended: %d\n", freed, kernel.ended ? 1 : 0);
  MUST(cuCtxSetCurrent(first));
  CUgraph graph = nullptr;
  std::printf("end of the capture: %d\n", cuStreamEndCapture(captures, &graph));
  kernel.join();
}

// Frees by a thread without a context, which cuMemFree does not need.
void no_current() {
  retain();
  CUstream stream = make_stream();
  CUdeviceptr blocks[2] = {must_alloc(4096), must_alloc(4096)};
  std::thread([&] { std::printf("free: %d\n", cuMemFree_v2(blocks[0])); }).join();
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  std::thread([&] {
    relax();
    std::printf("free beside a capture: %d\n", cuMemFree_v2(blocks[1]));
  }).join();
  CUgraph graph = nullptr;
  std::printf("end of the capture: %d\n", cuStreamEndCapture(stream, &graph));
}

// A context is destroyed with work under way that writes to its block, while another captures: the block is nobody's before it is
// done. The simulated driver ends the process when it is.
void ends_under_work() {
  CUcontext captures = retain();
  CUstream stream = make_stream();
  CUcontext dies = nullptr;
  MUST(cuCtxCreate_v2(&dies, 0, 0));
  CUstream works = make_stream();
  CUdeviceptr block = must_alloc(4 << 20);
  StandingKernel kernel(works);
  MUST(cuMemsetD8Async(block, 0xAA, 4 << 20, works));
  relax();
  MUST(cuCtxSetCurrent(captures));
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  MUST(cuCtxSetCurrent(dies));
  kernel.end_later();
  std::printf("destroy: %d\n", cuCtxDestroy_v2(dies));
  kernel.join();
}

// cuMemFreeAsync of plain memory does not wait, however many there are.
void many_in_order(size_t count) {
  retain();
  CUstream works = make_stream();
  CUstream frees = make_stream();
  std::vector<CUdeviceptr> blocks(count);
  for (CUdeviceptr& each : blocks) {
    each = must_alloc(2048);
  }
  StandingKernel kernel(works);
  for (CUdeviceptr each : blocks) {
    MUST(cuMemFreeAsync(each, frees));
  }
  std::printf("%zu frees while the kernel runs\n", count);
  kernel.end();
  MUST(cuCtxSynchronize());
}

// A thread ends inside a capture of its own stream: nothing captures any more.
void thread_ends_in_a_capture() {
  CUcontext context = retain();
  std::thread([=] {
    cuCtxSetCurrent(context);
    MUST(cuStreamBeginCapture_v2_ptsz(nullptr, CU_STREAM_CAPTURE_MODE_RELAXED));
  }).join();
  CUdeviceptr block = must_alloc(4096);
  CUmemoryPool pool = nullptr;
  cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block);
  std::printf("served by a pool: %d\n", pool != nullptr ? 1 : 0);
}

// What a context held is free when it has ended, whatever the number of its blocks.
void many_end(size_t count) {
  retain();
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  MUST(cuMemGetInfo_v2(&before, &total));
  for (size_t i = 0; i < count; ++i) {
    must_alloc(1 << 20);
  }
  MUST(cuDevicePrimaryCtxRelease_v2(0));
  retain();
  MUST(cuMemFree_v2(must_alloc(64 << 20)));
  MUST(cuMemGetInfo_v2(&after, &total));
  std::printf("free as before: %d\n", before - after < (256 << 20) ? 1 : 0);
  size_t got = 0;
  for (CUdeviceptr block = 0; cuMemAlloc_v2(&block, 64 << 20) == CUDA_SUCCESS;) {
    got += 64 << 20;
  }
  std::printf("all of it can be had: %d\n", before - got < (256 << 20) ? 1 : 0);
}

// Questions about a freed pointer, and copies to it.
void freed() {
  retain();
  CUdeviceptr block = must_alloc(4 << 20);
  must_alloc(4 << 20);
  MUST(cuMemFree_v2(block));
  for (size_t inside : {size_t{0}, size_t{1 << 20}}) {
    CUdeviceptr base = 0;
    size_t bytes = 0;
    unsigned type = 0;
    char byte = 1;
    CUdeviceptr at = block + inside;
    CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void* out = &type;
    std::printf("range %d, attribute %d,", cuMemGetAddressRange_v2(&base, &bytes, at), cuPointerGetAttribute(&type, which, at));
    std::printf(" attributes %d type %u,", cuPointerGetAttributes(1, &which, &out, at), type);
    std::printf(" copy to %d from %d,", cuMemcpyHtoD_v2(at, &byte, 1), cuMemcpyDtoH_v2(&byte, at, 1));
    std::printf(" set %d\n", cuMemsetD8_v2(at, 1, 1));
  }
  std::printf("second free: %d\n", cuMemFree_v2(block));
}

}  // namespace

int main(int argc, char** argv) {
  std::string which = argc > 1 ? argv[1] : "";
  size_t count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
  MUST(cuInit(0));
  which == "primary"           ? primary()
  : which == "created"         ? created()
  : which == "other-current"   ? other_current()
  : which == "no-current"      ? no_current()
  : which == "ends-under-work" ? ends_under_work()
  : which == "many-in-order"   ? many_in_order(count)
  : which == "thread-ends"     ? thread_ends_in_a_capture()
  : which == "many-end"        ? many_end(count)
                               : freed();
  return 0;
}
