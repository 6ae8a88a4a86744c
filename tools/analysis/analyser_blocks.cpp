// Blocks that begin and end.
#include <algorithm>

#include "tools/analysis/analyser.h"
#include "tools/analysis/taken.h"

namespace xlog::tools {

namespace {

constexpr size_t kRefusalsKept = 4;  // the first ones, and as many of the last
constexpr size_t kHolders = 10;

size_t size_class(uint64_t bytes) { return bytes == 0 ? 0 : 64 - static_cast<size_t>(__builtin_clzll(bytes)); }

size_t lifetime_class(uint64_t ns) {
  size_t i = 0;
  for (uint64_t bound = 1; i < 15 && ns >= bound; ++i) {
    bound *= 10;
  }
  return i;
}

uint32_t number_of(const GpuReport& owner, const LiveBlock& block, By by) {
  auto i = static_cast<size_t>(by);
  return owner.groups[i].number(block.groups[i]);
}

}  // namespace

void Analyser::allocate(size_t process, const Event& event) {
  if (event.result != "ok") {
    fail(process, event);
    return;
  }
  GpuReport* owner = gpu(process, event);
  if (owner == nullptr || event.ptr == kNone || event.bytes == kNone) {
    check_.contradict(process, event.seq, "an allocation without device, address or size");
    return;
  }
  Process& own = processes_[process];
  bool made = event.action == action::allocate;
  LiveBlock* old = own.blocks.find(event.ptr);
  if (old != nullptr && !made && old->generation == event.generation) {
    return;  // made while the log came on: it has both rows
  }
  if (old != nullptr) {
    own.unseen[event.ptr] = *old;
    release(process, *old, false);
    own.blocks.erase(old);
  }
  if (!made && go_on(process, event)) {
    return;
  }
  LiveBlock block;
  block.seen_made = made;
  block.ptr = event.ptr;
  block.bytes = event.bytes;
  block.generation = event.generation;
  block.time = event.time;
  block.gpu = static_cast<uint32_t>(owner - report_.gpus.data());
  block.taken = taken_by(event.kind, event.bytes);
  block.has_address = has_address(event.kind);
  weigh(process, event, block);
  find_groups(process, event, *owner, block);
  uint64_t& order = at(thread_allocations_, number_of(*owner, block, By::thread));
  order += made ? 1 : 0;
  block.order = order;
  own.blocks.insert(block);
  if (block.has_address) {
    own.on_gpu(block.gpu).addresses.add(block.ptr, block.bytes);
  }
  owner->refused_since = event.bytes >= owner->refused_since / 4 ? 0 : owner->refused_since;
  uint64_t made_now = made ? block.blocks : 0;
  if (event.api == "cuMemAlloc_v2" && event.elapsed_ns != kNone && report_.logs[process].sample == 0) {
    save(number_of(*owner, block, By::stack), own.on_gpu(block.gpu).model.allocation(block.bytes, event.elapsed_ns));
  }
  SizeClass& size = report_.sizes[size_class(event.bytes)];
  size.allocations += made_now;
  size.bytes += made ? block.stands_for : 0;
  size.taken += made ? block.taken * block.blocks : 0;
  owner->allocations += made_now;
  report_.processes[process].allocations += made_now;
  add(process, block, event.time, made);
  check_ledger(process, event, owner->live);
}

// The block lives from here on.
void Analyser::add(size_t process, const LiveBlock& block, uint64_t time, bool made) {
  GpuReport& owner = report_.gpus[block.gpu];
  owner.live += block.stands_for;
  owner.live_blocks += block.blocks;
  owner.live_taken += block.taken * block.blocks;
  for_groups(block, owner, [&](Group& group) {
    group.allocations += made ? block.blocks : 0;
    group.bytes += made ? block.stands_for : 0;
    group.live += block.stands_for;
    group.live_blocks += block.blocks;
  });
  if (owner.live > owner.peak) {
    owner.peak = owner.live;
    owner.peak_time = time;
    owner.peak_taken = owner.live_taken;
    ++owner.peak_epoch;
  }
  owner.timeline.note(report_.span, report_.last_time, owner.live);
  ProcessReport& all = report_.processes[process];
  all.live += owner.is_gpu() ? block.stands_for : 0;
  all.peak = std::max(all.peak, all.live);
}

// The log came on, and tells a block that was live when it went off: it is as old as it was, and its maker's.
bool Analyser::go_on(size_t process, const Event& event) {
  Process& own = processes_[process];
  LiveBlock* known = own.before_off.find(event.ptr);
  if (known == nullptr || known->generation != event.generation) {
    return false;
  }
  LiveBlock block = *known;
  block.order = 0;  // whether its maker made another meanwhile is not known
  own.before_off.erase(known);
  own.blocks.insert(block);
  add(process, block, event.time, false);
  return true;
}

// What a row of a sample stands for: a block of `bytes` had the chance bytes / sample. The blocks are a whole number that is
// right on average, by the row's own number, so that a log always reads the same.
void Analyser::weigh(size_t process, const Event& event, LiveBlock& block) const {
  uint64_t sample = report_.logs[process].sample;
  block.stands_for = std::max(block.bytes, block.bytes != 0 ? sample : 0);
  if (block.bytes != 0 && block.bytes < sample) {
    uint64_t rest = sample % block.bytes;
    uint64_t draw = (event.seq * 0x9E3779B97F4A7C15ULL >> 11) % block.bytes;
    block.blocks = static_cast<uint32_t>(std::min<uint64_t>(sample / block.bytes + (draw < rest ? 1 : 0), UINT32_MAX));
  }
}

void Analyser::find_groups(size_t process, const Event& event, GpuReport& owner, LiveBlock& block) {
  auto belongs = [&](By by, uint32_t number) {
    auto i = static_cast<size_t>(by);
    block.groups[i] = owner.groups[i].place(number);
  };
  belongs(By::stack, places_.of(process, event.stack_id));
  belongs(By::thread, thread_of(process, event));
  belongs(By::stream, streams_.of(process, event.stream, [&](uint32_t) { report_.streams.push_back({process, event.stream}); }));
  belongs(By::kind, kinds_.number(event.kind));
  belongs(By::tag, tags_.number(event.tag));
  belongs(By::query, queries_.number(event.query_id));
  belongs(By::process, static_cast<uint32_t>(process));
}

uint32_t Analyser::thread_of(size_t process, const Event& event) {
  uint32_t thread = threads_.of(process, event.thread, [&](uint32_t) {
    report_.threads.push_back({process, event.thread, std::string(event.thread_name)});
  });
  Process& own = processes_[process];
  own.is_simple = own.is_simple && (own.only_thread == UINT32_MAX || own.only_thread == thread);
  own.only_thread = thread;
  return thread;
}

void Analyser::release(size_t process, const LiveBlock& block, bool at_exit) {
  GpuReport& owner = report_.gpus[block.gpu];
  owner.live -= block.stands_for;
  owner.live_blocks -= block.blocks;
  owner.live_taken -= block.taken * block.blocks;
  report_.processes[process].live -= owner.is_gpu() ? block.stands_for : 0;
  for_groups(block, owner, [&](Group& group) {
    group.live -= block.stands_for;
    group.live_blocks -= block.blocks;
    if (at_exit) {
      group.freed_at_exit += block.stands_for;
      group.freed_at_exit_blocks += block.blocks;
    }
  });
}

void Analyser::end_unseen(size_t process, const Event& event) {
  Process& own = processes_[process];
  ++report_.ended_unseen;
  own.is_simple = false;
  auto old = own.unseen.find(event.ptr);
  if (old != own.unseen.end() && old->second.generation == event.generation) {
    own.unseen.erase(old);
  } else if (!own.switched) {
    check_.contradict(process, event.seq, "the end of a block that was not replaced");
  }
}

void Analyser::end(size_t process, const Event& event) {
  if (event.result != "ok") {
    return;
  }
  if (event.action == action::ended_unseen) {
    end_unseen(process, event);
    return;
  }
  if (event.kind == "foreign") {
    ++report_.foreign_frees;
    return;
  }
  report_.context_destroyed += event.action == action::context_destroyed ? 1 : 0;
  Process& own = processes_[process];
  LiveBlock* block = own.blocks.find(event.ptr);
  if (block == nullptr || block->generation != event.generation) {
    if (!own.switched) {
      check_.contradict(process, event.seq, "the end of a block that is not live");
    }
    return;
  }
  bool at_exit = own.exit_begun || (event.stack_id != kNone && frees_at_exit(process, places_.of(process, event.stack_id)));
  if (event.api == "cuMemFree_v2" && event.kind == "plain" && event.elapsed_ns != kNone) {
    save(number_of(report_.gpus[block->gpu], *block, By::stack), own.on_gpu(block->gpu).model.free(block->bytes, event.elapsed_ns));
  }
  note_life(process, *block, event);
  release(process, *block, at_exit);
  GpuReport& owner = report_.gpus[block->gpu];
  own.blocks.erase(block);
  owner.timeline.note(report_.span, report_.last_time, owner.live);
  check_ledger(process, event, owner.live);
}

void Analyser::note_life(size_t process, const LiveBlock& block, const Event& event) {
  if (event.thread != kNone) {
    thread_of(process, event);
  }
  if (!block.seen_made) {
    return;
  }
  uint64_t life = event.time > block.time ? event.time - block.time : 0;
  LifetimeClass& lived = report_.lifetimes[lifetime_class(life)];
  lived.blocks += block.blocks;
  lived.bytes += block.stands_for;
  bool temporary = thread_allocations_[number_of(report_.gpus[block.gpu], block, By::thread)] == block.order;
  bool short_lived = life < kShortLife;
  if (temporary || short_lived) {
    for_groups(block, report_.gpus[block.gpu], [&](Group& group) {
      group.temporary += temporary ? block.blocks : 0;
      group.short_lived += short_lived ? block.blocks : 0;
    });
  }
}

void Analyser::save(uint32_t place, const Saving& saving) {
  at(report_.savings, place).add(saving);
  report_.saving.add(saving);
}

bool Analyser::frees_at_exit(size_t process, uint32_t place) {
  auto& known = processes_[process].is_exit;
  if (known.size() <= place) {
    known.resize(place + 1, -1);
  }
  if (known[place] < 0) {
    const Stack* stack = report_.stack(place);
    known[place] = stack != nullptr && is_exit(*stack) ? 1 : 0;
  }
  return known[place] == 1;
}

// In a process of one thread the ledger of each row is exact: with more, another's bytes count before its row has its place.
void Analyser::check_ledger(size_t process, const Event& event, uint64_t live) {
  const ProcessLog& log = report_.logs[process];
  if (report_.logs.size() == 1 && log.sample + log.least == 0 && processes_[process].is_simple && processes_[process].unseen.empty()) {
    check_.follow_live(event, live);
  }
}

void Analyser::fail(size_t process, const Event& event) {
  GpuReport* owner = gpu(process, event);
  if (owner == nullptr) {
    return;
  }
  ++owner->failed;
  LiveBlock asked;
  find_groups(process, event, *owner, asked);
  for_groups(asked, *owner, [](Group& group) { ++group.failures; });
  if (event.result != "CUDA_ERROR_OUT_OF_MEMORY" && event.result != "rmm::bad_alloc") {
    return;
  }
  ++owner->refusals;
  owner->refused_since = owner->refused_since == 0 ? event.bytes : std::min(owner->refused_since, event.bytes);
  ++report_.processes[process].refusals;
  Refusal refusal;
  refusal.process = process;
  refusal.time = event.time;
  refusal.requested = event.bytes;
  refusal.live = owner->live;
  refusal.place = number_of(*owner, asked, By::stack);
  refusal.api = event.api;
  refusal.result = event.result;
  refusal.message = event.message;
  if (owner->refused.size() >= 2 * kRefusalsKept) {
    owner->refused.erase(owner->refused.begin() + kRefusalsKept);
  }
  // A program that asks again and again: the set is taken down for the first ones; later ones are counted, and the
  // last is taken down again when the memory in use has changed.
  bool take_down = owner->refused.size() < kRefusalsKept || owner->refused.back().live != refusal.live;
  if (take_down) {
    refusal.holders = largest(owner->groups[0], &Group::live, &Group::live_blocks, kHolders);
    refusal.holes = holes_on(static_cast<uint32_t>(owner - report_.gpus.data()), false);
  }
  owner->refused.push_back(std::move(refusal));
}

}  // namespace xlog::tools
