// What a leaf remembers of a block that it gave out: handles that were edited, or are of another block, do not pass.
#pragma once

#include "runtime/resource/address_table.h"
#include "runtime/resource/status.h"

namespace xlog {

struct LiveBlock {
  uint64_t ptr = 0;
  size_t bytes = 0;
  Generation generation{};
  StreamId stream{};

  // Ok, or why the handle is refused; `entry` nullptr: nothing is live at its address.
  static Status check(const LiveBlock* entry, const DeviceBlock& block) noexcept;
};

// Takes the block's entry out of the table, or says why the handle is refused.
template <class Entry>
Status take_live(AddressMap<Entry>& live, const DeviceBlock& block, Entry& out) noexcept {
  Status status;
  live.visit(block.ptr, [&](Entry* found) {
    status = LiveBlock::check(found, block);
    if (status.ok()) {
      out = *found;
    }
    return status.ok();
  });
  return status;
}

// The handle of a block that was just allocated.
void hand_out(DeviceBlock& out, const AllocationRequest& request, const LiveBlock& entry, int device, Kind kind) noexcept;

}  // namespace xlog
