// What graphs that allocate take of a GPU. The driver reserves memory for them when they run, in steps of 32 MiB, may share
// it between graphs that do not run together, and gives it back when it is told to trim; it tells how much that is
// (tests/programs/surface.cpp). What a graph will need is known before, from the addresses of its allocation nodes
// (graph_footprint.h). Thread-safe; holds no lock while the driver is called.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/lock.h"
#include "runtime/graph_footprint.h"
#include "runtime/resource/address_table.h"
#include "runtime/resource/slab.h"

namespace xlog {

class GraphMemory {
 public:
  // What one exec graph needs of one GPU.
  struct Part {
    Part* next;
    int device;
    uint64_t bytes;
    bool resident;  // its memory is part of what is reserved there
  };
  struct Exec {
    uint64_t ptr = 0;  // handle
    Part* parts = nullptr;
  };
  // What a launch was promised on one GPU.
  struct Promise {
    Promise* next;
    int device;
    bool made_resident;
    DeviceBlock block;
  };

  // False: there is no host memory to remember what it needs.
  bool instantiated(CUgraphExec exec, GraphFootprint& footprint) noexcept;
  // Around the call that destroys it, since the handle may be given out again at once. False: it allocates nothing.
  bool begin_end(CUgraphExec exec, Exec& out) noexcept;
  void finish_end(const Exec& ending, bool destroyed) noexcept;

  // One promise for each GPU on which the graph allocates; nullptr for a graph that allocates nothing.
  Promise* promises(CUgraphExec exec) noexcept;
  void put(Promise* list) noexcept { promises_.put_list(list); }
  // What a launch takes above what is reserved now. The graph counts as resident from here on, so that what is idle is
  // promised once; refused() takes that back.
  uint64_t missing(CUgraphExec exec, Promise& promise, uint64_t reserved) noexcept;
  void refused(CUgraphExec exec, const Promise& promise) noexcept;
  void trimmed(int device) noexcept;

  // What stands for the reserved bytes in the log and the budget: blocks, one for each growth. pop() gives those to be
  // ended while more is counted than is reserved; grew() then says how much is not counted, and counts it.
  bool pop(int device, uint64_t reserved, DeviceBlock& out) noexcept;
  uint64_t grew(int device, uint64_t reserved) noexcept;
  void push(int device, DeviceBlock&& block) noexcept;
  // A name for a block: no address.
  uint64_t name() noexcept { return kNames | names_.fetch_add(1, std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kNames = uint64_t{1} << 63;
  struct Growth {
    Growth* next;
    DeviceBlock block;
  };
  struct Counted {
    Counted* next;
    int device;
    uint64_t resident;  // of graphs that were launched
    uint64_t bytes;     // in blocks, or about to be
    Growth* growths;
  };
  Counted* counted(int device) noexcept;
  void leave(Part* part) noexcept;
  void drop(Exec& exec) noexcept;
  Part* part_of(CUgraphExec exec, int device) noexcept;

  Lock lock_;
  std::atomic<uint32_t> known_;  // most programs have none
  std::atomic<uint64_t> names_;
  AddressTable<Exec> execs_;
  Counted* devices_;
  Slab<Part> parts_;
  Slab<Counted> counteds_;
  Slab<Growth> growths_;
  Slab<Promise> promises_;
};

}  // namespace xlog
