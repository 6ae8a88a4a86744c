// Graphs whose branches allocate, launched under a limit: each line says what the launch answered.
#include "programs/program.h"

namespace {

constexpr size_t kMiB = 1 << 20;

void add_branch(CUgraph graph, size_t mib) {
  CUDA_MEM_ALLOC_NODE_PARAMS made{};
  made.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  made.bytesize = mib * kMiB;
  CUgraphNode node = nullptr;
  CUgraphNode freed = nullptr;
  MUST(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &made));
  MUST(cuGraphAddMemFreeNode(&freed, graph, &node, 1, made.dptr));
}

void launch(int branches, size_t mib) {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  for (int i = 0; i < branches; ++i) {
    add_branch(graph, mib);
  }
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  std::printf("%d of %zu MiB: %d\n", branches, mib, cuGraphLaunch(exec, nullptr));
  MUST(cuCtxSynchronize());
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cuDeviceGraphMemTrim(0));
}

}  // namespace

int main() {
  start();
  launch(1, 256);
  launch(2, 256);
  launch(4, 128);
  launch(2, 128);
  launch(1, 300);
  return 0;
}
