#include "tools/command/needed_files.h"

#include <elf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace xlog::tools {

namespace fs = std::filesystem;

namespace {

template <class Record>
std::vector<Record> read_records(std::ifstream& in, uint64_t offset, uint64_t count) {
  std::vector<Record> out(count);
  in.seekg(static_cast<std::streamoff>(offset));
  in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(count * sizeof(Record)));
  if (!in) {
    out.clear();
  }
  return out;
}

// Where in the file an address of the program lies.
uint64_t offset_of(const std::vector<Elf64_Phdr>& segments, uint64_t address) {
  for (const Elf64_Phdr& each : segments) {
    if (each.p_type == PT_LOAD && address - each.p_vaddr < each.p_filesz) {
      return each.p_offset + (address - each.p_vaddr);
    }
  }
  return 0;
}

std::vector<Elf64_Dyn> dynamic_of(std::ifstream& in, const std::vector<Elf64_Phdr>& segments) {
  for (const Elf64_Phdr& each : segments) {
    if (each.p_type == PT_DYNAMIC && each.p_filesz < (1 << 20)) {
      return read_records<Elf64_Dyn>(in, each.p_offset, each.p_filesz / sizeof(Elf64_Dyn));
    }
  }
  return {};
}

}  // namespace

std::string find_program(const std::string& name) {
  std::error_code error;
  if (name.find('/') != name.npos) {
    return access(name.c_str(), X_OK) == 0 && fs::is_regular_file(name, error) ? name : "";
  }
  const char* path = std::getenv("PATH");
  std::istringstream parts(path != nullptr ? path : "");
  for (std::string folder; std::getline(parts, folder, ':');) {
    std::string candidate = folder + '/' + name;
    if (access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate, error)) {
      return candidate;
    }
  }
  return "";
}

std::vector<std::string> needed_files(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<Elf64_Ehdr> header = read_records<Elf64_Ehdr>(in, 0, 1);
  if (header.empty() || std::memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0 || header[0].e_ident[EI_CLASS] != ELFCLASS64) {
    return {};
  }
  std::vector<Elf64_Phdr> segments = read_records<Elf64_Phdr>(in, header[0].e_phoff, header[0].e_phnum);
  std::vector<Elf64_Dyn> dynamic = dynamic_of(in, segments);
  uint64_t strings = 0;
  for (const Elf64_Dyn& each : dynamic) {
    strings = each.d_tag == DT_STRTAB ? offset_of(segments, each.d_un.d_ptr) : strings;
  }
  std::vector<std::string> out;
  for (const Elf64_Dyn& each : dynamic) {
    if (each.d_tag == DT_NULL) {
      break;
    }
    if (each.d_tag == DT_NEEDED && strings != 0) {
      in.clear();
      in.seekg(static_cast<std::streamoff>(strings + each.d_un.d_val));
      std::string name;
      std::getline(in, name, '\0');
      out.push_back(name);
    }
  }
  return out;
}

bool must_be_first(const std::string& file) {
  std::string name = fs::path(file).filename();
  for (const char* runtime :
       {"libasan.so", "libtsan.so", "liblsan.so", "libhwasan.so", "libclang_rt.asan", "libclang_rt.tsan", "libclang_rt.hwasan"}) {
    if (name.starts_with(runtime)) {
      return true;
    }
  }
  return false;
}

std::string sanitizer_of(const std::string& command) {
  for (const std::string& each : needed_files(find_program(command))) {
    if (must_be_first(each)) {
      return each;
    }
  }
  return "";
}

}  // namespace xlog::tools
