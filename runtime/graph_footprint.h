// What a graph reserves of each GPU when it runs: the driver gives an address to each allocation node when it is made. Nodes
// that may hold memory at the same time have different addresses, and nodes in a row may have the same one. So what is
// reserved is the union of their ranges, in the driver's steps of 32 MiB (measured: two parallel branches of 256 MiB
// reserve 512, two in a row 256).
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/driver_api.h"

namespace xlog {

class GraphFootprint {
 public:
  explicit GraphFootprint(const DriverApi& driver) noexcept : driver_(driver) {}
  ~GraphFootprint();
  GraphFootprint(const GraphFootprint&) = delete;
  GraphFootprint& operator=(const GraphFootprint&) = delete;

  // The graph, and the graphs in its child nodes. False: it could not be read.
  bool read(CUgraph graph) noexcept;
  // An allocation node, of the graph itself (`child` 0) or of one of its children.
  bool add(CUdeviceptr begin, size_t bytes, int device, uint32_t child) noexcept;
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  // Calls visit(device, bytes) for each GPU.
  template <class Visit>
  void each_device(Visit visit) noexcept {
    sort();
    for (size_t i = 0; i < count_;) {
      int device = ranges_[i].device;
      visit(device, take_device(i));
    }
  }

 private:
  struct Range {
    int device;
    uint32_t child;
    uint64_t begin;
    uint64_t end;
  };
  bool read_nodes(CUgraph graph, uint32_t child, unsigned depth) noexcept;
  bool read_node(CUgraphNode node, uint32_t child, unsigned depth) noexcept;
  void sort() noexcept;
  uint64_t take_device(size_t& at) noexcept;

  const DriverApi& driver_;
  Range* ranges_ = nullptr;
  size_t count_ = 0;
  size_t capacity_ = 0;
  uint32_t children_ = 0;
};

}  // namespace xlog
