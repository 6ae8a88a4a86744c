#include "runtime/record/stack_table.h"

#include <string.h>

#include "runtime/base/backtrace.h"
#include "runtime/base/diagnostics.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/modules.h"
#include "runtime/base/signals_held.h"
#include "runtime/base/text.h"
#include "runtime/record/event.h"
#include "runtime/record/log_file.h"
#include "runtime/record/row_writer.h"

namespace xlog {

namespace {

constexpr size_t kLongestFunction = 1024;
// Of memory: no page of it is there before it is written to.
constexpr size_t kRowBytes = 4 * (kLongestPath + kLongestFunction) + 256;

uint64_t mix(uint64_t a, uint64_t b) noexcept {
  unsigned __int128 product = static_cast<unsigned __int128>(a ^ b) * 0xD6E8FEB86659FD93ULL;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Four lanes, so that the multiplications do not wait for each other.
uint64_t hash_stack(const CallStack& stack, const PythonFrames& interpreter, uint32_t epoch) noexcept {
  uint64_t lanes[4] = {0x9E3779B97F4A7C15ULL + epoch, 0xBF58476D1CE4E5B9ULL + stack.count, 0x94D049BB133111EBULL, 0x2545F4914F6CDD1DULL};
  auto add = [&lanes](size_t i, uint64_t value) {
    uint64_t& lane = lanes[i % 4];
    lane = mix(lane, value) + (lane << 23 | lane >> 41);
  };
  for (size_t i = 0; i < stack.count; ++i) {
    add(i, stack.frames[i]);
  }
  for (size_t i = 0; i < stack.python_count; ++i) {
    add(i, interpreter.identity(stack.python[i]));
  }
  uint64_t hash = mix(mix(lanes[0], lanes[1]), mix(lanes[2] + 1, lanes[3]));
  return hash != 0 ? hash : 1;
}

// The rows of one stack.
class Rows {
 public:
  // `path` and `function`: memory for kLongestPath and kLongestFunction bytes. A thread's stack may be too small for that.
  Rows(TextSink& out, TextSink& path, TextSink& function, uint64_t id) noexcept : out_(out), path_(path), function_(function), id_(id) {}

  void native(uintptr_t address) noexcept {
    path_.clear();
    ModuleAddress where(path_);
    describe_address(address, where);
    begin();
    put_whole_field(out_, path_.view());
    out_.put(',').put(where.build_id.view()).put(",0x").hex(where.offset).put(",,,\n");
  }

  void python(const PythonFrames& interpreter, const PythonFrame& frame) noexcept {
    function_.clear();
    path_.clear();
    uint32_t line = 0;
    interpreter.describe(frame, function_, path_, line);
    begin();
    out_.put(kPythonModule).put(",,0x").hex(static_cast<uint64_t>(frame.at)).put(',');
    put_whole_field(out_, function_.view());
    out_.put(',');
    put_whole_field(out_, path_.view());
    out_.put(',').decimal(line).put('\n');
  }

 private:
  void begin() noexcept { out_.decimal(id_).put(',').decimal(depth_++).put(','); }
  TextSink& out_;
  TextSink& path_;
  TextSink& function_;
  uint64_t id_;
  size_t depth_ = 0;
};

// Each native frame of the interpreter follows the Python frames that it runs; those whose native frame is not there, as
// the trace ends before it, come last.
void put_stack(Rows& rows, const CallStack& stack, const PythonFrames& interpreter) noexcept {
  size_t next = 0;
  auto put_until_entry = [&] {
    for (bool entry = false; next < stack.python_count && !entry; ++next) {
      rows.python(interpreter, stack.python[next]);
      entry = stack.python[next].is_entry;
    }
  };
  for (size_t i = 0; i < stack.count; ++i) {
    if (interpreter.is_interpreter(stack.frames[i])) {
      put_until_entry();
    }
    rows.native(stack.frames[i]);
  }
  while (next < stack.python_count) {
    put_until_entry();
  }
}

}  // namespace

StackTable::Slot* StackTable::table() noexcept {
  Slot* slots = table_.load(std::memory_order_acquire);
  if (slots == nullptr) {
    auto* fresh = static_cast<Slot*>(map_state(sizeof(Slot) * kSlots));
    if (fresh == nullptr || table_.compare_exchange_strong(slots, fresh, std::memory_order_acq_rel)) {
      return fresh;
    }
    unmap_state(fresh, sizeof(Slot) * kSlots);
  }
  return slots;
}

uint64_t StackTable::id(const CallStack& stack, const PythonFrames& interpreter, uint32_t generation, const char* path) noexcept {
  Slot* slots = stack.count + stack.python_count != 0 ? table() : nullptr;
  if (slots == nullptr) {
    return kNone;
  }
  uint64_t hash = hash_stack(stack, interpreter, generation);
  for (size_t i = hash % kSlots;; i = (i + 1) % kSlots) {
    Slot& slot = slots[i];
    uint64_t found = slot.hash.load(std::memory_order_acquire);
    if (found == 0) {
      if (used_.load(std::memory_order_relaxed) > kSlots / 4 * 3) {
        return kNone;
      }
      SignalsHeld held;  // others wait for its number
      if (slot.hash.compare_exchange_strong(found, hash, std::memory_order_acq_rel)) {
        used_.fetch_add(1, std::memory_order_relaxed);
        return add(slot, stack, interpreter, path);
      }
    }
    if (found == hash) {
      uint64_t id = slot.id.load(std::memory_order_acquire);
      while (id == 0) {  // another thread is writing it down
        kernel::yield();
        id = slot.id.load(std::memory_order_acquire);
      }
      return id;
    }
  }
}

uint64_t StackTable::add(Slot& slot, const CallStack& stack, const PythonFrames& interpreter, const char* path) noexcept {
  uint64_t id = kNone;
  size_t text_bytes = kRowBytes * (stack.count + stack.python_count);
  size_t bytes = text_bytes + kLongestPath + kLongestFunction;
  void* memory = map_state(bytes);
  if (memory != nullptr) {
    id = __atomic_add_fetch(&last_id_, 1, __ATOMIC_RELAXED);
    auto* at = static_cast<char*>(memory);
    TextSink module(at, kLongestPath);
    TextSink function(at + kLongestPath, kLongestFunction);
    TextSink text(at + kLongestPath + kLongestFunction, text_bytes);
    Rows rows(text, module, function, id);
    put_stack(rows, stack, interpreter);
    LockGuard guard(file_lock_);
    int error = 0;
    if (!has_file_) {
      Text<128> header;
      header.put(kStackColumns).put('\n');
      error = create_file(path, header.view(), file_);
      has_file_ = error == 0;
      if (error != 0 && !said_) {
        said_ = true;
        Text<1400> line;
        line.put("cannot write ").put(path).put(": ").put(strerrordesc_np(error)).put("; rows name no call stacks");
        say(line.view());
      }
    }
    if (error != 0 || append_file(path, text.view(), file_) != 0) {
      id = kNone;
    }
  }
  if (memory != nullptr) {
    unmap_state(memory, bytes);
  }
  slot.id.store(id, std::memory_order_release);
  return id;
}

}  // namespace xlog
