// Who else is on a GPU, as NVML tells it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xlog {

struct GpuProcess {
  uint32_t pid = 0;
  uint32_t user = 0;       // uid
  uint64_t bytes = 0;      // UINT64_MAX: not told
  char command[120] = {};  // of this process its arguments, cut; of another its name; empty when it cannot be read
  bool has_user = false;
};

struct GpuProcesses {
  static constexpr size_t kMost = 64;
  bool known = false;      // NVML is there and answered
  bool same_pids = false;  // this process is among them: the numbers are those of its own namespace
  size_t count = 0;        // in `list`, this process included
  size_t more = 0;         // beyond it
  GpuProcess list[kMost];
};

// False when there is no NVML, or it does not know the GPU. `uuid` as cuDeviceGetUuid gives it, "GPU-...". Thread-safe.
using ListGpuProcesses = bool (*)(std::string_view uuid, GpuProcesses& out) noexcept;

}  // namespace xlog
