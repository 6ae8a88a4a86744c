// Live blocks by address: an open-addressing table, since a report looks up every row of a log in it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tools/analysis/groups.h"
#include "tools/analysis/huge_pages.h"
#include "tools/log/prefetch.h"

namespace xlog::tools {

struct LiveBlock {
  uint64_t ptr = 0;
  uint64_t bytes = 0;
  uint64_t generation = 0;
  uint64_t time = 0;
  uint64_t stands_for = 0;  // bytes and blocks, of a sample; else its own and one
  uint64_t taken = 0;       // as the driver rounds it
  uint64_t order = 0;       // of the allocations of its thread
  uint32_t blocks = 1;      // 0: none is here
  uint32_t gpu = 0;
  std::array<uint32_t, kDimensions> groups{};  // places of its groups on its GPU
  bool has_address = false;
  bool seen_made = true;  // false: it was there when the log came on, and is older than `time`
};

// Two steps, as blocks are many and their places are met at random: slots of eight bytes, most of which stay in the
// processor's cache, and the blocks, where the one that died last is the next to be born.
class BlockMap {
 public:
  // Until the next insert().
  LiveBlock* find(uint64_t ptr) {
    if (slots_.empty()) {
      return nullptr;
    }
    const Slot& slot = slots_[place(ptr, hash(ptr))];
    return slot.block != 0 ? &blocks_[slot.block - 1] : nullptr;
  }

  // There is none at its address.
  void insert(const LiveBlock& block) {
    if ((size() + 1) * 2 > slots_.size()) {
      grow();
    }
    if (free_.empty()) {
      blocks_.emplace_back();
      free_.push_back(static_cast<uint32_t>(blocks_.size()));
    }
    uint32_t hashed = hash(block.ptr);
    slots_[place(block.ptr, hashed)] = {hashed, free_.back()};
    blocks_[free_.back() - 1] = block;
    free_.pop_back();
  }

  void erase(LiveBlock* block) {
    size_t mask = slots_.size() - 1;
    size_t hole = place(block->ptr, hash(block->ptr));
    free_.push_back(slots_[hole].block);
    for (size_t next = (hole + 1) & mask; slots_[next].block != 0; next = (next + 1) & mask) {
      size_t home = slots_[next].hash & mask;
      if (((next - home) & mask) >= ((next - hole) & mask)) {
        slots_[hole] = slots_[next];
        hole = next;
      }
    }
    slots_[hole] = {};
    block->blocks = 0;
  }

  // A row about `ptr` is some rows away, and then a few.
  void expect(uint64_t ptr) const {
    if (!slots_.empty()) {
      prefetch(&slots_[hash(ptr) & (slots_.size() - 1)]);
    }
  }
  void expect_soon(uint64_t ptr) const {
    if (!slots_.empty()) {
      const Slot& slot = slots_[hash(ptr) & (slots_.size() - 1)];
      if (slot.block != 0) {
        prefetch_all(&blocks_[slot.block - 1]);
      }
    }
  }

  template <class Visit>
  void each(Visit visit) const {
    for (const LiveBlock& block : blocks_) {
      if (block.blocks != 0) {
        visit(block);
      }
    }
  }

  [[nodiscard]] size_t size() const { return blocks_.size() - free_.size(); }

 private:
  struct Slot {
    uint32_t hash = 0;
    uint32_t block = 0;  // place in `blocks_` and 1; 0: empty
  };
  // Addresses lie at regular steps; mixed but once, they would gather.
  static uint32_t hash(uint64_t ptr) {
    uint64_t h = ptr * 0x9E3779B97F4A7C15ULL;
    return static_cast<uint32_t>((h ^ h >> 32) * 0xD6E8FEB86659FD93ULL >> 32);
  }
  // Where it is, or would be.
  [[nodiscard]] size_t place(uint64_t ptr, uint32_t hashed) const {
    size_t mask = slots_.size() - 1;
    size_t at = hashed & mask;
    while (slots_[at].block != 0 && (slots_[at].hash != hashed || blocks_[slots_[at].block - 1].ptr != ptr)) {
      at = (at + 1) & mask;
    }
    return at;
  }
  void grow() {
    std::vector<Slot, HugePages<Slot>> old(slots_.empty() ? 1024 : slots_.size() * 2);
    old.swap(slots_);
    size_t mask = slots_.size() - 1;
    for (const Slot& each : old) {
      if (each.block != 0) {
        size_t at = each.hash & mask;
        while (slots_[at].block != 0) {
          at = (at + 1) & mask;
        }
        slots_[at] = each;
      }
    }
  }

  std::vector<Slot, HugePages<Slot>> slots_;  // open addressing
  std::vector<LiveBlock, HugePages<LiveBlock>> blocks_;
  std::vector<uint32_t> free_;  // places in `blocks_` and 1
};

}  // namespace xlog::tools
