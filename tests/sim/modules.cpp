// Kernels: the two that the programs of tests/programs/misuse load, by name. They touch memory without any check.
#include <cstring>
#include <string>

#include "tests/sim/driver.h"

using namespace sim;

namespace {

std::map<std::string, int>& names() {
  static auto* all = new std::map<std::string, int>{{"store_bytes", 1}, {"load_byte", 2}};
  return *all;
}

template <class T>
T argument(void** arguments, int i) {
  T value;
  std::memcpy(&value, arguments[i], sizeof value);
  return value;
}

}  // namespace

SIM_EXPORT CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  Call call("cuModuleLoadData", Call::Needs::context);
  *out = reinterpret_cast<CUmodule>(const_cast<void*>(image));
  return call.result();
}

SIM_EXPORT CUresult cuModuleGetFunction(CUfunction* out, CUmodule, const char* name) {
  Call call("cuModuleGetFunction", Call::Needs::context);
  auto found = names().find(name);
  if (call.failed() || found == names().end()) {
    return call.failed() ? call.result() : CUDA_ERROR_NOT_FOUND;
  }
  *out = reinterpret_cast<CUfunction>(&found->second);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   CUstream handle, void** arguments, void**) {
  Call call("cuLaunchKernel", Call::Needs::context);
  Stream* stream = call.failed() ? nullptr : call.stream(handle);
  if (stream == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  auto first = argument<uint64_t>(arguments, 0);
  auto second = argument<uint64_t>(arguments, 1);
  bool stores = *reinterpret_cast<int*>(function) == 1;
  unsigned value = stores ? argument<uint32_t>(arguments, 2) : 0;
  auto run = [=] {
    if (stores) {
      std::memset(reinterpret_cast<void*>(first), static_cast<int>(value), second);
    } else {
      std::memcpy(reinterpret_cast<void*>(second), reinterpret_cast<void*>(first), 1);
    }
    return true;
  };
  if (stream->capture != nullptr) {
    stream->capture->graph->nodes.push_back(std::make_unique<GraphNode>(GraphNode{.type = CU_GRAPH_NODE_TYPE_KERNEL, .run = run}));
    return CUDA_SUCCESS;
  }
  enqueue(*stream, run);
  return CUDA_SUCCESS;
}
