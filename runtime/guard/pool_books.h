// What of the guard's is in each pool of the program, so that the pool's own figures can be shown as without a guard: the driver
// counts exactly the requested bytes of the live blocks of a pool (measured on an H200), and the zones with them.
//
// A pool is known by a number of its incarnation, because the driver gives its handle out again. Thread-safe; never calls the
// driver; all zero is empty. Only memory that a guard has made larger, or holds back, is counted here.
#pragma once

#include <atomic>

#include "runtime/base/driver_api.h"
#include "runtime/base/lock.h"
#include "runtime/resource/address_table.h"

namespace xlog {

class PoolBooks {
 public:
  // A block of the pool was made, of so many bytes as the program asked and so many beside them. Returns the pool's number, by which
  // the block's end is told; 0: it is not counted.
  uint64_t block_made(CUmemoryPool handle, uint64_t bytes, uint64_t extra) noexcept;
  // The program has freed it, and the driver still counts all of it.
  void block_leaves(uint64_t number, uint64_t bytes) noexcept;
  // The driver counts it no longer.
  void block_left(uint64_t number, uint64_t bytes, uint64_t extra) noexcept;

  // The handle may be another pool's as soon as the driver has ended this one: before the call, and after it.
  uint64_t begin_end(CUmemoryPool handle) noexcept;
  void finish_end(uint64_t number, CUmemoryPool handle, bool ended) noexcept;

  // What the program has in the pool, of what the driver says: now, and at most since the highest figure was reset.
  uint64_t used(CUmemoryPool handle, uint64_t driver_says) noexcept;
  uint64_t highest(CUmemoryPool handle, uint64_t driver_says) noexcept;
  void reset_highest(CUmemoryPool handle) noexcept;

  // Around a driver call after which one of the above is called: what was read beside one fits neither before nor after it.
  class Change {
   public:
    explicit Change(PoolBooks& books) noexcept : books_(books) { books_.under_way_.fetch_add(1, std::memory_order_seq_cst); }
    ~Change() {
      books_.changes_.fetch_add(1, std::memory_order_seq_cst);
      books_.under_way_.fetch_sub(1, std::memory_order_seq_cst);
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    PoolBooks& books_;
  };
  [[nodiscard]] uint64_t changes() const noexcept { return changes_.load(std::memory_order_seq_cst); }
  [[nodiscard]] bool is_changing() const noexcept { return under_way_.load(std::memory_order_seq_cst) != 0; }

 private:
  struct Pool {
    uint64_t ptr = 0;      // the key: the number, times 16
    uint64_t live = 0;     // bytes that the program has
    uint64_t extra = 0;    // bytes that the driver counts beside those
    uint64_t highest = 0;  // of `live`
    uint64_t most_extra = 0;
  };
  struct Name {
    uint64_t ptr = 0;  // handle
    uint64_t number = 0;
  };
  // The lock is held.
  Pool* find(uint64_t number) noexcept { return number != 0 ? pools_.find(number << 4) : nullptr; }
  Pool* find(CUmemoryPool handle) noexcept;

  Lock lock_{};
  AddressTable<Pool> pools_{};
  AddressTable<Name> names_{};
  uint64_t last_number_ = 0;
  std::atomic<uint32_t> under_way_{0};
  std::atomic<uint64_t> changes_{0};
};

}  // namespace xlog
