// Which streams use a block, beside the one it was allocated on, and up to which tick. One note a stream, so a block that
// is read for ever keeps as many notes as there are streams. Nothing is forgotten while it may still matter: a write
// does not drop the reads before it, and a use that was prepared and not finished counts as unfinished. Not thread-safe:
// the owner of the block's entry holds its lock.
#pragma once

#include "runtime/resource/slab.h"
#include "runtime/resource/stream_pool.h"

namespace xlog {

struct StreamUse {
  StreamId stream;
  uint32_t open;  // uses prepared, not finished
  Tick read;
  Tick write;
  StreamUse* next;  // ascending by stream
};

using UseNotes = Slab<StreamUse>;

class BlockUses {
 public:
  // The block was allocated on `stream`, at this tick of it.
  void begin(StreamId stream, Tick tick) noexcept {
    own_ = stream;
    own_write_ = tick;
    own_read_ = 0;
    others_ = nullptr;
  }

  // A use of the block on `stream` is about to be enqueued. False without memory.
  bool open(StreamId stream, UseNotes& notes) noexcept;
  // It will not be.
  void abandon(StreamId stream) noexcept;
  // A use that was enqueued on `stream` before `tick`. `opened`: it was opened. False without memory.
  bool note(StreamId stream, Tick tick, Access access, bool opened, UseNotes& notes) noexcept;

  struct Dependency {
    StreamId stream;
    Tick tick;
  };
  // What a use on `stream` must wait for: every write elsewhere, and for a write every read elsewhere. Up to `capacity`,
  // of streams above `after`; fewer than `capacity`: there are no more.
  size_t dependencies(StreamId stream, Access access, int64_t after, Dependency* out, size_t capacity) const noexcept;

  // The uses on other streams, when the block is given back: those still open reach up to now.
  StreamUse* close(StreamPool& streams) noexcept;
  void reopen(StreamUse* others) noexcept { others_ = others; }
  [[nodiscard]] size_t count() const noexcept;

 private:
  StreamUse* find(StreamId stream) const noexcept;
  StreamUse* find_or_add(StreamId stream, UseNotes& notes) noexcept;

  StreamId own_;
  Tick own_write_ = 0;
  Tick own_read_ = 0;
  StreamUse* others_ = nullptr;
};

// Whether all these uses are known to be done; asks the driver.
bool uses_done(StreamPool& streams, const StreamUse* list) noexcept;

}  // namespace xlog
