#include "runtime/guard/finding.h"

#include <stdlib.h>

#include "runtime/base/command_line.h"
#include "runtime/base/diagnostics.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/modules.h"
#include "runtime/base/thread.h"

namespace xlog {

namespace {

using Line = Text<900>;

constexpr std::string_view kFault = "a kernel went past a fenced block, used one after its free, or used another bad address";

TextSink& put_count(TextSink& out, uint64_t count, std::string_view what) noexcept {
  return out.decimal(count).put(what).put(count == 1 ? "" : "s");
}

void put_bytes(TextSink& out, const unsigned char* bytes, unsigned n) noexcept {
  for (unsigned i = 0; i < n; ++i) {
    out.put(' ').hex(bytes[i], 2);
  }
}

void put_block(TextSink& out, const GuardRecord& block) noexcept {
  out.put("block 0x")
      .hex(block.ptr)
      .put(", ")
      .decimal(block.bytes)
      .put(" bytes (")
      .put(kind_name(block.kind))
      .put(block.fenced ? ", fenced, GPU " : ", GPU ");
  out.decimal(static_cast<uint64_t>(block.device)).put(", generation ").decimal(block.generation).put(')');
}

// The first line, and the message in the log.
void put_headline(TextSink& out, const Finding& finding) noexcept {
  const Damage& damage = finding.damage;
  out.put(finding_name(finding.kind)).put(": ");
  switch (finding.kind) {
    case FindingKind::overflow:
      out.decimal(damage.count).put(damage.count == 1 ? " byte" : " bytes").put(" written past the end of ");
      break;
    case FindingKind::use_after_free:
      out.decimal(damage.count).put(damage.count == 1 ? " byte" : " bytes").put(" written after the free of ");
      break;
    case FindingKind::double_free:
      out.put("second free of ");
      break;
    case FindingKind::interior_free:
      out.put("free of 0x").hex(finding.freed_ptr).put(", offset ").decimal(finding.freed_ptr - finding.block->ptr).put(" of ");
      break;
  }
  put_block(out, *finding.block);
}

void say_damage(const Finding& finding) noexcept {
  const Damage& damage = finding.damage;
  if (damage.count == 0) {
    return;
  }
  Line line;
  bool past = finding.kind == FindingKind::overflow;
  size_t reach = damage.last - damage.first + 1;
  unsigned shown = reach < damage.shown ? static_cast<unsigned>(reach) : damage.shown;
  line.put("guard:   bytes ").put(past ? "+" : "").decimal(damage.first).put(" to ").put(past ? "+" : "").decimal(damage.last);
  line.put(past ? " behind the end: found" : " of the block: found");
  put_bytes(line, damage.found, shown);
  line.put(", written by the guard:");
  put_bytes(line, damage.expected, shown);
  say(line.view());
}

void say_stack(std::string_view what, const GuardStack& stack) noexcept {
  if (stack.thread == 0) {
    return;
  }
  Line head;
  head.put("guard:   ").put(what).put(" by thread ").decimal(stack.thread).put(stack.depth == 0 ? " (no stack)" : ":");
  say(head.view());
  for (uint32_t i = 0; i < stack.depth; ++i) {
    Text<512> path;
    ModuleAddress where(path);
    describe_address(stack.frames[i], where);
    Line line;
    line.put("guard:     #").decimal(i).put(' ').put(where.path.view()).put("+0x").hex(where.offset);
    say(line.view());
  }
}

void say_neighbours(const GuardRecord& block, GuardRecords& records) noexcept {
  Line below;
  Line above;
  uint64_t highest = 0;
  uint64_t lowest = UINT64_MAX;
  records.each_live([&](const GuardRecord& each) {
    if (each.ptr < block.ptr && each.ptr > highest) {
      highest = each.ptr;
      below.clear();
      below.put("guard:   next below: ");
      put_block(below, each);
      below.put(", ends ").decimal(block.ptr - each.ptr - each.bytes).put(" bytes before it");
    }
    if (each.ptr > block.ptr && each.ptr < lowest) {
      lowest = each.ptr;
      above.clear();
      above.put("guard:   next above: ");
      put_block(above, each);
      above.put(", begins ").decimal(each.ptr - block.ptr - block.bytes).put(" bytes behind its end");
    }
  });
  for (const Line* each : {&below, &above}) {
    if (each->size() != 0) {
      say(each->view());
    }
  }
}

// With the command that shows the access itself, where one launch is known to have made it.
void say_launch(const CheckedLaunch& checked) noexcept {
  const Launch& launch = checked.launch;
  Line line;
  line.put("guard:   found by the check behind launch ").decimal(launch.number).put(" of kernel ").put(launch.text());
  line.put("; last seen clean: ");
  if (checked.clean == 0) {
    line.put("when it was written");
  } else {
    line.put("behind launch ").decimal(checked.clean);
  }
  if (checked.mixed) {
    line.put("; several streams were at work: it may be another kernel's");
  }
  say(line.view());
  if (!checked.mixed && launch.is_kernel() && launch.of_name != 0 && (checked.clean + 1 == launch.number || launch.number == 1)) {
    Text<1500> command;
    command.put("guard:   to see the access: compute-sanitizer --kernel-name kne=");
    put_shell_word(command, launch.text());
    command.put(" --launch-skip ");
    command.decimal(launch.of_name - 1).put(" --launch-count 1 ");
    put_command_line(command);
    say(command.view());
  }
}

void say_found_by(const Finding& finding) noexcept {
  if (finding.behind != nullptr) {
    say_launch(*finding.behind);
    return;
  }
  Line line;
  line.put("guard:   found by ").put(finding.found_by).put(" in thread ").decimal(thread_id());
  if (finding.damage.count != 0) {
    uint64_t clean = finding.block->clean_time;
    line.put("; last seen clean: ");
    if (clean == 0) {
      line.put("when it was written");
    } else {
      line.decimal((steady_time() - clean) / 1'000'000).put(" ms ago");
    }
  }
  say(line.view());
}

void say_fenced(const GuardRecord& block) noexcept {
  Line line;
  line.put("guard:   ");
  put_block(line, block);
  say(line.view());
  say_stack("allocated", block.allocated);
  say_stack("freed", block.freed);
}

}  // namespace

std::string_view finding_name(FindingKind kind) noexcept {
  constexpr std::string_view kNames[] = {"overflow", "use-after-free", "double-free", "interior-free"};
  return kNames[static_cast<size_t>(kind)];
}

void FindingReporter::report(const Finding& finding, GuardRecords& records) noexcept {
  uint32_t number = findings_.fetch_add(1, std::memory_order_relaxed);
  if (number >= kMost) {
    return;
  }
  {
    LockGuard guard(lock_);  // one report at a time, so that its lines stay together
    Line head;
    head.put("guard: ");
    put_headline(head, finding);
    say(head.view());
    say_damage(finding);
    say_found_by(finding);
    say_stack("allocated", finding.block->allocated);
    say_stack("freed", finding.block->freed);
    say_stack("passed", finding.passed);
    say_neighbours(*finding.block, records);
  }
  if (log_ != nullptr) {
    Text<kMostMessage> message;
    put_headline(message, finding);
    Event event;
    event.action = action::finding;
    event.ptr = finding.block->ptr;
    event.bytes = finding.block->bytes;
    event.device = static_cast<uint64_t>(finding.block->device);
    event.generation = finding.block->generation;
    event.kind = kind_name(finding.block->kind);
    event.api = finding.found_by;
    event.result = finding_name(finding.kind);
    event.message = message.view();
    event.stack_id = log_->stack_id(finding.block->allocated.frames, finding.block->allocated.depth);
    log_->record(event);
  }
  abort_if_asked();
}

void FindingReporter::report_fault(std::string_view api, GuardRecords& records, std::span<const Launch> last) noexcept {
  constexpr size_t kShown = 8;
  auto* shown = static_cast<GuardRecord*>(map_state(kShown * sizeof(GuardRecord)));
  findings_.fetch_add(1, std::memory_order_relaxed);
  {
    LockGuard guard(lock_);
    Line line;
    line.put("guard: fault: CUDA_ERROR_ILLEGAL_ADDRESS from ").put(api);
    line.put(": ").put(kFault);
    say(line.view());
    line.clear();
    line.put("guard:   last launched:").put(last.empty() ? " nothing" : "");
    for (const Launch& each : last) {
      line.put(' ').put(each.text());
    }
    say(line.view());
    size_t live = 0;
    size_t count = 0;
    records.each_live([&](const GuardRecord& each) {
      live += each.fenced ? 1 : 0;
      if (each.fenced && shown != nullptr && count < kShown) {
        shown[count++] = each;
      }
    });
    line.clear();
    line.put("guard:   fenced blocks that are live: ").decimal(live).put(live > count ? ", the youngest of them:" : count != 0 ? ":" : "");
    say(line.view());
    for (size_t i = 0; i < count; ++i) {
      say_fenced(shown[i]);
    }
    count = shown != nullptr ? records.last_freed([](const GuardRecord& each) { return each.fenced; }, shown, kShown) : 0;
    line.clear();
    line.put("guard:   fenced blocks that were freed last:").put(count == 0 ? " none" : "");
    say(line.view());
    for (size_t i = 0; i < count; ++i) {
      say_fenced(shown[i]);
    }
  }
  if (shown != nullptr) {
    unmap_state(shown, kShown * sizeof(GuardRecord));
  }
  if (log_ != nullptr) {
    Event event;
    event.action = action::finding;
    event.api = api;
    event.result = "fault";
    Text<kMostMessage> message;
    message.put("fault: ").put(kFault).put("; last launched: ").put(last.empty() ? std::string_view("nothing") : last.front().text());
    event.message = message.view();
    log_->record(event);
  }
  abort_if_asked();
}

void FindingReporter::abort_if_asked() const noexcept {
  if (aborts_) {
    say("guard: XLOG_GUARD_ACTION=abort");
    abort();
  }
}

void FindingReporter::summarize() noexcept {
  uint32_t findings = findings_.load(std::memory_order_relaxed);
  uint64_t unchecked = unchecked_.load(std::memory_order_relaxed);
  uint64_t unguarded = unguarded_.load(std::memory_order_relaxed);
  uint64_t overtaken = overtaken_.load(std::memory_order_relaxed);
  if (findings + unchecked + unguarded + overtaken == 0) {
    return;
  }
  Line line;
  put_count(line.put("guard: "), findings, " finding");
  if (findings > kMost) {
    line.put(" (the first ").decimal(kMost).put(" are told)");
  }
  if (unguarded != 0) {
    put_count(line.put("; "), unguarded, " block")
        .put(" without a zone or a fence (XLOG_GUARD_MAX, no memory for one, or of a thread's default stream)");
  }
  if (unchecked != 0) {
    put_count(line.put("; "), unchecked, " free");
    line.put(" not checked (a capture was under way, the context had failed, it was in a thread's default stream, or too many at once)");
  }
  if (overtaken != 0) {
    put_count(line.put("; "), overtaken, " zone").put(" written late, maybe over what a kernel wrote there (the GPU was busy)");
  }
  say(line.view());
}

}  // namespace xlog
