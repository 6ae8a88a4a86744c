#include "runtime/resource/live_block.h"

namespace xlog {

Status LiveBlock::check(const LiveBlock* entry, const DeviceBlock& block) noexcept {
  if (entry == nullptr || entry->generation != block.generation) {
    return Status::use_after_free(block.generation);
  }
  if (entry->bytes != block.bytes || entry->stream != block.alloc_stream) {
    return Status::stream_misuse("the block's size or stream is not the one it was allocated with");
  }
  return {};
}

void hand_out(DeviceBlock& out, const AllocationRequest& request, const LiveBlock& entry, int device, Kind kind) noexcept {
  out = DeviceBlock();
  out.ptr = entry.ptr;
  out.bytes = entry.bytes;
  out.taken = plain_taken(entry.bytes);
  out.align = kDriverAlign;
  out.generation = entry.generation;
  out.tag = request.tag;
  out.alloc_stream = entry.stream;
  out.device = static_cast<int16_t>(device);
  out.kind = kind;
}

}  // namespace xlog
