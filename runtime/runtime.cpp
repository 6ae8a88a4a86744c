#include "runtime/runtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include "runtime/base/ask.h"
#include "runtime/base/backtrace.h"
#include "runtime/base/diagnostics.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/start_environment.h"
#include "runtime/base/thread.h"
#include "runtime/run_info.h"

namespace xlog {

namespace {

constinit std::atomic<Runtime*> the_runtime{nullptr};

const char* lookup_variable(const char* name) noexcept { return start_environment.value(name); }

void complain(std::string_view line, bool) noexcept { say(line); }

// A variable that was meant to be a limit, and is none, must not be passed over in silence.
bool check_names() noexcept {
  bool good = !start_environment.overflowed();
  if (!good) {
    say("the environment has more XLOG_ variables than can be kept; no GPU work is started");
  }
  start_environment.each_name([&good](std::string_view name) {
    std::string_view nearest;
    NameKind kind = kind_of_name(name, nearest);
    if (kind != NameKind::unknown && kind != NameKind::like_limit) {
      return;
    }
    Text<400> line;
    line.put(name.substr(0, 100)).put(" is not an option of this library");
    if (!nearest.empty()) {
      line.put("; did you mean ").put(nearest).put("?");
    }
    line.put(kind == NameKind::like_limit ? "; no GPU work is started" : "");
    say(line.view());
    good = good && kind != NameKind::like_limit;
  });
  return good;
}

void say_options() noexcept {
  Text<1000> line;
  line.put("options:");
  for (const OptionRow& row : kOptions) {
    const char* value = lookup_variable(row.name.data());
    if (value != nullptr) {
      line.put(' ').put(row.name).put('=').put(value);
    }
  }
  say(line.view());
}

}  // namespace

void Runtime::write_run_info(TextSink& out, const void* runtime) noexcept {
  const auto* self = static_cast<const Runtime*>(runtime);
  put_run_info(out, self->driver_, self->options_, self->folder_text_);
}

Runtime* Runtime::get() noexcept {
  Runtime* runtime = the_runtime.load(std::memory_order_acquire);
  if (runtime == nullptr) {
    auto* fresh = static_cast<Runtime*>(map_state(sizeof(Runtime)));
    if (fresh == nullptr || the_runtime.compare_exchange_strong(runtime, fresh, std::memory_order_acq_rel)) {
      return fresh;
    }
    unmap_state(fresh, sizeof(Runtime));
  }
  return runtime;
}

bool Runtime::prepare(const DriverApi& driver, FindPython find_python, ListGpuProcesses list_processes) noexcept {
  Phase phase = phase_.load(std::memory_order_acquire);
  if (phase == Phase::fresh) {
    LockGuard guard(lock_);
    phase = phase_.load(std::memory_order_relaxed);
    if (phase == Phase::fresh) {
      driver_ = driver;
      bool named_well = check_names();
      phase = parse_options(lookup_variable, complain, options_) && named_well ? Phase::ready : Phase::refused;
      engaged_ = phase == Phase::ready && options_.any();
      if (getcwd(folder_text_, sizeof folder_text_) == nullptr) {
        folder_text_[0] = '\0';
      }
      strncpy(program_, program_invocation_short_name, sizeof program_ - 1);
      recorder_.configure({.options = &options_,
                           .folder = folder_text_,
                           .program = program_,
                           .run_info = write_run_info,
                           .run_info_context = this,
                           .find_python = find_python,
                           .switchable = true});
      list_processes_ = list_processes;
      refusals_.configure(options_, recorder_, folder_text_);
      findings_.configure(options_.log.size != 0 ? &recorder_ : nullptr, options_.guard_action == GuardAction::abort);
      phase_.store(phase, std::memory_order_release);
    }
  }
  return phase == Phase::ready;
}

void Runtime::use_driver(const DriverApi& driver) noexcept { driver_ = driver; }

bool Runtime::begin() noexcept {
  if (!engaged_ || begun_.exchange(true, std::memory_order_relaxed)) {
    return false;
  }
  recorder_.allow();
  if (options_.log.size != 0 && options_.backtrace != 0) {
    warm_backtrace();
  }
  if (options_.verbose) {
    say_options();
  }
  return true;
}

// One list of keys may serve the processes of a machine of which each sees some GPUs: then a key may name a hidden one, as
// long as no GPU is left without a limit.
bool Runtime::check_budget_keys() noexcept {
  BudgetMatches matches;
  bool all_limited = true;
  int count = options_.budget.count != 0 ? devices_.count(driver_) : 0;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceFacts facts;
    if (read_device_facts(driver_, options_, ordinal, facts)) {
      options_.budget.match(static_cast<uint32_t>(ordinal), facts.uuid, matches);
    }
    all_limited = all_limited && facts.limit != UINT64_MAX;
  }
  const char* visible = secure_getenv("CUDA_VISIBLE_DEVICES");
  bool some_hidden = visible != nullptr && *visible != '\0';
  const BudgetPart* part = options_.budget.unmatched(matches);
  if (part == nullptr || (some_hidden && all_limited)) {
    return true;
  }
  phase_.store(Phase::refused, std::memory_order_release);
  if (said_keys_.first()) {
    Text<400> line;
    line.put("XLOG_BUDGET: ");
    if (part->key == BudgetPart::Key::ordinal) {
      line.put("there is no GPU ").decimal(part->ordinal);
    } else {
      line.put("no GPU's UUID begins with ").put(part->uuid);
    }
    line.put(" among the ").decimal(static_cast<uint64_t>(count)).put(" that this process sees; no GPU work is started");
    say(line.view());
  }
  return false;
}

