// What the guard knows of a block beside the block itself: its zone, and who made and freed it. From the allocation until
// some time after the free, so that a second free can be told from the first.
#pragma once

#include "runtime/base/lock.h"
#include "runtime/guard/pool_books.h"
#include "runtime/resource/block.h"
#include "runtime/resource/growing_list.h"
#include "runtime/resource/slab.h"

namespace xlog {

inline constexpr size_t kGuardFrames = 24;

struct GuardStack {
  uint32_t thread;  // kernel's id; 0: nobody yet
  uint32_t depth;
  uintptr_t frames[kGuardFrames];

  void take(const void* caller) noexcept;
};

struct ZoneList;

struct GuardRecord {
  uint64_t ptr;
  size_t bytes;  // as requested: the zone begins behind them
  size_t zone;   // bytes that are checked; 0: none
  uint64_t seed;
  uint64_t generation;
  CUcontext context;
  uint64_t pool_number;  // in the books of pools; 0: it is not counted there
  Kind kind;
  int16_t device;
  bool written;  // the zone holds its pattern, or will before anything that looks at it
  bool fenced;
  bool held;              // the program has freed it, and the driver does not know
  bool ordered;           // written in the order of a stream of the program's
  uint64_t write_number;  // of a zone that was written on a private stream
  uint64_t clean_time;    // steady time of the last look that found nothing; 0: none since the allocation
  GuardStack allocated;
  GuardStack freed;
  GuardRecord* next;  // in the list of the live, in the slab
  GuardRecord* previous;
  ZoneList* listed;  // among the zones of its context; nullptr: not there
  size_t listed_at;
};

// The zones of one context that a check behind a launch may look at, side by side, so that such a check need not visit the blocks.
struct ZoneList {
  struct Zone {
    uint64_t at;
    uint64_t seed;
    uint64_t bytes;
    uint64_t write_number;
    GuardRecord* record;
  };
  CUcontext context;  // of the zones; any context while there are none
  GrowingList<Zone> zones;
  size_t next_zone;  // where the next check begins
  ZoneList* next;
};

// The records of live blocks, for checks of all of them and for neighbours; and of the blocks freed last. Thread-safe.
class GuardRecords {
 public:
  // What of the guard's is in the program's pools.
  [[nodiscard]] PoolBooks& pools() noexcept { return pools_; }

  GuardRecord* make() noexcept { return slab_.get(); }
  void drop(GuardRecord* record) noexcept { slab_.put(record); }

  // Before the first block: zones that were not written in the order of a stream are listed for next_zones().
  void list_zones() noexcept { lists_zones_ = true; }
  void add_live(GuardRecord& record) noexcept;
  // Waits for a visit that is under way: a visited block is not freed meanwhile.
  void remove_live(GuardRecord& record) noexcept;
  template <class Visit>
  void each_live(Visit visit) noexcept {
    LockGuard guard(lock_);
    for (GuardRecord* each = live_; each != nullptr; each = each->next) {
      visit(*each);
    }
  }

  // Damage to the zone of this record was reported, which is done once. Call in a visit, or while the record is not live.
  void set_reported(GuardRecord& record) noexcept {
    record.written = false;
    remove_zone(record);
  }
  // Visits the zones of the context, at most `most` of them, from where the last call ended: however many blocks are live, no more
  // is visited. visit(const ZoneList::Zone&).
  template <class Visit>
  void next_zones(CUcontext context, size_t most, Visit visit) noexcept {
    LockGuard guard(lock_);
    ZoneList* list = zones_of(context, false);
    size_t count = list != nullptr ? list->zones.size() : 0;
    for (size_t i = 0; i < count && i < most; ++i) {
      list->next_zone = list->next_zone < count ? list->next_zone : 0;
      visit(list->zones[list->next_zone++]);
    }
  }

  // The block is free. Its record is kept until kRemembered others were freed after it.
  void remember(GuardRecord* record) noexcept;
  // Copies of the youngest that were freed and match, youngest first; returns how many.
  template <class Match>
  size_t last_freed(Match match, GuardRecord* out, size_t room) noexcept {
    LockGuard guard(freed_lock_);
    size_t count = 0;
    for (size_t i = 1; i <= kRemembered && i <= next_freed_ && count < room; ++i) {
      const GuardRecord* each = freed_[(next_freed_ - i) % kRemembered];
      if (each != nullptr && match(*each)) {
        out[count++] = *each;
      }
    }
    return count;
  }
  // A copy of the youngest that was freed at `ptr`; false when none is remembered.
  bool find_freed(uint64_t ptr, GuardRecord& out) noexcept;

 private:
  // The lock is held.
  ZoneList* zones_of(CUcontext context, bool make) noexcept;
  void add_zone(GuardRecord& record) noexcept;
  static void remove_zone(GuardRecord& record) noexcept;

  static constexpr size_t kRemembered = 1024;
  Lock lock_{};
  bool lists_zones_ = false;
  ZoneList* lists_ = nullptr;
  GuardRecord* live_ = nullptr;
  Lock freed_lock_{};
  size_t next_freed_ = 0;
  GuardRecord* freed_[kRemembered] = {};
  Slab<GuardRecord> slab_;
  PoolBooks pools_{};
};

}  // namespace xlog
