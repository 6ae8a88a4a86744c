#include "tools/log/symbols.h"

#include <elfutils/libdwfl.h>
#include <sys/stat.h>

#include <cstdio>

#include "tools/log/debuginfod.h"
#include "tools/log/demangle.h"

namespace xlog::tools {

namespace {

std::string build_id_of(Dwfl_Module* module) {
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  int size = dwfl_module_build_id(module, &bits, &address);
  std::string out;
  for (int i = 0; i < size; ++i) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", bits[i]);
    out += hex;
  }
  return out;
}

int find_debuginfo(Dwfl_Module* module, void** data, const char* name, Dwarf_Addr base, const char* file, const char* link, GElf_Word crc,
                   char** found) {
  prepare_debuginfod();
  return dwfl_standard_find_debuginfo(module, data, name, base, file, link, crc, found);
}

}  // namespace

Symbols::Symbols(const std::string& path, const std::string& build_id) {
  static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                           .find_debuginfo = find_debuginfo,
                                           .section_address = dwfl_offline_section_address,
                                           .debuginfo_path = nullptr};
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return;  // a log may name anything: a FIFO would be waited for
  }
  prepare_debuginfod();
  session_ = dwfl_begin(&callbacks);
  if (session_ == nullptr) {
    return;
  }
  dwfl_report_begin(session_);
  module_ = dwfl_report_elf(session_, path.c_str(), path.c_str(), -1, 0, true);
  dwfl_report_end(session_, nullptr, nullptr);
  if (module_ == nullptr) {
    return;
  }
  GElf_Addr bias = 0;
  if (dwfl_module_getelf(module_, &bias) == nullptr || (!build_id.empty() && build_id_of(module_) != build_id)) {
    module_ = nullptr;
    return;
  }
  index_ = std::make_unique<SymbolIndex>(module_);
  inlined_ = std::make_unique<Inlined>(module_);
}

Symbols::~Symbols() {
  if (session_ != nullptr) {
    dwfl_end(session_);
  }
}

std::vector<CodeName> Symbols::names(uint64_t offset) {
  if (module_ == nullptr) {
    return {};
  }
  std::vector<CodeName> out = inlined_->find(offset);
  const char* symbol = index_->find(offset);
  if (symbol != nullptr) {
    out.resize(out.empty() ? 1 : out.size());
    std::string name = symbol;  // a library's own table says the version, too: exit@@GLIBC_2.2.5
    out.back().function = demangle(name.substr(0, name.find('@', 1)).c_str());
  }
  return out;
}

}  // namespace xlog::tools
