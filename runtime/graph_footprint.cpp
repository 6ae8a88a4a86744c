#include "runtime/graph_footprint.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/memory_map.h"

namespace xlog {

namespace {

constexpr uint64_t kStep = 32 << 20;
// Child graphs in child graphs. The driver does not nest them deeper than a program's stack could.
constexpr unsigned kDeepest = 64;

uint64_t down(uint64_t address) noexcept { return address / kStep * kStep; }
uint64_t up(uint64_t address) noexcept { return down(address + kStep - 1); }

// A call that fails once is made again: a graph that is not read is not limited.
template <class Call>
bool answers(Call call) noexcept {
  return call() == CUDA_SUCCESS || call() == CUDA_SUCCESS;
}

// The union of ranges that come in order of their begins: in steps, and rounded up as one piece.
class Union {
 public:
  void add(uint64_t begin, uint64_t end) noexcept {
    if (end > last_) {
      exact_ += end - std::max(begin, last_);
      last_ = end;
    }
    if (up(end) > last_step_) {
      steps_ += up(end) - std::max(down(begin), last_step_);
      last_step_ = up(end);
    }
  }
  [[nodiscard]] uint64_t steps() const noexcept { return steps_; }
  // It takes no more steps than its bytes need.
  [[nodiscard]] bool is_tight() const noexcept { return steps_ == up(exact_); }

 private:
  uint64_t last_ = 0;
  uint64_t last_step_ = 0;
  uint64_t exact_ = 0;
  uint64_t steps_ = 0;
};

}  // namespace

GraphFootprint::~GraphFootprint() {
  if (ranges_ != nullptr) {
    unmap_state(ranges_, capacity_ * sizeof(Range));
  }
}

bool GraphFootprint::add(CUdeviceptr begin, size_t bytes, int device, uint32_t child) noexcept {
  if (count_ == capacity_) {
    size_t capacity = capacity_ == 0 ? 128 : capacity_ * 2;
    auto* ranges = static_cast<Range*>(map_state(capacity * sizeof(Range)));
    if (ranges == nullptr) {
      return false;
    }
    if (ranges_ != nullptr) {
      std::memcpy(ranges, ranges_, count_ * sizeof(Range));
      unmap_state(ranges_, capacity_ * sizeof(Range));
    }
    ranges_ = ranges;
    capacity_ = capacity;
  }
  ranges_[count_++] = {.device = device, .child = child, .begin = begin, .end = begin + bytes};
  return true;
}

bool GraphFootprint::read(CUgraph graph) noexcept {
  return driver_.cuGraphGetNodes == nullptr || driver_.cuGraphMemAllocNodeGetParams == nullptr || driver_.cuGraphNodeGetType == nullptr ||
         read_nodes(graph, 0, 0);
}

bool GraphFootprint::read_nodes(CUgraph graph, uint32_t child, unsigned depth) noexcept {
  size_t count = 0;
  if (!answers([&] { return driver_.cuGraphGetNodes(graph, nullptr, &count); })) {
    return false;
  }
  if (count == 0) {
    return true;
  }
  size_t mapped_bytes = count * sizeof(CUgraphNode);
  auto* nodes = static_cast<CUgraphNode*>(map_state(mapped_bytes));
  if (nodes == nullptr) {
    return false;
  }
  bool good = answers([&] { return driver_.cuGraphGetNodes(graph, nodes, &count); });
  for (size_t i = 0; good && i < count; ++i) {
    good = read_node(nodes[i], child, depth);
  }
  unmap_state(nodes, mapped_bytes);
  return good;
}

// The bodies of conditional nodes have no allocations: the driver refuses them there.
bool GraphFootprint::read_node(CUgraphNode node, uint32_t child, unsigned depth) noexcept {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  if (!answers([&] { return driver_.cuGraphNodeGetType(node, &type); })) {
    return false;
  }
  if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    CUDA_MEM_ALLOC_NODE_PARAMS made{};
    bool known = answers([&] { return driver_.cuGraphMemAllocNodeGetParams(node, &made); });
    bool elsewhere = made.poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE;
    return known && (elsewhere || add(made.dptr, made.bytesize, made.poolProps.location.id, child));
  }
  if (type != CU_GRAPH_NODE_TYPE_GRAPH || driver_.cuGraphChildGraphNodeGetGraph == nullptr) {
    return true;
  }
  CUgraph inner = nullptr;
  bool known = depth < kDeepest && answers([&] { return driver_.cuGraphChildGraphNodeGetGraph(node, &inner); });
  return known && read_nodes(inner, ++children_, depth + 1);
}

void GraphFootprint::sort() noexcept {
  std::sort(ranges_, ranges_ + count_, [](const Range& a, const Range& b) {
    return a.device != b.device ? a.device < b.device : a.child != b.child ? a.child < b.child : a.begin < b.begin;
  });
}

// Ranges of different graphs are summed, and a child takes one step more (256 MiB in a child that was moved into its
// parent reserve 288).
uint64_t GraphFootprint::take_device(size_t& at) noexcept {
  uint64_t bytes = 0;
  int device = ranges_[at].device;
  while (at < count_ && ranges_[at].device == device) {
    uint32_t child = ranges_[at].child;
    Union of_graph;
    for (; at < count_ && ranges_[at].device == device && ranges_[at].child == child; ++at) {
      of_graph.add(ranges_[at].begin, ranges_[at].end);
    }
    bytes += of_graph.steps() + (child != 0 && of_graph.is_tight() ? kStep : 0);
  }
  return bytes;
}

}  // namespace xlog
