// The guard as the program's other calls see it: addresses, copies and frees are answered as if it were not there.
#include "runtime/runtime.h"

namespace xlog {

bool Runtime::is_past_the_end(CUdeviceptr ptr, size_t bytes) noexcept {
  CUdeviceptr base = 0;
  size_t size = 0;
  if (bytes == 0 || driver_.cuMemGetAddressRange_v2(&base, &size, ptr) != CUDA_SUCCESS) {
    return false;  // the driver's to answer
  }
  bool held = false;
  each_guard([&](GuardResource& guard) { held = held || guard.holds(base); });
  size_t offset = ptr - base;
  size = without_zone(base, size);
  return held || offset > size || bytes > size - offset;
}

size_t Runtime::without_zone(CUdeviceptr base, size_t bytes) noexcept {
  registry_.visit(base, [&](const DeviceBlock* block) {
    bytes = block != nullptr && block->guard_bytes != 0 ? block->bytes : bytes;
    return false;
  });
  return bytes;
}

size_t Runtime::size_without_zone(CUdeviceptr ptr, size_t bytes) noexcept {
  CUdeviceptr base = 0;
  return driver_.cuMemGetAddressRange_v2(&base, nullptr, ptr) == CUDA_SUCCESS ? without_zone(base, bytes) : bytes;
}

CUdeviceptr Runtime::as_without_guard(CUdeviceptr ptr) noexcept { return is_past_the_end(ptr, 1) ? kNoBlock : ptr; }

void Runtime::report_bad_free(CUdeviceptr ptr, const FreeRequest& request) noexcept {
  GuardRecord record{};
  Finding finding{.kind = FindingKind::double_free, .block = &record, .found_by = request.api};
  bool known = false;
  each_guard([&](GuardResource& guard) { known = known || guard.find_leaving(ptr, record); });
  if (!known && !guard_records_.find_freed(ptr, record)) {
    CUdeviceptr base = 0;
    if (driver_.cuMemGetAddressRange_v2(&base, nullptr, ptr) != CUDA_SUCCESS) {
      return;
    }
    registry_.visit(base, [&](const DeviceBlock* block) {
      known = block != nullptr && block->guard != nullptr && base != ptr;
      record = known ? *block->guard : record;
      return false;
    });
    if (!known) {
      return;
    }
    finding.kind = FindingKind::interior_free;
    finding.freed_ptr = ptr;
  }
  finding.passed.take(request.caller);
  findings_.report(finding, guard_records_);
}

void Runtime::begin_guard_end(CUcontext context, bool alive, std::string_view api) noexcept {
  for (auto& each : built_) {
    NativeDevice* target = options_.guards() ? each.load(std::memory_order_acquire) : nullptr;
    if (target != nullptr && target->guard() != nullptr) {
      target->guard()->begin_context_end(context, alive, api, [target](DeviceBlock& block) {
        target->ended(block);
        if (block.maker != Maker::driver) {
          target->source()->end_block(block, false);
        }
      });
    }
  }
}

void Runtime::check_guarded(std::string_view found_by, bool at_exit) noexcept {
  each_guard([=](GuardResource& guard) { guard.check_all(found_by, at_exit); });
}

}  // namespace xlog
