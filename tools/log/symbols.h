// Names, files and lines of addresses in one module, by elfutils. Nothing is looked up when the module on this machine
// is not the one that was running (build-id). No network is asked unless that was allowed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/log/inlined.h"
#include "tools/log/symbol_index.h"

struct Dwfl;
struct Dwfl_Module;

namespace xlog::tools {

class Symbols {
 public:
  Symbols(const std::string& path, const std::string& build_id);
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // What is known of the code at `offset`: the innermost inlined function first, the function that the file has a symbol for
  // last. Empty when nothing is known.
  std::vector<CodeName> names(uint64_t offset);

 private:
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  std::unique_ptr<SymbolIndex> index_;
  std::unique_ptr<Inlined> inlined_;
};

}  // namespace xlog::tools
