#include <unistd.h>

#include "runtime/record/event.h"
#include "runtime/record/json_text.h"
#include "runtime/refusal/refusal.h"

namespace xlog {

namespace {

TextSink& put_key(TextSink& out, std::string_view key) noexcept {
  out.put(",\n ");
  put_json_string(out, key);
  return out.put(": ");
}

void put_number(TextSink& out, std::string_view key, uint64_t value) noexcept {
  put_key(out, key);
  if (value == kNone) {
    out.put("null");
  } else {
    out.decimal(value);
  }
}

void put_words(TextSink& out, std::string_view key, std::string_view words) noexcept { put_json_string(put_key(out, key), words); }

void put_holders(TextSink& out, const LiveHolders& live, std::span<const StackLabel> labels) noexcept {
  put_key(out, "holders").put('[');
  for (size_t i = 0; i < live.count; ++i) {
    const LiveHolder& each = live.list[i];
    out.put(i == 0 ? "\n  {" : ",\n  {").put("\"bytes\": ").decimal(each.bytes).put(", \"blocks\": ").decimal(each.blocks);
    if (each.stack_id != kNone) {
      out.put(", \"stack_id\": ").decimal(each.stack_id);
    }
    if (i < labels.size() && labels[i].library.size() != 0) {
      out.put(", \"library\": ");
      put_json_string(out, labels[i].library.view());
    }
    out.put('}');
  }
  out.put(']');
}

void put_processes(TextSink& out, const GpuProcesses& processes) noexcept {
  put_key(out, "processes");
  if (!processes.known) {
    out.put("null");
    return;
  }
  out.put('[');
  for (size_t i = 0; i < processes.count; ++i) {
    const GpuProcess& each = processes.list[i];
    out.put(i == 0 ? "\n  {" : ",\n  {").put("\"bytes\": ");
    each.bytes == kNone ? out.put("null") : out.decimal(each.bytes);
    out.put(", \"pid\": ").decimal(each.pid);
    if (each.has_user) {
      out.put(", \"uid\": ").decimal(each.user).put(", \"command\": ");
      put_json_string(out, each.command);
    }
    out.put('}');
  }
  out.put(']');
  put_number(out, "more_processes", processes.more);
  put_key(out, "pids_are_of_this_namespace").put(processes.same_pids ? "true" : "false");
}

}  // namespace

void put_refusal_json(TextSink& out, const Refusal& refusal, std::span<const StackLabel> labels) noexcept {
  out.put("{\"format\": ").decimal(kFormatVersion);
  put_number(out, "time_ns", refusal.time);
  put_number(out, "pid", static_cast<uint64_t>(getpid()));
  put_number(out, "thread", refusal.thread);
  put_number(out, "device", refusal.device < 0 ? kNone : static_cast<uint64_t>(refusal.device));
  put_words(out, "gpu_name", refusal.gpu_name);
  put_words(out, "gpu_uuid", refusal.gpu_uuid);
  put_words(out, "program", refusal.program);
  put_words(out, "api", refusal.api);
  put_words(out, "kind", refusal.kind);
  put_number(out, "requested_bytes", refusal.requested);
  put_number(out, "stack_id", refusal.stack_id);
  put_words(out, "refused_by", refusal.by_limit ? "limit" : "driver");
  put_number(out, "limit_bytes", refusal.limit);
  put_number(out, "counted_bytes", refusal.limit == kNone ? kNone : refusal.counted);
  put_number(out, "driver_free_bytes", refusal.has_driver ? refusal.driver_free : kNone);
  put_number(out, "driver_total_bytes", refusal.has_driver ? refusal.driver_total : kNone);
  put_number(out, "default_pool_reserved_bytes", refusal.pool_reserved);
  put_number(out, "default_pool_used_bytes", refusal.pool_used);
  put_number(out, "refusals_so_far", refusal.number);
  put_number(out, "live_bytes", refusal.live.bytes);
  put_number(out, "live_blocks", refusal.live.blocks);
  put_holders(out, refusal.live, labels);
  put_processes(out, refusal.processes);
  put_number(out, "unseen_bytes", refusal.unseen());
  out.put("}\n");
}

}  // namespace xlog
