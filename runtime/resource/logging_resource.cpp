#include "runtime/resource/logging_resource.h"

namespace xlog {

namespace {

// Memory that is no GPU's has an empty field.
uint64_t column(int device) noexcept { return device >= 0 ? static_cast<uint64_t>(device) : kNone; }

// A program's stream is shown by its handle, a stream of a StreamPool by its index.
void put_stream(LogEntry& entry, bool from_call, bool has_stream, const StreamArg& arg, StreamId stream) noexcept {
  entry.has_stream = from_call ? has_stream : true;
  if (entry.has_stream) {
    entry.event.stream = from_call ? reinterpret_cast<uint64_t>(arg.handle) : stream.index();
  }
}

void put_tag(LogEntry& entry, AllocTag tag) noexcept {
  if (!tag.is_untagged()) {
    entry.event.tag = tag.text();
  }
}

// What was asked for.
void put_call(LogEntry& entry, const AllocationRequest& request, int device) noexcept {
  Event& event = entry.event;
  event.action = action::allocate;
  event.device = column(device);
  event.api = request.api;
  event.kind = kind_name(request.kind);
  event.bytes = request.bytes;
  put_stream(entry, !request.api.empty(), request.kind == Kind::async || request.kind == Kind::pool, request.stream_arg, request.stream);
  put_tag(entry, request.tag);
}

void put_result(LogEntry& entry, MessageText& message, const Status& status) noexcept {
  entry.status = status;
  entry.event.result = status.error == Error::driver || status.ok() || status.error == Error::out_of_budget
                           ? std::string_view(result_name(status.code))
                           : error_name(status.error);
  if (!status.ok()) {
    put_message(message, status);
    entry.event.message = message.view();
  }
}

}  // namespace

void LoggingResource::leave_out(DeviceBlock& block, uint32_t period) noexcept {
  block.unlogged = true;
  block.log_period = period;
  block.stack_id = kNone;
  add_live(block.bytes);
  if (period != 0) {
    filter_.count_left_out(block.bytes);
  }
}

Status LoggingResource::allocate_unlogged(const AllocationRequest& request, DeviceBlock& out, uint32_t period) noexcept {
  Status status = inner_.allocate(request, out);
  if (status.ok()) {
    leave_out(out, period);
    return status;
  }
  if (period == 0) {
    return status;
  }
  LogEntry entry;  // what was refused has a row, whatever its size
  MessageText message;
  put_call(entry, request, device_);
  entry.event.stack_id = sink_.stack_id(request.caller);
  put_result(entry, message, status);
  entry.event.live_bytes = live_bytes();
  count(sink_.emit(entry));
  return status;
}

Status LoggingResource::deallocate_unlogged(DeviceBlock& block, const FreeRequest& request) noexcept {
  uint64_t bytes = block.bytes;
  Status status = inner_.deallocate(block, request);
  if (status.ok()) {
    sub_live(bytes);
  }
  return status;
}

void LoggingResource::take_up(DeviceBlock& block) noexcept {
  uint32_t period = sink_.period();
  if (period == 0 || block.log_period == period) {
    return;
  }
  block.log_period = period;
  block.unlogged = !filter_.wants(block.bytes);
  if (block.unlogged) {
    filter_.count_left_out(block.bytes);
    return;
  }
  LogEntry entry = describe(block, action::live, {});
  entry.event.stack_id = block.stack_id;
  entry.event.live_bytes = live_bytes();
  count(sink_.emit(entry));
}

void LoggingResource::record_left_out() noexcept {
  if (filter_.left_out() == 0) {
    return;
  }
  LogEntry entry;
  Text<40> message;
  message.put("allocations ").decimal(filter_.left_out());
  entry.event.action = action::left_out;
  entry.event.bytes = filter_.left_out_bytes();
  entry.event.device = column(device_);
  entry.event.result = "ok";
  entry.event.message = message.view();
  entry.event.live_bytes = live_bytes();
  count(sink_.emit(entry));
}

Status LoggingResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  bool is_size_known = request.kind != Kind::pitch;  // that of pitched memory is the driver's
  uint32_t period = sink_.period();
  if (period == 0 || (is_size_known && !filter_.wants(request.bytes))) {
    return allocate_unlogged(request, out, period);
  }
  LogEntry entry;
  Event& event = entry.event;
  event.stack_id = sink_.stack_id(request.caller);
  uint64_t start = now();
  Status status = inner_.allocate(request, out);
  uint64_t end = now();
  if (status.ok() && !is_size_known && !filter_.wants(out.bytes)) {
    leave_out(out, period);
    return status;
  }
  event.elapsed_ns = end - start;
  event.time = timed_ ? wall_time(end) : 0;
  put_call(entry, request, device_);
  MessageText message;
  put_result(entry, message, status);
  if (status.ok()) {
    out.unlogged = false;
    out.log_period = period;
    out.stack_id = event.stack_id;
    event.kind = kind_name(out.kind);
    event.ptr = out.ptr;
    event.bytes = out.bytes;
    event.generation = out.generation.value;
    event.live_bytes = add_live(out.bytes);
  } else {
    event.live_bytes = live_bytes();
  }
  count(sink_.emit(entry));
  return status;
}

