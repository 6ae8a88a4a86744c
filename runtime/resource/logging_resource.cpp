#include "runtime/resource/logging_resource.h"

#include "runtime/base/thread.h"

namespace xlog {

namespace {

uint64_t stream_column(bool has_stream, const StreamArg& stream) noexcept {
  return has_stream ? reinterpret_cast<uint64_t>(stream.handle) : kNone;
}

}  // namespace

Status LoggingResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  Event event;
  event.stack_id = recorder_.stack_id(request.caller);
  uint64_t start = steady_time();
  Status status = inner_.allocate(request, out);
  uint64_t end = steady_time();
  event.elapsed_ns = end - start;
  event.time = wall_time(end);
  event.action = action::allocate;
  event.device = device_;
  event.stream = stream_column(request.kind == Kind::async || request.kind == Kind::pool, request.stream);
  event.api = request.api;
  event.kind = kind_name(request.kind);
  event.result = result_name(status.code);
  Text<256> message;
  if (status.ok()) {
    out.stack_id = event.stack_id;
    event.kind = kind_name(out.kind);
    event.ptr = out.ptr;
    event.bytes = out.bytes;
    event.generation = out.generation;
    event.live_bytes = add_live(out.bytes);
  } else {
    put_status(message, status);
    event.message = message.view();
    event.bytes = request.bytes;
    event.live_bytes = live_bytes();
  }
  recorder_.record(event);
  return status;
}

Event LoggingResource::describe(const DeviceBlock& block, std::string_view action, std::string_view api) const noexcept {
  Event event;
  event.action = action;
  event.ptr = block.ptr;
  event.bytes = block.bytes;
  event.device = device_;
  event.generation = block.generation;
  event.kind = kind_name(block.kind);
  event.api = api;
  event.result = "ok";
  return event;
}

Status LoggingResource::deallocate(const DeviceBlock& block, const FreeRequest& request) noexcept {
  Event event = describe(block, action::deallocate, request.api);
  event.stack_id = recorder_.stack_id(request.caller);
  event.stream = stream_column(request.ordered, request.stream);
  event.live_bytes = sub_live(block.bytes);
  HeldRow held;
  RowText text;
  uint64_t start = steady_time();
  event.time = wall_time(start);
  recorder_.hold(event, held, text);
  Status status = inner_.deallocate(block, request);
  event.elapsed_ns = steady_time() - start;
  Text<256> message;
  if (!status.ok()) {
    event.live_bytes = add_live(block.bytes);
    event.result = result_name(status.code);
    put_status(message, status);
    event.message = message.view();
  }
  recorder_.complete(event, held, &text, status.ok());
  return status;
}

void LoggingResource::hold_end(const DeviceBlock& block, std::string_view action, std::string_view api, HeldRow& held) noexcept {
  Event event = describe(block, action, api);
  event.live_bytes = sub_live(block.bytes);
  RowText text;
  recorder_.hold(event, held, text);
}

void LoggingResource::complete_end(const DeviceBlock& block, std::string_view action, std::string_view api, const HeldRow& held,
                                   CUresult result) noexcept {
  Event event = describe(block, action, api);
  event.time = held.time;
  event.live_bytes = held.live_bytes;
  event.elapsed_ns = 0;
  if (result != CUDA_SUCCESS) {
    event.live_bytes = add_live(block.bytes);
    event.result = result_name(result);
  }
  recorder_.complete(event, held, nullptr, result == CUDA_SUCCESS);
}

void LoggingResource::record_end(const DeviceBlock& block, std::string_view action, std::string_view api) noexcept {
  Event event = describe(block, action, api);
  event.live_bytes = sub_live(block.bytes);
  recorder_.record(event);
}

}  // namespace xlog