NativeDevice* Runtime::device(int ordinal) noexcept {
  DeviceSlots::Slot* slot = devices_in_use_.at(ordinal);
  NativeDevice* found = slot != nullptr ? slot->built.load(std::memory_order_acquire) : nullptr;
  if (found != nullptr || slot == nullptr) {
    return found;
  }
  DeviceFacts facts;  // asked outside the lock: these are driver calls
  if (!read_device_facts(driver_, options_, ordinal, facts)) {
    return nullptr;
  }
  Maker maker = plain_maker(driver_, options_, ordinal);
  LockGuard guard(lock_);
  found = slot->built.load(std::memory_order_relaxed);
  if (found == nullptr) {
    DeviceStack::GuardParts guarded{driver_, gate_, guard_records_, findings_, facts.total_bytes};
    found = new (slot->storage) NativeDevice(driver_, options_, recorder_, gate_, ordinal, facts, maker, &guarded);
    slot->built.store(found, std::memory_order_release);
    if (options_.verbose && facts.limit != UINT64_MAX) {
      Text<300> line;
      line.put("GPU ").decimal(static_cast<uint64_t>(ordinal)).put(" (").put(facts.name).put(", ").put(facts.uuid);
      line.put("): limit ").decimal(facts.limit).put(" bytes");
      say(line.view());
    }
  }
  return found;
}

bool Runtime::is_capturing(const StreamArg& stream) noexcept {
  auto call = stream.per_thread_abi ? driver_.cuStreamIsCapturing_ptsz : driver_.cuStreamIsCapturing;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return call != nullptr &&
         (ask_twice([&] { return call(stream.handle, &status); }) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE);
}

// Finds the device to charge, and what the stack below needs to know. False: leave the call to the driver.
bool Runtime::locate(AllocationRequest& request) noexcept {
  switch (request.kind) {
    case Kind::plain:
    case Kind::pitch:
      request.device = devices_.of_current(driver_);
      ask_twice([&] { return driver_.cuCtxGetCurrent(&request.context); });
      return !in_first_context();
    case Kind::async:
    case Kind::pool:
      if (request.bytes == 0 || is_capturing(request.stream_arg)) {
        return false;  // a graph's memory, or no memory
      }
      request.device = request.kind == Kind::pool ? devices_.of_pool(driver_, request.pool) : Devices::kUnknown;
      if (request.device == Devices::kUnknown) {  // a pool that was made out of our sight is charged where it is used
        request.device = devices_.of_stream(driver_, request.stream_arg);
      }
      ask_twice([&] { return driver_.cuCtxGetCurrent(&request.context); });
      break;
    default:
      return false;
  }
  NativeDevice* target = device(request.device);
  bool wants_pool = target != nullptr && request.kind == Kind::async &&
                    (target->budget() != nullptr || target->guard() != nullptr || options_.backend == Backend::direct);
  if (wants_pool && driver_.cuDeviceGetMemPool != nullptr) {
    driver_.cuDeviceGetMemPool(&request.pool, request.device);
  }
  if (options_.backend == Backend::direct && request.kind == Kind::async) {
    CUmemoryPool standard = nullptr;
    bool from_default = driver_.cuDeviceGetDefaultMemPool != nullptr &&
                        driver_.cuDeviceGetDefaultMemPool(&standard, request.device) == CUDA_SUCCESS && standard == request.pool;
    // cuMemAlloc serves the current context's device, whatever the stream.
    request.as_plain = from_default && devices_.of_current(driver_) == request.device && !in_first_context();
  }
  return true;
}

