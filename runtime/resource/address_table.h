// Address -> what is known of the block that stands there. Open addressing without tombstones over pages of our own;
// all zero is empty. `Entry` has a member `ptr`, 0 for a free slot, and moves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include "runtime/base/lock.h"
#include "runtime/base/memory_map.h"
#include "runtime/resource/block.h"

namespace xlog {

inline uint64_t hash_address(uint64_t ptr) noexcept {
  uint64_t h = (ptr >> 4) * 0x9E3779B97F4A7C15ULL;
  return h ^ (h >> 29);
}

// Not thread-safe.
template <class Entry>
class AddressTable {
 public:
  [[nodiscard]] Entry* find(uint64_t ptr) noexcept {
    if (count_ == 0 || ptr == 0) {
      return nullptr;
    }
    Entry& slot = slots_[place(slots_, capacity_, ptr)];
    return slot.ptr != 0 ? &slot : nullptr;
  }

  // The slot for `ptr`: the entry that stands there (`found`), or a free one that is now taken, with nothing but its
  // `ptr` set. nullptr when there is no host memory for it.
  Entry* claim(uint64_t ptr, bool& found) noexcept {
    found = false;
    if (count_ * 4 >= capacity_ * 3 && !grow() && count_ + 1 >= capacity_) {
      return nullptr;
    }
    Entry& slot = slots_[place(slots_, capacity_, ptr)];
    found = slot.ptr != 0;
    if (!found) {
      slot.ptr = ptr;
      ++count_;
    }
    return &slot;
  }

  // Later entries of the same run move back, so that no tombstones are left: pointers into the table end here.
  void erase(Entry* entry) noexcept {
    size_t mask = capacity_ - 1;
    auto hole = static_cast<size_t>(entry - slots_);
    for (size_t next = (hole + 1) & mask; slots_[next].ptr != 0; next = (next + 1) & mask) {
      size_t home = hash_address(slots_[next].ptr) & mask;
      if (((next - home) & mask) >= ((next - hole) & mask)) {
        slots_[hole] = std::move(slots_[next]);
        hole = next;
      }
    }
    slots_[hole].ptr = 0;
    --count_;
  }

  template <class Visit>  // visit(Entry&) -> true to take the entry out
  void erase_if(Visit visit) noexcept {
    for (size_t i = 0; i < capacity_;) {
      if (slots_[i].ptr != 0 && visit(slots_[i])) {
        erase(&slots_[i]);  // another entry may have moved into slot i
      } else {
        ++i;
      }
    }
  }

  [[nodiscard]] size_t size() const noexcept { return count_; }

  void release() noexcept {
    if (slots_ != nullptr) {
      unmap_state(slots_, capacity_ * sizeof(Entry));
    }
    slots_ = nullptr;
    count_ = capacity_ = 0;
  }

 private:
  // Slot of `ptr`, or of the hole where it would go. There is a hole.
  static size_t place(const Entry* slots, size_t capacity, uint64_t ptr) noexcept {
    size_t mask = capacity - 1;
    size_t at = hash_address(ptr) & mask;
    while (slots[at].ptr != 0 && slots[at].ptr != ptr) {
      at = (at + 1) & mask;
    }
    return at;
  }

  bool grow() noexcept {
    size_t capacity = capacity_ == 0 ? 64 : capacity_ * 2;
    auto* slots = static_cast<Entry*>(map_kept(capacity * sizeof(Entry)));
    if (slots == nullptr) {
      return false;
    }
    for (size_t i = 0; i < capacity_; ++i) {
      if (slots_[i].ptr != 0) {
        new (&slots[place(slots, capacity, slots_[i].ptr)]) Entry(std::move(slots_[i]));
      }
    }
    if (slots_ != nullptr) {
      unmap_state(slots_, capacity_ * sizeof(Entry));
    }
    capacity_ = capacity;
    slots_ = slots;
    return true;
  }

  size_t count_ = 0;
  size_t capacity_ = 0;  // power of two, or 0
  Entry* slots_ = nullptr;
};

// Thread-safe and sharded, so that frees of different pointers do not wait for each other. Never calls the driver, and
// neither must what is passed to visit().
template <class Entry>
class AddressMap {
 public:
  // True when an entry went out of our sight, which is then in `ended`: an older one that stood at the address (the
  // driver gave it out again, so it was freed unseen), or this one, when there is no host memory to keep it.
  bool insert(Entry&& entry, Entry& ended) noexcept {
    Shard& home = shard(entry.ptr);
    LockGuard guard(home.lock);
    bool reused = false;
    Entry* slot = home.table.claim(entry.ptr, reused);
    if (slot == nullptr) {
      ended = std::move(entry);
      return true;
    }
    if (reused) {
      ended = std::move(*slot);
    }
    *slot = std::move(entry);
    return reused;
  }

  bool take(uint64_t ptr, Entry& out) noexcept {
    return take_one(ptr, out, [](const Entry&) { return true; });
  }
  // Only when match(entry).
  template <class Match>
  bool take_one(uint64_t ptr, Entry& out, Match match) noexcept {
    return visit(ptr, [&](Entry* entry) {
      bool found = entry != nullptr && match(*entry);
      if (found) {
        out = std::move(*entry);
        entry->ptr = out.ptr;
      }
      return found;
    });
  }

  // Calls visit(Entry* or nullptr) under the entry's lock. What it returns says whether the entry is taken out, and is
  // returned.
  template <class Visit>
  bool visit(uint64_t ptr, Visit visit) noexcept {
    Shard& home = shard(ptr);
    LockGuard guard(home.lock);
    Entry* entry = home.table.find(ptr);
    bool erase = visit(entry);
    if (erase) {
      home.table.erase(entry);
    }
    return erase;
  }

  // Takes up to `capacity` entries that match(entry); returns how many. Fewer than `capacity`: there are no more.
  template <class Match>
  size_t take_if(Match match, Entry* out, size_t capacity) noexcept {
    size_t taken = 0;
    for (Shard& each : shards_) {
      LockGuard guard(each.lock);
      each.table.erase_if([&](Entry& entry) {
        if (taken == capacity || !match(entry)) {
          return false;
        }
        uint64_t ptr = entry.ptr;
        out[taken++] = std::move(entry);
        entry.ptr = ptr;
        return true;
      });
    }
    return taken;
  }

  [[nodiscard]] size_t size() noexcept {
    size_t total = 0;
    for (Shard& each : shards_) {
      LockGuard guard(each.lock);
      total += each.table.size();
    }
    return total;
  }

  void release() noexcept {
    for (Shard& each : shards_) {
      each.table.release();
    }
  }

 private:
  static constexpr size_t kShards = 64;
  struct alignas(64) Shard {
    Lock lock;
    AddressTable<Entry> table;
  };
  Shard& shard(uint64_t ptr) noexcept { return shards_[hash_address(ptr) >> 58]; }

  Shard shards_[kShards];
};

// The blocks that are live, for a caller that has only pointers. A block is taken out before the driver frees its address
// (another thread may be given that address at once) and comes back if the free fails.
using BlockRegistry = AddressMap<DeviceBlock>;

}  // namespace xlog
