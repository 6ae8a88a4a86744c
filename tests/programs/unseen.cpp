// Memory that was made out of sight (through dlvsym's way around), freed in sight, and the other way round.
#include <dlfcn.h>
#include <link.h>

#include "programs/program.h"

namespace {

// The driver's own function, found the way that no interposer sees: in its symbol table.
template <class Call>
Call real(const char* name) {
  struct Search {
    const char* name;
    void* found;
  } search{name, nullptr};
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  link_map* map = nullptr;
  dlinfo(handle, RTLD_DI_LINKMAP, &map);
  const ElfW(Sym)* symbols = nullptr;
  const char* strings = nullptr;
  for (const ElfW(Dyn)* d = map->l_ld; d->d_tag != DT_NULL; ++d) {
    if (d->d_tag == DT_SYMTAB) {
      symbols = reinterpret_cast<const ElfW(Sym)*>(d->d_un.d_ptr);
    } else if (d->d_tag == DT_STRTAB) {
      strings = reinterpret_cast<const char*>(d->d_un.d_ptr);
    }
  }
  for (const ElfW(Sym)* s = symbols; reinterpret_cast<const char*>(s) < strings; ++s) {
    if (s->st_shndx != 0 && std::strcmp(strings + s->st_name, search.name) == 0) {
      search.found = reinterpret_cast<void*>(map->l_addr + s->st_value);
    }
  }
  return reinterpret_cast<Call>(search.found);
}

}  // namespace

int main() {
  start();
  auto real_alloc = real<decltype(&cuMemAlloc_v2)>("cuMemAlloc_v2");
  auto real_free = real<decltype(&cuMemFree_v2)>("cuMemFree_v2");
  CUdeviceptr p = 0;
  MUST(real_alloc(&p, 1000));
  std::printf("made out of sight, freed in sight: %d\n", cuMemFree_v2(p));
  std::printf("again: %d\n", cuMemFree_v2(p));
  p = must_alloc(2000);
  std::printf("made in sight, freed out of sight: %d\n", real_free(p));
  CUdeviceptr q = must_alloc(2000);
  std::printf("the address comes back: %d\n", p == q);
  std::printf("freed in sight: %d\n", cuMemFree_v2(q));
  return 0;
}
