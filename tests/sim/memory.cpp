#include <sys/mman.h>

#include <cstring>

#include "tests/sim/driver.h"

namespace sim {

// Smaller blocks keep their pages: to fault them in again is most of what a schedule of small blocks would cost.
constexpr size_t kWorthReleasing = size_t{32} << 20;

void Space::open(uint64_t base, size_t bytes) {
  bytes = bytes / kGranule * kGranule;
  void* got = mmap(reinterpret_cast<void*>(base), bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) {
    got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  uint64_t first = (reinterpret_cast<uint64_t>(got) + kGranule - 1) / kGranule * kGranule;
  free_[first] = bytes - kGranule;
}

uint64_t Space::take(size_t bytes) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second >= bytes) {
      auto [ptr, size] = *it;
      free_.erase(it);
      if (size > bytes) {
        free_[ptr + bytes] = size - bytes;
      }
      return ptr;
    }
  }
  return 0;
}

void Space::give_back(uint64_t ptr, size_t bytes) {
  if (bytes >= kWorthReleasing) {
    madvise(reinterpret_cast<void*>(ptr), bytes, MADV_DONTNEED);
  }
  auto next = free_.lower_bound(ptr);
  if (next != free_.end() && ptr + bytes == next->first) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == ptr) {
      before->second += bytes;
      return;
    }
  }
  free_[ptr] = bytes;
}

void Pieces::add(uint64_t ptr, size_t bytes) {
  auto next = free.lower_bound(ptr);
  bool ends = apart != 0 && (ptr + bytes) % apart == 0;
  bool begins = apart != 0 && ptr % apart == 0;
  if (next != free.end() && ptr + bytes == next->first && !ends) {
    bytes += next->second;
    next = free.erase(next);
  }
  if (next != free.begin() && std::prev(next)->first + std::prev(next)->second == ptr && !begins) {
    std::prev(next)->second += bytes;
    return;
  }
  free[ptr] = bytes;
}

uint64_t Pieces::take(size_t bytes) {
  for (auto it = free.begin(); it != free.end(); ++it) {
    if (it->second >= bytes) {
      auto [ptr, size] = *it;
      free.erase(it);
      if (size > bytes) {
        free[ptr + bytes] = size - bytes;
      }
      return ptr;
    }
  }
  return 0;
}

bool Pieces::take_range(uint64_t ptr, size_t bytes) {
  auto piece = free.upper_bound(ptr);
  if (piece == free.begin() || std::prev(piece)->first + std::prev(piece)->second < ptr + bytes) {
    return false;
  }
  auto [base, size] = *--piece;
  free.erase(piece);
  if (base < ptr) {
    free[base] = ptr - base;
  }
  if (base + size > ptr + bytes) {
    free[ptr + bytes] = base + size - ptr - bytes;
  }
  return true;
}

Block* find_block(uint64_t address) {
  auto& blocks = Driver::get().blocks;
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) {
    return nullptr;
  }
  Block& block = std::prev(it)->second;
  return address - block.ptr < block.size && !block.freeing && block.sort != Block::Sort::array ? &block : nullptr;
}

CUresult allocate_plain(Context& context, size_t bytes, uint64_t& out) {
  Device& device = *context.device;
  bool small = bytes <= kGranule / 2;
  size_t step = small ? kStep : kGranule;
  out = 0;
  if (bytes > device.total) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  size_t taken = (bytes + step - 1) / step * step;
  if (small) {
    out = device.chunks.take(taken);
  }
  if (out == 0) {
    size_t granules = small ? kGranule : taken;
    if (granules > device.total - device.used) {
      empty_idle_pools(device);
    }
    out = granules <= device.total - device.used ? device.space.take(granules) : 0;
    if (out == 0) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device.used += granules;
    if (small) {
      device.chunk_bases[out] = 0;
      device.chunks.add(out + taken, kGranule - taken);
    }
  }
  if (small) {
    std::prev(device.chunk_bases.upper_bound(out))->second += taken;
  }
  Driver::get().blocks[out] = {out, bytes, taken, &context, nullptr, false, begin_life(0, nullptr)};
  return CUDA_SUCCESS;
}

