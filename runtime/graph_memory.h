// What graphs that allocate take of a GPU. The driver reserves memory for them when they run, in steps of 32 MiB, may share
// it between graphs that do not run together, and gives it back when it is told to trim; it tells how much that is
// (tests/programs/surface.cpp). What a graph will need is known before: the most that its nodes hold at once. Thread-safe; holds no lock
// while the driver is called.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/resource/address_table.h"

namespace xlog {

struct GraphNeed {
  uint64_t bytes[kMaxDevices] = {};
};

// The nodes of a graph in the order in which they were made, which is one in which they may run.
class GraphFootprint {
 public:
  void allocates(CUdeviceptr ptr, size_t bytes, int device) noexcept;
  void frees(CUdeviceptr ptr) noexcept;
  [[nodiscard]] const GraphNeed& most() const noexcept { return most_; }
  [[nodiscard]] bool any() const noexcept { return any_; }
  ~GraphFootprint() { live_.release(); }

 private:
  struct Node {
    uint64_t ptr = 0;
    uint64_t bytes = 0;
    int device = 0;
  };
  GraphNeed now_;
  GraphNeed most_;
  bool any_ = false;
  AddressTable<Node> live_;
};

class GraphMemory {
 public:
  void instantiated(CUgraphExec exec, const GraphNeed& need) noexcept;
  void destroyed(CUgraphExec exec) noexcept;
  // What a launch takes above what is reserved now; `devices`: a bit for each that it allocates on. False for a graph that
  // allocates nothing.
  bool find(CUgraphExec exec, uint32_t& devices) noexcept;
  uint64_t missing(CUgraphExec exec, int device, uint64_t reserved) noexcept;
  void launched(CUgraphExec exec) noexcept;
  void trimmed(int device) noexcept;

  // What stands for the reserved bytes in the log and the budget: blocks, one for each growth. pop() gives those to be
  // ended while more is counted than is reserved; grew() then says how much is not counted, and counts it.
  bool pop(int device, uint64_t reserved, DeviceBlock& out) noexcept;
  uint64_t grew(int device, uint64_t reserved) noexcept;
  void push(int device, DeviceBlock&& block) noexcept;
  // A name for a block: no address.
  uint64_t name() noexcept { return kNames | names_.fetch_add(1, std::memory_order_relaxed); }

 private:
  struct Exec {
    uint64_t ptr = 0;
    GraphNeed need;
    uint32_t devices = 0;
    uint32_t resident = 0;  // those on which its memory is part of what is reserved
  };
  static constexpr size_t kMostBlocks = 64;
  static constexpr uint64_t kNames = uint64_t{1} << 63;
  void leave(Exec& exec, uint32_t devices) noexcept;

  Lock lock_;
  std::atomic<uint32_t> known_;  // most programs have none
  std::atomic<uint64_t> names_;
  AddressTable<Exec> execs_;
  struct Counted {
    uint64_t resident;  // of graphs that were launched
    uint64_t bytes;     // in blocks, or about to be
    size_t count;
    DeviceBlock blocks[kMostBlocks];
  } counted_[kMaxDevices];
};

}  // namespace xlog
