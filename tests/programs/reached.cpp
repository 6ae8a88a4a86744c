// reached HOW FILES...: which function a program reaches when it asks for one, among several files that define it. It is
// linked to none of them. Not
// linked to the driver, but for "linked" and "comes_and_goes".
#include <dlfcn.h>

#include <string>
#include <vector>

#include "programs/program.h"

namespace {

using Alloc = CUresult (*)(CUdeviceptr*, size_t);

void* open_file(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::printf("%s\n", dlerror());
    std::exit(3);
  }
  return handle;
}

template <class Call>
Call ask(void* handle, const char* name) {
  return reinterpret_cast<Call>(dlsym(handle, name));
}

// By this driver's own functions: 100 MiB, which a limit of 64 MiB refuses.
void use(const char* what, void* driver) {
  CUresult init = ask<CUresult (*)(unsigned)>(driver, "cuInit")(0);
  CUcontext context = nullptr;
  CUdeviceptr p = 0;
  int result = -1;
  if (init == CUDA_SUCCESS) {
    MUST(ask<CUresult (*)(CUcontext*, CUdevice)>(driver, "cuDevicePrimaryCtxRetain")(&context, 0));
    MUST(ask<CUresult (*)(CUcontext)>(driver, "cuCtxSetCurrent")(context));
    result = ask<Alloc>(driver, "cuMemAlloc_v2")(&p, 100 << 20);
    if (result == CUDA_SUCCESS) {
      MUST(ask<CUresult (*)(CUdeviceptr)>(driver, "cuMemFree_v2")(p));
    }
    MUST(ask<CUresult (*)(CUdevice)>(driver, "cuDevicePrimaryCtxRelease_v2")(0));
  }
  std::printf("%s: cuInit %d, 100 MiB %d\n", what, init, result);
}

void ask_double(void* handle) {
  CUdeviceptr p = 0;
  std::printf("the double: cuMemAlloc_v2 %d, cuInit %d\n", ask<Alloc>(handle, "cuMemAlloc_v2")(&p, 4096),
              ask<int (*)(unsigned)>(handle, "cuInit")(0));
}

void double_first(char** files) {
  void* handle = open_file(files[0]);
  ask_double(handle);
  use("the driver", open_file(files[1]));
  ask_double(handle);
}

void nvml(char** files) {
  void* handle = open_file(files[0]);
  char memory[64] = {};
  std::printf("nvmlDeviceGetMemoryInfo: %d\n", ask<int (*)(void*, void*)>(handle, "nvmlDeviceGetMemoryInfo")(nullptr, memory));
  std::printf("_v2: %d\n", ask<int (*)(void*, void*)>(handle, "nvmlDeviceGetMemoryInfo_v2")(nullptr, memory));
}

// One after the other, all kept.
void in_turn(char** files) {
  for (; *files != nullptr; ++files) {
    use("a driver", open_file(*files));
  }
}

void again(char** files) {
  for (int i = 0; i < 3; ++i) {
    void* driver = open_file(files[0]);
    use("the driver", driver);
    std::printf("closed: %d\n", dlclose(driver));
  }
}

}  // namespace

int main(int, char** argv) {
  std::string how = argv[1];
  for (auto [name, run] : std::vector<std::pair<std::string, void (*)(char**)>>{
           {"double_first", double_first}, {"nvml", nvml}, {"in_turn", in_turn}, {"again", again}}) {
    if (how == name) {
      run(argv + 2);
    }
  }
  return 0;
}
