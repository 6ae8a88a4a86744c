// Memory that the program's own calls make: the driver's call, with the budget and the log around it.
#include <utility>

#include "runtime/base/ask.h"
#include "runtime/runtime.h"

namespace xlog {

NativeDevice* Runtime::outside(Kind kind) noexcept {
  bool host = kind == Kind::host;
  std::atomic<NativeDevice*>& place = host ? host_ : imports_;
  NativeDevice* found = place.load(std::memory_order_acquire);
  if (found == nullptr) {
    LockGuard guard(lock_);
    found = place.load(std::memory_order_relaxed);
    if (found == nullptr) {
      DeviceFacts facts;
      facts.limit = host ? options_.host_budget : UINT64_MAX;
      found = new (outside_storage_[host ? 0 : 1]) NativeDevice(driver_, options_, recorder_, gate_, -1, facts, Maker::driver, nullptr);
      place.store(found, std::memory_order_release);
    }
  }
  return found;
}

CUresult Runtime::account(AllocationRequest& request, const DriverCall& call, uint64_t& made) noexcept {
  follow_log_switch();
  NativeDevice* target = is_outside(request.kind) ? outside(request.kind) : device(request.device);
  if (target == nullptr) {
    uint64_t start = steady_time();
    CUresult result = call(made);
    allocate_unplaced(request, result, steady_time() - start);
    return result;
  }
  ask_twice([&] { return driver_.cuCtxGetCurrent(&request.context); });
  request.own = &call;
  DeviceBlock block;
  block.ptr = made;
  make_room(*target, request);
  Status status = target->top().allocate(request, block);
  made = block.ptr;
  uint64_t bytes = block.bytes;
  if (status.ok()) {
    keep(std::move(block));
  }
  note_outcome(*target, request, status, bytes);
  return status.code;
}

CUresult Runtime::end_accounted(uint64_t made, Kind kind, FreeRequest& request, const DriverCall& call) noexcept {
  follow_log_switch();
  DeviceBlock block;
  bool known = registry_.take_one(
      made, block, [kind](const DeviceBlock& each) { return each.kind == kind || (kind == Kind::vmm && each.kind == Kind::import); });
  NativeDevice* owner = known ? owner_of(block) : nullptr;
  if (owner == nullptr) {
    return call(made);
  }
  request.own = &call;
  Status status = owner->top().deallocate(block, request);
  if (!status.ok()) {
    keep(std::move(block));
  }
  look_at_driver_use(*owner, false);
  return status.code;
}

// What is opened again is known only after the call, so the call is made first: its row tells no duration.
CUresult Runtime::open_import(AllocationRequest& request, const DriverCall& call, uint64_t& made) noexcept {
  CUresult result = call(made);
  if (result != CUDA_SUCCESS) {
    allocate_unplaced(request, result, 0);
  } else if (physical_.opened(made)) {
    auto done = [made](uint64_t& out) noexcept {
      out = made;
      return CUDA_SUCCESS;
    };
    request.bytes = request.bytes != 0 ? request.bytes : range_of(made);
    account(request, DriverCall(done), made);
  }
  return result;
}

CUresult Runtime::close_import(uint64_t made, FreeRequest& request, const DriverCall& call) noexcept {
  bool last = physical_.release(made);
  CUresult result = last ? end_accounted(made, Kind::import, request, call) : call(made);
  if (result != CUDA_SUCCESS) {
    physical_.release_failed(made, last);
  }
  return result;
}

size_t Runtime::range_of(CUdeviceptr ptr) noexcept {
  size_t bytes = 0;
  CUdeviceptr base = 0;
  bool known = driver_.cuMemGetAddressRange_v2(&base, &bytes, ptr) == CUDA_SUCCESS;
  return known ? bytes : 0;
}

CUresult Runtime::create_physical(AllocationRequest& request, const DriverCall& call, uint64_t& made) noexcept {
  CUresult result = account(request, call, made);
  if (result == CUDA_SUCCESS) {
    physical_.created(made);
  }
  return result;
}

// The driver may give the handle that it gave before: then it is the same memory, held once more. What is imported is known
// only after the call, so the call is made first: its row tells no duration.
CUresult Runtime::import_physical(AllocationRequest& request, const DriverCall& call, uint64_t& made, const void* shared,
                                  CUmemAllocationHandleType type) noexcept {
  CUresult result = call(made);
  if (result != CUDA_SUCCESS) {
    allocate_unplaced(request, result, 0);
  } else if (!physical_.retained(made)) {
    auto done = [made](uint64_t& out) noexcept {
      out = made;
      return CUDA_SUCCESS;
    };
    account(request, DriverCall(done), made);
    physical_.created(made);
    exports_.imported(made, shared, type);
  }
  return result;
}

void Runtime::exported(uint64_t handle, const void* shared, CUmemAllocationHandleType type) noexcept {
  if (exports_.exported_again(handle, shared, type)) {
    return;
  }
  size_t bytes = 0;
  int ordinal = -1;
  registry_.visit(handle, [&](DeviceBlock* block) {
    if (block != nullptr && block->kind == Kind::vmm) {
      bytes = block->bytes;
      ordinal = block->device;
    }
    return false;
  });
  NativeDevice* target = ordinal >= 0 ? device(ordinal) : nullptr;
  if (target != nullptr && target->budget() != nullptr) {
    exports_.exported(handle, bytes, ordinal, shared, type);
  }
}

// Before the block's end is accounted for, so that the memory is not counted as free in between.
void Runtime::begin_handle_end(uint64_t handle) noexcept {
  size_t bytes = 0;
  int ordinal = -1;
  if (exports_.ends(handle, bytes, ordinal)) {
    device(ordinal)->budget()->hold(bytes);
  }
}

void Runtime::finish_handle_end(uint64_t handle, CUresult result) noexcept {
  size_t bytes = 0;
  int ordinal = -1;
  if (result == CUDA_SUCCESS) {
    exports_.end_done(handle);
    let_go_of_exports();
  } else if (exports_.end_failed(handle, bytes, ordinal)) {
    device(ordinal)->budget()->let_go(bytes);
  }
}

void Runtime::let_go_of_exports() noexcept {
  size_t bytes = 0;
  int ordinal = -1;
  while (exports_.next_gone(bytes, ordinal)) {
    device(ordinal)->budget()->let_go(bytes);
  }
}

// What a backend keeps of freed plain memory is lost to the card, too: it goes back before other memory takes its place
// under the limit. (Plain memory of a backend is kept within the limit by the backend.) Exported memory is looked at only
// where that may decide.
void Runtime::make_room(NativeDevice& target, const AllocationRequest& request) noexcept {
  bool keeps = target.source() != nullptr || target.fence() != nullptr;
  BudgetSnapshot budget;
  if ((!keeps && !exports_.any_ended()) || !target.top().budget_snapshot(budget)) {
    return;
  }
  constexpr uint64_t kSlab = 32 << 20;
  uint64_t bytes = request.bytes < budget.limit ? request.bytes + kSlab : budget.limit;
  if (exports_.any_ended() && budget.remaining() < bytes) {
    let_go_of_exports();
  }
  if (!keeps || (request.kind == Kind::plain && request.own == nullptr)) {
    return;
  }
  uint64_t idle = target.source() != nullptr ? target.source()->idle_bytes() : 0;
  idle += target.fence() != nullptr ? target.fence()->idle_bytes() : 0;
  if (idle != 0 && budget.remaining() < UINT64_MAX - idle && budget.remaining() < idle + bytes) {
    relieve();
  }
}

CUresult Runtime::release_physical(uint64_t handle, FreeRequest& request, const DriverCall& call) noexcept {
  bool last = physical_.release(handle);
  if (last) {
    begin_handle_end(handle);
  }
  CUresult result = last ? end_accounted(handle, Kind::vmm, request, call) : call(handle);
  if (last) {
    finish_handle_end(handle, result);
  }
  if (result != CUDA_SUCCESS) {
    physical_.release_failed(handle, last);
  }
  return result;
}

// For whoever looks an address up: the blocks of physical memory stand in the log by their handles.
void Runtime::record_mapping(std::string_view action, CUdeviceptr address, size_t bytes, uint64_t handle, std::string_view api,
                             const void* caller) noexcept {
  if (!is_logging()) {
    return;
  }
  Text<40> message;
  message.put("handle 0x").hex(handle, 1);
  Event event;
  event.action = action;
  event.ptr = address;
  event.bytes = bytes;
  event.kind = kind_name(Kind::vmm);
  event.api = api;
  event.result = result_name(CUDA_SUCCESS);
  event.message = message.view();
  event.stack_id = recorder_.stack_id(caller);
  recorder_.record(event);
}

void Runtime::mapped(CUdeviceptr address, size_t bytes, uint64_t handle, const void* caller) noexcept {
  physical_.mapped(address, bytes, handle);
  record_mapping(action::map, address, bytes, handle, "cuMemMap", caller);
}

}  // namespace xlog
