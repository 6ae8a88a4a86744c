// The functions of one file by address, from its table of symbols: elfutils' own question for a symbol looks at all of
// them each time, and a large library has a million.
#pragma once

#include <cstdint>
#include <vector>

struct Dwfl_Module;

namespace xlog::tools {

class SymbolIndex {
 public:
  explicit SymbolIndex(Dwfl_Module* module);
  // The symbol whose code has the address, or nullptr. Good while the module is.
  [[nodiscard]] const char* find(uint64_t address) const;

 private:
  struct Entry {
    uint64_t begin;
    uint64_t end;  // `begin` where the size is not known: up to the next symbol
    const char* name;
    int rank;  // of names of one address the least
  };
  std::vector<Entry> entries_;
};

}  // namespace xlog::tools
