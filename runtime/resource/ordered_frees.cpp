#include "runtime/resource/ordered_frees.h"

#include "runtime/base/memory_map.h"

namespace xlog {

OrderedFrees::OrderedFrees(StreamPool& streams) noexcept
    : streams_(streams), count_(streams.max_streams() + 1), lines_(static_cast<Line*>(map_kept(count_ * sizeof(Line)))) {}

OrderedFrees::~OrderedFrees() {
  if (lines_ != nullptr) {
    unmap_state(lines_, count_ * sizeof(Line));
  }
}

void OrderedFrees::add(StreamId stream, Tick tick, uint64_t bytes) noexcept {
  Line& line = lines_[stream.index()];
  LockGuard guard(line.lock);
  change(line, bytes);
  if (line.count != 0) {
    Batch& last = line.batches[line.count - 1];
    if (!last.asked || line.count == kBatches) {
      last.tick = tick > last.tick ? tick : last.tick;
      last.bytes += bytes;
      last.asked = false;
      return;
    }
  }
  line.batches[line.count++] = {.stream = stream, .asked = false, .tick = tick, .bytes = bytes};
}

uint64_t OrderedFrees::take(StreamId stream, uint64_t bytes) noexcept {
  Line& line = lines_[stream.index()];
  if (bytes == 0 || line.bytes.load(std::memory_order_acquire) == 0) {
    return 0;
  }
  LockGuard guard(line.lock);
  uint64_t taken = 0;
  for (size_t i = line.count; i-- > 0 && taken < bytes;) {
    Batch& batch = line.batches[i];
    uint64_t part = bytes - taken < batch.bytes ? bytes - taken : batch.bytes;
    batch.bytes -= part;
    taken += part;
  }
  change(line, -taken);
  return taken;
}

uint64_t OrderedFrees::settle(Line& line) noexcept {
  uint64_t credit = 0;
  for (;;) {
    Batch oldest{};
    {
      LockGuard guard(line.lock);
      if (line.count == 0) {
        return credit;
      }
      line.batches[0].asked = true;
      oldest = line.batches[0];
    }
    if (!streams_.is_done(oldest.stream, oldest.tick)) {
      return credit;
    }
    LockGuard guard(line.lock);
    if (line.count != 0 && line.batches[0].tick <= oldest.tick) {
      uint64_t bytes = line.batches[0].bytes;
      change(line, -bytes);
      credit += bytes;
      --line.count;
      for (size_t i = 0; i < line.count; ++i) {
        line.batches[i] = line.batches[i + 1];
      }
    }
  }
}

uint64_t OrderedFrees::settle() noexcept {
  uint64_t credit = 0;
  for (size_t i = 0; i < count_; ++i) {
    credit += lines_[i].bytes.load(std::memory_order_acquire) != 0 ? settle(lines_[i]) : 0;
  }
  return credit;
}

uint64_t OrderedFrees::total() const noexcept {
  uint64_t bytes = 0;
  for (size_t i = 0; lines_ != nullptr && i < count_; ++i) {
    bytes += lines_[i].bytes.load(std::memory_order_acquire);
  }
  return bytes;
}

}  // namespace xlog
