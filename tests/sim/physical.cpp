// Physical memory that programs map themselves, and managed memory.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/sim/driver.h"

namespace sim {

Physical::~Physical() {
  if (device != nullptr) {
    device->used -= bytes;
  }
}

// Beside the devices where those were moved: sanitizers leave few addresses to programs.
uint64_t reservations_begin() {
  static const uint64_t begin = [] {
    const char* base = std::getenv("XLOG_SIM_BASE");
    return base != nullptr ? std::strtoull(base, nullptr, 16) + (uint64_t{1} << 38) : 0x5800'0000'0000ULL;
  }();
  return begin;
}

namespace {

// Handles are addresses in the driver's heap: those that ended are soon given out again.
CUmemGenericAllocationHandle make_handle(std::shared_ptr<Physical> memory) {
  Driver& driver = Driver::get();
  CUmemGenericAllocationHandle handle = 0x5500'0000'0000ULL + driver.next_serial++ * 0x450;
  if (!driver.spare_handles.empty()) {
    handle = driver.spare_handles.back();
    driver.spare_handles.pop_back();
  }
  driver.handles[handle] = {std::move(memory)};
  return handle;
}

void forget_if_unused(CUmemGenericAllocationHandle handle) {
  Driver& driver = Driver::get();
  auto it = driver.handles.find(handle);
  if (it->second.holds == 0 && it->second.mappings == 0) {
    driver.handles.erase(it);
    driver.spare_handles.push_back(handle);
  }
}

// What descriptors stand for, in this process.
std::map<uint64_t, std::shared_ptr<Physical>>& exported() {
  static auto* all = new std::map<uint64_t, std::shared_ptr<Physical>>;
  return *all;
}

}  // namespace

}  // namespace sim

using namespace sim;

SIM_EXPORT CUresult cuMemGetAllocationGranularity(size_t* out, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  Call call("cuMemGetAllocationGranularity", Call::Needs::init);
  if (!call.failed()) {
    *out = kGranule;
  }
  return call.result();
}

