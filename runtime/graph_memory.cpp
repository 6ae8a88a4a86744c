#include "runtime/graph_memory.h"

#include <utility>

#include "runtime/base/ask.h"
#include "runtime/runtime.h"

namespace xlog {

// Under the lock; nullptr when there is no host memory.
GraphMemory::Counted* GraphMemory::counted(int device) noexcept {
  Counted* each = devices_;
  while (each != nullptr && each->device != device) {
    each = each->next;
  }
  if (each == nullptr) {
    each = counteds_.get();
    if (each != nullptr) {
      each->device = device;
      each->next = devices_;
      devices_ = each;
    }
  }
  return each;
}

bool GraphMemory::instantiated(CUgraphExec exec, GraphFootprint& footprint) noexcept {
  LockGuard guard(lock_);
  bool known = false;
  Exec* entry = execs_.claim(reinterpret_cast<uint64_t>(exec), known);
  if (entry == nullptr) {
    return false;
  }
  if (known) {  // it ended out of our sight
    drop(*entry);
  }
  entry->parts = nullptr;
  bool complete = true;
  footprint.each_device([&](int device, uint64_t bytes) {
    Part* part = counted(device) != nullptr ? parts_.get() : nullptr;
    complete = complete && part != nullptr;
    if (part != nullptr) {
      *part = {.next = entry->parts, .device = device, .bytes = bytes, .resident = false};
      entry->parts = part;
    }
  });
  known_.store(static_cast<uint32_t>(execs_.size()), std::memory_order_release);
  return complete;
}

void GraphMemory::leave(Part* part) noexcept {
  if (part->resident) {
    counted(part->device)->resident -= part->bytes;
    part->resident = false;
  }
}

void GraphMemory::drop(Exec& exec) noexcept {
  for (Part* each = exec.parts; each != nullptr; each = each->next) {
    leave(each);
  }
  parts_.put_list(exec.parts);
  exec.parts = nullptr;
}

bool GraphMemory::begin_end(CUgraphExec exec, Exec& out) noexcept {
  if (known_.load(std::memory_order_acquire) == 0) {
    return false;
  }
  LockGuard guard(lock_);
  Exec* entry = execs_.find(reinterpret_cast<uint64_t>(exec));
  if (entry == nullptr) {
    return false;
  }
  out = *entry;
  execs_.erase(entry);
  known_.store(static_cast<uint32_t>(execs_.size()), std::memory_order_release);
  return true;
}

void GraphMemory::finish_end(const Exec& ending, bool destroyed) noexcept {
  LockGuard guard(lock_);
  bool known = false;
  Exec ended = ending;
  Exec* entry = destroyed ? nullptr : execs_.claim(ended.ptr, known);
  if (entry == nullptr) {
    drop(ended);
    return;
  }
  entry->parts = ended.parts;
  known_.store(static_cast<uint32_t>(execs_.size()), std::memory_order_release);
}

GraphMemory::Promise* GraphMemory::promises(CUgraphExec exec) noexcept {
  if (known_.load(std::memory_order_acquire) == 0) {
    return nullptr;
  }
  LockGuard guard(lock_);
  Exec* entry = execs_.find(reinterpret_cast<uint64_t>(exec));
  Promise* list = nullptr;
  for (Part* each = entry != nullptr ? entry->parts : nullptr; each != nullptr; each = each->next) {
    Promise* promise = promises_.get();
    if (promise != nullptr) {
      promise->device = each->device;
      promise->next = list;
      list = promise;
    }
  }
  return list;
}

GraphMemory::Part* GraphMemory::part_of(CUgraphExec exec, int device) noexcept {
  Exec* entry = execs_.find(reinterpret_cast<uint64_t>(exec));
  Part* part = entry != nullptr ? entry->parts : nullptr;
  while (part != nullptr && part->device != device) {
    part = part->next;
  }
  return part;
}

// What graphs that are gone had is there for this one; what others have may be in use beside it.
uint64_t GraphMemory::missing(CUgraphExec exec, Promise& promise, uint64_t reserved) noexcept {
  LockGuard guard(lock_);
  Part* part = part_of(exec, promise.device);
  if (part == nullptr || part->resident) {
    return 0;
  }
  Counted* here = counted(promise.device);
  uint64_t idle = reserved > here->resident ? reserved - here->resident : 0;
  here->resident += part->bytes;
  part->resident = promise.made_resident = true;
  return part->bytes > idle ? part->bytes - idle : 0;
}

void GraphMemory::refused(CUgraphExec exec, const Promise& promise) noexcept {
  LockGuard guard(lock_);
  Part* part = promise.made_resident ? part_of(exec, promise.device) : nullptr;
  if (part != nullptr) {
    leave(part);
  }
}

void GraphMemory::trimmed(int device) noexcept {
  LockGuard guard(lock_);
  execs_.erase_if([this, device](Exec& each) {
    for (Part* part = each.parts; part != nullptr; part = part->next) {
      if (part->device == device) {
        leave(part);
      }
    }
    return false;
  });
}

bool GraphMemory::pop(int device, uint64_t reserved, DeviceBlock& out) noexcept {
  LockGuard guard(lock_);
  Counted* here = counted(device);
  Growth* last = here != nullptr ? here->growths : nullptr;
  if (last == nullptr || here->bytes <= reserved) {
    return false;
  }
  here->growths = last->next;
  out = std::move(last->block);
  here->bytes -= out.bytes;
  growths_.put(last);
  return true;
}

uint64_t GraphMemory::grew(int device, uint64_t reserved) noexcept {
  LockGuard guard(lock_);
  Counted* here = counted(device);
  uint64_t growth = here != nullptr && reserved > here->bytes ? reserved - here->bytes : 0;
  if (growth != 0) {
    here->bytes += growth;
  }
  return growth;
}

void GraphMemory::push(int device, DeviceBlock&& block) noexcept {
  LockGuard guard(lock_);
  Counted* here = counted(device);
  Growth* growth = here != nullptr ? growths_.get() : nullptr;
  if (growth != nullptr) {
    growth->block = std::move(block);
    growth->next = here->growths;
    here->growths = growth;
  }
}

void Runtime::graph_instantiated(CUgraphExec exec, CUgraph graph) noexcept {
  GraphFootprint footprint(driver_);
  bool known = footprint.read(graph);
  known = known && (footprint.empty() || graphs_.instantiated(exec, footprint));
  if (!known && said_graph_.first()) {
    say("what a graph allocates could not be read or remembered: its launches are neither limited nor in the log");
  }
}

CUresult Runtime::end_graph(CUgraphExec exec, const DriverCall& call) noexcept {
  GraphMemory::Exec ending;
  uint64_t unused = 0;
  bool known = graphs_.begin_end(exec, ending);
  CUresult result = call(unused);
  if (known) {
    graphs_.finish_end(ending, result == CUDA_SUCCESS);
  }
  return result;
}

void Runtime::settle_graph_memory(int ordinal, DeviceBlock& promised, const void* caller, std::string_view api) noexcept {
  NativeDevice* target = device(ordinal);
  cuuint64_t reserved = 0;
  if (target == nullptr || driver_.cuDeviceGetGraphMemAttribute == nullptr ||
      ask_twice([&] { return driver_.cuDeviceGetGraphMemAttribute(ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved); }) !=
          CUDA_SUCCESS) {
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
  // What the driver has counts while one block takes the place of another.
  GlobalDeviceBudget* budget = target->budget();
  if (budget != nullptr) {
    budget->hold(growth);
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
  if (budget != nullptr) {
    budget->let_go(growth);
  }
}

CUresult Runtime::promise_graph_memory(CUgraphExec exec, GraphMemory::Promise& promise, const void* caller, std::string_view api) noexcept {
  NativeDevice* target = device(promise.device);
  cuuint64_t reserved = 0;
  if (target == nullptr || target->budget() == nullptr || driver_.cuDeviceGetGraphMemAttribute == nullptr ||
      ask_twice([&] { return driver_.cuDeviceGetGraphMemAttribute(promise.device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &reserved); }) !=
          CUDA_SUCCESS) {
    return CUDA_SUCCESS;
  }
  auto name = [this](uint64_t& made) noexcept {
    made = graphs_.name();
    return CUDA_SUCCESS;
  };
  DriverCall named(name);
  uint64_t missing = graphs_.missing(exec, promise, reserved);
  AllocationRequest request{.bytes = missing, .caller = caller, .kind = Kind::graph, .api = api, .device = promise.device, .own = &named};
  return missing != 0 ? target->top().allocate(request, promise.block).code : CUDA_SUCCESS;
}

CUresult Runtime::launch_graph(CUgraphExec exec, const void* caller, std::string_view api, const DriverCall& call) noexcept {
  uint64_t unused = 0;
  GraphMemory::Promise* promises = graphs_.promises(exec);
  if (promises == nullptr) {
    return call(unused);
  }
  CUresult result = CUDA_SUCCESS;
  for (GraphMemory::Promise* each = promises; each != nullptr && result == CUDA_SUCCESS; each = each->next) {
    result = promise_graph_memory(exec, *each, caller, api);
  }
  if (result == CUDA_SUCCESS) {
    result = call(unused);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && relieve()) {
      result = call(unused);
    }
  }
  // Also after a failure: a launch that finds no memory was seen to keep what it found (README.md).
  for (GraphMemory::Promise* each = promises; each != nullptr; each = each->next) {
    if (result != CUDA_SUCCESS) {
      graphs_.refused(exec, *each);
    }
    settle_graph_memory(each->device, each->block, caller, api);
  }
  graphs_.put(promises);
  return result;
}

void Runtime::graph_memory_trimmed(int ordinal, const void* caller, std::string_view api) noexcept {
  graphs_.trimmed(ordinal);
  DeviceBlock none;
  settle_graph_memory(ordinal, none, caller, api);
}

}  // namespace xlog