void release_empty_chunks(Device& device) {
  for (auto chunk = device.chunk_bases.begin(); chunk != device.chunk_bases.end();) {
    if (chunk->second != 0) {
      ++chunk;
      continue;
    }
    device.chunks.take_range(chunk->first, kGranule);
    device.space.give_back(chunk->first, kGranule);
    device.used -= kGranule;
    chunk = device.chunk_bases.erase(chunk);
  }
}

void release_plain(const Block& block) {
  Device& device = *block.context->device;
  if (block.sort == Block::Sort::managed) {
    device.used -= block.resident ? block.taken : 0;
    device.space.give_back(block.ptr, block.taken);
    return;
  }
  auto chunk = device.chunk_bases.upper_bound(block.ptr);
  bool small = chunk != device.chunk_bases.begin() && block.ptr - std::prev(chunk)->first < kGranule;
  if (!small) {
    device.space.give_back(block.ptr, block.taken);
    device.used -= block.taken;
    return;
  }
  --chunk;
  device.chunks.add(block.ptr, block.taken);
  chunk->second -= block.taken;
  if (chunk->second == 0 && device.chunk_bases.size() > 1) {  // one empty chunk is kept
    device.chunks.take_range(chunk->first, kGranule);
    device.space.give_back(chunk->first, kGranule);
    device.used -= kGranule;
    device.chunk_bases.erase(chunk);
  }
}

CUresult free_block(uint64_t ptr) {
  auto& blocks = Driver::get().blocks;
  auto it = blocks.find(ptr);
  bool freed_otherwise = it != blocks.end() && (it->second.sort == Block::Sort::array || it->second.sort == Block::Sort::mapped);
  if (it == blocks.end() || it->second.freeing || freed_otherwise) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Block block = it->second;
  blocks.erase(it);
  end_life(block.serial);
  if (block.pool != nullptr) {
    return_to_pool(block, nullptr);
  } else {
    release_plain(block);
  }
  return CUDA_SUCCESS;
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  Call call("cuMemAlloc_v2", Call::Needs::context, false, Call::Beside::unsafe);
  if (call.failed()) {
    return call.result();
  }
  if (out == nullptr || call.context()->first) {
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_CONTEXT;
  }
  *out = 0;
  return bytes == 0 ? CUDA_ERROR_INVALID_VALUE : allocate_plain(*call.context(), bytes, reinterpret_cast<uint64_t&>(*out));
}

