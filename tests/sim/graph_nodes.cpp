// Graphs and their nodes, made by hand: memory, sets, and child graphs.
#include <algorithm>
#include <cstring>

#include "tests/sim/driver.h"

namespace sim {

Graph* find_graph(CUgraph graph) {
  must_not_have_ended(Kind::graph, graph);
  auto it = Driver::get().graphs.find(graph);
  return it != Driver::get().graphs.end() ? it->second.get() : nullptr;
}

namespace {

size_t in_slabs(const GraphNode& node) { return (node.bytes + kSlab - 1) / kSlab * kSlab; }

const GraphNode& node_of(const GraphNode& node) { return node; }
const GraphNode& node_of(const std::unique_ptr<GraphNode>& node) { return *node; }

// Which nodes are these, or come before one of them.
template <class Nodes>
std::vector<bool> up_to(const Nodes& nodes, std::vector<size_t> open) {
  std::vector<bool> found(nodes.size());
  while (!open.empty()) {
    size_t next = open.back();
    open.pop_back();
    if (!found[next]) {
      found[next] = true;
      const auto& more = node_of(nodes[next]).after;
      open.insert(open.end(), more.begin(), more.end());
    }
  }
  return found;
}

// What may be live at once, at most: branches that nothing orders run beside each other. A child graph takes a slab more (an H200
// reserved 288 MiB for a child of 256, 512 for two branches of 256, and 256 for two in a row).
std::map<int, size_t> footprint(const std::vector<GraphNode>& nodes, bool children) {
  std::map<int, size_t> most;
  std::map<uint64_t, size_t> open;
  std::map<size_t, size_t> freed_by;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      open[nodes[i].ptr] = i;
    } else if (nodes[i].type == CU_GRAPH_NODE_TYPE_MEM_FREE && open.count(nodes[i].ptr) != 0) {
      freed_by[open[nodes[i].ptr]] = i;
    }
  }
  std::vector<std::vector<bool>> earlier(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
      earlier[i] = up_to(nodes, nodes[i].after);
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    size_t beside = children ? kSlab : 0;
    for (size_t k = 0; k < nodes.size() && !earlier[i].empty(); ++k) {
      if (earlier[k].empty() || nodes[k].device != nodes[i].device) {
        continue;
      }
      auto end = freed_by.find(k);
      bool over = end != freed_by.end() && earlier[i][end->second];
      beside += over || earlier[k][i] ? 0 : in_slabs(nodes[k]);
    }
    if (!earlier[i].empty()) {
      most[nodes[i].device] = std::max(most[nodes[i].device], beside);
    }
  }
  return most;
}

// Appends a graph whose first nodes run behind `after`; tells its nodes.
std::vector<size_t> append(std::vector<GraphNode>& all, const Graph& graph, const std::vector<size_t>& after, bool& children) {
  std::vector<std::vector<size_t>> became;
  std::vector<size_t> own;
  for (const auto& node : graph.nodes) {
    std::vector<size_t> behind = node->after.empty() ? after : std::vector<size_t>{};
    for (size_t each : node->after) {
      behind.insert(behind.end(), became[each].begin(), became[each].end());
    }
    const Graph* child = node->child != nullptr ? Driver::get().graphs.at(node->child).get() : nullptr;
    if (child != nullptr && !child->nodes.empty()) {
      children = true;
      became.push_back(append(all, *child, behind, children));
    } else {
      all.push_back(*node);
      all.back().after = behind;
      became.push_back({all.size() - 1});
    }
    own.insert(own.end(), became.back().begin(), became.back().end());
  }
  return own;
}

// Puts a node into the graph, behind those that the caller names. An allocation is told its address.
CUresult add_node(CUgraphNode* out, Graph& graph, GraphNode node, const CUgraphNode* dependencies, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    auto is_it = [&](const auto& each) { return each.get() == reinterpret_cast<GraphNode*>(dependencies[i]); };
    auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), is_it);
    if (found == graph.nodes.end()) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    node.after.push_back(static_cast<size_t>(found - graph.nodes.begin()));
  }
  if (node.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    node.ptr = allocate_in(graph, node.after, node.bytes);
  } else if (node.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
    free_in(graph, node.ptr);
  }
  graph.nodes.push_back(std::make_unique<GraphNode>(std::move(node)));
  *out = reinterpret_cast<CUgraphNode>(graph.nodes.back().get());
  return CUDA_SUCCESS;
}

