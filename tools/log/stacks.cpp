#include "tools/log/stacks.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/record/event.h"
#include "tools/log/byte_text.h"
#include "tools/log/csv_line.h"
#include "tools/log/mapped_file.h"

namespace xlog::tools {

namespace {

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

constexpr std::string_view kExitFunctions[] = {"exit",          "__run_exit_handlers", "_dl_fini",  "__cxa_finalize",
                                               "Py_FinalizeEx", "__libc_atexit",       "quick_exit"};

// Of a row of the file.
Frame frame_of(const CsvLine& fields, uint64_t offset) {
  return {.module = from_field(fields[2]),
          .build_id = from_field(fields[3]),
          .offset = offset,
          .function = from_field(fields[5]),
          .file = from_field(fields[6]),
          .line = parse_decimal(fields[7]).value_or(0)};
}

bool is_at(const Frame& one, const Frame& other) {
  return one.module == other.module && one.build_id == other.build_id && one.offset == other.offset && one.module != kPythonModule;
}

}  // namespace

void StackFile::add(uint64_t id, std::vector<Frame>& frames) {
  if (!frames.empty()) {
    stacks_[id].sites.push_back(&frames_->of(std::move(frames)));
    frames.clear();
  }
}

void StackFile::read(const std::string& path) {
  constexpr size_t kMostAtOneAddress = 128;
  MappedFile file(path);
  std::string_view text = file.text();
  CsvLine line;
  std::vector<Frame> site;  // rows of one depth of one stack
  uint64_t id_before = 0;
  std::string depth_before;
  size_t at = text.find('\n');
  while (at != text.npos && ++at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == text.npos) {
      break;  // cut
    }
    bool whole = line.split(text.substr(at, end - at)) && line.size() >= 8;
    at = end;
    auto id = parse_decimal(line[0]);
    auto offset = parse_hex(line[4]);
    if (!whole || !id || !offset) {
      continue;
    }
    Frame frame = frame_of(line, *offset);
    bool same =
        !site.empty() && *id == id_before && line[1] == depth_before && site.size() < kMostAtOneAddress && is_at(frame, site.back());
    if (same) {
      site.back().inlined = true;
    } else {
      add(id_before, site);
    }
    site.push_back(std::move(frame));
    id_before = *id;
    depth_before = line[1];
  }
  add(id_before, site);
}

bool StackFile::write(const std::string& path) const {
  std::string text = std::string(kStackColumns) + '\n';
  for (const auto& [id, entry] : stacks_) {
    for (size_t depth = 0; depth < entry.sites.size(); ++depth) {
      for (const Frame& f : entry.sites[depth]->frames) {
        char offset[32];
        std::snprintf(offset, sizeof offset, "0x%lx", f.offset);
        text += std::to_string(id) + ',' + std::to_string(depth) + ',' + whole_field(f.module) + ',' + whole_field(f.build_id) + ',' +
                offset + ',' + whole_field(f.function) + ',' + whole_field(f.file) + ',' + (f.line != 0 ? std::to_string(f.line) : "") +
                '\n';
      }
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
  if (it == stacks_.end()) {
    return nullptr;
  }
  const Entry& entry = it->second;
  if (entry.version != frames_->version()) {
    entry.version = frames_->version();
    entry.stack.frames.clear();
    for (const Site* site : entry.sites) {
      for (const Frame& frame : site->frames) {
        entry.stack.frames.push_back(&frame);
      }
    }
  }
  return &entry.stack;
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
