#include "runtime/graph_memory.h"

#include <algorithm>
#include <utility>

#include "runtime/base/memory_map.h"
#include "runtime/runtime.h"

namespace xlog {

namespace {

// The driver's step: each node has memory of its own.
constexpr uint64_t kStep = 32 << 20;

uint64_t rounded(uint64_t bytes) noexcept { return (bytes + kStep - 1) / kStep * kStep; }

bool has(uint32_t devices, size_t device) noexcept { return (devices >> device & 1) != 0; }

}  // namespace

void GraphFootprint::allocates(CUdeviceptr ptr, size_t bytes, int device) noexcept {
  if (device < 0 || static_cast<size_t>(device) >= kMaxDevices) {
    return;
  }
  any_ = true;
  uint64_t& now = now_.bytes[device];
  now += rounded(bytes);
  most_.bytes[device] = std::max(most_.bytes[device], now);
  bool known = false;
  if (Node* node = live_.claim(ptr, known); node != nullptr) {
    node->bytes = rounded(bytes);
    node->device = device;
  }
}

void GraphFootprint::frees(CUdeviceptr ptr) noexcept {
  if (Node* node = live_.find(ptr); node != nullptr) {
    now_.bytes[node->device] -= node->bytes;
    live_.erase(node);
  }
}

void GraphMemory::instantiated(CUgraphExec exec, const GraphNeed& need) noexcept {
  LockGuard guard(lock_);
  bool known = false;
  Exec* entry = execs_.claim(reinterpret_cast<uint64_t>(exec), known);
  if (entry == nullptr) {
    return;
  }
  if (known) {
    leave(*entry, entry->resident);
  }
  entry->need = need;
  entry->devices = entry->resident = 0;
  for (size_t i = 0; i < kMaxDevices; ++i) {
    entry->devices |= need.bytes[i] != 0 ? 1U << i : 0;
  }
  known_.store(static_cast<uint32_t>(execs_.size()), std::memory_order_release);
}

void GraphMemory::leave(Exec& exec, uint32_t devices) noexcept {
  for (size_t i = 0; i < kMaxDevices; ++i) {
    if (has(devices & exec.resident, i)) {
      counted_[i].resident -= exec.need.bytes[i];
    }
  }
  exec.resident &= ~devices;
}

void GraphMemory::destroyed(CUgraphExec exec) noexcept {
  if (known_.load(std::memory_order_acquire) == 0) {
    return;
  }
  LockGuard guard(lock_);
  if (Exec* entry = execs_.find(reinterpret_cast<uint64_t>(exec)); entry != nullptr) {
    leave(*entry, entry->resident);
    execs_.erase(entry);
    known_.store(static_cast<uint32_t>(execs_.size()), std::memory_order_release);
  }
}

bool GraphMemory::find(CUgraphExec exec, uint32_t& devices) noexcept {
  if (known_.load(std::memory_order_acquire) == 0) {
    return false;
  }
  LockGuard guard(lock_);
  Exec* entry = execs_.find(reinterpret_cast<uint64_t>(exec));
  devices = entry != nullptr ? entry->devices : 0;
  return entry != nullptr;
}

// What graphs that are gone had is there for this one; what others have may be in use beside it.
uint64_t GraphMemory::missing(CUgraphExec exec, int device, uint64_t reserved) noexcept {
  LockGuard guard(lock_);
  Exec* entry = execs_.find(reinterpret_cast<uint64_t>(exec));
  if (entry == nullptr || has(entry->resident, static_cast<size_t>(device))) {
    return 0;
  }
  uint64_t resident = counted_[device].resident;
  uint64_t idle = reserved > resident ? reserved - resident : 0;
  uint64_t need = entry->need.bytes[device];
  return need > idle ? need - idle : 0;
}

void GraphMemory::launched(CUgraphExec exec) noexcept {
  LockGuard guard(lock_);
  Exec* entry = execs_.find(reinterpret_cast<uint64_t>(exec));
  for (size_t i = 0; entry != nullptr && i < kMaxDevices; ++i) {
    if (has(entry->devices & ~entry->resident, i)) {
      counted_[i].resident += entry->need.bytes[i];
    }
  }
  if (entry != nullptr) {
    entry->resident = entry->devices;
  }
}

void GraphMemory::trimmed(int device) noexcept {
  LockGuard guard(lock_);
  execs_.erase_if([this, device](Exec& each) {
    leave(each, 1U << device);
    return false;
  });
}

bool GraphMemory::pop(int device, uint64_t reserved, DeviceBlock& out) noexcept {
  LockGuard guard(lock_);
  Counted& counted = counted_[device];
  bool too_much = counted.bytes > reserved;
  bool full = counted.count == kMostBlocks;  // two growths become one
  if (counted.count == 0 || (!too_much && !full)) {
    return false;
  }
  out = std::move(counted.blocks[--counted.count]);
  counted.bytes -= out.bytes;
  return true;
}

uint64_t GraphMemory::grew(int device, uint64_t reserved) noexcept {
  LockGuard guard(lock_);
  Counted& counted = counted_[device];
  uint64_t growth = reserved > counted.bytes ? reserved - counted.bytes : 0;
  counted.bytes += growth;
  return growth;
}

void GraphMemory::push(int device, DeviceBlock&& block) noexcept {
  LockGuard guard(lock_);
  Counted& counted = counted_[device];
  if (counted.count < kMostBlocks) {
    counted.blocks[counted.count++] = std::move(block);
  }
}

void Runtime::graph_instantiated(CUgraphExec exec, CUgraph graph) noexcept {
  size_t count = 0;
  if (driver_.cuGraphGetNodes == nullptr || driver_.cuGraphMemAllocNodeGetParams == nullptr ||
      driver_.cuGraphGetNodes(graph, nullptr, &count) != CUDA_SUCCESS || count == 0) {
    return;
  }
  size_t mapped_bytes = count * sizeof(CUgraphNode);
  auto* nodes = static_cast<CUgraphNode*>(map_state(mapped_bytes));
  GraphFootprint footprint;
  if (nodes == nullptr || driver_.cuGraphGetNodes(graph, nodes, &count) != CUDA_SUCCESS) {
    count = 0;
  }
  for (size_t i = 0; i < count; ++i) {
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    driver_.cuGraphNodeGetType(nodes[i], &type);
    CUDA_MEM_ALLOC_NODE_PARAMS made{};
    CUdeviceptr freed = 0;
    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && driver_.cuGraphMemAllocNodeGetParams(nodes[i], &made) == CUDA_SUCCESS &&
        made.poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
      footprint.allocates(made.dptr, made.bytesize, made.poolProps.location.id);
    } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE && driver_.cuGraphMemFreeNodeGetParams(nodes[i], &freed) == CUDA_SUCCESS) {
      footprint.frees(freed);
    }
  }
  if (nodes != nullptr) {
    unmap_state(nodes, mapped_bytes);
  }
  if (footprint.any()) {
    graphs_.instantiated(exec, footprint.most());
  }
}

