#include "runtime/exported_memory.h"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace xlog {

namespace {

enum class Same : uint8_t { no, yes, unknown };

Same same_open_file(int a, int b) noexcept {
  long result = syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b);
  return result == 0 ? Same::yes : result > 0 ? Same::no : Same::unknown;  // a sandbox may forbid it
}

// All descriptors of a device file have its inode, and a number is given out again. So an exported one is marked, by a setting
// of the open file that means nothing without O_ASYNC.
constexpr int kMark = 63;

int descriptor_in(const void* shared) noexcept { return static_cast<int>(reinterpret_cast<intptr_t>(shared)); }

}  // namespace

// Under the lock, as all that follows. There are as many as the program has exported and not yet released.
ExportedMemory::Memory* ExportedMemory::find(uint64_t handle) noexcept {
  for (Memory* each = memories_; each != nullptr; each = each->next) {
    if (!each->ended && each->handle == handle) {
      return each;
    }
  }
  return nullptr;
}

void ExportedMemory::add(Memory& memory, const void* shared, CUmemAllocationHandleType type) noexcept {
  if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
    std::memcpy(memory.fabric, shared, sizeof memory.fabric);
    memory.has_fabric = true;
    return;
  }
  struct stat status {};
  int number = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? *static_cast<const int*>(shared) : -1;
  Descriptor* descriptor = fstat(number, &status) == 0 ? descriptor_slab_.get() : nullptr;
  if (descriptor == nullptr) {  // what cannot be followed may be anywhere
    memory.lost_at = memory.lost_at == 0 ? ++clock_ : memory.lost_at;
    return;
  }
  *descriptor = {.next = memory.descriptors,
                 .number = number,
                 .file_system = status.st_dev,
                 .inode = status.st_ino,
                 .is_regular = S_ISREG(status.st_mode)};
  if (!descriptor->is_regular) {
    fcntl(number, F_SETSIG, kMark);
  }
  memory.descriptors = descriptor;
}

void ExportedMemory::exported(uint64_t handle, size_t bytes, int device, const void* shared, CUmemAllocationHandleType type) noexcept {
  LockGuard guard(lock_);
  Memory* memory = find(handle);
  if (memory == nullptr) {
    memory = memory_slab_.get();
    if (memory == nullptr) {
      return;
    }
    memory->handle = handle;
    memory->bytes = bytes;
    memory->device = device;
    memory->next = memories_;
    memories_ = memory;
    known_.fetch_add(1, std::memory_order_relaxed);
  }
  add(*memory, shared, type);
}

bool ExportedMemory::exported_again(uint64_t import, const void* shared, CUmemAllocationHandleType type) noexcept {
  LockGuard guard(lock_);
  Import* known = imports_.find(import);
  if (known == nullptr || known->of == nullptr) {
    return false;
  }
  add(*known->of, shared, type);
  return true;
}

bool ExportedMemory::is_open(const Descriptor& descriptor) noexcept {
  struct stat status {};
  bool same = fstat(descriptor.number, &status) == 0 && status.st_dev == descriptor.file_system && status.st_ino == descriptor.inode;
  return same && (descriptor.is_regular || fcntl(descriptor.number, F_GETSIG) == kMark);
}

void ExportedMemory::review(Memory& memory) noexcept {
  for (Descriptor** at = &memory.descriptors; *at != nullptr;) {
    Descriptor* each = *at;
    if (is_open(*each)) {
      at = &each->next;
      continue;
    }
    *at = each->next;
    descriptor_slab_.put(each);
    memory.lost_at = memory.lost_at == 0 ? ++clock_ : memory.lost_at;
  }
}

ExportedMemory::Memory* ExportedMemory::identify(const void* shared, CUmemAllocationHandleType type) noexcept {
  struct stat status {};
  bool is_descriptor = type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && fstat(descriptor_in(shared), &status) == 0;
  for (Memory* each = memories_; each != nullptr; each = each->next) {
    if (type == CU_MEM_HANDLE_TYPE_FABRIC && each->has_fabric && std::memcmp(each->fabric, shared, sizeof each->fabric) == 0) {
      return each;
    }
    review(*each);
    for (Descriptor* open = is_descriptor ? each->descriptors : nullptr; open != nullptr; open = open->next) {
      bool same_inode = status.st_dev == open->file_system && status.st_ino == open->inode;
      Same same = !same_inode ? Same::no : open->is_regular ? Same::yes : same_open_file(descriptor_in(shared), open->number);
      if (same == Same::yes) {
        return each;
      }
      if (same == Same::unknown) {
        each->lost_at = each->lost_at == 0 ? ++clock_ : each->lost_at;
      }
    }
  }
  return nullptr;
}

