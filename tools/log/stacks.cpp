#include "tools/log/stacks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "runtime/record/event.h"
#include "tools/log/csv_line.h"
#include "tools/log/mapped_file.h"
#include "tools/log/symbols.h"

namespace xlog::tools {

namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

struct CacheRule {
  const char* name;
  const char* module;    // part of the module's path, or nullptr
  const char* function;  // part of a function's name, or nullptr
  const char* off;       // variable that, when set to `off_value` (nullptr: anything), means that nothing is cached
  const char* off_value;
};

constexpr CacheRule kCaches[] = {
    {"PyTorch's caching allocator", "libc10_cuda.so", nullptr, "PYTORCH_NO_CUDA_MEMORY_CACHING", nullptr},
    {"PyTorch's caching allocator", nullptr, "CUDACachingAllocator", "PYTORCH_NO_CUDA_MEMORY_CACHING", nullptr},
    {"XLA's allocator (JAX, TensorFlow)", "xla_cuda_plugin", nullptr, "XLA_PYTHON_CLIENT_ALLOCATOR", "platform"},
    {"XLA's allocator (JAX, TensorFlow)", "xla_extension", nullptr, "XLA_PYTHON_CLIENT_ALLOCATOR", "platform"},
    {"XLA's allocator (JAX, TensorFlow)", nullptr, "BFCAllocator", nullptr, nullptr},
    {"CuPy's memory pool", "cupy/cuda/memory", nullptr, nullptr, nullptr},
    {"RMM's pool", nullptr, "rmm::mr::pool_memory_resource", nullptr, nullptr},
    {"RMM's pool", nullptr, "rmm::mr::arena_memory_resource", nullptr, nullptr},
    {"RMM's pool", nullptr, "rmm::mr::detail::pool_memory_resource", nullptr, nullptr},
    {"AMReX's arena", nullptr, "amrex::CArena", nullptr, nullptr},
    {"AMReX's arena", nullptr, "amrex::Arena", nullptr, nullptr},
};

constexpr std::string_view kHiddenModules[] = {
    "libxlog.so", "libcuda.so",   "libcudart.so",    "libc10_cuda.so", "libc10.so",       "libpython", "python3",   "libtorch_python.so",
    "librmm.so",  "libstdc++.so", "xla_cuda_plugin", "memory.cpython", "runtime.cpython", "[unknown]", "libffi.so", "_ctypes.cpython"};
constexpr std::string_view kHiddenFunctions[] = {
    "cudaMalloc",   "cudaFree",           "__cudart",       "cudart::",         "cuMem",
    "operator new", "operator delete",    "std::allocator", "thrust::detail::", "thrust::mr::",
    "rmm::mr::",    "rmm::device_buffer", "amrex::CArena",  "amrex::Arena",     "c10::cuda::CUDACachingAllocator",
    "std::vector<", "std::unique_ptr<"};
constexpr std::string_view kExitFunctions[] = {"exit",          "__run_exit_handlers", "_dl_fini",  "__cxa_finalize",
                                               "Py_FinalizeEx", "__libc_atexit",       "quick_exit"};

}  // namespace

Frame& FrameTable::of(const CsvLine& fields, uint64_t offset) {
  std::string key;
  for (size_t i = 2; i < 8 && (i < 5 || fields[2] == kPythonModule); ++i) {
    key += std::string(fields[i]) + '\n';
  }
  auto [it, fresh] = frames_.try_emplace(std::move(key));
  Frame& frame = it->second;
  if (fresh || frame.function.empty()) {
    frame.module = fields[2];
    frame.build_id = fields[3];
    frame.offset = offset;
    frame.function = fields[5];
    frame.file = fields[6];
    frame.line = parse_decimal(fields[7]).value_or(0);
  }
  return frame;
}

void StackFile::read(const std::string& path) {
  MappedFile file(path);
  std::string_view text = file.text();
  CsvLine line;
  size_t at = text.find('\n');
  while (at != text.npos && ++at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == text.npos) {
      break;  // cut
    }
    if (line.split(text.substr(at, end - at)) && line.size() >= 8) {
      auto id = parse_decimal(line[0]);
      auto offset = parse_hex(line[4]);
      if (id && offset) {
        stacks_[*id].frames.push_back(&frames_->of(line, *offset));
      }
    }
    at = end;
  }
}

bool FrameTable::needs_names() const {
  for (const auto& [key, frame] : frames_) {
    if (!frame.function.empty() && frame.module != kPythonModule) {
      return false;
    }
  }
  return !frames_.empty();
}

void FrameTable::resolve() {
  std::map<std::pair<std::string, std::string>, std::vector<Frame*>> by_module;
  for (auto& [key, frame] : frames_) {
    if (frame.function.empty() && frame.module != "[unknown]" && frame.module != kPythonModule) {
      by_module[{frame.module, frame.build_id}].push_back(&frame);
    }
  }
  for (auto& [module, frames] : by_module) {
    Symbols symbols(module.first, module.second);
    for (Frame* frame : frames) {
      symbols.name(frame->offset, frame->function, frame->file, frame->line);
    }
  }
}

