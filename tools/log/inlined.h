// Functions that a compiler put into others, by the debug information of one file. The work is bounded, whatever the file
// says.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace xlog::tools {

// What stands at an address, for people.
struct CodeName {
  std::string function;  // demangled; empty when it has no name
  std::string file;
  uint64_t line = 0;  // 0: not known
};

class Inlined {
 public:
  explicit Inlined(Dwfl_Module* module) : module_(module) {}
  // The functions that have the address, the innermost first, each with the line at which it is; the last is the one that
  // the others were inlined into. Empty without debug information.
  std::vector<CodeName> find(uint64_t address);

 private:
  struct Function {
    uint64_t begin;
    uint64_t end;
    Dwarf_Die die;
  };
  struct Unit {
    uint64_t begin;
    uint64_t end;
    Dwarf_Die die;
    uint64_t bias;
  };

  std::optional<Dwarf_Die> unit_of(uint64_t address, uint64_t& bias);
  const std::vector<Function>& functions_of(const Dwarf_Die& unit);
  void collect(const Dwarf_Die& parent, int depth, std::vector<Function>& out);
  std::vector<Dwarf_Die> chain(Dwarf_Die function, uint64_t address);
  void read_units();
  bool may_go_on() { return steps_ != 0 && --steps_ != 0; }

  Dwfl_Module* module_;
  std::unordered_map<uint64_t, std::vector<Function>> functions_;  // by unit
  std::vector<Unit> units_;                                        // of files that have no table of them
  bool has_units_ = false;
  uint64_t steps_ = 30'000'000;  // entries of the debug information that may still be read: a few seconds
};

}  // namespace xlog::tools
