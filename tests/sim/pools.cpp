#include "tests/sim/driver.h"

namespace sim {

namespace {

size_t rounded(size_t bytes) {
  size_t step = bytes <= kGranule / 2 ? kStep : kGranule;
  return (bytes + step - 1) / step * step;
}

// A piece that was freed in `stream`: in stream order its own stream may have it before the free is done.
uint64_t take_returned(Pool& pool, size_t bytes, Stream* stream) {
  for (size_t i = 0; i < pool.returned.size(); ++i) {
    auto& piece = pool.returned[i];
    if (!piece.done && piece.stream == stream && piece.bytes >= bytes) {
      uint64_t ptr = piece.ptr;
      // What is behind the free in its stream runs after it, so the rest of the piece is free to be split off then.
      if (piece.bytes > bytes) {
        pool.returned.push_back({ptr + bytes, piece.bytes - bytes, stream, piece.free, false});
      }
      pool.returned.erase(pool.returned.begin() + static_cast<long>(i));
      return ptr;
    }
  }
  return 0;
}

void settle(Pool& pool) {
  for (size_t i = 0; i < pool.returned.size();) {
    if (pool.returned[i].done) {
      pool.pieces.add(pool.returned[i].ptr, pool.returned[i].bytes);
      pool.returned.erase(pool.returned.begin() + static_cast<long>(i));
    } else {
      ++i;
    }
  }
}

void trim(Pool& pool, uint64_t keep) {
  settle(pool);
  for (auto it = pool.slabs.begin(); it != pool.slabs.end() && pool.reserved > keep;) {
    auto [base, bytes] = *it;
    if (!pool.pieces.take_range(base, bytes)) {
      ++it;
      continue;
    }
    pool.device->space.give_back(base, bytes);
    pool.device->used -= bytes;
    pool.reserved -= bytes;
    it = pool.slabs.erase(it);
  }
}

// A pool that was destroyed ends with its last block, and its memory is free again (measured on an H200).
void end_if_unused(Pool& pool) {
  if (pool.destroyed && pool.blocks == 0) {
    trim(pool, 0);
    end(Kind::pool, &pool);
  }
}

CUresult allocate_from(Pool& pool, Stream* stream, size_t bytes, uint64_t& out) {
  out = 0;
  if (bytes == 0) {
    return CUDA_SUCCESS;
  }
  Device& device = *pool.device;
  if (bytes > device.total) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  size_t taken = rounded(bytes);
  settle(pool);
  out = take_returned(pool, taken, stream);
  if (out == 0) {
    out = pool.pieces.take(taken);
  }
  if (out == 0) {
    size_t slab = (taken + kSlab - 1) / kSlab * kSlab;
    size_t least = taken + kGranule - 1 - (taken - 1) % kGranule;
    if (least > device.total - device.used) {
      empty_idle_pools(device);
    }
    slab = slab <= device.total - device.used ? slab : least;
    out = slab <= device.total - device.used ? device.space.take(slab) : 0;
    if (out == 0) {
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device.used += slab;
    pool.reserved += slab;
    pool.slabs[out] = slab;
    if (slab > taken) {
      pool.pieces.add(out + taken, slab - taken);
    }
  }
  ++pool.blocks;
  pool.used += bytes;  // measured on an H200: a block of 1 byte counts as 1
  pool.used_high = std::max(pool.used_high, pool.used);
  enqueue(
      *stream, [] { return true; }, Operation::Sort::order);
  Driver::get().blocks[out] = {out, bytes, taken, nullptr, &pool, false, begin_life(stream->queue.back().number, stream)};
  return CUDA_SUCCESS;
}

}  // namespace

void return_to_pool(const Block& block, Stream* stream) {
  Pool& pool = *block.pool;
  pool.used -= block.size;
  uint64_t serial = block.serial;
  if (stream == nullptr) {
    pool.pieces.add(block.ptr, block.taken);
    --pool.blocks;
    end_if_unused(pool);
    return;
  }
  uint64_t number = ++pool.frees;
  pool.returned.push_back({block.ptr, block.taken, stream, number, false});
  Pool* at = &pool;
  auto done = [at, number, serial] {
    end_life(serial);
    for (auto& piece : at->returned) {  // what its stream has not taken again
      piece.done = piece.done || piece.free == number;
    }
    --at->blocks;
    end_if_unused(*at);
    return true;
  };
  enqueue(*stream, done, Operation::Sort::free);
}

// On a full device the driver takes what pools hold and do not use for whoever asks (measured on an H200).
void empty_idle_pools(const Device& device) {
  for (Pool* pool : Driver::get().pools) {
    if (pool->device == &device) {
      trim(*pool, 0);
    }
  }
}

// At a synchronise, a pool gives back what it holds above its threshold.
void release_idle_pools() {
  for (Pool* pool : Driver::get().pools) {
    if (pool->device != nullptr && pool->reserved > pool->threshold) {
      trim(*pool, pool->threshold);
    }
  }
}

}  // namespace sim

using namespace sim;

namespace {

// An address of its own, and a node; there is memory only when the graph runs.
CUresult allocate_in_graph(Stream& stream, size_t bytes, uint64_t& out) {
  out = 0;
  if (bytes > kMostGraphBytes) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Graph& graph = *stream.capture->graph;
  out = allocate_in(graph, graph.nodes.empty() ? std::vector<size_t>{} : std::vector<size_t>{graph.nodes.size() - 1}, bytes);
  stream.capture->allocations.insert(out);
  int device = stream.context->device->ordinal;
  add_captured(*stream.capture, GraphNode{CU_GRAPH_NODE_TYPE_MEM_ALLOC, out, bytes, device});
  return CUDA_SUCCESS;
}

CUresult allocate(const char* name, CUdeviceptr* out, size_t bytes, CUmemoryPool chosen, bool explicit_pool, CUstream handle,
                  bool per_thread) {
  Call call(name, Call::Needs::stream, per_thread, Call::Beside::safe, handle);
  if (call.failed()) {
    return call.result();
  }
  Stream* stream = call.stream(handle);
  if (out != nullptr && stream != nullptr && stream->capture != nullptr) {
    return allocate_in_graph(*stream, bytes, reinterpret_cast<uint64_t&>(*out));
  }
  CUresult refused = unsafe_call();
  if (refused != CUDA_SUCCESS) {
    return refused;
  }
  if (out == nullptr || stream == nullptr) {
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
  }
  auto* pool = explicit_pool ? reinterpret_cast<Pool*>(chosen) : stream->context->device->pool;
  if (!is_known(pool) || pool->device == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return allocate_from(*pool, stream, bytes, reinterpret_cast<uint64_t&>(*out));
}

CUresult free_in_order(const char* name, CUdeviceptr ptr, CUstream handle, bool per_thread) {
  Call call(name, Call::Needs::stream, per_thread, Call::Beside::safe, handle);
  if (call.failed() || ptr == 0) {
    return call.result();
  }
  Stream* stream = call.stream(handle);
  if (stream != nullptr && stream->context->first) {
    return CUDA_ERROR_INVALID_VALUE;  // though it could be allocated there
  }
  if (stream != nullptr && stream->capture != nullptr) {
    bool own = stream->capture->allocations.erase(ptr) != 0;
    if (own) {
      free_in(*stream->capture->graph, ptr);
      add_captured(*stream->capture, GraphNode{CU_GRAPH_NODE_TYPE_MEM_FREE, ptr});
    }
    return own ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  CUresult refused = unsafe_call();
  if (refused != CUDA_SUCCESS) {
    return refused;
  }
  if (stream != nullptr && free_graph_memory(ptr)) {
    return CUDA_SUCCESS;
  }
  auto& blocks = Driver::get().blocks;
  auto it = blocks.find(ptr);
  if (it != blocks.end() && it->second.sort == Block::Sort::managed) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (stream == nullptr || it == blocks.end() || it->second.freeing) {
    return stream == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
  }
  if (it->second.pool == nullptr) {  // plain memory: gone when the stream comes to it
    it->second.freeing = true;
    enqueue(*stream, [ptr] {
      Driver::get().blocks.at(ptr).freeing = false;
      free_block(ptr);
      return true;
    });
    return CUDA_SUCCESS;
  }
  Block block = it->second;
  blocks.erase(it);
  return_to_pool(block, stream);
  return CUDA_SUCCESS;
}

}  // namespace

#define SIM_POOL_TWINS(suffix, per_thread)                                                                                  \
  SIM_EXPORT CUresult cuMemAllocAsync##suffix(CUdeviceptr* out, size_t bytes, CUstream stream) {                            \
    return allocate("cuMemAllocAsync" #suffix, out, bytes, nullptr, false, stream, per_thread);                             \
  }                                                                                                                         \
  SIM_EXPORT CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream stream) { \
    return allocate("cuMemAllocFromPoolAsync" #suffix, out, bytes, pool, true, stream, per_thread);                         \
  }                                                                                                                         \
  SIM_EXPORT CUresult cuMemFreeAsync##suffix(CUdeviceptr ptr, CUstream stream) {                                            \
    return free_in_order("cuMemFreeAsync" #suffix, ptr, stream, per_thread);                                                \
  }
SIM_POOL_TWINS(, false)
SIM_POOL_TWINS(_ptsz, true)

SIM_EXPORT CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* properties) {
  Call call("cuMemPoolCreate", Call::Needs::init);
  if (call.failed()) {
    return call.result();
  }
  Driver& driver = Driver::get();
  auto* pool = make(Kind::pool, Pool{});
  if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    pool->device = driver.devices.at(static_cast<size_t>(properties->location.id)).get();
  }
  driver.pools.insert(pool);
  *out = reinterpret_cast<CUmemoryPool>(pool);
  return CUDA_SUCCESS;
}

// Blocks that are live stay so; their memory goes back when they do.
SIM_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  Call call("cuMemPoolDestroy", Call::Needs::init);
  auto* pool = reinterpret_cast<Pool*>(handle);
  Driver& driver = Driver::get();
  if (call.failed() || !is_known(pool) || pool->standard) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  pool->destroyed = true;
  driver.pools.erase(pool);
  if (pool->device != nullptr && pool->device->pool == pool) {
    pool->device->pool = pool->device->standard_pool.get();
  }
  end_if_unused(*pool);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  Call call("cuMemPoolSetAttribute", Call::Needs::init);
  auto* pool = reinterpret_cast<Pool*>(handle);
  if (call.failed() || !is_known(pool)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    pool->threshold = *static_cast<cuuint64_t*>(value);
  } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    if (*static_cast<cuuint64_t*>(value) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    pool->used_high = pool->used;
  } else {
    pool->attributes[attribute] = static_cast<uint64_t>(*static_cast<int*>(value));
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  Call call("cuMemPoolGetAttribute", Call::Needs::init, false, Call::Beside::unsafe);
  auto* pool = reinterpret_cast<Pool*>(handle);
  if (call.failed() || !is_known(pool)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *static_cast<cuuint64_t*>(value) = pool->threshold;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *static_cast<cuuint64_t*>(value) = pool->reserved;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *static_cast<cuuint64_t*>(value) = pool->used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *static_cast<cuuint64_t*>(value) = pool->used_high;
      break;
    default:
      *static_cast<int*>(value) = pool->attributes.count(attribute) != 0 ? static_cast<int>(pool->attributes[attribute]) : 1;
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep) {
  Call call("cuMemPoolTrimTo", Call::Needs::init, false, Call::Beside::unsafe);
  auto* pool = reinterpret_cast<Pool*>(handle);
  if (call.failed() || !is_known(pool)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  trim(*pool, keep);
  return CUDA_SUCCESS;
}

// Each peer by a call that names it alone; the owner's own access is not for sale (101).
SIM_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  Call call("cuMemPoolSetAccess", Call::Needs::init);
  auto* pool = reinterpret_cast<Pool*>(handle);
  if (call.failed() || !is_known(pool)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    if (map[i].location.id == pool->device->ordinal && map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
    pool->readers.insert(map[i].location.id);
  }
  return CUDA_SUCCESS;
}
