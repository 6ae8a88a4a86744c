#include "tools/log/symbols.h"

#include <cxxabi.h>
#include <elfutils/libdwfl.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>

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

}  // namespace

std::string demangle(const char* name) {
  int status = 0;
  char* plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string out = status == 0 && plain != nullptr ? plain : name;
  std::free(plain);
  return out;
}

Symbols::Symbols(const std::string& path, const std::string& build_id) {
  static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                           .find_debuginfo = dwfl_standard_find_debuginfo,
                                           .section_address = dwfl_offline_section_address,
                                           .debuginfo_path = nullptr};
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return;  // a log may name anything: a FIFO would be waited for
  }
  session_ = dwfl_begin(&callbacks);
  if (session_ == nullptr) {
    return;
  }
  dwfl_report_begin(session_);
  module_ = dwfl_report_elf(session_, path.c_str(), path.c_str(), -1, 0, false);
  dwfl_report_end(session_, nullptr, nullptr);
  if (module_ == nullptr) {
    return;
  }
  GElf_Addr bias = 0;
  if (dwfl_module_getelf(module_, &bias) == nullptr || (!build_id.empty() && build_id_of(module_) != build_id)) {
    module_ = nullptr;
  }
}

Symbols::~Symbols() {
  if (session_ != nullptr) {
    dwfl_end(session_);
  }
}

void Symbols::name(uint64_t offset, std::string& function, std::string& file, uint64_t& line) const {
  if (module_ == nullptr) {
    return;
  }
  const char* found = dwfl_module_addrname(module_, offset);
  if (found != nullptr) {
    function = demangle(found);
  }
  Dwfl_Line* at = dwfl_module_getsrc(module_, offset);
  int number = 0;
  const char* source = at != nullptr ? dwfl_lineinfo(at, nullptr, &number, nullptr, nullptr, nullptr) : nullptr;
  if (source != nullptr && number > 0) {
    file = source;
    line = static_cast<uint64_t>(number);
  }
}

}  // namespace xlog::tools
