// Physical memory that the program has exported (cuMemExportToShareableHandle). One memory may have two handles then: its own,
// and those of imports in this process. It counts once, as long as any of them lives, and as long as a descriptor of it is
// open here, since that keeps the memory, too.
//
// The driver does not say which memory an imported handle is. A descriptor is compared with those that were exported: the
// kernel says whether two stand for one open file (kcmp), also for copies (dup, SCM_RIGHTS). A descriptor that is compared
// with none because the exported one was closed before could be any such memory: it then counts until that import ends.
// Thread-safe; never calls the driver.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/cuda_types.h"
#include "runtime/base/lock.h"
#include "runtime/resource/address_table.h"
#include "runtime/resource/slab.h"

namespace xlog {

class ExportedMemory {
 public:
  // After the export of a handle whose memory is charged with `bytes` on `device`. `shared` is what the driver wrote.
  void exported(uint64_t handle, size_t bytes, int device, const void* shared, CUmemAllocationHandleType type) noexcept;
  // The same for an imported handle; false: it is not known to be of this process.
  bool exported_again(uint64_t import, const void* shared, CUmemAllocationHandleType type) noexcept;
  // After an import of a handle that was not known before. `shared` is what the program passed.
  void imported(uint64_t import, const void* shared, CUmemAllocationHandleType type) noexcept;

  // Before a handle ends, neither held nor mapped any more. True: it was exported, and its bytes are to be held until
  // next_gone() tells them. After the call, end_done(), or end_failed(): true when they are to be held no longer.
  bool ends(uint64_t handle, size_t& bytes, int& device) noexcept;
  void end_done(uint64_t handle) noexcept;
  bool end_failed(uint64_t handle, size_t& bytes, int& device) noexcept;

  // Some memory counts only because it was exported.
  [[nodiscard]] bool any_ended() const noexcept { return ended_.load(std::memory_order_relaxed) != 0; }
  // One that counts no longer; false when there is none.
  bool next_gone(size_t& bytes, int& device) noexcept;

 private:
  struct Descriptor {
    Descriptor* next;
    int number;
    uint64_t file_system;
    uint64_t inode;
    bool is_regular;
  };
  struct Memory {
    Memory* next;
    uint64_t handle;
    size_t bytes;
    int device;
    bool ended;
    uint32_t imports;
    uint64_t lost_at;  // when a descriptor was first seen closed; 0: all are open
    Descriptor* descriptors;
    bool has_fabric;
    unsigned char fabric[64];
  };
  struct Import {
    uint64_t ptr = 0;  // handle
    Memory* of = nullptr;
    uint64_t made_at = 0;
  };

  // Its handle is forgotten before the call that ends it, since the driver may give it out again at once.
  struct EndingImport {
    EndingImport* next;
    Import import;
  };
  bool take_ending(uint64_t handle, Import& out) noexcept;
  void add(Memory& memory, const void* shared, CUmemAllocationHandleType type) noexcept;
  Memory* find(uint64_t handle) noexcept;
  void review(Memory& memory) noexcept;
  bool is_open(const Descriptor& descriptor) noexcept;
  Memory* identify(const void* shared, CUmemAllocationHandleType type) noexcept;
  bool may_be_imported(const Memory& memory) noexcept;

  Lock lock_;
  std::atomic<uint32_t> ended_;
  std::atomic<uint32_t> known_;
  uint64_t clock_;
  Memory* memories_;
  AddressTable<Import> imports_;
  EndingImport* ending_;
  Slab<Memory> memory_slab_;
  Slab<Descriptor> descriptor_slab_;
  Slab<EndingImport> ending_slab_;
};

}  // namespace xlog