CUresult Runtime::forward(const AllocationRequest& request, CUdeviceptr* dptr) noexcept {
  CUstream stream = request.stream_arg.handle;
  bool per_thread = request.stream_arg.per_thread_abi;
  switch (request.kind) {
    case Kind::pitch:
      return driver_.cuMemAllocPitch_v2(dptr, request.pitch_out, request.width_bytes, request.height, request.element_bytes);
    case Kind::async:
      return (per_thread ? driver_.cuMemAllocAsync_ptsz : driver_.cuMemAllocAsync)(dptr, request.bytes, stream);
    case Kind::pool:
      return (per_thread ? driver_.cuMemAllocFromPoolAsync_ptsz : driver_.cuMemAllocFromPoolAsync)(dptr, request.bytes, request.pool,
                                                                                                   stream);
    default:
      break;
  }
  return driver_.cuMemAlloc_v2(dptr, request.bytes);
}

CUresult Runtime::forward(CUdeviceptr ptr, const FreeRequest& request) noexcept {
  if (!request.ordered) {
    return driver_.cuMemFree_v2(ptr);
  }
  return (request.stream_arg.per_thread_abi ? driver_.cuMemFreeAsync_ptsz : driver_.cuMemFreeAsync)(ptr, request.stream_arg.handle);
}

// A call on no device of ours (no context, a host pool): the driver's answer, and a row that says so when it refused.
void Runtime::allocate_unplaced(const AllocationRequest& request, CUresult result, uint64_t elapsed_ns) noexcept {
  if (!is_logging() || result == CUDA_SUCCESS) {
    return;
  }
  Event event;
  event.action = action::allocate;
  event.bytes = request.bytes;
  event.kind = kind_name(request.kind);
  event.api = request.api;
  event.result = result_name(result);
  event.elapsed_ns = elapsed_ns;
  event.stack_id = recorder_.stack_id(request.caller);
  recorder_.record(event);
}

CUresult Runtime::allocate(AllocationRequest& request, CUdeviceptr* dptr) noexcept {
  follow_log_switch();
  bool complete = dptr != nullptr && (request.kind != Kind::pitch || request.pitch_out != nullptr);
  if (!complete || !locate(request)) {
    return forward(request, dptr);
  }
  NativeDevice* target = device(request.device);
  if (target == nullptr) {
    uint64_t start = steady_time();
    CUresult result = forward(request, dptr);
    allocate_unplaced(request, result, steady_time() - start);
    return result;
  }
  DeviceBlock block;
  block.ptr = *dptr;
  make_room(*target, request);
  Status status = target->top().allocate(request, block);
  *dptr = block.ptr;
  uint64_t bytes = block.bytes;
  if (status.ok()) {
    keep(std::move(block));
  }
  note_outcome(*target, request, status, bytes);
  return explained(status.code, request.api);
}

// A block that was being made when the log came on was not among the live, perhaps.
void Runtime::keep(DeviceBlock&& block) noexcept {
  DeviceBlock ended;
  uint64_t ptr = block.ptr;
  uint32_t period = block.log_period;
  if (registry_.insert(std::move(block), ended)) {
    ended_unseen(ended);
  }
  if (is_logging() && recorder_.period() != period) {
    registry_.visit(ptr, [this](DeviceBlock* found) { return found != nullptr && take_up(*found); });
  }
}

// False: it stays where it is.
bool Runtime::take_up(DeviceBlock& block) noexcept {
  NativeDevice* owner = owner_of(block);
  if (owner != nullptr && owner->logging() != nullptr) {
    owner->logging()->take_up(block);
  }
  return false;
}

void Runtime::switch_log() noexcept {
  if (recorder_.switch_over()) {
    registry_.take_if([this](DeviceBlock& block) { return take_up(block); }, nullptr, SIZE_MAX);
  }
}

