#include "tools/log/inlined.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <filesystem>

#include "tools/log/demangle.h"

namespace xlog::tools {

namespace {

constexpr int kDeepestScope = 32;     // of namespaces and classes
constexpr size_t kMostInlined = 100;  // one in another
constexpr int kMostRanges = 100'000;  // of one entry

std::string name_of(Dwarf_Die& function) {
  Dwarf_Attribute found;
  for (unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    const char* symbol = dwarf_attr_integrate(&function, name, &found) != nullptr ? dwarf_formstring(&found) : nullptr;
    if (symbol != nullptr) {
      return demangle(symbol);
    }
  }
  const char* plain = dwarf_diename(&function);
  return plain != nullptr ? plain : "";
}

uint64_t number_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute found;
  Dwarf_Word value = 0;
  return dwarf_attr(&die, name, &found) != nullptr && dwarf_formudata(&found, &value) == 0 ? value : 0;
}

// Some compilers write a path as it was given to them, from the folder that they ran in.
std::string whole_path(Dwarf_Die& unit, const char* path) {
  Dwarf_Attribute found;
  const char* folder = *path != '/' && dwarf_attr(&unit, DW_AT_comp_dir, &found) != nullptr ? dwarf_formstring(&found) : nullptr;
  return folder != nullptr && *folder == '/' ? (std::filesystem::path(folder) / path).lexically_normal().string() : path;
}

// Where an inlined function was called.
void put_call(Dwarf_Die& unit, Dwarf_Die& inlined, CodeName& out) {
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  uint64_t file = number_of(inlined, DW_AT_call_file);
  const char* path = dwarf_getsrcfiles(&unit, &files, &count) == 0 && file < count ? dwarf_filesrc(files, file, nullptr, nullptr) : nullptr;
  uint64_t line = number_of(inlined, DW_AT_call_line);
  if (path != nullptr && line != 0) {
    out.file = whole_path(unit, path);
    out.line = line;
  }
}

void put_line(Dwarf_Die& unit, uint64_t address, CodeName& out) {
  Dwarf_Line* at = dwarf_getsrc_die(&unit, address);
  const char* path = at != nullptr ? dwarf_linesrc(at, nullptr, nullptr) : nullptr;
  int line = 0;
  if (path != nullptr && dwarf_lineno(at, &line) == 0 && line > 0) {
    out.file = whole_path(unit, path);
    out.line = static_cast<uint64_t>(line);
  }
}

}  // namespace

// Some compilers leave out the table of units by address.
void Inlined::read_units() {
  has_units_ = true;
  Dwarf_Die* unit = nullptr;
  Dwarf_Addr bias = 0;
  while (may_go_on() && (unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr) {
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    ptrdiff_t at = 0;
    for (int i = 0; i < kMostRanges && may_go_on() && (at = dwarf_ranges(unit, at, &base, &begin, &end)) > 0; ++i) {
      units_.push_back({begin + bias, end + bias, *unit, bias});
    }
  }
  std::sort(units_.begin(), units_.end(), [](const Unit& a, const Unit& b) { return a.begin < b.begin; });
}

std::optional<Dwarf_Die> Inlined::unit_of(uint64_t address, uint64_t& bias) {
  Dwarf_Die* found = dwfl_module_addrdie(module_, address, &bias);
  if (found != nullptr) {
    return *found;
  }
  if (!has_units_) {
    read_units();
  }
  auto at = std::upper_bound(units_.begin(), units_.end(), address, [](uint64_t value, const Unit& each) { return value < each.begin; });
  if (at == units_.begin() || address >= (--at)->end) {
    return std::nullopt;
  }
  bias = at->bias;
  return at->die;
}

// Functions are in units, namespaces, modules and classes.
void Inlined::collect(const Dwarf_Die& parent, int depth, std::vector<Function>& out) {
  Dwarf_Die child;
  Dwarf_Die above = parent;
  if (depth > kDeepestScope || dwarf_child(&above, &child) != 0) {
    return;
  }
  do {
    switch (dwarf_tag(&child)) {
      case DW_TAG_subprogram: {
        Dwarf_Addr base = 0;
        Dwarf_Addr begin = 0;
        Dwarf_Addr end = 0;
        ptrdiff_t at = 0;
        for (int i = 0; i < kMostRanges && may_go_on() && (at = dwarf_ranges(&child, at, &base, &begin, &end)) > 0; ++i) {
          out.push_back({begin, end, child});
        }
        break;
      }
      case DW_TAG_namespace:
      case DW_TAG_module:
      case DW_TAG_class_type:
      case DW_TAG_structure_type:
        collect(child, depth + 1, out);
        break;
      default:
        break;
    }
  } while (may_go_on() && dwarf_siblingof(&child, &child) == 0);
}

const std::vector<Inlined::Function>& Inlined::functions_of(const Dwarf_Die& unit) {
  Dwarf_Die of = unit;
  auto [it, fresh] = functions_.try_emplace(dwarf_dieoffset(&of));
  if (fresh) {
    collect(unit, 0, it->second);
    std::sort(it->second.begin(), it->second.end(), [](const Function& a, const Function& b) { return a.begin < b.begin; });
  }
  return it->second;
}

// The inlined functions that have the address, outermost first.
std::vector<Dwarf_Die> Inlined::chain(Dwarf_Die function, uint64_t address) {
  std::vector<Dwarf_Die> out;
  Dwarf_Die child;
  bool more = dwarf_child(&function, &child) == 0;
  while (more && may_go_on() && out.size() < kMostInlined) {
    int tag = dwarf_tag(&child);
    bool is_scope = tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
    if (is_scope && dwarf_haspc(&child, address) > 0) {
      if (tag == DW_TAG_inlined_subroutine) {
        out.push_back(child);
      }
      Dwarf_Die inner;
      more = dwarf_child(&child, &inner) == 0;
      child = inner;
    } else {
      more = dwarf_siblingof(&child, &child) == 0;
    }
  }
  return out;
}

std::vector<CodeName> Inlined::find(uint64_t address) {
  uint64_t bias = 0;
  std::optional<Dwarf_Die> unit = unit_of(address, bias);
  if (!unit) {
    return {};
  }
  std::vector<CodeName> names(1);
  put_line(*unit, address - bias, names.back());
  const std::vector<Function>& functions = functions_of(*unit);
  auto at = std::upper_bound(functions.begin(), functions.end(), address - bias,
                             [](uint64_t value, const Function& each) { return value < each.begin; });
  if (at == functions.begin() || address - bias >= (--at)->end) {
    return names;
  }
  std::vector<Dwarf_Die> inlined = chain(at->die, address - bias);
  for (size_t i = inlined.size(); i-- > 0;) {
    names.back().function = name_of(inlined[i]);
    put_call(*unit, inlined[i], names.emplace_back());
  }
  Dwarf_Die outermost = at->die;
  names.back().function = name_of(outermost);
  return names;
}

}  // namespace xlog::tools
