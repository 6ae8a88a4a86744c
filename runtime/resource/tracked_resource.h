// What resources share that order the uses of a block across streams: the interface's prepare, finish and record, over
// the resource's own table of live blocks.
#pragma once

#include "runtime/resource/block_uses.h"
#include "runtime/resource/memory_resource.h"

namespace xlog {

class TrackedResource : public DeviceMemoryResource {
 public:
  [[nodiscard]] int device_ordinal() const noexcept override { return streams_.device_ordinal(); }
  [[nodiscard]] bool supports_block_use_tracking() const noexcept final { return true; }
  Status prepare_block_use(const BlockId& id, StreamId use, Access access) noexcept final { return prepare(id, use, access); }
  Status finish_block_use(const BlockId& id, StreamId use, Access access) noexcept final { return note_use(id, use, access, true); }
  Status record_block_use(const DeviceBlock& block, StreamId use) noexcept final { return note_use(block.id(), use, Access::read, false); }

 protected:
  explicit TrackedResource(StreamPool& streams) noexcept : streams_(streams) {}
  ~TrackedResource() = default;

  // Called with the uses of a live block, or with nullptr when the block is not live.
  class UsesVisitor {
   public:
    virtual void visit(BlockUses* uses) noexcept = 0;

   protected:
    ~UsesVisitor() = default;
  };
  // Calls the visitor once, under the lock of the block's entry. `id.alloc_stream` resolves.
  virtual void with_uses(const BlockId& id, UsesVisitor& visitor) noexcept = 0;

  // What deallocate refuses before it looks for the block.
  [[nodiscard]] Status check_block(const DeviceBlock& block) const noexcept { return check_use(block.id(), block.alloc_stream); }

  StreamPool& streams_;
  UseNotes notes_{};

 private:
  [[nodiscard]] Status check_use(const BlockId& id, StreamId use) const noexcept;
  Status prepare(const BlockId& id, StreamId use, Access access) noexcept;
  Status note_use(const BlockId& id, StreamId use, Access access, bool opened) noexcept;
  Status wait_for_dependencies(const BlockId& id, StreamId use, Access access) noexcept;
};

}  // namespace xlog
