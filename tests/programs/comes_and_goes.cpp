// comes_and_goes HOW FILES...: a program that is linked to the driver, and files that it opens and closes meanwhile.
#include <dlfcn.h>

#include <string>

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

void ask_double(void* handle) {
  CUdeviceptr p = 0;
  std::printf("the double: cuMemAlloc_v2 %d, cuInit %d\n", ask<Alloc>(handle, "cuMemAlloc_v2")(&p, 4096),
              ask<int (*)(unsigned)>(handle, "cuInit")(0));
}

void linked(char** files) {
  start();
  CUdeviceptr p = 0;
  std::printf("linked before: %d\n", cuMemAlloc_v2(&p, 4096));
  ask_double(open_file(files[0]));
  std::printf("linked after: %d\n", cuMemAlloc_v2(&p, 4096));
  auto by_default = ask<Alloc>(RTLD_DEFAULT, "cuMemAlloc_v2");
  std::printf("RTLD_DEFAULT: %d\n", by_default(&p, 4096));
}

// One place that allocates, and another that does so in a library that comes and goes, beside one that does nothing.
void comes_and_goes(char** files) {
  start();
  for (int i = 0; i < 500; ++i) {
    MUST(cuMemFree_v2(must_alloc(4096)));
    dlclose(open_file(files[0]));
  }
}

// A file that stays is opened and closed, with many others there.
void close_many(char** files) {
  start();
  for (char** each = files; *each != nullptr; ++each) {
    open_file(*each);
  }
  for (int i = 0; i < 20000; ++i) {
    dlclose(open_file(files[0]));
  }
}

}  // namespace

int main(int, char** argv) {
  std::string how = argv[1];
  if (how == "linked") {
    linked(argv + 2);
  } else if (how == "comes_and_goes") {
    comes_and_goes(argv + 2);
  } else {
    close_many(argv + 2);
  }
  return 0;
}