void Runtime::ended_unseen(DeviceBlock& block) noexcept {
  NativeDevice* owner = owner_of(block);
  if (owner == nullptr) {
    return;
  }
  if (owner->logging() != nullptr) {
    owner->logging()->record_end(block, action::ended_unseen, {});
  }
  owner->ended(block);
}

CUresult Runtime::free_foreign(CUdeviceptr asked, CUdeviceptr ptr, const FreeRequest& request) noexcept {
  uint64_t start = steady_time();
  CUresult result = forward(asked, request);
  if (!is_logging() || ptr == 0) {
    return result;
  }
  Event event;
  event.action = action::deallocate;
  event.ptr = ptr;
  event.kind = kind_name(Kind::foreign);
  event.api = request.api;
  event.result = result_name(result);
  event.elapsed_ns = steady_time() - start;
  event.stack_id = recorder_.stack_id(request.caller);
  if (request.ordered) {
    event.stream = reinterpret_cast<uint64_t>(request.stream_arg.handle);
  }
  recorder_.record(event);
  return result;
}

CUresult Runtime::free(CUdeviceptr ptr, FreeRequest& request) noexcept {
  follow_log_switch();
  if (request.ordered && is_capturing(request.stream_arg)) {
    return forward(ptr, request);
  }
  DeviceBlock block;
  if (!registry_.take_one(ptr, block, [](const DeviceBlock& each) { return has_address(each.kind); })) {
    bool freed = false;
    each_source([&](PlainSource& source) { freed = freed || source.holds(ptr); });
    each_guard([&](GuardResource& guard) { freed = freed || guard.holds(ptr); });
    CUresult result = free_foreign(freed ? kNoBlock : ptr, ptr, request);
    if (result == CUDA_ERROR_INVALID_VALUE && guards()) {
      report_bad_free(ptr, request);
    }
    return result;
  }
  NativeDevice* owner = owner_of(block);
  if (owner == nullptr) {
    return forward(ptr, request);
  }
  Status status = owner->top().deallocate(block, request);
  if (!status.ok()) {
    keep(std::move(block));
  }
  look_at_driver_use(*owner, false);
  return explained(status.code, request.api);
}

CUresult Runtime::memory_info(size_t* free, size_t* total) noexcept {
  size_t real_free = 0;
  size_t real_total = 0;
  int ordinal = engaged_ ? devices_.of_current(driver_) : -1;
  NativeDevice* target = ordinal >= 0 ? device(ordinal) : nullptr;
  BudgetSnapshot budget;
  if (target == nullptr || (target->budget() == nullptr && target->source() == nullptr && target->guard() == nullptr)) {
    return driver_.cuMemGetInfo_v2(free, total);
  }
  let_go_of_exports();
  target->measure();
  CUresult result = driver_.cuMemGetInfo_v2(&real_free, &real_total);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  uint64_t idle = target->source() != nullptr ? target->source()->idle_bytes() : 0;
  uint64_t held = target->guard() != nullptr ? target->guard()->held_bytes() : 0;
  idle += held + (target->fence() != nullptr ? target->fence()->idle_bytes() : 0);
  real_free = idle < real_total - real_free ? real_free + idle : real_total;
  target->top().budget_snapshot(budget);
  if (total != nullptr) {
    *total = budget.limit < real_total ? budget.limit : real_total;
  }
  if (free != nullptr) {
    uint64_t left = budget.remaining() < UINT64_MAX - held ? budget.remaining() + held : UINT64_MAX;
    left = left < budget.limit ? left : budget.limit;
    *free = left < real_free ? left : real_free;
  }
  return result;
}

void Runtime::limit_here(uint64_t& limit, uint64_t& remaining) noexcept {
  NativeDevice* target = device(devices_.of_current(driver_));
  BudgetSnapshot budget;
  if (target != nullptr && target->budget() != nullptr) {
    let_go_of_exports();
    target->measure();
    target->top().budget_snapshot(budget);
    limit = budget.limit;
    remaining = budget.remaining();
  }
}

CUresult Runtime::total_memory(size_t* bytes, CUdevice ordinal) noexcept {
  CUresult result = driver_.cuDeviceTotalMem_v2(bytes, ordinal);
  if (result != CUDA_SUCCESS || !engaged_ || bytes == nullptr) {
    return result;
  }
  NativeDevice* target = device(ordinal);
  if (target != nullptr && target->facts().limit < *bytes) {
    *bytes = target->facts().limit;
  }
  return result;
}

}  // namespace xlog