void Runtime::settle_graph_memory(int ordinal, DeviceBlock& promised, const void* caller, std::string_view api) noexcept {
  NativeDevice* target = device(ordinal);
  cuuint64_t reserved = 0;
  if (target == nullptr || driver_.cuDeviceGetGraphMemAttribute == nullptr ||
      driver_.cuDeviceGetGraphMemAttribute(ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved) != CUDA_SUCCESS) {
    return;
  }
  auto nothing = [](uint64_t&) noexcept { return CUDA_SUCCESS; };
  DriverCall no_call(nothing);
  FreeRequest request{.caller = caller, .api = api, .own = &no_call};
  DeviceBlock block;
  while (graphs_.pop(ordinal, reserved, block)) {
    static_cast<void>(target->top().deallocate(block, request));
  }
  uint64_t growth = graphs_.grew(ordinal, reserved);
  if (promised.ptr != 0 && promised.bytes == growth) {
    graphs_.push(ordinal, std::move(promised));
    return;
  }
  if (promised.ptr != 0) {
    static_cast<void>(target->top().deallocate(promised, request));
  }
  if (growth != 0) {
    auto name = [this](uint64_t& made) noexcept {
      made = graphs_.name();
      return CUDA_SUCCESS;
    };
    DriverCall named(name);
    AllocationRequest real{
        .bytes = growth, .caller = caller, .kind = Kind::graph, .api = api, .device = ordinal, .own = &named, .in_use_already = true};
    if (target->top().allocate(real, block).ok()) {
      graphs_.push(ordinal, std::move(block));
    }
  }
}

CUresult Runtime::launch_graph(CUgraphExec exec, const void* caller, std::string_view api, const DriverCall& call) noexcept {
  uint32_t devices = 0;
  uint64_t unused = 0;
  if (!graphs_.find(exec, devices)) {
    return call(unused);
  }
  auto name = [this](uint64_t& made) noexcept {
    made = graphs_.name();
    return CUDA_SUCCESS;
  };
  DriverCall named(name);
  DeviceBlock promised[kMaxDevices];
  CUresult result = CUDA_SUCCESS;
  for (int i = 0; i < static_cast<int>(kMaxDevices) && result == CUDA_SUCCESS; ++i) {
    NativeDevice* target = has(devices, static_cast<size_t>(i)) ? device(i) : nullptr;
    cuuint64_t reserved = 0;
    if (target != nullptr && target->budget() != nullptr && driver_.cuDeviceGetGraphMemAttribute != nullptr) {
      driver_.cuDeviceGetGraphMemAttribute(i, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved);
      uint64_t missing = graphs_.missing(exec, i, reserved);
      AllocationRequest request{.bytes = missing, .caller = caller, .kind = Kind::graph, .api = api, .device = i, .own = &named};
      result = missing != 0 ? target->top().allocate(request, promised[i]).code : CUDA_SUCCESS;
    }
  }
  if (result == CUDA_SUCCESS) {
    result = call(unused);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && relieve()) {
      result = call(unused);
    }
    if (result == CUDA_SUCCESS) {
      graphs_.launched(exec);
    }
  }
  // Also after a failure: a launch that finds no memory was seen to keep what it found (README.md).
  for (int i = 0; i < static_cast<int>(kMaxDevices); ++i) {
    if (has(devices, static_cast<size_t>(i))) {
      settle_graph_memory(i, promised[i], caller, api);
    }
  }
  return result;
}

void Runtime::graph_memory_trimmed(int ordinal, const void* caller, std::string_view api) noexcept {
  if (ordinal < 0 || static_cast<size_t>(ordinal) >= kMaxDevices) {
    return;
  }
  graphs_.trimmed(ordinal);
  DeviceBlock none;
  settle_graph_memory(ordinal, none, caller, api);
}

}  // namespace xlog
