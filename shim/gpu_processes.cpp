#include "shim/gpu_processes.h"

#include <dlfcn.h>

#include "runtime/base/memory_map.h"
#include "runtime/base/system_calls.h"
#include "runtime/base/text.h"
#include "shim/elf_symbols.h"
#include "shim/nvml_types.h"

namespace xlog {

namespace {

constexpr nvmlReturn_t kSuccess = 0;
constexpr nvmlReturn_t kInsufficientSize = 7;  // the list is full; the count says how many there are
constexpr const char* kFile = "libnvidia-ml.so.1";

struct Nvml {
  nvmlReturn_t (*init)() = nullptr;
  nvmlReturn_t (*shutdown)() = nullptr;
  nvmlReturn_t (*by_uuid)(const char*, nvmlDevice_t*) = nullptr;
  nvmlReturn_t (*processes)(nvmlDevice_t, unsigned*, nvmlProcessInfo_t*) = nullptr;
  [[nodiscard]] bool good() const noexcept { return init != nullptr && shutdown != nullptr && by_uuid != nullptr && processes != nullptr; }
};

bool find_nvml(Nvml& out) noexcept {
  LoadedFile file = find_file([](const LoadedFile& each, const void*) { return each.is_nvml(); }, nullptr);
  if (file) {
    out.init = reinterpret_cast<decltype(out.init)>(file.find("nvmlInit_v2"));
    out.shutdown = reinterpret_cast<decltype(out.shutdown)>(file.find("nvmlShutdown"));
    out.by_uuid = reinterpret_cast<decltype(out.by_uuid)>(file.find("nvmlDeviceGetHandleByUUID"));
    out.processes = reinterpret_cast<decltype(out.processes)>(file.find("nvmlDeviceGetComputeRunningProcesses_v3"));
  }
  return out.good();
}

// Of /proc, where the number is one of this process's namespace. Of another process its name alone: arguments may hold what is
// nobody else's business.
void describe(GpuProcess& process) noexcept {
  bool own = process.pid == static_cast<uint32_t>(getpid());
  Text<40> path;
  path.put("/proc/").decimal(process.pid).put(own ? "/cmdline" : "/comm").put('\0');
  int fd = kernel::open(path.data(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  long n = fd >= 0 ? kernel::read_at(fd, process.command, sizeof process.command - 1, 0) : -1;
  if (fd >= 0 && kernel::status(fd, info) == 0) {
    process.user = info.st_uid;
    process.has_user = true;
  }
  if (fd >= 0) {
    kernel::close(fd);
  }
  if (n > 0 && process.command[n - 1] == '\n') {
    process.command[--n] = '\0';
  }
  for (long i = 0; i < n - (own ? 1 : 0); ++i) {  // NUL between two arguments, and behind the last
    auto c = static_cast<unsigned char>(process.command[i]);
    process.command[i] = c < ' ' ? ' ' : process.command[i];
  }
}

void read_list(const Nvml& nvml, nvmlDevice_t device, nvmlProcessInfo_t* list, unsigned room, GpuProcesses& out) noexcept {
  unsigned count = room;
  nvmlReturn_t result = nvml.processes(device, &count, list);
  if (result == kInsufficientSize) {
    out.more = count > room ? count - room : 0;
    count = room;
  } else if (result != kSuccess) {
    return;
  }
  out.known = true;
  for (unsigned i = 0; i < count; ++i) {
    if (out.count == GpuProcesses::kMost) {
      ++out.more;
      continue;
    }
    GpuProcess& each = out.list[out.count++];
    each.pid = list[i].pid;
    each.bytes = list[i].usedGpuMemory;
    out.same_pids = out.same_pids || each.pid == static_cast<uint32_t>(getpid());
  }
}

void ask(const Nvml& nvml, std::string_view uuid, GpuProcesses& out) noexcept {
  constexpr unsigned kRoom = 256;
  constexpr size_t kPrefix = 4;
  Text<60> name;
  name.put(uuid).put('\0');
  nvmlDevice_t device = nullptr;
  nvmlReturn_t found = nvml.by_uuid(name.data(), &device);
  if (found != kSuccess) {  // a piece of a GPU: the driver tells its UUID without this prefix
    name.clear();
    name.put("MIG-").put(uuid.substr(kPrefix)).put('\0');
    found = nvml.by_uuid(name.data(), &device);
  }
  auto* list = found == kSuccess ? static_cast<nvmlProcessInfo_t*>(map_state(kRoom * sizeof(nvmlProcessInfo_t))) : nullptr;
  if (list != nullptr) {
    read_list(nvml, device, list, kRoom, out);
    unmap_state(list, kRoom * sizeof(nvmlProcessInfo_t));
  }
  for (size_t i = 0; out.same_pids && i < out.count; ++i) {
    describe(out.list[i]);
  }
}

}  // namespace

bool list_gpu_processes(std::string_view uuid, GpuProcesses& out) noexcept {
  constexpr size_t kPrefix = 4;
  Nvml nvml;
  void* loaded = uuid.size() <= kPrefix || find_nvml(nvml) ? nullptr : dlopen(kFile, RTLD_LAZY | RTLD_LOCAL);
  if (uuid.size() > kPrefix && (nvml.good() || (loaded != nullptr && find_nvml(nvml))) && nvml.init() == kSuccess) {
    ask(nvml, uuid, out);
    nvml.shutdown();
  }
  if (loaded != nullptr) {
    dlclose(loaded);
  }
  return out.known;
}

}  // namespace xlog
