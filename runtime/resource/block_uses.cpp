#include "runtime/resource/block_uses.h"

namespace xlog {

StreamUse* BlockUses::find(StreamId stream) const noexcept {
  StreamUse* at = others_;
  while (at != nullptr && at->stream != stream) {
    at = at->next;
  }
  return at;
}

StreamUse* BlockUses::find_or_add(StreamId stream, UseNotes& notes) noexcept {
  StreamUse** at = &others_;
  while (*at != nullptr && (*at)->stream.index() < stream.index()) {
    at = &(*at)->next;
  }
  if (*at != nullptr && (*at)->stream == stream) {
    return *at;
  }
  StreamUse* fresh = notes.get();
  if (fresh != nullptr) {
    fresh->stream = stream;
    fresh->next = *at;
    *at = fresh;
  }
  return fresh;
}

bool BlockUses::open(StreamId stream, UseNotes& notes) noexcept {
  if (stream == own_) {
    return true;  // the free stands in the same stream
  }
  StreamUse* use = find_or_add(stream, notes);
  if (use != nullptr) {
    ++use->open;
  }
  return use != nullptr;
}

void BlockUses::abandon(StreamId stream) noexcept {
  StreamUse* use = find(stream);
  if (use != nullptr && use->open != 0) {
    --use->open;
  }
}

bool BlockUses::note(StreamId stream, Tick tick, Access access, bool opened, UseNotes& notes) noexcept {
  Tick* read = &own_read_;
  Tick* write = &own_write_;
  if (stream != own_) {
    StreamUse* use = find_or_add(stream, notes);
    if (use == nullptr) {
      return false;
    }
    use->open -= opened && use->open != 0 ? 1 : 0;
    read = &use->read;
    write = &use->write;
  }
  if (reads(access) && tick > *read) {
    *read = tick;
  }
  if (writes(access) && tick > *write) {
    *write = tick;
  }
  return true;
}

size_t BlockUses::dependencies(StreamId stream, Access access, int64_t after, Dependency* out, size_t capacity) const noexcept {
  size_t count = 0;
  auto add = [&](StreamId on, Tick read, Tick write) {
    Tick tick = writes(access) && read > write ? read : write;
    if (on != stream && tick != 0 && count < capacity) {
      out[count++] = {.stream = on, .tick = tick};
    }
  };
  if (after < 0) {  // the block's own stream comes first
    add(own_, own_read_, own_write_);
  }
  for (const StreamUse* use = others_; use != nullptr; use = use->next) {
    if (static_cast<int64_t>(use->stream.index()) > after || after < 0) {
      add(use->stream, use->read, use->write);
    }
  }
  return count;
}

StreamUse* BlockUses::close(StreamPool& streams) noexcept {
  StreamUse* list = others_;
  others_ = nullptr;
  for (StreamUse* use = list; use != nullptr; use = use->next) {
    if (use->open != 0) {
      Tick now = streams.mark(use->stream);
      use->read = now;
      use->write = now;
    }
  }
  return list;
}

size_t BlockUses::count() const noexcept {
  size_t count = 0;
  for (const StreamUse* use = others_; use != nullptr; use = use->next) {
    ++count;
  }
  return count;
}

bool uses_done(StreamPool& streams, const StreamUse* list) noexcept {
  for (const StreamUse* use = list; use != nullptr; use = use->next) {
    if (!streams.is_done(use->stream, use->read > use->write ? use->read : use->write)) {
      return false;
    }
  }
  return true;
}

}  // namespace xlog
