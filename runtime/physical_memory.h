// The physical memory that a program maps itself (cuMemCreate and its kin): which handles are held, and where they are
// mapped. A handle's memory is the driver's again when it is neither held nor mapped any more, by whichever call comes
// last. Thread-safe; never calls the driver.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/lock.h"
#include "runtime/resource/address_table.h"

namespace xlog {

class PhysicalMemory {
 public:
  // Created or imported: held once.
  void created(uint64_t handle) noexcept;
  // The driver gives out the same handle again for memory that is mapped. False: it is not known here.
  bool retained(uint64_t handle) noexcept;
  // Held once more, or now for the first time: then true.
  bool opened(uint64_t handle) noexcept;
  void mapped(uint64_t address, size_t bytes, uint64_t handle) noexcept;

  // Before the call that gives a hold back. True: that is the last of it. What the call did not do is taken back by
  // release_failed().
  bool release(uint64_t handle) noexcept;
  void release_failed(uint64_t handle, bool was_last) noexcept;

  // Before the call that unmaps a range: what it takes away. `ended` are handles that are neither held nor mapped after
  // it. unmap_failed() takes all of it back.
  struct Mapping {
    uint64_t ptr = 0;  // address
    size_t bytes = 0;
    uint64_t handle = 0;
    bool last = false;
  };
  class Unmapped {
   public:
    Unmapped() = default;
    ~Unmapped();
    Unmapped(const Unmapped&) = delete;
    Unmapped& operator=(const Unmapped&) = delete;
    [[nodiscard]] const Mapping* begin() const noexcept { return list_; }
    [[nodiscard]] const Mapping* end() const noexcept { return list_ + count_; }
    [[nodiscard]] size_t ended() const noexcept { return ended_; }

   private:
    friend class PhysicalMemory;
    bool make_room(size_t count) noexcept;
    static constexpr size_t kFew = 8;
    Mapping few_[kFew];
    Mapping* list_ = few_;
    size_t capacity_ = kFew;
    size_t count_ = 0;
    size_t ended_ = 0;
  };
  void unmap(uint64_t address, size_t bytes, Unmapped& out) noexcept;
  void unmap_failed(const Unmapped& range) noexcept;

 private:
  struct Held {
    uint64_t ptr = 0;  // handle
    uint32_t holds = 0;
    uint32_t mappings = 0;
  };
  void hold(uint64_t handle, uint32_t holds, uint32_t mappings) noexcept;
  void note(const Mapping& leaving, Unmapped& out) noexcept;

  Lock lock_;
  AddressTable<Held> held_;
  AddressTable<Mapping> mappings_;
};

}  // namespace xlog
