// PyTorch's snapshot of memory: torch/csrc/cuda/memory_snapshot.cpp writes it, torch/utils/viz/MemoryViz.js and
// torch/cuda/_memory_viz.py read it. Memory that this library logs is memory of the driver's, so each block is a segment that holds
// this one block: a segment is made, the block in it; the block is freed, then the segment.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

#include "tools/analysis/taken.h"
#include "tools/log/block_rows.h"
#include "tools/report/export.h"
#include "tools/report/pickle.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

namespace {

constexpr size_t kMostFrames = 64;
constexpr uint64_t kSmall = 1 << 20;  // PyTorch's own bound between small and large segments

struct Segment {
  uint64_t address = 0;  // in the snapshot
  uint64_t bytes = 0;
  uint64_t generation = kNone;
  uint64_t stream = 0;
  StackKey stack;
};

// A viewer has one space of addresses for each GPU, and holds addresses as doubles, which are exact below 2^53. A block keeps its
// address unless another process has one there; a handle, which is no address, gets one above all of them.
class Addresses {
 public:
  uint64_t take(uint64_t wanted, bool is_address, uint64_t bytes) {
    constexpr uint64_t kStep = 2 << 20;
    bool fits = is_address && wanted < kFirstOwn && taken_.try_emplace(wanted, true).second;
    if (fits) {
      return wanted;
    }
    uint64_t address = next_;
    next_ = (next_ + bytes / kStep * kStep + kStep) % (uint64_t{1} << 53);
    return address;
  }
  void give(uint64_t address) { taken_.erase(address); }

 private:
  static constexpr uint64_t kFirstOwn = uint64_t{1} << 48;
  std::unordered_map<uint64_t, bool> taken_;
  uint64_t next_ = kFirstOwn;
};

class PyTorchSnapshot {
 public:
  PyTorchSnapshot(const Report& report, std::ostream& out) : report_(report), pickle_(out) {}

  void write() {
    size_t devices = 0;
    for (const GpuReport& gpu : report_.gpus) {
      devices = gpu.is_gpu() ? std::max(devices, device_of(gpu) + 1) : devices;
    }
    std::vector<std::vector<Segment>> left(devices);
    pickle_.begin_dict();
    text("device_traces");
    pickle_.begin_list();
    for (size_t device = 0; device < devices; ++device) {
      write_trace(device, left[device]);
    }
    pickle_.end_list();
    text("segments");
    begin_long_list();
    for (size_t device = 0; device < devices; ++device) {
      for (const Segment& each : left[device]) {
        write_segment(device, each);
      }
    }
    pickle_.end_list();
    text("allocator_settings");
    pickle_.begin_dict();
    text("recorded_by");
    text("xlog");
    pickle_.end_dict();
    pickle_.end_dict();
    pickle_.end();
  }

 private:
  // The ordinal, unless an earlier GPU has it: other processes may number GPUs in another way.
  size_t device_of(const GpuReport& gpu) {
    auto known = devices_.find(gpu.key);
    if (known != devices_.end()) {
      return known->second;
    }
    size_t device = gpu.ordinal;
    auto is_taken = [&](size_t number) {
      return std::any_of(devices_.begin(), devices_.end(), [&](const auto& each) { return each.second == number; });
    };
    while (is_taken(device)) {
      ++device;
    }
    devices_[gpu.key] = device;
    return device;
  }

  std::optional<size_t> device_of(size_t process, const Event& event) const {
    if (event.device == kNone) {
      return std::nullopt;
    }
    const auto& gpus = report_.logs[process].gpus;
    auto info = gpus.find(event.device);
    auto known = devices_.find(info != gpus.end() && !info->second.uuid.empty() ? info->second.uuid : std::to_string(event.device));
    return known != devices_.end() ? std::optional(known->second) : std::nullopt;
  }