LogEntry LoggingResource::describe(const DeviceBlock& block, std::string_view action, std::string_view api) const noexcept {
  LogEntry entry;
  Event& event = entry.event;
  event.action = action;
  event.ptr = block.ptr;
  event.bytes = block.bytes;
  event.device = column(block.device);
  event.generation = block.generation.value;
  event.kind = kind_name(block.kind);
  event.api = api;
  event.result = "ok";
  put_tag(entry, block.tag);
  return entry;
}

Status LoggingResource::deallocate(DeviceBlock& block, const FreeRequest& request) noexcept {
  if (!has_rows(block)) {
    return deallocate_unlogged(block, request);
  }
  return deallocate_logged(block, request, sink_.stack_id(request.caller));
}

// Apart, so that its text is not on the program's stack, which may be a small one, while that is walked.
__attribute__((noinline)) Status LoggingResource::deallocate_logged(DeviceBlock& block, const FreeRequest& request,
                                                                    uint64_t stack_id) noexcept {
  LogEntry entry = describe(block, action::deallocate, request.api);
  Event& event = entry.event;
  event.stack_id = stack_id;
  put_stream(entry, !request.api.empty(), request.ordered, request.stream_arg, block.alloc_stream);
  uint64_t bytes = block.bytes;
  event.live_bytes = sub_live(bytes);
  HeldRow held;
  RowText text;
  uint64_t start = now();
  event.time = timed_ ? wall_time(start) : 0;
  sink_.hold(event, held, text);
  Status status = inner_.deallocate(block, request);
  event.elapsed_ns = now() - start;
  MessageText message;
  put_result(entry, message, status);
  if (!status.ok()) {
    event.live_bytes = add_live(bytes);
  }
  count(sink_.complete(entry, held, &text, status.ok()));
  return status;
}

Status LoggingResource::reap_pending(const ReapGoal& goal) noexcept {
  if (sink_.period() == 0) {
    return inner_.reap_pending(goal);
  }
  LogEntry entry;
  Event& event = entry.event;
  uint64_t start = now();
  Status status = inner_.reap_pending(goal);
  uint64_t end = now();
  event.elapsed_ns = end - start;
  event.time = timed_ ? wall_time(end) : 0;
  event.action = action::reap_pending;
  event.device = column(device_);
  event.live_bytes = live_bytes();
  MessageText message;
  put_result(entry, message, status);
  count(sink_.emit(entry));
  return status;
}

void LoggingResource::hold_end(const DeviceBlock& block, std::string_view action, std::string_view api, HeldRow& held) noexcept {
  held.unlogged = !has_rows(block);
  if (held.unlogged) {
    sub_live(block.bytes);
    return;
  }
  LogEntry entry = describe(block, action, api);
  entry.event.live_bytes = sub_live(block.bytes);
  RowText text;
  sink_.hold(entry.event, held, text);
}

void LoggingResource::complete_end(const DeviceBlock& block, std::string_view action, std::string_view api, const HeldRow& held,
                                   CUresult result) noexcept {
  if (held.unlogged) {
    if (result != CUDA_SUCCESS) {
      add_live(block.bytes);
    }
    return;
  }
  LogEntry entry = describe(block, action, api);
  Event& event = entry.event;
  event.time = held.time;
  event.live_bytes = held.live_bytes;
  event.elapsed_ns = 0;
  if (result != CUDA_SUCCESS) {
    event.live_bytes = add_live(block.bytes);
    event.result = result_name(result);
  }
  count(sink_.complete(entry, held, nullptr, result == CUDA_SUCCESS));
}

void LoggingResource::record_end(const DeviceBlock& block, std::string_view action, std::string_view api) noexcept {
  if (!has_rows(block)) {
    sub_live(block.bytes);
    return;
  }
  LogEntry entry = describe(block, action, api);
  entry.event.live_bytes = sub_live(block.bytes);
  count(sink_.emit(entry));
}

}  // namespace xlog
