// Which calls wait for a kernel that runs: a kernel stands until the host writes a flag, another thread makes one call. Natively a
// program may write the flag behind such a call; a call of ours must not be one that waits where the program's own does not.
// beside_a_kernel: the call on the kernel's GPU; beside_a_kernel 1: in a context of GPU 1, the kernel on GPU 0.
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "programs/program.h"

namespace {

constexpr char kStand[] = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry stand(.param .u64 until) {
  .reg .u64 %until;
  .reg .u32 %value;
  .reg .pred %again;
  ld.param.u64 %until, [until];
again:
  ld.volatile.global.u32 %value, [%until];
  setp.eq.u32 %again, %value, 0;
  @%again bra again;
  ret;
}
.visible .entry nothing() {
  ret;
}
)";

CUcontext context_of(int gpu) {
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, gpu));
  MUST(cuCtxSetCurrent(context));
  return context;
}

volatile uint32_t* flag = nullptr;
CUfunction stand = nullptr;
CUstream stream = nullptr;

// Does it come back while the kernel stands?
void ask(CUcontext context, const char* name, const std::function<CUresult()>& call) {
  *flag = 0;
  auto until = reinterpret_cast<uint64_t>(flag);
  void* arguments[] = {&until};
  MUST(cuLaunchKernel(stand, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  std::atomic<bool> back{false};
  CUresult result = CUDA_SUCCESS;
  std::thread other([&] {
    MUST(cuCtxSetCurrent(context));
    result = call();
    back = true;
  });
  for (int i = 0; i < 300 && !back; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bool waits = !back;
  *flag = 1;
  other.join();
  MUST(cuStreamSynchronize(stream));
  std::printf("%s: %d, %s\n", name, result, waits ? "waits" : "does not wait");
}

}  // namespace

int main(int argc, char** argv) {
  MUST(cuInit(0));
  CUcontext mine = context_of(0);
  CUmodule module = nullptr;
  MUST(cuModuleLoadData(&module, kStand));
  MUST(cuModuleGetFunction(&stand, module, "stand"));
  void* host = nullptr;
  MUST(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_PORTABLE));
  flag = static_cast<volatile uint32_t*>(host);
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUcontext context = argc > 1 ? context_of(std::atoi(argv[1])) : mine;
  CUdevice device = argc > 1 ? std::atoi(argv[1]) : 0;

  CUstream beside = nullptr;
  CUevent event = nullptr;
  CUdeviceptr block = 0;
  MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  MUST(cuMemAlloc_v2(&block, 4096));
  void* pinned = nullptr;
  MUST(cuMemHostAlloc(&pinned, 4096, 0));
  alignas(4096) static unsigned char own[1 << 20];
  unsigned char bytes[64] = {};
  MUST(cuCtxSetCurrent(mine));

  CUdeviceptr made = 0;
  ask(context, "cuMemAlloc", [&] { return cuMemAlloc_v2(&made, 1000); });
  ask(context, "cuMemFree", [&] { return cuMemFree_v2(made); });
  ask(context, "cuMemAlloc, 64 MiB", [&] { return cuMemAlloc_v2(&made, 64 << 20); });
  ask(context, "cuMemFree, 64 MiB", [&] { return cuMemFree_v2(made); });
  ask(context, "the first cuMemAllocAsync", [&] { return cuMemAllocAsync(&made, 1000, beside); });
  ask(context, "cuMemFreeAsync", [&] { return cuMemFreeAsync(made, beside); });
  ask(context, "cuMemAllocAsync", [&] { return cuMemAllocAsync(&made, 1000, beside); });
  ask(context, "cuMemFreeAsync", [&] { return cuMemFreeAsync(made, beside); });
  ask(context, "cuMemHostRegister", [&] { return cuMemHostRegister_v2(own, sizeof own, CU_MEMHOSTREGISTER_PORTABLE); });
  ask(context, "cuMemHostUnregister", [&] { return cuMemHostUnregister(own); });
  void* more = nullptr;
  ask(context, "cuMemHostAlloc", [&] { return cuMemHostAlloc(&more, 1 << 20, CU_MEMHOSTALLOC_DEVICEMAP); });
  ask(context, "cuMemFreeHost", [&] { return cuMemFreeHost(more); });
  CUmodule loaded = nullptr;
  CUfunction function = nullptr;
  ask(context, "cuModuleLoadData", [&] { return cuModuleLoadData(&loaded, kStand); });
  ask(context, "cuModuleGetFunction", [&] { return cuModuleGetFunction(&function, loaded, "nothing"); });
  auto launch = [&] { return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, beside, nullptr, nullptr); };
  ask(context, "its first launch", launch);
  ask(context, "its second launch", launch);
  CUstream fresh = nullptr;
  ask(context, "cuStreamCreate", [&] { return cuStreamCreate(&fresh, CU_STREAM_NON_BLOCKING); });
  ask(context, "cuStreamDestroy", [&] { return cuStreamDestroy_v2(fresh); });
  CUevent first = nullptr;
  ask(context, "cuEventCreate", [&] { return cuEventCreate(&first, CU_EVENT_DISABLE_TIMING); });
  ask(context, "cuEventRecord and cuEventSynchronize", [&] {
    CUresult r = cuEventRecord(event, beside);
    return r == CUDA_SUCCESS ? cuEventSynchronize(event) : r;
  });
  ask(context, "cuEventDestroy", [&] { return cuEventDestroy_v2(first); });
  ask(context, "64 pageable bytes to the device, in order", [&] { return cuMemcpyHtoDAsync_v2(block, bytes, sizeof bytes, beside); });
  ask(context, "64 pageable bytes from the device, in order", [&] { return cuMemcpyDtoHAsync_v2(bytes, block, sizeof bytes, beside); });
  ask(context, "64 pinned bytes from the device, in order", [&] { return cuMemcpyDtoHAsync_v2(pinned, block, sizeof bytes, beside); });
  ask(context, "and waited for", [&] { return cuStreamSynchronize(beside); });
  ask(context, "a set, in order", [&] { return cuMemsetD8Async(block, 1, 4096, beside); });
  ask(context, "and waited for", [&] { return cuStreamSynchronize(beside); });
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  CUmemAccessDesc access{prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  constexpr size_t kPhysical = 2 << 20;
  ask(context, "cuMemAddressReserve", [&] { return cuMemAddressReserve(&made, kPhysical, 0, 0, 0); });
  ask(context, "cuMemCreate", [&] { return cuMemCreate(&handle, kPhysical, &prop, 0); });
  ask(context, "cuMemMap", [&] { return cuMemMap(made, kPhysical, 0, handle, 0); });
  ask(context, "cuMemSetAccess", [&] { return cuMemSetAccess(made, kPhysical, &access, 1); });
  ask(context, "cuMemUnmap", [&] { return cuMemUnmap(made, kPhysical); });
  ask(context, "cuMemRelease", [&] { return cuMemRelease(handle); });
  ask(context, "cuMemAddressFree", [&] { return cuMemAddressFree(made, kPhysical); });
  return 0;
}