CUresult memory_node(GraphNode& node, CUmemLocation location, size_t bytes) {
  if (bytes == 0 || location.id < 0 || static_cast<size_t>(location.id) >= Driver::get().devices.size()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  node = GraphNode{CU_GRAPH_NODE_TYPE_MEM_ALLOC, 0, bytes, location.id};
  return bytes > kMostGraphBytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

GraphNode set_node(CUdeviceptr to, size_t pitch, unsigned value, unsigned element, size_t width, size_t height) {
  return {.type = CU_GRAPH_NODE_TYPE_MEMSET, .run = [=] {
            for (size_t row = 0; row < height; ++row) {
              auto* at = reinterpret_cast<char*>(to + row * pitch);
              if (element == 1) {
                std::memset(at, static_cast<int>(value), width);
              }
              for (size_t i = 0; i < width && element != 1; ++i) {
                std::memcpy(at + i * element, &value, element);
              }
            }
            return true;
          }};
}

// A child that is moved ends with its parent; only such a one may have memory of its own.
CUresult child_node(GraphNode& node, const CUDA_CHILD_GRAPH_NODE_PARAMS& params) {
  Graph* child = find_graph(params.graph);
  if (child == nullptr || child->owned) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool moves = params.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  for (const auto& each : child->nodes) {
    if (!moves && (each->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || each->type == CU_GRAPH_NODE_TYPE_MEM_FREE || each->child != nullptr)) {
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  void* own = params.graph;
  if (!moves) {
    own = make(Kind::graph, char{});
    auto copy = std::make_unique<Graph>();
    for (const auto& each : child->nodes) {
      copy->nodes.push_back(std::make_unique<GraphNode>(*each));
    }
    child = copy.get();
    Driver::get().graphs[own] = std::move(copy);
  }
  child->owned = true;
  node = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = own};
  return CUDA_SUCCESS;
}

CUresult add(const char* name, CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, size_t count, CUgraphNodeParams& params) {
  Call call(name, Call::Needs::context);
  Graph* graph = call.failed() ? nullptr : find_graph(handle);
  if (graph == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  GraphNode node;
  node.type = params.type;
  CUresult result = CUDA_SUCCESS;
  const CUDA_MEMSET_NODE_PARAMS_v2& set = params.memset;
  switch (params.type) {
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      result = memory_node(node, params.alloc.poolProps.location, params.alloc.bytesize);
      break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      node.ptr = params.free.dptr;
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      node = set_node(set.dst, set.pitch, set.value, set.elementSize, set.width, set.height);
      break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      result = child_node(node, params.graph);
      break;
    case CU_GRAPH_NODE_TYPE_EMPTY:
      break;
    default:
      result = CUDA_ERROR_NOT_SUPPORTED;
  }
  result = result == CUDA_SUCCESS ? add_node(out, *graph, std::move(node), dependencies, count) : result;
  if (result == CUDA_SUCCESS && params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    params.alloc.dptr = reinterpret_cast<GraphNode*>(*out)->ptr;
  }
  return result;
}

// With the children that it owns.
void end_graph(void* handle) {
  auto it = Driver::get().graphs.find(handle);
  std::unique_ptr<Graph> graph = std::move(it->second);
  Driver::get().graphs.erase(it);
  for (const auto& node : graph->nodes) {
    if (node->child != nullptr) {
      end_graph(node->child);
    }
  }
  end(Kind::graph, static_cast<char*>(handle));
}

}  // namespace

uint64_t allocate_in(Graph& graph, const std::vector<size_t>& after, size_t bytes) {
  std::vector<bool> earlier = up_to(graph.nodes, after);
  for (Graph::Region& each : graph.regions) {
    if (each.freed_by != SIZE_MAX && earlier[each.freed_by] && each.bytes >= bytes) {
      each.freed_by = SIZE_MAX;
      return each.ptr;
    }
  }
  graph.regions.push_back({graph_address(bytes), bytes, SIZE_MAX});
  return graph.regions.back().ptr;
}

void free_in(Graph& graph, uint64_t ptr) {
  for (Graph::Region& each : graph.regions) {
    each.freed_by = each.ptr == ptr ? graph.nodes.size() : each.freed_by;
  }
}

GraphExec flattened(const Graph& graph) {
  GraphExec exec;
  bool children = false;
  append(exec.nodes, graph, {}, children);
  exec.footprint = footprint(exec.nodes, children);
  return exec;
}

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

SIM_EXPORT CUresult cuGraphDestroy(CUgraph handle) {
  Call call("cuGraphDestroy", Call::Needs::init);
  Graph* graph = call.failed() ? nullptr : find_graph(handle);
  if (graph == nullptr || graph->owned) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  end_graph(handle);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, size_t count,
                                           CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  Call call("cuGraphAddMemAllocNode", Call::Needs::context);
  Graph* graph = call.failed() ? nullptr : find_graph(handle);
  if (graph == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  GraphNode node;
  CUresult result = memory_node(node, params->poolProps.location, params->bytesize);
  result = result == CUDA_SUCCESS ? add_node(out, *graph, std::move(node), dependencies, count) : result;
  params->dptr = result == CUDA_SUCCESS ? reinterpret_cast<GraphNode*>(*out)->ptr : params->dptr;
  return result;
}

SIM_EXPORT CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, size_t count,
                                          CUdeviceptr ptr) {
  Call call("cuGraphAddMemFreeNode", Call::Needs::context);
  Graph* graph = call.failed() ? nullptr : find_graph(handle);
  if (graph == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  return add_node(out, *graph, GraphNode{CU_GRAPH_NODE_TYPE_MEM_FREE, ptr}, dependencies, count);
}

SIM_EXPORT CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, size_t count,
                                         const CUDA_MEMSET_NODE_PARAMS* set, CUcontext) {
  Call call("cuGraphAddMemsetNode", Call::Needs::init);
  Graph* graph = call.failed() ? nullptr : find_graph(handle);
  if (graph == nullptr || set == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  return add_node(out, *graph, set_node(set->dst, set->pitch, set->value, set->elementSize, set->width, set->height), dependencies, count);
}

// By their names in the library, without edge data and with it.
#undef cuGraphAddNode
extern "C" CUresult cuGraphAddNode(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraphNodeParams*);
SIM_EXPORT CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                                   CUgraphNodeParams* params) {
  return add("cuGraphAddNode", out, graph, dependencies, count, *params);
}
SIM_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, const CUgraphEdgeData*,
                                      size_t count, CUgraphNodeParams* params) {
  return add("cuGraphAddNode_v2", out, graph, dependencies, count, *params);
}

SIM_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* out) {
  Call call("cuGraphChildGraphNodeGetGraph", Call::Needs::init);
  auto* made = reinterpret_cast<GraphNode*>(node);
  if (call.failed() || made->child == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  *out = static_cast<CUgraph>(made->child);
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
