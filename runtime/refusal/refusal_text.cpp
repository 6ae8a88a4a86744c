#include <unistd.h>

#include "runtime/base/size_text.h"
#include "runtime/record/event.h"
#include "runtime/refusal/refusal.h"

namespace xlog {

namespace {

constexpr size_t kHoldersTold = 5;
constexpr size_t kProcessesTold = 8;

TextSink& put_bytes(TextSink& out, uint64_t bytes) noexcept {
  put_size(out, bytes);
  return out;
}

void put_headline(TextSink& out, const Refusal& refusal) noexcept {
  put_plain(out.put("out of memory: "), refusal.program).put(" (pid ").decimal(static_cast<uint64_t>(getpid())).put(") asked for ");
  if (refusal.requested == kNone) {
    out.put("more than 64 bits hold");
  } else {
    put_bytes(out, refusal.requested);
  }
  if (refusal.device < 0) {
    out.put(" of pinned host memory");
  } else {
    put_plain(out.put(" on GPU ").decimal(static_cast<uint64_t>(refusal.device)).put(" ("), refusal.gpu_name).put(')');
  }
  out.put(" by ").put(refusal.api).put(", refused by ");
  if (refusal.by_limit) {
    put_bytes(out.put(refusal.device < 0 ? "the limit XLOG_HOST_BUDGET of " : "the limit XLOG_BUDGET of "), refusal.limit);
  } else {
    out.put("the driver");
  }
  if (refusal.number > 1) {
    out.put(", refusal ").decimal(refusal.number);
  }
  out.put('\n');
}

void put_holders(TextSink& out, const Refusal& refusal, std::span<const StackLabel> labels) noexcept {
  put_bytes(out.put("in use by this process: "), refusal.live.bytes).put(" in ").decimal(refusal.live.blocks);
  out.put(refusal.live.blocks == 1 ? " block" : " blocks");
  if (refusal.limit != kNone && refusal.counted != refusal.live.bytes) {
    put_bytes(out.put("; counted against the limit: "), refusal.counted);
  }
  if (refusal.has_driver) {
    put_bytes(out.put("; the driver had "), refusal.driver_free).put(" free of ");
    put_bytes(out, refusal.driver_total);
  }
  out.put('\n');
  for (size_t i = 0; i < refusal.live.count && i < kHoldersTold; ++i) {
    const LiveHolder& each = refusal.live.list[i];
    put_bytes(out.put("  "), each.bytes).put(" in ").decimal(each.blocks).put(each.blocks == 1 ? " block, " : " blocks, ");
    bool named = i < labels.size() && labels[i].text.size() != 0;
    put_plain(out, named ? labels[i].text.view() : std::string_view("without a stack (XLOG_LOG was not set, or no stack could be taken)"));
    out.put('\n');
  }
}

void put_processes(TextSink& out, const GpuProcesses& processes) noexcept {
  auto self = static_cast<uint32_t>(getpid());
  size_t told = 0;
  for (size_t i = 0; i < processes.count && told < kProcessesTold; ++i) {
    const GpuProcess& each = processes.list[i];
    if (processes.same_pids && each.pid == self) {
      if (each.bytes != kNone) {
        put_bytes(out.put("this process, with its context and modules: "), each.bytes).put('\n');
      }
      continue;
    }
    out.put(processes.same_pids ? "also on this GPU: " : "on this GPU: ");
    each.bytes == kNone ? out.put("an unknown number of bytes") : put_bytes(out, each.bytes);
    if (each.has_user) {
      out.put(", pid ").decimal(each.pid).put(", user ").decimal(each.user).put(", ");
      put_plain(out, each.command);
    }
    out.put('\n');
    ++told;
  }
  if (processes.known && !processes.same_pids && processes.count != 0) {
    out.put("(in a container: which processes these are cannot be seen; this one is among them)\n");
  }
}

}  // namespace

uint64_t Refusal::unseen() const noexcept {
  constexpr uint64_t kOwn = 64 << 20;  // the driver's own, which no process has
  uint64_t used = has_driver && processes.known && processes.more == 0 ? driver_total - driver_free : 0;
  for (size_t i = 0; i < processes.count; ++i) {
    uint64_t bytes = processes.list[i].bytes;
    used = bytes < used ? used - bytes : 0;
  }
  return used > kOwn ? used : 0;
}

void put_refusal_text(TextSink& out, const Refusal& refusal, std::span<const StackLabel> labels) noexcept {
  put_headline(out, refusal);
  put_holders(out, refusal, labels);
  put_processes(out, refusal.processes);
  if (refusal.unseen() != 0) {
    put_bytes(out.put("also on this GPU: "), refusal.unseen()).put(" of processes that cannot be seen from here\n");
  }
}

}  // namespace xlog
