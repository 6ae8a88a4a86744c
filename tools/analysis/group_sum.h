// Groups of several GPUs, or of several numbers, as one.
#pragma once

#include "tools/analysis/groups.h"

namespace xlog::tools {

inline void add_group(Group& sum, const Group& group) {
  sum.allocations += group.allocations;
  sum.bytes += group.bytes;
  sum.live += group.live;
  sum.live_blocks += group.live_blocks;
  sum.at_peak += group.at_peak;
  sum.blocks_at_peak += group.blocks_at_peak;
  sum.freed_at_exit += group.freed_at_exit;
  sum.freed_at_exit_blocks += group.freed_at_exit_blocks;
  sum.failures += group.failures;
  sum.temporary += group.temporary;
  sum.short_lived += group.short_lived;
}

}  // namespace xlog::tools
