// The driver's resolver in its two ABIs, the version ladder, per-thread variants. Prints answers that must not depend on
// the library: return codes, whether a pointer came back, statuses; then calls what it was given.
#include <dlfcn.h>

#include <thread>

#include "programs/program.h"

namespace {

using Resolve4 = CUresult (*)(const char*, void**, int, cuuint64_t);
using Resolve5 = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
using Alloc = CUresult (*)(CUdeviceptr*, size_t, CUstream);
using Free = CUresult (*)(CUdeviceptr, CUstream);

void* driver = nullptr;

const char* last_call() {
  auto ask = reinterpret_cast<const char* (*)()>(dlsym(driver, "xlog_sim_last_call"));
  return ask != nullptr ? ask() : "?";
}

void ask5(Resolve5 resolve, const char* name, int version, cuuint64_t flags, bool with_status) {
  void* fn = reinterpret_cast<void*>(0x1234);
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  std::memset(&status, 77, sizeof status);
  CUresult r = resolve(name, &fn, version, flags, with_status ? &status : nullptr);
  std::printf("%s %d flags %lu: r %d null %d status %d\n", name, version, static_cast<unsigned long>(flags), r, fn == nullptr,
              static_cast<int>(status));
}

void use(Resolve5 resolve, cuuint64_t flags, CUstream stream) {
  void* alloc = nullptr;
  void* release = nullptr;
  MUST(resolve("cuMemAllocAsync", &alloc, 11020, flags, nullptr));
  MUST(resolve("cuMemFreeAsync", &release, 11020, flags, nullptr));
  CUdeviceptr p = 0;
  CUresult a = reinterpret_cast<Alloc>(alloc)(&p, 4096, stream);
  std::printf("flags %lu stream %p: alloc %d through %s", static_cast<unsigned long>(flags), static_cast<void*>(stream), a, last_call());
  CUresult f = reinterpret_cast<Free>(release)(p, stream);
  std::printf(", free %d through %s\n", f, last_call());
}

}  // namespace

int main() {
  driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto resolve5 = reinterpret_cast<Resolve5>(dlsym(driver, "cuGetProcAddress_v2"));
  auto resolve4 = reinterpret_cast<Resolve4>(dlsym(driver, "cuGetProcAddress"));
  void* fn = nullptr;
  std::printf("first, before anything: r %d null %d\n", resolve5("", &fn, 0, 0, nullptr), fn == nullptr);
  auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(driver, "cuInit"));
  MUST(init(0));
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));

  int version = 0;
  MUST(cuDriverGetVersion(&version));
  for (int v : {2000, 3019, 3020, 11020, version, version + 10}) {
    ask5(resolve5, "cuMemAlloc", v, 0, true);
  }
  for (cuuint64_t flags : {0UL, 1UL, 2UL}) {
    for (int v : {11010, 11020}) {
      ask5(resolve5, "cuMemAllocAsync", v, flags, true);
    }
    ask5(resolve5, "cuMemFree", 3020, flags, true);
  }
  ask5(resolve5, "cuMemAllocc", version, 0, true);
  ask5(resolve5, "cuLaunchKernelWithBells", version, 0, true);
  ask5(resolve5, "cuMemAlloc", 3020, 0, false);

  // Four arguments, the register of a fifth full of junk.
  fn = nullptr;
  CUresult r = reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t, uintptr_t)>(reinterpret_cast<void*>(resolve4))(
      "cuMemAlloc", &fn, 3020, 0, 0xdeadbeef);
  std::printf("four arguments: r %d null %d\n", r, fn == nullptr);
  void* four = nullptr;
  void* five = nullptr;
  MUST(resolve5("cuGetProcAddress", &four, 11030, 0, nullptr));
  MUST(resolve5("cuGetProcAddress", &five, 12000, 0, nullptr));
  std::printf("asked for itself: 11030 gives the four-argument one %d, 12000 the five-argument one %d\n",
              four == reinterpret_cast<void*>(resolve4), five == reinterpret_cast<void*>(resolve5));

  void* by_resolver = nullptr;
  MUST(resolve5("cuMemAlloc", &by_resolver, 3020, 0, nullptr));
  std::printf("resolver, dlsym and link agree: %d %d\n", by_resolver == dlsym(driver, "cuMemAlloc_v2"),
              by_resolver == reinterpret_cast<void*>(&cuMemAlloc_v2));
  void* same = nullptr;
  MUST(resolve5("cuMemAlloc", &same, 3020, 2, nullptr));
  std::printf("no per-thread variant of cuMemAlloc: %d\n", same == by_resolver);

  for (cuuint64_t flags : {1UL, 2UL}) {
    use(resolve5, flags, nullptr);
    use(resolve5, flags, CU_STREAM_LEGACY);
    use(resolve5, flags, CU_STREAM_PER_THREAD);
  }
  std::thread([&] {
    MUST(cuCtxSetCurrent(context));
    use(resolve5, 2, nullptr);
  }).join();
  CUdeviceptr p = 0;
  MUST(cuMemAllocAsync_ptsz(&p, 64, nullptr));
  std::printf("linked: %s\n", last_call());
  MUST(cuMemFreeAsync_ptsz(p, nullptr));
  CUmemoryPool pool = nullptr;
  MUST(cuDeviceGetDefaultMemPool(&pool, 0));
  MUST(cuMemAllocFromPoolAsync_ptsz(&p, 64, pool, CU_STREAM_PER_THREAD));
  std::printf("linked: %s\n", last_call());
  MUST(cuMemFreeAsync_ptsz(p, CU_STREAM_PER_THREAD));
  return 0;
}