// No context is needed: the location says where.
SIM_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes, const CUmemAllocationProp* properties,
                                unsigned long long flags) {
  Call call("cuMemCreate", Call::Needs::init);
  Driver& driver = Driver::get();
  if (call.failed() || out == nullptr || properties == nullptr || bytes == 0 || bytes % kGranule != 0 || flags != 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  auto memory = std::make_shared<Physical>();
  memory->bytes = bytes;
  if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    auto ordinal = static_cast<size_t>(properties->location.id);
    if (ordinal >= driver.devices.size()) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    Device& device = *driver.devices[ordinal];
    if (bytes > device.total - device.used) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device.used += bytes;
    memory->device = &device;
  }
  *out = make_handle(std::move(memory));
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Call call("cuMemRelease", Call::Needs::init);
  auto& handles = Driver::get().handles;
  auto known = handles.find(handle);
  if (call.failed() || known == handles.end() || known->second.holds == 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  --known->second.holds;
  forget_if_unused(handle);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
  Call call("cuMemAddressReserve", Call::Needs::init);
  if (call.failed() || bytes == 0 || bytes % kGranule != 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  // Addresses that were given back are the next that are given out.
  static uint64_t next = reservations_begin();
  auto& spare = Driver::get().spare_reservations[bytes];
  *out = spare.empty() ? next : spare.back();
  if (spare.empty()) {
    next += bytes + kGranule;
  } else {
    spare.pop_back();
  }
  Driver::get().reservations[*out] = bytes;
  return CUDA_SUCCESS;
}

namespace {
// Mappings that begin in [address, address + bytes).
auto mapped_in(uint64_t address, size_t bytes) {
  auto& mappings = Driver::get().mappings;
  return std::pair(mappings.lower_bound(address), mappings.lower_bound(address + bytes));
}
bool is_reserved(uint64_t address, size_t bytes) {
  auto& all = Driver::get().reservations;
  auto it = all.upper_bound(address);
  return it != all.begin() && address + bytes <= std::prev(it)->first + std::prev(it)->second;
}
bool overlaps(uint64_t address, size_t bytes) {
  auto [first, last] = mapped_in(address, bytes);
  auto& mappings = Driver::get().mappings;
  return first != last || (first != mappings.begin() && std::prev(first)->first + std::prev(first)->second.bytes > address);
}
}  // namespace

SIM_EXPORT CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  Call call("cuMemAddressFree", Call::Needs::init);
  auto& all = Driver::get().reservations;
  auto it = all.find(address);
  if (call.failed() || it == all.end() || it->second != bytes || overlaps(address, bytes)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  all.erase(it);
  Driver::get().spare_reservations[bytes].push_back(address);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long) {
  Call call("cuMemMap", Call::Needs::init);
  Driver& driver = Driver::get();
  auto known = driver.handles.find(handle);
  if (call.failed() || known == driver.handles.end() || !is_reserved(address, bytes) || overlaps(address, bytes)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  if (offset != 0 || bytes != known->second.memory->bytes) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  void* pages = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  madvise(pages, bytes, MADV_HUGEPAGE);  // without it a program under fences spends its time in page faults
  driver.mappings[address] = {bytes, handle};
  driver.blocks[address] = {address, bytes, bytes, nullptr, nullptr, false, begin_life(0, nullptr), Block::Sort::mapped};
  ++known->second.mappings;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*, size_t) {
  Call call("cuMemSetAccess", Call::Needs::init);
  return call.failed() ? call.result() : overlaps(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// Whole mappings, one or several; where nothing is mapped there is nothing to do.
SIM_EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  Call call("cuMemUnmap", Call::Needs::init);
  if (call.failed()) {
    return call.result();
  }
  Driver& driver = Driver::get();
  auto [first, last] = mapped_in(address, bytes);
  bool cut_before = first != driver.mappings.begin() && std::prev(first)->first + std::prev(first)->second.bytes > address;
  bool cut_behind = first != last && std::prev(last)->first + std::prev(last)->second.bytes > address + bytes;
  if (cut_before || cut_behind) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  while (first != last) {
    CUmemGenericAllocationHandle handle = first->second.handle;
    end_life(driver.blocks.at(first->first).serial);
    driver.blocks.erase(first->first);
    munmap(reinterpret_cast<void*>(first->first), first->second.bytes);
    first = driver.mappings.erase(first);
    --driver.handles.at(handle).mappings;
    forget_if_unused(handle);
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* out, void* address) {
  Call call("cuMemRetainAllocationHandle", Call::Needs::init);
  Driver& driver = Driver::get();
  auto it = driver.mappings.upper_bound(reinterpret_cast<uint64_t>(address));
  bool inside = it != driver.mappings.begin() && reinterpret_cast<uint64_t>(address) < std::prev(it)->first + std::prev(it)->second.bytes;
  if (call.failed() || !inside) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  *out = std::prev(it)->second.handle;
  ++driver.handles.at(*out).holds;
  return CUDA_SUCCESS;
}

// The descriptor keeps the memory, for the process's life here.
SIM_EXPORT CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
                                                 unsigned long long) {
  Call call("cuMemExportToShareableHandle", Call::Needs::init);
  Driver& driver = Driver::get();
  auto known = driver.handles.find(handle);
  if (call.failed() || known == driver.handles.end()) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t key[2] = {driver.next_serial++, known->second.memory->bytes};
  int fd = memfd_create("sim", MFD_CLOEXEC);
  if (write(fd, key, sizeof key) != sizeof key) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  exported()[key[0]] = known->second.memory;
  *static_cast<int*>(out) = fd;
  return CUDA_SUCCESS;
}

// Memory of another process is not this one's to count.
SIM_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* os_handle, CUmemAllocationHandleType) {
  Call call("cuMemImportFromShareableHandle", Call::Needs::init);
  uint64_t key[2] = {};
  auto fd = static_cast<int>(reinterpret_cast<intptr_t>(os_handle));
  if (call.failed() || pread(fd, key, sizeof key, 0) != sizeof key) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  auto own = exported().find(key[0]);
  std::shared_ptr<Physical> memory = own != exported().end() ? own->second : std::make_shared<Physical>(Physical{nullptr, key[1]});
  *out = make_handle(std::move(memory));
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  Call call("cuMemAllocManaged", Call::Needs::context, false, Call::Beside::unsafe);
  if (call.failed() || out == nullptr || bytes == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  *out = 0;
  Device& device = call.device();
  size_t taken = (bytes + kGranule - 1) / kGranule * kGranule;
  uint64_t ptr = bytes > device.total ? 0 : device.space.take(taken);
  if (ptr == 0) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Driver::get().blocks[ptr] = {ptr, bytes, taken, call.context(), nullptr, false, begin_life(0, nullptr), Block::Sort::managed};
  *out = ptr;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t, CUmemLocation, unsigned, CUstream) {
  Call call("cuMemPrefetchAsync_v2", Call::Needs::context);
  Block* block = call.failed() ? nullptr : find_block(ptr);
  if (block == nullptr || block->sort != Block::Sort::managed) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  if (!block->resident) {
    block->resident = true;
    block->context->device->used += block->taken;
  }
  return CUDA_SUCCESS;
}