  void write_trace(size_t device, std::vector<Segment>& left) {
    std::vector<std::string> problems;  // the analysis has told them
    LogMerge merge(report_.logs, problems);
    std::vector<std::unordered_map<uint64_t, Segment>> live(report_.logs.size());
    Addresses addresses;
    begin_long_list();
    auto end = [&](size_t process, std::unordered_map<uint64_t, Segment>::iterator block, const Event& event) {
      const StackKey freed_by{process, event.stack_id};
      for (const char* action : {"free_requested", "free_completed", "segment_free"}) {
        write_event(action, block->second, freed_by, event.time);
      }
      addresses.give(block->second.address);
      live[process].erase(block);
    };
    size_t process = 0;
    for (const Event* event = merge.next(process); event != nullptr; event = merge.next(process)) {
      auto old = live[process].find(event->ptr);
      if (ends_block(*event) && event->result == "ok") {
        if (old != live[process].end() && old->second.generation == event->generation) {
          end(process, old, *event);
        }
        continue;
      }
      if (!begins_block(*event) || device_of(process, *event) != device) {
        continue;
      }
      if (event->result == "CUDA_ERROR_OUT_OF_MEMORY") {
        write_refusal({process, event->stack_id}, *event);
      }
      if (event->result != "ok" || event->ptr == kNone || event->bytes == kNone || event->bytes == 0) {
        continue;  // of no bytes: a viewer finds no segment that holds it
      }
      if (old != live[process].end()) {
        end(process, old, *event);
      }
      Segment made{.address = addresses.take(event->ptr, has_address(event->kind), event->bytes),
                   .bytes = event->bytes,
                   .generation = event->generation,
                   .stream = event->stream != kNone ? event->stream : 0,
                   .stack = {process, event->stack_id}};
      write_event("segment_alloc", made, made.stack, event->time);
      write_event("alloc", made, made.stack, event->time);
      live[process][event->ptr] = made;
    }
    pickle_.end_list();
    for (const auto& each : live) {
      for (const auto& [ptr, segment] : each) {
        left.push_back(segment);
      }
    }
    std::sort(left.begin(), left.end(), [](const Segment& a, const Segment& b) { return a.address < b.address; });
  }

  void begin_long_list() {
    pickle_.begin_list();
    elements_ = 0;
  }
  void next_element() {
    constexpr size_t kAtOnce = 1000;
    if (++elements_ % kAtOnce == 0) {
      pickle_.list_goes_on();
    }
  }

  void write_event(const char* action, const Segment& segment, const StackKey& stack, uint64_t time) {
    pickle_.begin_dict();
    text("action");
    text(action);
    pair("addr", segment.address);
    pair("size", segment.bytes);
    write_rest(segment.stream, stack, time);
  }
  void write_refusal(const StackKey& stack, const Event& event) {
    pickle_.begin_dict();
    text("action");
    text("oom");
    pair("device_free", 0);  // not in the log
    pair("size", event.bytes != kNone ? event.bytes : 0);
    write_rest(event.stream != kNone ? event.stream : 0, stack, event.time);
  }
  void write_rest(uint64_t stream, const StackKey& stack, uint64_t time) {
    pair("stream", stream);
    pair("time_us", time / 1000);
    text("frames");
    frames(stack);
    pickle_.end_dict();
    next_element();
  }

  void write_segment(size_t device, const Segment& segment) {
    pickle_.begin_dict();
    pair("device", device);
    pair("address", segment.address);
    for (const char* name : {"total_size", "allocated_size", "active_size", "requested_size"}) {
      pair(name, segment.bytes);
    }
    pair("stream", segment.stream);
    text("segment_type");
    text(segment.bytes < kSmall ? "small" : "large");
    text("segment_pool_id");
    pickle_.number(0);
    pickle_.number(0);
    pickle_.end_pair();
    text("is_expandable");
    pickle_.flag(false);
    text("frames");
    frames(segment.stack);
    text("blocks");
    pickle_.begin_list();
    pickle_.begin_dict();
    pair("address", segment.address);
    pair("size", segment.bytes);
    pair("requested_size", segment.bytes);
    text("state");
    text("active_allocated");
    text("frames");
    frames(segment.stack);
    pickle_.end_dict();
    pickle_.end_list();
    pickle_.end_dict();
    next_element();
  }

  void pair(const char* name, uint64_t value) {
    text(name);
    pickle_.number(value);
  }

  // Each text and each list of frames is written once.
  void text(const std::string& value) {
    auto known = texts_.find(value);
    if (known != texts_.end()) {
      pickle_.again(known->second);
      return;
    }
    pickle_.text(terminal_line(value));
    texts_[value] = pickle_.keep();
  }
  void frames(const StackKey& key) {
    auto known = frames_.find(key);
    if (known != frames_.end()) {
      pickle_.again(known->second);
      return;
    }
    const Stack* stack = report_.stacks[key.process].find(key.stack);
    std::vector<const Frame*> shown = stack != nullptr ? visible_frames(*stack, false) : std::vector<const Frame*>();
    shown.resize(std::min(shown.size(), kMostFrames));
    pickle_.begin_list();
    for (const Frame* frame : shown) {
      pickle_.begin_dict();
      text("filename");
      text(frame->file.empty() ? frame->module : frame->file);
      pair("line", frame->line);
      text("name");
      text(whole_name(*frame));
      pickle_.end_dict();
    }
    pickle_.end_list();
    frames_[key] = pickle_.keep();
  }

  const Report& report_;
  Pickle pickle_;
  size_t elements_ = 0;  // of the list that is being written
  std::map<std::string, size_t> devices_;
  std::unordered_map<std::string, Pickle::Memo> texts_;
  std::map<StackKey, Pickle::Memo> frames_;
};

}  // namespace

void export_pytorch(const Report& report, std::ostream& out) { PyTorchSnapshot(report, out).write(); }

}  // namespace xlog::tools
