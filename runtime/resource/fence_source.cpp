#include "runtime/resource/fence_source.h"

#include "runtime/base/ask.h"
#include "runtime/base/memory_map.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

// 0, and nothing is served, where the driver has no virtual memory management.
size_t FenceSource::granularity() noexcept {
  size_t known = granularity_.load(std::memory_order_relaxed);
  if (known != 0) {
    return known;
  }
  CUmemAllocationProp memory{};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_};
  bool complete = driver_.cuMemAddressReserve != nullptr && driver_.cuMemAddressFree != nullptr && driver_.cuMemCreate != nullptr &&
                  driver_.cuMemMap != nullptr && driver_.cuMemSetAccess != nullptr && driver_.cuMemRelease != nullptr &&
                  driver_.cuMemUnmap != nullptr && driver_.cuMemGetAllocationGranularity != nullptr;
  if (!complete || driver_.cuMemGetAllocationGranularity(&known, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS) {
    known = 1;
  }
  granularity_.store(known, std::memory_order_relaxed);
  return known;
}

CUresult FenceSource::set_access(const Mapping& mapping, int device) noexcept {
  CUmemAccessDesc access{};
  access.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return driver_.cuMemSetAccess(mapping.ptr, mapping.bytes, &access, 1);
}

CUresult FenceSource::give_to_readers(const Mapping& mapping, size_t first, size_t& count) noexcept {
  CUresult result = CUDA_SUCCESS;
  for (count = first; result == CUDA_SUCCESS; ++count) {
    int reader = 0;
    {
      LockGuard guard(readers_lock_);
      if (count >= readers_.size()) {
        return result;
      }
      reader = readers_[count];
    }
    result = set_access(mapping, reader);
  }
  return result;
}

CUresult FenceSource::take_memory(size_t bytes, CUmemGenericAllocationHandle& out) noexcept {
  if (spare_.take(bytes, out)) {
    return CUDA_SUCCESS;
  }
  int rdma = rdma_.load(std::memory_order_relaxed);
  if (rdma < 0) {
    rdma = 0;
    driver_.cuDeviceGetAttribute(&rdma, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device_);
    rdma_.store(rdma, std::memory_order_relaxed);
  }
  CUmemAllocationProp memory{};
  memory.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_};
  memory.allocFlags.gpuDirectRDMACapable = rdma != 0;
  return driver_.cuMemCreate(&out, bytes, &memory, 0);
}

CUresult FenceSource::map(size_t bytes, Mapping& out) noexcept {
  size_t mapped = taken(bytes);
  CUdeviceptr reserved = 0;
  CUmemGenericAllocationHandle memory = 0;
  CUresult result = take_memory(mapped, memory);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  result = driver_.cuMemAddressReserve(&reserved, mapped + 2 * kGranule, 0, 0, 0);
  if (result == CUDA_SUCCESS) {
    out = {.ptr = reserved + kGranule, .block = reserved + kGranule + (before_ ? 0 : mapped - bytes), .bytes = mapped, .memory = memory};
    result = driver_.cuMemMap(out.ptr, mapped, 0, memory, 0);
    if (result == CUDA_SUCCESS) {
      result = set_access(out, device_);
      if (result != CUDA_SUCCESS) {
        ask_twice([&] { return driver_.cuMemUnmap(out.ptr, mapped); });
      }
    }
    if (result != CUDA_SUCCESS) {
      driver_.cuMemAddressFree(reserved, mapped + 2 * kGranule);
    }
  }
  if (result != CUDA_SUCCESS) {
    driver_.cuMemRelease(memory);
  }
  return result;
}

CUresult FenceSource::make(ContextLane&, size_t bytes, CUdeviceptr& ptr) noexcept {
  Mapping made{};
  Mapping replaced{};
  size_t known = 0;
  CUresult result = map(bytes, made);
  result = result == CUDA_SUCCESS ? give_to_readers(made, 0, known) : result;
  if (result != CUDA_SUCCESS) {
    return result;
  }
  mappings_.insert(Mapping(made), replaced);
  give_to_readers(made, known, known);  // granted meanwhile: whoever granted may not have seen this one
  ptr = made.block;
  return CUDA_SUCCESS;
}

void FenceSource::retire(CUdeviceptr reserved, size_t bytes) noexcept {
  for (;;) {
    Range oldest{};
    {
      LockGuard guard(retired_lock_);
      bool full = retired_next_ - retired_first_ == kRetired || (retired_bytes_ + bytes > kMostRetired && retired_first_ != retired_next_);
      if (full) {
        oldest = retired_[retired_first_++ % kRetired];
        retired_bytes_ -= oldest.bytes;
      } else {
        retired_[retired_next_++ % kRetired] = {.at = reserved, .bytes = bytes};
        retired_bytes_ += bytes;
        return;
      }
    }
    driver_.cuMemAddressFree(oldest.at, oldest.bytes);
  }
}

CUresult FenceSource::unmap(CUdeviceptr ptr) noexcept {
  Mapping mapping{};
  if (!mappings_.take(ptr / kGranule * kGranule, mapping)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult result = ask_twice([&] { return driver_.cuMemUnmap(mapping.ptr, mapping.bytes); });
  if (result == CUDA_SUCCESS) {
    spare_.give(driver_, mapping.bytes, mapping.memory);
    retire(mapping.ptr - kGranule, mapping.bytes + 2 * kGranule);
  } else {
    Mapping replaced{};
    mappings_.insert(Mapping(mapping), replaced);
  }
  return result;
}

// The memory is no context's: it goes back whether the context lives or not.
void FenceSource::unmake(ContextLane*, CUdeviceptr ptr, size_t) noexcept { unmap(ptr); }

void FenceSource::end_block(const DeviceBlock& block) noexcept {
  RelaxedCapture relaxed(driver_);
  unmap(block.ptr);
  not_in_use(block.taken);
}

CUdeviceptr FenceSource::block_in(CUdeviceptr base) noexcept {
  CUdeviceptr block = 0;
  mappings_.visit(base, [&](const Mapping* mapping) {
    block = mapping != nullptr ? mapping->block : 0;
    return false;
  });
  return block;
}

void FenceSource::grant_peer(int reader) noexcept {
  {
    LockGuard guard(readers_lock_);
    for (int each : readers_) {
      if (each == reader) {
        return;
      }
    }
    readers_.add(reader);
  }
  size_t room = mappings_.size();
  auto* all = room != 0 ? static_cast<Mapping*>(map_state(room * sizeof(Mapping))) : nullptr;
  if (all == nullptr) {
    return;
  }
  size_t count = 0;
  Mapping none{};
  mappings_.take_if(
      [&](const Mapping& each) {
        if (count < room) {
          all[count++] = each;
        }
        return false;
      },
      &none, 1);
  for (size_t i = 0; i < count; ++i) {
    set_access(all[i], reader);  // one that is unmapped meanwhile needs none
  }
  unmap_state(all, room * sizeof(Mapping));
}

}  // namespace xlog