SIM_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height, unsigned element) {
  Call call("cuMemAllocPitch_v2", Call::Needs::context, false, Call::Beside::unsafe);
  if (call.failed()) {
    return call.result();
  }
  if (out == nullptr || pitch == nullptr || width == 0 || height == 0 || (element != 4 && element != 8 && element != 16)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (call.context()->first) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  // A card refuses a product that is 0 in 64 bits, and makes the smaller block where one wraps to something else (an H200 did both).
  size_t row = (width + kStep - 1) / kStep * kStep;
  if (row * height == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *pitch = row;
  return allocate_plain(*call.context(), row * height, reinterpret_cast<uint64_t&>(*out));
}

SIM_EXPORT CUresult cuMemFree_v2(CUdeviceptr ptr) {
  // No context is needed, but a dead one is an error.
  Call call("cuMemFree_v2", Call::Needs::init, false, ptr == 0 ? Call::Beside::safe : Call::Beside::unsafe);
  bool dead = !call.failed() && !current_stack().empty() && !current_stack().back().is_alive();
  if (call.failed() || dead || ptr == 0) {
    return dead ? CUDA_ERROR_CONTEXT_IS_DESTROYED : call.result();
  }
  Block* block = find_block(ptr);
  if (block != nullptr && block->ptr == ptr && block->context != nullptr) {  // waits for the context's work
    Context* context = block->context;
    wait_until([context] { return is_idle(*context); }, Driver::get().lock);
    if (context->fault != CUDA_SUCCESS) {
      return context->fault;
    }
  }
  return free_graph_memory(ptr) ? CUDA_SUCCESS : free_block(ptr);
}

SIM_EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  Call call("cuMemGetInfo_v2", Call::Needs::context);
  if (call.failed()) {
    return call.result();
  }
  if (free != nullptr) {
    *free = call.device().total - call.device().used;
  }
  if (total != nullptr) {
    *total = call.device().total;
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr ptr) {
  Call call("cuMemGetAddressRange_v2", Call::Needs::context);
  Block* block = call.failed() ? nullptr : find_block(ptr);
  auto opened = Driver::get().opened.find(ptr);
  if (!call.failed() && opened != Driver::get().opened.end()) {
    (base != nullptr ? *base : ptr) = opened->first;
    (size != nullptr ? *size : opened->second.first) = opened->second.first;
    return CUDA_SUCCESS;
  }
  if (block == nullptr) {
    if (!call.failed()) {
      (base != nullptr ? *base : ptr) = 0;
      size_t none = 0;
      (size != nullptr ? *size : none) = 0;
    }
    return call.failed() ? call.result() : CUDA_ERROR_NOT_FOUND;
  }
  if (base != nullptr) {
    *base = block->ptr;
  }
  if (size != nullptr) {
    *size = block->size;
  }
  return CUDA_SUCCESS;
}

namespace {
CUresult attribute_of(Block* block, void* out, CUpointer_attribute attribute, CUdeviceptr ptr) {
  bool pooled = block->pool != nullptr;
  bool mapped = block->sort == Block::Sort::mapped;  // by cuMemMap
  switch (static_cast<int>(attribute)) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(out) = pooled ? nullptr : reinterpret_cast<CUcontext>(block->context);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(out) = CU_MEMORYTYPE_DEVICE;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(out) = ptr;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(out) = pooled   ? block->pool->device->ordinal
                                : mapped ? Driver::get().handles.at(Driver::get().mappings.at(block->ptr).handle).memory->device->ordinal
                                         : block->context->device->ordinal;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<unsigned*>(out) = pooled || mapped ? 0 : 1;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(out) = block->ptr;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(out) = block->size;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(out) = 1;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      *static_cast<unsigned*>(out) = pooled ? 0 : 1;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      *static_cast<unsigned*>(out) = 3;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(out) = reinterpret_cast<CUmemoryPool>(block->pool);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}
}  // namespace

SIM_EXPORT CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr ptr) {
  Call call("cuPointerGetAttribute", Call::Needs::context);
  Block* block = call.failed() ? nullptr : find_block(ptr);
  return call.failed() ? call.result() : block == nullptr ? CUDA_ERROR_INVALID_VALUE : attribute_of(block, out, attribute, ptr);
}

// An address that is not known is no error: its type is 0, and the rest stays as it was.
SIM_EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** out, CUdeviceptr ptr) {
  Call call("cuPointerGetAttributes", Call::Needs::context);
  Block* block = call.failed() ? nullptr : find_block(ptr);
  for (unsigned i = 0; i < count && !call.failed(); ++i) {
    if (block != nullptr) {
      attribute_of(block, out[i], attributes[i], ptr);
    } else if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
      *static_cast<unsigned*>(out[i]) = 0;
    }
  }
  return call.result();
}

SIM_EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr ptr) {
  Call call("cuIpcGetMemHandle", Call::Needs::context);
  Block* block = call.failed() ? nullptr : find_block(ptr);
  if (block == nullptr || block->pool != nullptr || block->sort == Block::Sort::mapped) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &block->ptr, sizeof block->ptr);  // of the block, whatever the offset
  uint64_t more[] = {block->size, static_cast<uint64_t>(Driver::get().pid)};
  std::memcpy(out->reserved + sizeof block->ptr, more, sizeof more);
  return CUDA_SUCCESS;
}
