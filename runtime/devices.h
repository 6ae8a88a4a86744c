// Which device a context or a stream belongs to. A context's device is asked once and remembered until it is destroyed;
// handles are recycled, so whoever destroys one says so here. Thread-safe; all zero is empty.
#pragma once

#include <cstdint>

#include "runtime/base/lock.h"
#include "runtime/resource/address_table.h"
#include "runtime/resource/block.h"

namespace xlog {

class Devices {
 public:
  // -1 when there is none (no context, an invalid stream): the driver is then left to answer.
  int of_current(const DriverApi& driver) noexcept;
  int of_stream(const DriverApi& driver, const StreamArg& stream) noexcept;
  int of_context(const DriverApi& driver, CUcontext context) noexcept;
  // Device of a pool: as created, or the device whose default pool it is; -1 for memory of the host, or kUnknown.
  int of_pool(const DriverApi& driver, CUmemoryPool pool) noexcept;
  int count(const DriverApi& driver) noexcept;

  // Any number of pools. pool_ends(): before the call that destroys it; the device, -1 for memory of the host, or kUnknown.
  static constexpr int kUnknown = -2;
  void pool_created(CUmemoryPool pool, int device) noexcept;
  int pool_ends(CUmemoryPool pool) noexcept;
  void context_destroyed(CUcontext context) noexcept;
  // The current context is of the first cuCtxCreate, for calls with 32-bit sizes (its API version: 3010).
  static bool current_is_first(const DriverApi& driver) noexcept;

 private:
  static constexpr size_t kRemembered = 256;
  struct Named {
    const void* handle;
    int device;
  };
  // Small sets of handles; the oldest entry makes room.
  struct Memory {
    Named entries[kRemembered];
    size_t next;
    bool find(const void* handle, int& device) const noexcept;
    void add(const void* handle, int device) noexcept;
    void remove(const void* handle) noexcept;
  };

  Lock lock_;
  int count_plus_one_;
  Memory contexts_;
  struct PoolDevice {
    uint64_t ptr = 0;  // handle
    int device = -1;
  };
  AddressTable<PoolDevice> pools_;
};

}  // namespace xlog
