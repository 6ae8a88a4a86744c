#include "runtime/physical_memory.h"

#include "runtime/base/memory_map.h"

namespace xlog {

PhysicalMemory::Unmapped::~Unmapped() {
  if (list_ != few_) {
    unmap_state(list_, capacity_ * sizeof(Mapping));
  }
}

bool PhysicalMemory::Unmapped::make_room(size_t count) noexcept {
  if (count <= capacity_) {
    return true;
  }
  auto* list = static_cast<Mapping*>(map_state(count * sizeof(Mapping)));
  if (list == nullptr) {
    return false;
  }
  list_ = list;
  capacity_ = count;
  return true;
}

void PhysicalMemory::hold(uint64_t handle, uint32_t holds, uint32_t mappings) noexcept {
  bool known = false;
  Held* held = held_.claim(handle, known);
  if (held != nullptr) {
    held->holds = (known ? held->holds : 0) + holds;
    held->mappings = (known ? held->mappings : 0) + mappings;
  }
}

void PhysicalMemory::created(uint64_t handle) noexcept {
  LockGuard guard(lock_);
  Held* old = held_.find(handle);
  if (old != nullptr) {  // it ended out of our sight
    old->holds = old->mappings = 0;
  }
  hold(handle, 1, 0);
}

bool PhysicalMemory::retained(uint64_t handle) noexcept {
  LockGuard guard(lock_);
  Held* held = held_.find(handle);
  if (held != nullptr) {
    ++held->holds;
  }
  return held != nullptr;
}

bool PhysicalMemory::opened(uint64_t handle) noexcept {
  LockGuard guard(lock_);
  bool first = held_.find(handle) == nullptr;
  hold(handle, 1, 0);
  return first;
}

void PhysicalMemory::mapped(uint64_t address, size_t bytes, uint64_t handle) noexcept {
  LockGuard guard(lock_);
  Held* held = held_.find(handle);
  bool known = false;
  Mapping* mapping = held != nullptr ? mappings_.claim(address, known) : nullptr;
  if (mapping != nullptr) {
    mapping->bytes = bytes;
    mapping->handle = handle;
    mapping->last = false;
    ++held->mappings;
  }
}

bool PhysicalMemory::release(uint64_t handle) noexcept {
  LockGuard guard(lock_);
  Held* held = held_.find(handle);
  if (held == nullptr || held->holds == 0) {
    return false;
  }
  if (--held->holds == 0 && held->mappings == 0) {
    held_.erase(held);
    return true;
  }
  return false;
}

void PhysicalMemory::release_failed(uint64_t handle, bool was_last) noexcept {
  LockGuard guard(lock_);
  if (was_last || held_.find(handle) != nullptr) {
    hold(handle, 1, 0);
  }
}

void PhysicalMemory::note(const Mapping& leaving, Unmapped& out) noexcept {
  Mapping& taken = out.list_[out.count_++];
  taken = leaving;
  Held* held = held_.find(taken.handle);
  taken.last = held != nullptr && --held->mappings == 0 && held->holds == 0;
  if (taken.last) {
    held_.erase(held);
    ++out.ended_;
  }
}

void PhysicalMemory::unmap(uint64_t address, size_t bytes, Unmapped& out) noexcept {
  LockGuard guard(lock_);
  // Most ranges are one mapping, or several without gaps: no need to look at all there are.
  size_t covered = 0;
  size_t count = 0;
  for (Mapping* next = mappings_.find(address); next != nullptr && covered < bytes; next = mappings_.find(address + covered)) {
    covered += next->bytes;
    ++count;
  }
  bool without_gaps = covered == bytes;
  if (!out.make_room(without_gaps ? count : mappings_.size())) {
    return;
  }
  if (without_gaps) {
    for (size_t done = 0; done < bytes;) {
      Mapping* next = mappings_.find(address + done);
      done += next->bytes;
      note(*next, out);
      mappings_.erase(next);
    }
    return;
  }
  mappings_.erase_if([&](const Mapping& each) {
    bool inside = each.ptr >= address && each.ptr - address < bytes;
    if (inside) {
      note(each, out);
    }
    return inside;
  });
}

void PhysicalMemory::unmap_failed(const Unmapped& range) noexcept {
  LockGuard guard(lock_);
  for (const Mapping& each : range) {
    bool known = false;
    Mapping* mapping = mappings_.claim(each.ptr, known);
    if (mapping != nullptr) {
      *mapping = each;
    }
    hold(each.handle, 0, 1);
  }
}

}  // namespace xlog
