// The guard as the program's other calls see it: addresses, copies and frees are answered as if it were not there.
#include "runtime/base/ask.h"
#include "runtime/base/diagnostics.h"
#include "runtime/base/thread.h"
#include "runtime/runtime.h"

namespace xlog {

bool Runtime::find_range(CUdeviceptr ptr, CUdeviceptr& base, size_t& bytes) noexcept {
  if (driver_.cuMemGetAddressRange_v2(&base, &bytes, ptr) != CUDA_SUCCESS) {
    return false;
  }
  as_asked_for(base, bytes);
  return true;
}

bool Runtime::as_asked_for(CUdeviceptr& base, size_t& bytes) noexcept {
  CUdeviceptr block = 0;
  if (has_fences()) {
    devices_in_use_.each(
        [&](NativeDevice& target) { block = block == 0 && target.fence() != nullptr ? target.fence()->block_in(base) : block; });
  }
  base = block != 0 ? block : base;
  bool changed = false;
  registry_.visit(base, [&](const DeviceBlock* found) {
    changed = found != nullptr && (found->guard_bytes != 0 || found->maker == Maker::fence);
    bytes = changed ? found->bytes : bytes;
    return false;
  });
  return changed;
}

// The driver answers for every range that begins in memory which the guard has left as it is. Such a range may be longer than
// what cuMemGetAddressRange tells: a copy may run over mappings that lie side by side (measured on an H200), as it does in a
// program with expandable segments.
bool Runtime::is_past_the_end(CUdeviceptr ptr, size_t bytes) noexcept {
  CUdeviceptr base = 0;
  size_t size = 0;
  if (bytes == 0 || driver_.cuMemGetAddressRange_v2(&base, &size, ptr) != CUDA_SUCCESS) {
    return false;
  }
  bool changed = as_asked_for(base, size);
  bool held = false;
  each_guard([&](GuardResource& guard) { held = held || guard.holds(base); });
  size_t offset = ptr - base;  // above all sizes where it lies before a fenced block
  return held || (changed && (offset > size || bytes > size - offset));
}

void Runtime::fix_attribute(CUpointer_attribute attribute, void* data, CUdeviceptr ptr) noexcept {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  bool about_range = attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR || attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
  if ((!about_range && attribute != CU_POINTER_ATTRIBUTE_CONTEXT) || !find_range(ptr, base, bytes)) {
    return;
  }
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) {
    *static_cast<CUdeviceptr*>(data) = base;
  } else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
    *static_cast<size_t*>(data) = bytes;
  } else {
    registry_.visit(base, [&](const DeviceBlock* found) {
      if (found != nullptr && found->maker == Maker::fence) {
        *static_cast<CUcontext*>(data) = found->context;
      }
      return false;
    });
  }
}

bool Runtime::is_fenced(CUdeviceptr ptr) noexcept {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  bool fenced = false;
  if (has_fences() && find_range(ptr, base, bytes)) {
    registry_.visit(base, [&](const DeviceBlock* found) {
      fenced = found != nullptr && found->maker == Maker::fence;
      return false;
    });
  }
  return fenced;
}

CUdeviceptr Runtime::as_without_guard(CUdeviceptr ptr) noexcept {
  return is_gone(ptr) || (guards() && is_past_the_end(ptr, 1)) ? kNoBlock : ptr;
}

void Runtime::report_bad_free(CUdeviceptr ptr, const FreeRequest& request) noexcept {
  GuardRecord record{};
  Finding finding{.kind = FindingKind::double_free, .block = &record, .found_by = request.api};
  bool known = false;
  each_guard([&](GuardResource& guard) { known = known || guard.find_leaving(ptr, record); });
  if (!known && !guard_records_.find_freed(ptr, record)) {
    CUdeviceptr base = 0;
    size_t bytes = 0;
    if (!find_range(ptr, base, bytes)) {
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
  if (!options_.guards()) {
    return;
  }
  devices_in_use_.each([&](NativeDevice& target) {
    if (target.guard() != nullptr) {
      target.guard()->begin_context_end(context, alive, api, [&target](DeviceBlock& block) {
        target.ended(block);
        if (block.maker != Maker::driver) {
          target.source_of(block)->end_block(block);
        }
      });
    }
  });
}

GuardResource* Runtime::current_guard(CUcontext& context) noexcept {
  NativeDevice* target = device(devices_.of_current(driver_));
  bool found = target != nullptr && ask_twice([&] { return driver_.cuCtxGetCurrent(&context); }) == CUDA_SUCCESS;
  return found ? target->guard() : nullptr;
}

void Runtime::prepare_launch() noexcept {
  CUcontext context = nullptr;
  GuardResource* guard = current_guard(context);
  if (guard != nullptr) {
    guard->prepare_launch(context);
  }
}

void Runtime::launched(CUfunction function, const StreamArg& stream) noexcept {
  if (gate_.is_capturing() && is_capturing(stream)) {
    return;  // a node of a graph: it runs when that is launched
  }
  Launch launch = launches_.note(driver_, function);
  CUcontext context = nullptr;
  GuardResource* guard = current_guard(context);
  if (guard != nullptr) {
    guard->launched(launch, stream, context);
  }
}

void Runtime::explain_fault(std::string_view api) noexcept {
  Launch last[Launches::kLast];
  findings_.report_fault(api, guard_records_, {last, launches_.last(last)});
}

uint32_t Runtime::check_on_request() noexcept {
  if (guards()) {
    check_guarded("the check that the program asked for", false);
  }
  return findings_.count();
}

// Where exit() was called in a signal handler that interrupted a call of this thread, that call never goes on, and whatever it holds,
// here or in the driver, is never free again.
void Runtime::check_guarded(std::string_view found_by, bool at_exit) noexcept {
  if (at_exit && ReentryGuard::nested()) {
    say("guard: no check at exit, because a signal handler that interrupted a call of the driver's has called exit()");
    return;
  }
  each_guard([=](GuardResource& guard) { guard.check_all(found_by, at_exit); });
}

}  // namespace xlog
