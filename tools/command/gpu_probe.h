// Which GPUs a program started here would see.
#pragma once

#include <string>
#include <vector>

namespace xlog::tools {

struct GpuProbe {
  bool answered = false;  // the driver did, in time
  bool has_driver = false;
  int init_result = 0;             // of cuInit
  int count_result = 0;            // of cuDeviceGetCount
  std::vector<std::string> uuids;  // one for each GPU, by its ordinal: "GPU-..."

  [[nodiscard]] bool works() const { return answered && has_driver && init_result == 0 && count_result == 0; }
};

// Asks the driver in a child process that ends at once, so that nothing of CUDA begins in this one.
GpuProbe probe_gpus();

// What is wrong with a limit by GPU: a GPU that it names is not there. Empty when nothing is, or when the GPUs cannot be known.
// `shown`: the option or variable as the user gave it.
std::string limit_trouble(const std::string& shown, const std::string& limit);

}  // namespace xlog::tools
