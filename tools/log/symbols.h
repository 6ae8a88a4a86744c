// Names, files and lines of addresses in one module, by elfutils. Nothing is looked up when the module on this machine
// is not the one that was running (build-id).
#pragma once

#include <cstdint>
#include <string>

struct Dwfl;
struct Dwfl_Module;

namespace xlog::tools {

class Symbols {
 public:
  Symbols(const std::string& path, const std::string& build_id);
  ~Symbols();
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;

  // Fills in what is known; leaves the rest.
  void name(uint64_t offset, std::string& function, std::string& file, uint64_t& line) const;

 private:
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
};

std::string demangle(const char* name);

}  // namespace xlog::tools
