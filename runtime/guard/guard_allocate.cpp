// GuardResource: how a block gets its zone or its fence.
#include "runtime/guard/guard_resource.h"
#include "runtime/resource/fence_source.h"

namespace xlog {

namespace {

bool is_want_of_memory(const Status& status) noexcept { return status.code == CUDA_ERROR_OUT_OF_MEMORY; }

}  // namespace

uint64_t GuardResource::extra_taken(const DeviceBlock& block) noexcept {
  bool grown = block.guard_bytes != 0 || block.maker == Maker::fence;
  uint64_t without = grown ? taken_by(block.kind, block.bytes) : block.taken;
  return block.taken > without ? block.taken - without : 0;
}

bool GuardResource::takes(const AllocationRequest& request) const noexcept {
  return request.kind <= Kind::pool && request.own == nullptr && request.reservation == nullptr && request.bytes != 0 &&
         request.context != nullptr;
}

bool GuardResource::is_to_be_fenced(const AllocationRequest& request) noexcept {
  const FenceSpec& fence = settings_.fence;
  bool plain = request.kind == Kind::plain || (request.kind == Kind::async && request.as_plain);
  return fence.one_in != 0 && plain && request.bytes >= fence.least && request.bytes <= fence.most && sample_.takes_next(fence.one_in);
}

// The request with a zone, or with the bytes up to its fence. False: it is to be made as it was asked for.
bool GuardResource::grow(AllocationRequest& request) noexcept {
  bool pitched = request.kind == Kind::pitch;
  size_t extra = pitched ? request.width_bytes : settings_.zone;
  uint64_t without = taken_by(request.kind, request.bytes);
  request.fenced = is_to_be_fenced(request);
  if (request.fenced) {
    size_t align = settings_.fence.align;
    extra = settings_.fence.before ? kFenceZone / 2 : (align - request.bytes % align) % align;
  } else if (settings_.zone == 0) {
    return false;
  }
  size_t bytes = request.bytes + extra;
  uint64_t with = request.fenced ? FenceSource::taken(bytes) : taken_by(request.kind, bytes);
  if (bytes < request.bytes || with < without || extra_.load(std::memory_order_relaxed) + (with - without) > settings_.most_extra) {
    reporter_.count_unguarded();
    request.fenced = false;
    return false;
  }
  request.bytes = bytes;
  request.height += pitched ? 1 : 0;
  return true;
}

Status GuardResource::allocate_grown(const AllocationRequest& request, DeviceBlock& out) noexcept {
  AllocationRequest grown = request;
  if (!grow(grown)) {
    return inner_.allocate(request, out);
  }
  Status status = inner_.allocate(grown, out);
  if (is_want_of_memory(status)) {  // it may be the zone that does not fit
    status = inner_.allocate(request, out);
    if (status.ok()) {
      reporter_.count_unguarded();
    }
    return status;
  }
  if (status.ok()) {
    out.guard_bytes = request.kind == Kind::pitch ? *request.pitch_out : grown.bytes - request.bytes;
    out.bytes -= out.guard_bytes;
    extra_.fetch_add(extra_taken(out), std::memory_order_relaxed);
    if (grown.fenced && out.maker != Maker::fence) {
      reporter_.count_unguarded();
    }
  }
  return status;
}

void GuardResource::arm(const AllocationRequest& request, DeviceBlock& block) noexcept {
  bool fenced = block.maker == Maker::fence;
  if (!fenced && block.guard_bytes == 0 && settings_.fence.one_in > 1 && !settings_.poison_alloc && !settings_.poison_free &&
      settings_.quarantine == 0) {
    return;  // not of the sample: it costs nothing
  }
  GuardRecord* record = records_.make();
  if (record == nullptr) {
    reporter_.count_unguarded();
    return;
  }
  record->ptr = block.ptr;
  record->bytes = block.bytes;
  size_t zone = settings_.fence.one_in != 0 ? kFenceZone : settings_.zone;
  record->pool_number = block.maker == Maker::driver ? records_.pools().block_made(block.pool, block.bytes, block.guard_bytes) : 0;
  record->zone = block.guard_bytes < zone ? block.guard_bytes : zone;
  record->fenced = fenced;
  record->generation = block.generation.value;
  record->seed = zone_seed(block.ptr, record->generation);
  record->context = block.context;
  record->kind = block.kind;
  record->device = block.device;
  record->ordered = request.is_ordered();
  record->allocated.take(request.caller);
  if (settings_.check_launches != 0 && !record->ordered) {
    launch_checks_.prepare(record->context);
  }
  if (record->zone != 0) {
    record->written = record->ordered ? memory_.write_zone(*record, request.stream_arg) : memory_.write_zone(*record);
  }
  if (settings_.poison_alloc && record->ordered) {
    memory_.fill(request.stream_arg, block.ptr, block.bytes, kPoisonAllocated);
  } else if (settings_.poison_alloc) {  // waited for: the program may write from any stream as soon as it has the address
    memory_.fill(block.context, block.ptr, block.bytes, kPoisonAllocated, true);
  }
  block.guard = record;
  records_.add_live(*record);
}

// Nothing of ours goes into a thread's default stream: driver 580.159 never comes back from the end of a thread in whose stream a
// cuMemFreeAsync stands behind unfinished work (tests/gpu/results/guard-h200.txt, 6). A request of any kind is refused only after
// what is held back was given up for it.
Status GuardResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  bool guarded = !is_exiting() && takes(request);
  if (guarded && request.is_ordered() && request.stream_arg.is_per_thread()) {
    reporter_.count_unguarded();
    guarded = false;
  }
  if (guarded) {
    ordered_.settle();
  }
  auto make = [&]() noexcept { return guarded ? allocate_grown(request, out) : inner_.allocate(request, out); };
  CUdeviceptr asked = out.ptr;
  uint64_t given_up = quarantine_.given_up();
  PoolBooks::Change change(records_.pools());
  Status status = make();
  if (is_want_of_memory(status) && relieve(given_up)) {
    out.ptr = asked;
    status = make();
  }
  if (status.ok() && guarded) {
    arm(request, out);
  } else if (guarded && is_want_of_memory(status) && out_of_memory_.first()) {  // the program may be about to end in disorder
    check_all("the first refusal for want of memory", false);
  }
  return status;
}

}  // namespace xlog
