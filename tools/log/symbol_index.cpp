#include "tools/log/symbol_index.h"

#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstring>

namespace xlog::tools {

namespace {

// As a person would choose: a name that other files see, and of those the shortest.
int rank_of(const GElf_Sym& symbol) {
  int binding = GELF_ST_BIND(symbol.st_info);
  int by_binding = binding == STB_GLOBAL ? 0 : binding == STB_WEAK ? 1 : 2;
  return by_binding + (symbol.st_size == 0 ? 3 : 0);
}

}  // namespace

SymbolIndex::SymbolIndex(Dwfl_Module* module) {
  int count = dwfl_module_getsymtab(module);
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address = 0;
    GElf_Word section = 0;
    const char* name = dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
    int type = name != nullptr ? GELF_ST_TYPE(symbol.st_info) : STT_FILE;
    bool is_code = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
    if (is_code && section != SHN_UNDEF && section != SHN_ABS && *name != '\0') {
      entries_.push_back({address, address + symbol.st_size, name, rank_of(symbol)});
    }
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    if (a.begin != b.begin) {
      return a.begin < b.begin;
    }
    if (a.rank != b.rank) {
      return a.rank > b.rank;  // the search goes backwards
    }
    size_t a_size = std::strlen(a.name);
    size_t b_size = std::strlen(b.name);
    return a_size != b_size ? a_size > b_size : std::strcmp(a.name, b.name) > 0;
  });
}

const char* SymbolIndex::find(uint64_t address) const {
  constexpr int kMostBack = 64;  // names inside a function that has the address: labels, its aliases
  auto at =
      std::upper_bound(entries_.begin(), entries_.end(), address, [](uint64_t value, const Entry& each) { return value < each.begin; });
  const char* nearest = nullptr;
  for (int i = 0; i < kMostBack && at != entries_.begin(); ++i) {
    --at;
    if (address < at->end) {
      return at->name;
    }
    if (nearest == nullptr && i == 0 && at->begin == at->end) {
      nearest = at->name;
    }
  }
  return nearest;
}

}  // namespace xlog::tools
