// loader PLUGIN-FOLDER: what dlsym says to a program that is not linked against the driver. Prints answers that must not
// depend on the library being preloaded.
#include <dlfcn.h>
#include <errno.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

std::string plugins;

void* open_plugin(const char* name, int flags) {
  void* handle = dlopen((plugins + "/" + name).c_str(), flags);
  if (handle == nullptr) {
    std::printf("%s\n", dlerror());
  }
  return handle;
}

// What dlerror says, without the object's name in front.
std::string complaint() {
  const char* text = dlerror();
  const char* tail = text != nullptr ? std::strstr(text, "undefined symbol") : nullptr;
  return tail != nullptr ? tail : text != nullptr ? text : "nothing";
}

void without_a_driver() {
  std::printf("RTLD_DEFAULT cuInit: %d", dlsym(RTLD_DEFAULT, "cuInit") != nullptr);
  std::printf(" (%s)\n", complaint().c_str());
  void* self = dlopen(nullptr, RTLD_NOW);
  std::printf("own handle cuMemAlloc_v2: %d", dlsym(self, "cuMemAlloc_v2") != nullptr);
  std::printf(" (%s)\n", complaint().c_str());
  std::printf("RTLD_DEFAULT cuNoSuchThing: %d", dlsym(RTLD_DEFAULT, "cuNoSuchThing") != nullptr);
  std::printf(" (%s)\n", complaint().c_str());
}

void errors_are_the_programs() {
  dlsym(RTLD_DEFAULT, "no_such_symbol");
  std::printf("dlerror: %s\n", complaint().c_str());
  std::printf("then: %s\n", complaint().c_str());
  errno = 4711;
  dlsym(RTLD_DEFAULT, "malloc");
  dlsym(RTLD_DEFAULT, "cuInit");
  std::printf("errno %d\n", errno);
  dlerror();
}

void next_in_order() {
  void* handle = open_plugin("weak_next.so", RTLD_NOW | RTLD_GLOBAL);
  auto chain = reinterpret_cast<int (*)()>(dlsym(handle, "call_next_f"));
  std::printf("RTLD_NEXT from a plugin: %d\n", chain != nullptr ? chain() : -1);
  std::vector<std::thread> all;
  bool same = true;
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&] {
      void* first = dlsym(RTLD_NEXT, "open");
      void* second = dlsym(RTLD_NEXT, "open");
      same = same && first != nullptr && first == second;
    });
  }
  for (auto& each : all) {
    each.join();
  }
  std::printf("RTLD_NEXT open, twice in 8 threads: %d\n", same);
}

void other_libraries_with_the_same_prefix() {
  void* handle = open_plugin("cu_names.so", RTLD_NOW | RTLD_LOCAL);
  for (const char* name : {"cudnnCreate", "curandCreate", "cublasCreate_v2", "cuFantasy"}) {
    auto call = reinterpret_cast<int (*)()>(dlsym(handle, name));
    std::printf("%s: %d\n", name, call != nullptr ? call() : -1);
  }
  std::printf("hidden from RTLD_DEFAULT: %d\n", dlsym(RTLD_DEFAULT, "cudnnCreate") == nullptr);
  dlerror();
}

void with_a_driver() {
  void* local = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (local == nullptr) {
    std::printf("no driver\n");
    return;
  }
  std::printf("loaded locally: handle %d, RTLD_DEFAULT %d\n", dlsym(local, "cuMemAlloc_v2") != nullptr,
              dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != nullptr);
  void* needs = open_plugin("needs_driver.so", RTLD_NOW | RTLD_LOCAL);
  auto from_plugin = reinterpret_cast<int (*)()>(dlsym(needs, "finds_driver"));
  std::printf("RTLD_DEFAULT from a plugin that is linked to it: %d\n", from_plugin != nullptr ? from_plugin() : -1);
  void* global = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  void* first = dlsym(RTLD_DEFAULT, "cuMemAlloc_v2");
  std::printf("loaded globally: RTLD_DEFAULT %d, the same again %d, as by handle %d\n", first != nullptr,
              first == dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"), first == dlsym(global, "cuMemAlloc_v2"));
  auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(global, "cuInit"));
  std::printf("cuInit: %d\n", init(0));
}

}  // namespace

int main(int, char** argv) {
  plugins = argv[1];
  without_a_driver();
  errors_are_the_programs();
  next_in_order();
  other_libraries_with_the_same_prefix();
  with_a_driver();
  return 0;
}
