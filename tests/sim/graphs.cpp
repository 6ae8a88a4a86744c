// Graphs that allocate: memory is reserved when they are uploaded or launched, in steps of 32 MiB, shared between those
// that do not run together, and given back by a trim.
#include <sys/mman.h>

#include <algorithm>

#include "tests/sim/driver.h"

namespace sim {

namespace {

Device* device_at(int ordinal) {
  auto& devices = Driver::get().devices;
  return ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size() ? devices[static_cast<size_t>(ordinal)].get() : nullptr;
}

// A launch that finds no memory keeps what it found.
CUresult reserve(const GraphExec& exec) {
  for (auto [ordinal, bytes] : exec.footprint) {
    Device& device = *device_at(ordinal);
    device.graph_used = std::max(device.graph_used, bytes);
    if (device.graph_reserved >= bytes) {
      continue;
    }
    size_t missing = bytes - device.graph_reserved;
    size_t free = (device.total - device.used) / kSlab * kSlab;
    size_t got = std::min(missing, free);
    device.used += got;
    device.graph_reserved += got;
    if (got < missing) {
      device.graph_used = 0;
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  return CUDA_SUCCESS;
}

CUresult run(const char* name, CUgraphExec handle, bool launches, CUstream stream = nullptr, bool per_thread = false) {
  Call call(name, Call::Needs::context, per_thread);
  must_not_have_ended(Kind::exec, handle);
  auto it = Driver::get().graph_execs.find(handle);
  if (call.failed() || it == Driver::get().graph_execs.end()) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  if (launches && call.stream(stream) == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  auto& live = Driver::get().graph_memory;
  for (const GraphNode& node : it->second.nodes) {
    if (launches && node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && live.count(node.ptr) != 0) {
      return CUDA_ERROR_INVALID_VALUE;  // not freed since the last launch
    }
  }
  CUresult result = reserve(it->second);
  for (const GraphNode& node : it->second.nodes) {
    if (result == CUDA_SUCCESS && launches && node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      live[node.ptr] = node;
    } else if (node.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      live.erase(node.ptr);
    }
    Stream* into = launches && result == CUDA_SUCCESS && node.run ? call.stream(stream) : nullptr;
    if (into != nullptr) {
      enqueue(*into, node.run);
    }
  }
  return result;
}

// Behind what programs reserve themselves.
uint64_t graphs_begin() { return reservations_begin() + 2 * kReservations; }

CUresult instantiate(const char* name, CUgraphExec* out, CUgraph handle) {
  Call call(name, Call::Needs::context);
  Graph* graph = call.failed() ? nullptr : find_graph(handle);
  if (graph == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  GraphExec exec = flattened(*graph);
  bool allocates =
      std::any_of(exec.nodes.begin(), exec.nodes.end(), [](const GraphNode& n) { return n.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC; });
  if (allocates && graph->instantiated) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  graph->instantiated = true;
  void* made = make(Kind::exec, char{});
  Driver::get().graph_execs[made] = std::move(exec);
  *out = static_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}

}  // namespace

uint64_t graph_address(size_t bytes) {
  static uint64_t next = graphs_begin();
  uint64_t ptr = next;
  size_t taken = (bytes + kGranule - 1) / kGranule * kGranule;
  next += taken;
  mmap(reinterpret_cast<void*>(ptr), taken, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
       0);
  Driver::get().graph_addresses[ptr] = bytes;
  return ptr;
}

bool in_graph_memory(uint64_t at, size_t bytes, bool building) {
  Driver& driver = Driver::get();
  auto it = driver.graph_addresses.upper_bound(at);
  if (it == driver.graph_addresses.begin()) {
    return false;
  }
  auto [ptr, size] = *std::prev(it);
  return at - ptr < size && bytes <= size - (at - ptr) && (building || driver.graph_memory.count(ptr) != 0);
}

bool free_graph_memory(uint64_t ptr) { return Driver::get().graph_memory.erase(ptr) != 0; }

}  // namespace sim

using namespace sim;

SIM_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long) {
  return instantiate("cuGraphInstantiateWithFlags", out, graph);
}
SIM_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, size_t) {
  return instantiate("cuGraphInstantiate_v2", out, graph);
}
SIM_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS*) {
  return instantiate("cuGraphInstantiateWithParams", out, graph);
}
SIM_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream) { return run("cuGraphUpload", exec, false); }
SIM_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream s) { return run("cuGraphLaunch", exec, true, s); }
SIM_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream s) { return run("cuGraphLaunch_ptsz", exec, true, s, true); }

SIM_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  Call call("cuGraphExecDestroy", Call::Needs::init);
  must_not_have_ended(Kind::exec, exec);
  if (call.failed() || Driver::get().graph_execs.erase(exec) == 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  end(Kind::exec, reinterpret_cast<char*>(exec));
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  Call call("cuDeviceGraphMemTrim", Call::Needs::init);
  Device* device = call.failed() ? nullptr : device_at(ordinal);
  if (device == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  size_t kept = 0;
  for (const auto& [ptr, node] : Driver::get().graph_memory) {
    kept += node.device == ordinal ? (node.bytes + kSlab - 1) / kSlab * kSlab : 0;
  }
  for (auto [ptr, bytes] : Driver::get().graph_addresses) {
    if (Driver::get().graph_memory.count(ptr) == 0) {
      madvise(reinterpret_cast<void*>(ptr), bytes, MADV_DONTNEED);
    }
  }
  device->used -= device->graph_reserved - kept;
  device->graph_reserved = device->graph_used = kept;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute attribute, void* out) {
  Call call("cuDeviceGetGraphMemAttribute", Call::Needs::init);
  Device* device = call.failed() ? nullptr : device_at(ordinal);
  if (device == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  bool reserved = attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT || attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  *static_cast<cuuint64_t*>(out) = reserved ? device->graph_reserved : device->graph_used;
  return CUDA_SUCCESS;
}
