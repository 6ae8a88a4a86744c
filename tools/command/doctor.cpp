#include "tools/command/doctor.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/command/gpu_probe.h"
#include "tools/command/launch_environment.h"
#include "tools/command/needed_files.h"
#include "tools/log/text_file.h"

namespace xlog::tools {

namespace fs = std::filesystem;

namespace {

std::string read_start(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string data(4096, '\0');
  in.read(data.data(), static_cast<std::streamsize>(data.size()));
  data.resize(static_cast<size_t>(in.gcount()));
  return data;
}

// The loader that the program names, "" when it is static.
std::string interpreter_of(const std::string& path, const Elf64_Ehdr& header) {
  std::ifstream in(path, std::ios::binary);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    in.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof segment));
    in.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (in && segment.p_type == PT_INTERP && segment.p_filesz < 4096) {
      std::string name(segment.p_filesz, '\0');
      in.seekg(static_cast<std::streamoff>(segment.p_offset));
      in.read(name.data(), static_cast<std::streamsize>(name.size()));
      return name.substr(0, name.find('\0'));
    }
  }
  return "";
}

void examine_elf(const std::string& path, const std::string& data, std::vector<Finding>& out) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && (info.st_mode & (S_ISUID | S_ISGID)) != 0) {
    out.push_back({false, path + " is setuid or setgid: the loader ignores LD_PRELOAD there"});
  }
  if (data[EI_CLASS] != ELFCLASS64) {
    out.push_back({false, path + " is a 32-bit program: the library is 64-bit and is not loaded"});
    return;
  }
  Elf64_Ehdr header{};
  std::memcpy(&header, data.data(), sizeof header);
  if (header.e_machine != EM_X86_64) {
    out.push_back({false, path + " is for another processor"});
    return;
  }
  std::string loader = interpreter_of(path, header);
  if (loader.empty()) {
    out.push_back({false, path + " is statically linked: nothing can be preloaded into it"});
  } else if (loader.find("musl") != loader.npos) {
    out.push_back({false, path + " uses musl's loader: the library needs glibc 2.34 or newer"});
  } else {
    out.push_back({true, path + " is a dynamic 64-bit program: the library loads into it"});
    std::string sanitizer = sanitizer_of(path);
    if (!sanitizer.empty()) {
      out.push_back({true, path + " needs " + sanitizer + ", which must come first: xlog run names it before the library in LD_PRELOAD"});
    }
  }
}

void examine_program(const std::string& name, std::vector<Finding>& out, int depth) {
  std::string path = find_program(name);
  if (path.empty()) {
    std::string special = special_file(name);
    out.push_back({false, special.empty() ? name + ": not found, or not executable" : name + " is " + special + ", not a program"});
    return;
  }
  std::string data = read_start(path);
  if (data.size() >= sizeof(Elf64_Ehdr) && std::memcmp(data.data(), ELFMAG, SELFMAG) == 0) {
    examine_elf(path, data, out);
  } else if (data.starts_with("#!") && depth < 4) {
    std::istringstream line(data.substr(2, data.find('\n') - 2));
    std::string interpreter;
    std::string argument;
    line >> interpreter >> argument;
    bool by_env = fs::path(interpreter).filename() == "env" && !argument.empty();
    out.push_back(
        {true, path + " is a script for " + (by_env ? argument : interpreter) + ": the library loads into that, and into what it starts"});
    examine_program(by_env ? argument : interpreter, out, depth + 1);
  } else {
    out.push_back({false, path + " is neither an ELF program nor a script"});
  }
}

void examine_driver(std::vector<Finding>& out) {
  GpuProbe probe = probe_gpus();
  size_t n = probe.uuids.size();
  if (!probe.answered) {
    out.push_back({false, "the driver was asked for its GPUs, and gave no answer"});
  } else if (!probe.has_driver) {
    out.push_back({false, "no NVIDIA driver on this machine (libcuda.so.1 is not found): there is nothing to see here"});
  } else if (probe.init_result != 0) {
    out.push_back({false, "the driver is there, but cuInit fails with " + std::to_string(probe.init_result)});
  } else if (probe.count_result != 0) {
    out.push_back({false, "the driver is there, but cuDeviceGetCount fails with " + std::to_string(probe.count_result)});
  } else {
    out.push_back({n > 0, "the driver works and shows " + std::to_string(n) + (n == 1 ? " GPU" : " GPUs")});
  }
}

}  // namespace

std::vector<Finding> examine(const std::vector<std::string>& command) {
  std::vector<Finding> out;
  std::string trouble = library_trouble();
  out.push_back({trouble.empty(), trouble.empty() ? "library: " + library_path() : trouble});
  std::vector<std::string> complaints;
  bool good = check_environment(complaints);
  for (const std::string& each : complaints) {
    out.push_back({false, each});
  }
  if (good) {
    out.push_back({true, "the XLOG_ variables that are set can be read"});
  }
  if (!command.empty()) {
    examine_program(command[0], out, 0);
  }
  examine_driver(out);
  return out;
}

}  // namespace xlog::tools