void ExportedMemory::imported(uint64_t import, const void* shared, CUmemAllocationHandleType type) noexcept {
  if (known_.load(std::memory_order_relaxed) == 0) {
    return;
  }
  LockGuard guard(lock_);
  Memory* of = identify(shared, type);
  bool known = false;
  Import* entry = imports_.claim(import, known);
  if (entry == nullptr) {
    return;
  }
  if (known && entry->of != nullptr) {
    --entry->of->imports;
  }
  entry->of = of;
  entry->made_at = ++clock_;
  if (of != nullptr) {
    ++of->imports;
  }
}

bool ExportedMemory::ends(uint64_t handle, size_t& bytes, int& device) noexcept {
  if (known_.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  LockGuard guard(lock_);
  if (Import* import = imports_.find(handle); import != nullptr) {
    EndingImport* ending = ending_slab_.get();
    if (ending != nullptr) {  // else it counts for ever
      ending->import = *import;
      ending->next = ending_;
      ending_ = ending;
    }
    imports_.erase(import);
    return false;
  }
  Memory* memory = find(handle);
  if (memory == nullptr) {
    return false;
  }
  memory->ended = true;
  ended_.fetch_add(1, std::memory_order_relaxed);
  bytes = memory->bytes;
  device = memory->device;
  return true;
}

bool ExportedMemory::take_ending(uint64_t handle, Import& out) noexcept {
  for (EndingImport** at = &ending_; *at != nullptr; at = &(*at)->next) {
    EndingImport* each = *at;
    if (each->import.ptr == handle) {
      out = each->import;
      *at = each->next;
      ending_slab_.put(each);
      return true;
    }
  }
  return false;
}

void ExportedMemory::end_done(uint64_t handle) noexcept {
  if (known_.load(std::memory_order_relaxed) == 0) {
    return;
  }
  LockGuard guard(lock_);
  Import import;
  if (take_ending(handle, import) && import.of != nullptr) {
    --import.of->imports;
  }
}

bool ExportedMemory::end_failed(uint64_t handle, size_t& bytes, int& device) noexcept {
  if (known_.load(std::memory_order_relaxed) == 0) {
    return false;
  }
  LockGuard guard(lock_);
  Import import;
  if (take_ending(handle, import)) {
    bool known = false;
    if (Import* back = imports_.claim(handle, known); back != nullptr) {
      *back = import;
    }
    return false;
  }
  for (Memory* each = memories_; each != nullptr; each = each->next) {
    if (each->ended && each->handle == handle) {
      each->ended = false;
      ended_.fetch_sub(1, std::memory_order_relaxed);
      bytes = each->bytes;
      device = each->device;
      return true;
    }
  }
  return false;
}

bool ExportedMemory::may_be_imported(const Memory& memory) noexcept {
  bool may = memory.imports != 0;
  auto look_at = [&](const Import& each) {
    may = may || (each.of == nullptr && memory.lost_at != 0 && each.made_at > memory.lost_at);
    return false;
  };
  imports_.erase_if(look_at);
  for (EndingImport* each = ending_; each != nullptr; each = each->next) {
    look_at(each->import);
  }
  return may;
}

bool ExportedMemory::next_gone(size_t& bytes, int& device) noexcept {
  if (!any_ended()) {
    return false;
  }
  LockGuard guard(lock_);
  for (Memory** at = &memories_; *at != nullptr; at = &(*at)->next) {
    Memory* each = *at;
    if (!each->ended) {
      continue;
    }
    review(*each);
    if (each->descriptors != nullptr || may_be_imported(*each)) {
      continue;
    }
    bytes = each->bytes;
    device = each->device;
    *at = each->next;
    memory_slab_.put(each);
    ended_.fetch_sub(1, std::memory_order_relaxed);
    known_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

}  // namespace xlog