namespace {
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"") == text.npos) {
    return text;
  }
  std::string out = "\"";
  for (char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + '"';
}
}  // namespace

bool StackFile::write(const std::string& path) const {
  std::string text = std::string(kStackColumns) + '\n';
  for (const auto& [id, stack] : stacks_) {
    for (size_t depth = 0; depth < stack.frames.size(); ++depth) {
      const Frame& f = *stack.frames[depth];
      char offset[32];
      std::snprintf(offset, sizeof offset, "0x%lx", f.offset);
      text += std::to_string(id) + ',' + std::to_string(depth) + ',' + quoted(f.module) + ',' + f.build_id + ',' + offset + ',' +
              quoted(f.function) + ',' + quoted(f.file) + ',' + (f.line != 0 ? std::to_string(f.line) : "") + '\n';
    }
  }
  std::string fresh = path + ".new";
  unlink(fresh.c_str());
  int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    return false;
  }
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = ::write(fd, text.data() + done, text.size() - done);
    if (n <= 0) {
      break;
    }
    done += static_cast<size_t>(n);
  }
  bool good = close(fd) == 0 && done == text.size() && rename(fresh.c_str(), path.c_str()) == 0;
  if (!good) {
    unlink(fresh.c_str());
  }
  return good;
}

const Stack* StackFile::find(uint64_t id) const {
  auto it = stacks_.find(id);
  return it == stacks_.end() ? nullptr : &it->second;
}

std::string name_of(const Frame& frame) {
  if (!frame.function.empty()) {
    std::string name = frame.function;
    if (name.size() > 100) {
      name = name.substr(0, 97) + "...";
    }
    return name;
  }
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%lx", frame.offset);
  return std::string(base_name(frame.module)) + offset;
}

std::string where_of(const Frame& frame) {
  if (!frame.file.empty()) {
    return std::string(base_name(frame.file)) + ':' + std::to_string(frame.line);
  }
  return std::string(base_name(frame.module));
}

bool is_hidden(const Frame& frame) {
  if (frame.module == kPythonModule) {  // how PyTorch calls a module's forward; how Python starts
    return frame.function.ends_with("_call_impl") || frame.file.starts_with("<frozen ");
  }
  std::string_view module = base_name(frame.module);
  for (std::string_view each : kHiddenModules) {
    if (module.starts_with(each)) {
      return true;
    }
  }
  for (std::string_view each : kHiddenFunctions) {
    if (std::string_view(frame.function).starts_with(each)) {
      return true;
    }
  }
  return false;
}

namespace {

bool is_python(const Frame* frame) { return frame->module == kPythonModule; }

// Of the program itself, not of a package or of Python.
bool is_own_python(const Frame* frame) {
  bool installed =
      contains(frame->file, "/site-packages/") || contains(frame->file, "/dist-packages/") || contains(frame->file, "/lib/python3");
  return is_python(frame) && !installed && !is_hidden(*frame);
}

}  // namespace

// Of a Python program: the native function that asked, the Python function that called it, and the program's own Python
// functions that led there (or, where there is none, all).
std::vector<const Frame*> visible_frames(const Stack& stack, bool all) {
  std::vector<const Frame*> shown;
  bool has_python = std::any_of(stack.frames.begin(), stack.frames.end(), is_python);
  bool has_own = std::any_of(stack.frames.begin(), stack.frames.end(), is_own_python);
  bool called = false;  // by a Python function that is shown
  for (const Frame* frame : stack.frames) {
    bool is_further_native = has_python && !is_python(frame) && !shown.empty();
    bool is_further_package = has_own && called && !is_own_python(frame);
    if (all || (!is_hidden(*frame) && !is_further_native && !is_further_package)) {
      shown.push_back(frame);
      called = called || is_python(frame);
    }
  }
  return shown.empty() ? stack.frames : shown;
}

std::string cache_of(const Stack& stack, const std::map<std::string, std::string>& environment) {
  for (const CacheRule& rule : kCaches) {
    auto off = rule.off != nullptr ? environment.find(rule.off) : environment.end();
    if (off != environment.end() && (rule.off_value == nullptr || off->second == rule.off_value)) {
      continue;
    }
    for (const Frame* frame : stack.frames) {
      bool by_module = rule.module != nullptr && contains(frame->module, rule.module);
      bool by_function = rule.function != nullptr && contains(frame->function, rule.function);
      if (by_module || by_function) {
        return rule.name;
      }
    }
  }
  return "";
}

bool is_exit(const Stack& stack) {
  for (const Frame* frame : stack.frames) {
    for (std::string_view each : kExitFunctions) {
      if (frame->function == each) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace xlog::tools
