// What the memory pools of one GPU hold of it. A limit charges a pool by what it has reserved of the card, not by its live
// blocks, because that is what the card loses: a pool may keep what was freed to it. A free therefore changes nothing here,
// and nobody has to ask a stream of the program whether the free is done.
//
// The driver tells what a pool has reserved (CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT). Between two readings a pool is charged
// by an upper bound: the last reading, and what every allocation since then may have added. A request never makes a pool
// grow by more than its size rounded up to the driver's chunk. A reading takes one driver call for each pool that was
// allocated from, whatever the number of pools; a program reads only when the bounds no longer fit under its limit.
//
// A pool is known by a number of its incarnation, because the driver gives its handle out again. A pool that was destroyed
// stays charged until its last block is gone. Thread-safe; no lock is held across a driver call; all zero is empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/cuda_types.h"
#include "runtime/base/lock.h"
#include "runtime/resource/address_table.h"
#include "runtime/resource/device_ledger.h"

namespace xlog {

class PoolReserves {
 public:
  explicit constexpr PoolReserves(const DriverApi& driver) noexcept : driver_(driver) {}
  // Where the bounds are charged; before the first pool is met.
  void charge_to(DeviceLedger& ledger) noexcept { ledger_ = &ledger; }

  // The most that a request may make a pool grow.
  static uint64_t growth_of(uint64_t bytes) noexcept;
  // The least that it takes where the pool has nothing for it.
  static uint64_t least_of(uint64_t bytes) noexcept;

  // The number of the pool that has this handle now; it is read when it is first met. 0: there is no host memory for it.
  uint64_t number_of(CUmemoryPool handle) noexcept;

  // Around an allocation whose growth fits under the limit: false when it does not fit, and nothing is charged.
  bool begin(uint64_t number, uint64_t growth, uint64_t limit) noexcept;
  void finish(uint64_t number, uint64_t growth) noexcept;
  // Around an allocation that is tried because the pool may serve it without growing, or by growing less: nothing is charged
  // before the call, and its whole growth after it, until the pools are read.
  void begin_try() noexcept;
  void finish_try(uint64_t number, uint64_t growth) noexcept;

  // Reads every pool that was allocated from.
  void measure() noexcept;
  // Trims every pool that was allocated from, as the driver does when a request finds the card full: what was freed and is known to
  // be done goes back (measured on an H200: plain memory is granted then, and the pool has nothing reserved).
  void give_back_idle() noexcept;
  // What the pool has reserved and does not use; what it has reserved.
  uint64_t idle(uint64_t number, uint64_t& reserved) noexcept;
  // Gives back what the pool holds idle above `keep`.
  void trim(uint64_t number, uint64_t keep) noexcept;
  // Allocations are under way, in other threads than one that asks.
  [[nodiscard]] bool others_allocate() noexcept;

  void block_made(uint64_t number) noexcept;
  // Bytes that stay charged for a destroyed pool whose last block this was; whoever gets them has to release them.
  uint64_t block_ended(uint64_t number) noexcept;

  // The program destroys the pool. Before the call: it is read for the last time, and its handle is forgotten, since
  // the driver may give it out again at once. 0: it is not known here.
  uint64_t begin_end(CUmemoryPool handle) noexcept;
  // After the call: bytes as block_ended() gives them, when the pool has no blocks.
  uint64_t finish_end(uint64_t number, CUmemoryPool handle, bool destroyed) noexcept;

 private:
  struct Pool {
    uint64_t ptr = 0;  // the key: the number, times 16
    CUmemoryPool handle = nullptr;
    uint64_t reserved = 0;  // as last read
    uint64_t finished = 0;  // growth of all allocations that have returned
    uint64_t read_at = 0;   // the same, before the last reading began
    uint64_t flying = 0;    // growth of allocations that have not returned
    uint64_t live = 0;      // blocks
    uint32_t readers = 0;   // threads inside a driver call on it
    bool ended = false;
    [[nodiscard]] uint64_t charge() const noexcept { return reserved + (finished - read_at) + flying; }
  };
  // act(number) for each pool that is charged, without a lock.
  template <class Act>
  void each_charged(Act act) noexcept;
  struct Name {
    uint64_t ptr = 0;  // handle
    uint64_t number = 0;
  };
  struct Reading {
    CUmemoryPool handle;
    uint64_t finished;
  };

  Pool* find(uint64_t number) noexcept { return pools_.find(number << 4); }
  bool begin_reading(uint64_t number, Reading& out) noexcept;
  void finish_reading(uint64_t number, const Reading& reading, bool good, uint64_t reserved) noexcept;
  bool read(CUmemoryPool handle, CUmemPool_attribute attribute, uint64_t& value) noexcept;
  void read_one(uint64_t number) noexcept;
  uint64_t remove(Pool& pool) noexcept;

  const DriverApi& driver_;
  DeviceLedger* ledger_ = nullptr;
  Lock lock_{};
  AddressTable<Pool> pools_{};
  AddressTable<Name> names_{};
  uint64_t last_number_ = 0;
  uint32_t flights_ = 0;  // allocations under way
};

}  // namespace xlog
