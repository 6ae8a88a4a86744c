// What is read of a graph, over a driver in memory: nodes are numbers, and so are graphs.
#include <boost/test/unit_test.hpp>

#include <map>
#include <vector>

#include "runtime/graph_footprint.h"

using namespace xlog;

namespace {

constexpr uint64_t kMiB = 1 << 20;

struct Node {
  CUgraphNodeType type;
  uint64_t at = 0;  // of an allocation
  uint64_t bytes = 0;
  int device = 0;
  uintptr_t child = 0;  // the graph in a child node
  CUmemLocationType where = CU_MEM_LOCATION_TYPE_DEVICE;
};

struct GraphDriver {
  static inline std::map<uintptr_t, std::vector<uintptr_t>> graphs;
  static inline std::vector<Node> nodes;
  static inline bool fails = false;
  DriverApi api;

  GraphDriver() {
    graphs.clear();
    nodes.clear();
    nodes.push_back({});
    fails = false;
    api.cuGraphGetNodes = [](CUgraph graph, CUgraphNode* out, size_t* count) {
      const auto& all = graphs[reinterpret_cast<uintptr_t>(graph)];
      for (size_t i = 0; out != nullptr && i < all.size(); ++i) {
        out[i] = reinterpret_cast<CUgraphNode>(all[i]);
      }
      *count = all.size();
      return fails && out != nullptr ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
    };
    api.cuGraphNodeGetType = [](CUgraphNode node, CUgraphNodeType* type) { return *type = at(node).type, CUDA_SUCCESS; };
    api.cuGraphMemAllocNodeGetParams = [](CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* out) {
      out->dptr = at(node).at;
      out->bytesize = at(node).bytes;
      out->poolProps.location.type = at(node).where;
      out->poolProps.location.id = at(node).device;
      return CUDA_SUCCESS;
    };
    api.cuGraphChildGraphNodeGetGraph = [](CUgraphNode node, CUgraph* out) {
      return *out = reinterpret_cast<CUgraph>(at(node).child), CUDA_SUCCESS;
    };
  }
  static const Node& at(CUgraphNode node) { return nodes[reinterpret_cast<uintptr_t>(node)]; }
  static void add(uintptr_t graph, Node node) {
    graphs[graph].push_back(nodes.size());
    nodes.push_back(node);
  }
  static Node block(uint64_t at_mib, uint64_t mib, int device = 0) {
    return {CU_GRAPH_NODE_TYPE_MEM_ALLOC, (uint64_t{1} << 40) + at_mib * kMiB, mib * kMiB, device};
  }
  static Node child(uintptr_t graph) { return {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = graph}; }

  std::map<int, uint64_t> needs(uintptr_t graph) {
    GraphFootprint footprint(api);
    BOOST_TEST(footprint.read(reinterpret_cast<CUgraph>(graph)));
    std::map<int, uint64_t> all;
    footprint.each_device([&](int device, uint64_t bytes) { all[device] = bytes / kMiB; });
    return all;
  }
};

using Needs = std::map<int, uint64_t>;

}  // namespace

BOOST_FIXTURE_TEST_CASE(nodes_of_a_graph, GraphDriver) {
  BOOST_TEST((needs(1) == Needs{}));
  add(1, {CU_GRAPH_NODE_TYPE_KERNEL});
  BOOST_TEST((needs(1) == Needs{}));
  add(1, block(0, 256));
  add(1, {CU_GRAPH_NODE_TYPE_MEM_FREE});
  add(1, block(256, 256));
  BOOST_TEST((needs(1) == Needs{{0, 512}}));
  add(1, block(0, 64, 17));
  Node host = block(1024, 64);
  host.where = CU_MEM_LOCATION_TYPE_HOST;
  add(1, host);
  BOOST_TEST((needs(1) == Needs{{0, 512}, {17, 64}}));
}

BOOST_FIXTURE_TEST_CASE(child_graphs_in_child_graphs, GraphDriver) {
  add(1, block(0, 32));
  add(1, child(2));
  add(2, block(1024, 256));
  BOOST_TEST((needs(1) == Needs{{0, 32 + 288}}));
  add(2, child(3));
  add(3, block(2048, 64, 1));
  BOOST_TEST((needs(1) == Needs{{0, 32 + 288}, {1, 96}}));
  add(3, child(3));  // no graph is in itself: there is an end to it
  GraphFootprint footprint(api);
  BOOST_TEST(!footprint.read(reinterpret_cast<CUgraph>(uintptr_t{1})));
}

BOOST_FIXTURE_TEST_CASE(a_graph_of_many_nodes, GraphDriver) {
  for (uint64_t i = 0; i < 1000; ++i) {
    add(1, block((i * 7 % 1000) * 32, 1));
  }
  BOOST_TEST((needs(1) == Needs{{0, 32000}}));
}

BOOST_FIXTURE_TEST_CASE(a_graph_that_cannot_be_read, GraphDriver) {
  add(1, block(0, 32));
  fails = true;
  GraphFootprint footprint(api);
  BOOST_TEST(!footprint.read(reinterpret_cast<CUgraph>(uintptr_t{1})));
}
