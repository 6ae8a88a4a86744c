#include "runtime/resource/registry.h"

#include "runtime/base/memory_map.h"

namespace xlog {

namespace {

uint64_t hash_ptr(uint64_t ptr) noexcept {
  uint64_t h = (ptr >> 4) * 0x9E3779B97F4A7C15ULL;
  return h ^ (h >> 29);
}

}  // namespace

BlockRegistry::Shard& BlockRegistry::shard(uint64_t ptr) noexcept { return shards_[hash_ptr(ptr) >> 58]; }

// Slot of `ptr`, or of the hole where it would go. The shard has a hole.
size_t BlockRegistry::find(const Shard& shard, uint64_t ptr) noexcept {
  size_t mask = shard.capacity - 1;
  size_t at = hash_ptr(ptr) & mask;
  while (shard.slots[at].ptr != 0 && shard.slots[at].ptr != ptr) {
    at = (at + 1) & mask;
  }
  return at;
}

bool BlockRegistry::grow(Shard& shard) noexcept {
  Shard larger{};
  larger.capacity = shard.capacity == 0 ? 64 : shard.capacity * 2;
  larger.slots = static_cast<DeviceBlock*>(map_state(larger.capacity * sizeof(DeviceBlock)));
  if (larger.slots == nullptr) {
    return false;
  }
  for (size_t i = 0; i < shard.capacity; ++i) {
    if (shard.slots[i].ptr != 0) {
      larger.slots[find(larger, shard.slots[i].ptr)] = shard.slots[i];
    }
  }
  if (shard.slots != nullptr) {
    unmap_state(shard.slots, shard.capacity * sizeof(DeviceBlock));
  }
  shard.capacity = larger.capacity;
  shard.slots = larger.slots;
  return true;
}

// Closes the hole by moving later entries of the same run back, so that no tombstones are left.
void BlockRegistry::erase(Shard& shard, size_t at) noexcept {
  size_t mask = shard.capacity - 1;
  size_t hole = at;
  for (size_t next = (at + 1) & mask; shard.slots[next].ptr != 0; next = (next + 1) & mask) {
    size_t home = hash_ptr(shard.slots[next].ptr) & mask;
    if (((next - home) & mask) >= ((next - hole) & mask)) {
      shard.slots[hole] = shard.slots[next];
      hole = next;
    }
  }
  shard.slots[hole].ptr = 0;
  --shard.count;
}

bool BlockRegistry::insert(const DeviceBlock& block, DeviceBlock& ended) noexcept {
  Shard& home = shard(block.ptr);
  LockGuard guard(home.lock);
  if (home.count * 4 >= home.capacity * 3 && !grow(home) && home.count + 1 >= home.capacity) {
    ended = block;
    return true;
  }
  DeviceBlock& slot = home.slots[find(home, block.ptr)];
  bool reused = slot.ptr != 0;
  if (reused) {
    ended = slot;
  } else {
    ++home.count;
  }
  slot = block;
  return reused;
}

bool BlockRegistry::take(uint64_t ptr, DeviceBlock& out) noexcept {
  Shard& home = shard(ptr);
  LockGuard guard(home.lock);
  if (ptr == 0 || home.count == 0) {
    return false;
  }
  size_t at = find(home, ptr);
  if (home.slots[at].ptr == 0) {
    return false;
  }
  out = home.slots[at];
  erase(home, at);
  return true;
}

size_t BlockRegistry::take_if(bool (*matches)(const DeviceBlock&, const void*), const void* context, DeviceBlock* out,
                              size_t capacity) noexcept {
  size_t taken = 0;
  for (Shard& each : shards_) {
    LockGuard guard(each.lock);
    for (size_t i = 0; i < each.capacity && taken < capacity;) {
      if (each.slots[i].ptr != 0 && matches(each.slots[i], context)) {
        out[taken++] = each.slots[i];
        erase(each, i);  // another entry may have moved into slot i
      } else {
        ++i;
      }
    }
  }
  return taken;
}

size_t BlockRegistry::size() noexcept {
  size_t total = 0;
  for (Shard& each : shards_) {
    LockGuard guard(each.lock);
    total += each.count;
  }
  return total;
}

}  // namespace xlog
