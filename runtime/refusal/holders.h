// What is live on one GPU, by the stack that allocated it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/resource/address_table.h"

namespace xlog {

struct LiveHolder {
  uint64_t stack_id = 0;  // kNone: its blocks have no stack
  uint64_t bytes = 0;
  uint64_t blocks = 0;
};

struct LiveHolders {
  static constexpr size_t kMost = 50;
  uint64_t bytes = 0;   // of all
  uint64_t blocks = 0;  // of all
  size_t count = 0;     // in `list`, largest first
  LiveHolder list[kMost];
};

// Of the blocks on `device` (of pinned host memory: -1), as each shard of the registry has them when it is its turn.
void find_holders(BlockRegistry& registry, int device, LiveHolders& out) noexcept;

}  // namespace xlog
