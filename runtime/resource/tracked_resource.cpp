#include "runtime/resource/tracked_resource.h"

namespace xlog {

namespace {

Status no_memory() noexcept { return Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory"); }

}  // namespace

Status TrackedResource::check_use(const BlockId& id, StreamId use) const noexcept {
  if (id.device_ordinal != device_ordinal()) {
    return Status::from(CUDA_ERROR_INVALID_DEVICE, "the block is another device's");
  }
  bool known = streams_.resolve(use) != nullptr && streams_.resolve(id.alloc_stream) != nullptr;
  return known ? Status() : Status::stream_misuse("unknown stream");
}

// A few at a time, and the waits themselves without the entry's lock.
Status TrackedResource::wait_for_dependencies(const BlockId& id, StreamId use, Access access) noexcept {
  static constexpr size_t kAtOnce = 16;
  struct Collect final : UsesVisitor {
    StreamId use;
    Access access;
    int64_t after = -1;
    size_t count = 0;
    bool live = false;
    BlockUses::Dependency found[kAtOnce];
    Collect(StreamId on, Access how) noexcept : use(on), access(how) {}
    void visit(BlockUses* uses) noexcept override {
      live = uses != nullptr;
      count = live ? uses->dependencies(use, access, after, found, kAtOnce) : 0;
    }
  } collect(use, access);
  do {
    with_uses(id, collect);
    if (!collect.live) {
      return Status::use_after_free(id.generation);
    }
    for (size_t i = 0; i < collect.count; ++i) {
      Status status = streams_.order(use, collect.found[i].stream, collect.found[i].tick);
      if (!status.ok()) {
        return status;
      }
    }
    collect.after = collect.found[kAtOnce - 1].stream.index();
  } while (collect.count == kAtOnce);
  return {};
}

Status TrackedResource::prepare(const BlockId& id, StreamId use, Access access) noexcept {
  Status status = check_use(id, use);
  if (!status.ok()) {
    return status;
  }
  struct Open final : UsesVisitor {
    StreamId use;
    UseNotes& notes;
    bool live = false;
    bool opened = false;
    Open(StreamId on, UseNotes& from) noexcept : use(on), notes(from) {}
    void visit(BlockUses* uses) noexcept override {
      live = uses != nullptr;
      opened = live && uses->open(use, notes);
    }
  } open(use, notes_);
  with_uses(id, open);
  if (!open.opened) {
    return open.live ? no_memory() : Status::use_after_free(id.generation);
  }
  status = wait_for_dependencies(id, use, access);
  if (!status.ok()) {
    struct Abandon final : UsesVisitor {
      StreamId use;
      explicit Abandon(StreamId on) noexcept : use(on) {}
      void visit(BlockUses* uses) noexcept override {
        if (uses != nullptr) {
          uses->abandon(use);
        }
      }
    } abandon(use);
    with_uses(id, abandon);
  }
  return status;
}

Status TrackedResource::note_use(const BlockId& id, StreamId use, Access access, bool opened) noexcept {
  Status status = check_use(id, use);
  if (!status.ok()) {
    return status;
  }
  struct Note final : UsesVisitor {
    TrackedResource& resource;
    StreamId use;
    Access access;
    bool opened;
    bool live = false;
    bool noted = false;
    Note(TrackedResource& of, StreamId on, Access how, bool prepared) noexcept : resource(of), use(on), access(how), opened(prepared) {}
    void visit(BlockUses* uses) noexcept override {
      live = uses != nullptr;
      noted = live && uses->note(use, resource.streams_.mark(use), access, opened, resource.notes_);
    }
  } note(*this, use, access, opened);
  with_uses(id, note);
  if (!note.noted) {
    return note.live ? no_memory() : Status::use_after_free(id.generation);
  }
  return {};
}

}  // namespace xlog
