// What graphs that allocate reserve: allocations in a row, in branches, and in a child graph whose ownership is moved. An H200 answered
// 256, 512, 256, 512 and 288 MiB.
#include "programs/program.h"

namespace {

constexpr size_t kMiB = 1 << 20;

// Allocates, sets and frees behind `after`; the last of the three nodes.
CUgraphNode add_row(CUgraph graph, size_t mib, CUgraphNode after) {
  CUDA_MEM_ALLOC_NODE_PARAMS made{};
  made.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  made.bytesize = mib * kMiB;
  CUgraphNode allocated = nullptr;
  CUgraphNode set = nullptr;
  CUgraphNode freed = nullptr;
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  MUST(cuGraphAddMemAllocNode(&allocated, graph, after != nullptr ? &after : nullptr, after != nullptr ? 1 : 0, &made));
  CUDA_MEMSET_NODE_PARAMS ones{.dst = made.dptr, .pitch = 0, .value = 1, .elementSize = 1, .width = 4096, .height = 1};
  MUST(cuGraphAddMemsetNode(&set, graph, &allocated, 1, &ones, context));
  MUST(cuGraphAddMemFreeNode(&freed, graph, &set, 1, made.dptr));
  return freed;
}

void launch(const char* what, CUgraph graph) {
  CUgraphExec exec = nullptr;
  cuuint64_t reserved = 0;
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CUresult launched = cuGraphLaunch(exec, nullptr);
  MUST(cuCtxSynchronize());
  MUST(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved));
  std::printf("%s: launch %d, reserved %zu MiB\n", what, launched, static_cast<size_t>(reserved / kMiB));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cuDeviceGraphMemTrim(0));
}

CUgraph new_graph() {
  CUgraph graph = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  return graph;
}

}  // namespace

int main() {
  start();
  CUgraph graph = new_graph();
  add_row(graph, 256, nullptr);
  launch("one of 256", graph);
  graph = new_graph();
  add_row(graph, 256, nullptr);
  add_row(graph, 256, nullptr);
  launch("two branches of 256", graph);
  graph = new_graph();
  add_row(graph, 256, add_row(graph, 256, nullptr));
  launch("two of 256 in a row", graph);
  graph = new_graph();
  for (int i = 0; i < 4; ++i) {
    add_row(graph, 128, nullptr);
  }
  launch("four branches of 128", graph);
  graph = new_graph();
  CUgraphNode node = nullptr;
  CUgraphNodeParams child{};
  child.type = CU_GRAPH_NODE_TYPE_GRAPH;
  child.graph.graph = new_graph();
  child.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  add_row(child.graph.graph, 256, nullptr);
  MUST(cuGraphAddNode_v2(&node, graph, nullptr, nullptr, 0, &child));
  launch("a child with 256", graph);
  return 0;
}
