// Live blocks by address: an open-addressing table, since a report looks up every row of a log in it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/analysis/groups.h"

namespace xlog::tools {

struct LiveBlock {
  uint64_t ptr = 0;  // 0: an empty place
  uint64_t bytes = 0;
  uint64_t generation = 0;
  uint64_t time = 0;
  uint64_t stands_for = 0;  // bytes and blocks, of a sample; else its own and one
  uint64_t taken = 0;       // as the driver rounds it
  uint64_t order = 0;       // of the allocations of its thread
  uint32_t blocks = 1;
  uint32_t gpu = 0;
  std::array<uint32_t, kDimensions> numbers{};  // of its groups
  bool has_address = false;
};

class BlockMap {
 public:
  LiveBlock* find(uint64_t ptr) {
    if (slots_.empty()) {
      return nullptr;
    }
    size_t at = place(ptr);
    return slots_[at].ptr == ptr ? &slots_[at] : nullptr;
  }

  void insert(const LiveBlock& block) {
    if ((count_ + 1) * 4 > slots_.size() * 3) {
      grow();
    }
    LiveBlock& slot = slots_[place(block.ptr)];
    count_ += slot.ptr == 0 ? 1 : 0;
    slot = block;
  }

  void erase(LiveBlock* block) {
    size_t mask = slots_.size() - 1;
    auto hole = static_cast<size_t>(block - slots_.data());
    for (size_t next = (hole + 1) & mask; slots_[next].ptr != 0; next = (next + 1) & mask) {
      size_t home = hash(slots_[next].ptr) & mask;
      if (((next - home) & mask) >= ((next - hole) & mask)) {
        slots_[hole] = slots_[next];
        hole = next;
      }
    }
    slots_[hole] = {};
    --count_;
  }

  template <class Visit>
  void each(Visit visit) const {
    for (const LiveBlock& slot : slots_) {
      if (slot.ptr != 0) {
        visit(slot);
      }
    }
  }

  [[nodiscard]] size_t size() const { return count_; }

 private:
  static size_t hash(uint64_t ptr) {
    uint64_t h = (ptr >> 4) * 0x9E3779B97F4A7C15ULL;
    return h ^ (h >> 32);
  }
  size_t place(uint64_t ptr) const {
    size_t mask = slots_.size() - 1;
    size_t at = hash(ptr) & mask;
    while (slots_[at].ptr != 0 && slots_[at].ptr != ptr) {
      at = (at + 1) & mask;
    }
    return at;
  }
  void grow() {
    std::vector<LiveBlock> old(slots_.empty() ? 1024 : slots_.size() * 2);
    old.swap(slots_);
    for (const LiveBlock& each : old) {
      if (each.ptr != 0) {
        slots_[place(each.ptr)] = each;
      }
    }
  }

  std::vector<LiveBlock> slots_;
  size_t count_ = 0;
};

}  // namespace xlog::tools
