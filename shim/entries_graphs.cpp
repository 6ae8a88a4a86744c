// Accounted calls: graphs with nodes that allocate. The driver takes their memory when they are uploaded or launched.
#include "shim/entry.h"

using xlog::DriverCall;
using xlog::Entry;
using xlog::Row;

extern "C" {

#define XLOG_GRAPH_INSTANTIATE(name, type, parameters, ...) \
  XLOG_EXPORT CUresult name parameters {                    \
    Entry entry(Row::name);                                 \
    CUresult result = entry.forward<type>(__VA_ARGS__);     \
    if (result == CUDA_SUCCESS && entry.serves()) {         \
      entry.runtime().graph_instantiated(*exec, graph);     \
    }                                                       \
    return result;                                          \
  }
using InstantiateWithLog = CUresult (*)(CUgraphExec*, CUgraph, CUgraphNode*, char*, size_t);
XLOG_GRAPH_INSTANTIATE(cuGraphInstantiate, InstantiateWithLog,
                       (CUgraphExec * exec, CUgraph graph, CUgraphNode* failed, char* log, size_t size), exec, graph, failed, log, size)
XLOG_GRAPH_INSTANTIATE(cuGraphInstantiate_v2, InstantiateWithLog,
                       (CUgraphExec * exec, CUgraph graph, CUgraphNode* failed, char* log, size_t size), exec, graph, failed, log, size)
XLOG_GRAPH_INSTANTIATE(cuGraphInstantiateWithFlags, decltype(&::cuGraphInstantiateWithFlags),
                       (CUgraphExec * exec, CUgraph graph, unsigned long long flags), exec, graph, flags)
XLOG_GRAPH_INSTANTIATE(cuGraphInstantiateWithParams, decltype(&::cuGraphInstantiateWithParams),
                       (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), exec, graph, params)
XLOG_GRAPH_INSTANTIATE(cuGraphInstantiateWithParams_ptsz, decltype(&::cuGraphInstantiateWithParams),
                       (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params), exec, graph, params)

#define XLOG_GRAPH_UPLOAD(name)                                                                                      \
  XLOG_EXPORT CUresult name(CUgraphExec exec, CUstream stream) {                                                     \
    Entry entry(Row::name);                                                                                          \
    if (entry.refused()) {                                                                                           \
      return CUDA_ERROR_INVALID_VALUE;                                                                               \
    }                                                                                                                \
    auto call = [&](uint64_t&) noexcept { return entry.forward<decltype(&::cuGraphUpload)>(exec, stream); };         \
    uint64_t unused = 0;                                                                                             \
    return entry.serves() ? entry.runtime().launch_graph(exec, XLOG_CALLER, #name, DriverCall(call)) : call(unused); \
  }
XLOG_GRAPH_UPLOAD(cuGraphUpload)
XLOG_GRAPH_UPLOAD(cuGraphUpload_ptsz)

#define XLOG_GRAPH_LAUNCH(name, per_thread)                                                                                        \
  XLOG_EXPORT CUresult name(CUgraphExec exec, CUstream stream) {                                                                   \
    Entry entry(Row::name);                                                                                                        \
    if (entry.refused()) {                                                                                                         \
      return CUDA_ERROR_INVALID_VALUE;                                                                                             \
    }                                                                                                                              \
    const void* caller = XLOG_CALLER;                                                                                              \
    auto call = [&](uint64_t&) noexcept { return entry.forward<decltype(&::cuGraphLaunch)>(exec, stream); };                       \
    uint64_t unused = 0;                                                                                                           \
    if (!entry.serves()) {                                                                                                         \
      return call(unused);                                                                                                         \
    }                                                                                                                              \
    return entry.runtime().launch(nullptr, {stream, per_thread},                                                                   \
                                  [&]() noexcept { return entry.runtime().launch_graph(exec, caller, #name, DriverCall(call)); }); \
  }
XLOG_GRAPH_LAUNCH(cuGraphLaunch, false)
XLOG_GRAPH_LAUNCH(cuGraphLaunch_ptsz, true)

XLOG_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec) {
  Entry entry(Row::cuGraphExecDestroy);
  auto call = [&](uint64_t&) noexcept { return entry.forward<decltype(&::cuGraphExecDestroy)>(exec); };
  uint64_t unused = 0;
  return entry.serves() ? entry.runtime().end_graph(exec, DriverCall(call)) : call(unused);
}

XLOG_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device) {
  Entry entry(Row::cuDeviceGraphMemTrim);
  CUresult result = entry.forward<decltype(&::cuDeviceGraphMemTrim)>(device);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().graph_memory_trimmed(device, XLOG_CALLER, "cuDeviceGraphMemTrim");
  }
  return result;
}

}  // extern "C"
