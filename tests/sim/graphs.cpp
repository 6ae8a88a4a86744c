// Graphs that allocate: memory is reserved when they are uploaded or launched, in steps of 32 MiB, shared between those
// that do not run together, and given back by a trim.
#include <sys/mman.h>

#include <cstdlib>

#include "tests/sim/driver.h"

namespace sim {

namespace {

Graph* find_graph(CUgraph graph) {
  must_not_have_ended(Kind::graph, graph);
  auto it = Driver::get().graphs.find(graph);
  return it != Driver::get().graphs.end() ? it->second.get() : nullptr;
}

Device* device_at(int ordinal) {
  auto& devices = Driver::get().devices;
  return ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size() ? devices[static_cast<size_t>(ordinal)].get() : nullptr;
}

// What the nodes hold at once, at most.
std::map<int, size_t> footprint(const GraphExec& exec) {
  std::map<int, size_t> now;
  std::map<int, size_t> most;
  std::map<uint64_t, const GraphNode*> live;
  for (const GraphNode& node : exec.nodes) {
    if (node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      live[node.ptr] = &node;
      now[node.device] += (node.bytes + kSlab - 1) / kSlab * kSlab;
      most[node.device] = std::max(most[node.device], now[node.device]);
    } else if (node.type == CU_GRAPH_NODE_TYPE_MEM_FREE && live.count(node.ptr) != 0) {
      const GraphNode& made = *live[node.ptr];
      now[made.device] -= (made.bytes + kSlab - 1) / kSlab * kSlab;
      live.erase(node.ptr);
    }
  }
  return most;
}

// A launch that finds no memory keeps what it found.
CUresult reserve(const GraphExec& exec) {
  for (auto [ordinal, bytes] : footprint(exec)) {
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
  GraphExec exec;
  bool allocates = false;
  for (const auto& node : graph->nodes) {
    exec.nodes.push_back(*node);
    allocates = allocates || node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  }
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

SIM_EXPORT CUresult cuGraphCreate(CUgraph* out, unsigned) {
  Call call("cuGraphCreate", Call::Needs::init);
  void* made = call.failed() ? nullptr : make(Kind::graph, char{});
  if (made != nullptr) {
    Driver::get().graphs[made] = std::make_unique<Graph>();
    *out = static_cast<CUgraph>(made);
  }
  return call.result();
}

SIM_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  Call call("cuGraphDestroy", Call::Needs::init);
  must_not_have_ended(Kind::graph, graph);
  if (call.failed() || Driver::get().graphs.erase(graph) == 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  end(Kind::graph, reinterpret_cast<char*>(graph));
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph handle, const CUgraphNode*, size_t,
                                           CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  Call call("cuGraphAddMemAllocNode", Call::Needs::context);
  Graph* graph = call.failed() ? nullptr : find_graph(handle);
  if (graph == nullptr || params->bytesize == 0 || device_at(params->poolProps.location.id) == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  if (params->bytesize > kMostGraphBytes) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  params->dptr = graph_address(params->bytesize);
  graph->nodes.push_back(
      std::make_unique<GraphNode>(GraphNode{CU_GRAPH_NODE_TYPE_MEM_ALLOC, params->dptr, params->bytesize, params->poolProps.location.id}));
  *out = reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph handle, const CUgraphNode*, size_t, CUdeviceptr ptr) {
  Call call("cuGraphAddMemFreeNode", Call::Needs::context);
  Graph* graph = call.failed() ? nullptr : find_graph(handle);
  if (graph == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  graph->nodes.push_back(std::make_unique<GraphNode>(GraphNode{CU_GRAPH_NODE_TYPE_MEM_FREE, ptr}));
  *out = reinterpret_cast<CUgraphNode>(graph->nodes.back().get());
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  Call call("cuGraphGetNodes", Call::Needs::init);
  Graph* graph = call.failed() ? nullptr : find_graph(handle);
  if (graph == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; nodes != nullptr && i < std::min(*count, graph->nodes.size()); ++i) {
    nodes[i] = reinterpret_cast<CUgraphNode>(graph->nodes[i].get());
  }
  *count = graph->nodes.size();
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  Call call("cuGraphNodeGetType", Call::Needs::init);
  if (!call.failed()) {
    *type = reinterpret_cast<GraphNode*>(node)->type;
  }
  return call.result();
}

SIM_EXPORT CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
  Call call("cuGraphMemAllocNodeGetParams", Call::Needs::init);
  if (call.failed()) {
    return call.result();
  }
  auto* made = reinterpret_cast<GraphNode*>(node);
  *out = {};
  out->poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, made->device};
  out->bytesize = made->bytes;
  out->dptr = made->ptr;
  return call.result();
}

SIM_EXPORT CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* out) {
  Call call("cuGraphMemFreeNodeGetParams", Call::Needs::init);
  if (!call.failed()) {
    *out = reinterpret_cast<GraphNode*>(node)->ptr;
  }
  return call.result();
}

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
