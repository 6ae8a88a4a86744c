#include "tools/report/export.h"

#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tools/analysis/taken.h"
#include "tools/log/block_rows.h"
#include "tools/report/format.h"
#include "tools/report/json_parts.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

// `;` separates frames.
std::string folded_name(const Frame& frame) {
  std::string name = name_of(frame);
  for (char& c : name) {
    c = c == ';' || c == '\n' ? ':' : c;
  }
  return name;
}

std::string json_text(std::string_view text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

// Microseconds with their fraction.
std::string micros(uint64_t ns) {
  std::string text = std::to_string(ns / 1000) + '.' + std::to_string(1000 + ns % 1000).substr(1);
  return text;
}

class Trace {
 public:
  Trace(const std::vector<ProcessLog>& logs, std::ostream& out) : logs_(logs), out_(out) {}

  void begin() {
    out_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    for (size_t i = 0; i < logs_.size(); ++i) {
      std::string name = logs_[i].arguments.empty() ? logs_[i].program : logs_[i].arguments;
      put("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":" + pid(i) + ",\"args\":{\"name\":" + json_text(name) + "}}");
    }
  }
  void take(size_t process, const Event& event, uint64_t first_time) {
    if (event.elapsed_ns != kNone && event.elapsed_ns != 0) {
      uint64_t begin = event.action == action::allocate && event.time >= event.elapsed_ns ? event.time - event.elapsed_ns : event.time;
      std::string size = event.bytes != kNone ? ",\"bytes\":" + std::to_string(event.bytes) : "";
      put("{\"ph\":\"X\",\"name\":" + json_text(event.api.empty() ? event.action : event.api) + ",\"pid\":" + pid(process) +
          ",\"tid\":" + std::to_string(event.thread) + ",\"ts\":" + micros(begin > first_time ? begin - first_time : 0) +
          ",\"dur\":" + micros(event.elapsed_ns) + ",\"args\":{\"result\":" + json_text(event.result) + size + "}}");
    }
    if (event.result == "CUDA_ERROR_OUT_OF_MEMORY") {
      put("{\"ph\":\"i\",\"s\":\"p\",\"name\":\"out of memory\",\"pid\":" + pid(process) + ",\"tid\":" + std::to_string(event.thread) +
          ",\"ts\":" + micros(event.time - first_time) + "}");
    }
    bool begins = event.result == "ok" && begins_block(event) && event.ptr != kNone;
    bool ends = event.result == "ok" && ends_block(event);
    auto& live = live_[process];
    auto known = live.find(event.ptr);
    if (begins && event.bytes != kNone && event.device != kNone) {
      uint64_t& sum = sums_[{process, event.device}];
      if (known != live.end()) {
        sums_[{process, known->second.device}] -= known->second.bytes;
      }
      live[event.ptr] = {event.generation, event.bytes, event.device};
      sum += event.bytes;
      counter(process, event.device, event.time - first_time, sum);
    } else if (ends && known != live.end() && known->second.generation == event.generation) {
      uint64_t device = known->second.device;
      uint64_t& sum = sums_[{process, device}];
      sum -= known->second.bytes;
      live.erase(known);
      counter(process, device, event.time - first_time, sum);
    }
  }
  // The process has ended, or tells anew what is live: it has nothing from here on.
  void forget(size_t process, uint64_t time) {
    live_[process].clear();
    for (auto& [owner, sum] : sums_) {
      if (owner.first == process && sum != 0) {
        sum = 0;
        counter(process, owner.second, time, 0);
      }
    }
  }
  void end() { out_ << "\n]}\n"; }

 private:
  struct Live {
    uint64_t generation = 0;
    uint64_t bytes = 0;
    uint64_t device = 0;
  };
  std::string pid(size_t process) const { return std::to_string(logs_[process].pid); }
  void counter(size_t process, uint64_t device, uint64_t time, uint64_t live) {
    put("{\"ph\":\"C\",\"name\":\"GPU " + std::to_string(device) + "\",\"pid\":" + pid(process) + ",\"ts\":" + micros(time) +
        ",\"args\":{\"live bytes\":" + std::to_string(live) + "}}");
  }
  void put(const std::string& event) {
    out_ << (first_ ? "\n" : ",\n") << event;
    first_ = false;
  }

  const std::vector<ProcessLog>& logs_;
  std::ostream& out_;
  bool first_ = true;
  std::map<size_t, std::unordered_map<uint64_t, Live>> live_;
  std::map<std::pair<size_t, uint64_t>, uint64_t> sums_;
};

std::string time_of_day(uint64_t ns) {
  auto two = [](uint64_t n) { return std::to_string(100 + n).substr(1); };
  uint64_t seconds = ns / 1'000'000'000 % 86'400;
  return two(seconds / 3600) + ':' + two(seconds / 60 % 60) + ':' + two(seconds % 60) + '.' +
         std::to_string(1'000'000 + ns / 1000 % 1'000'000).substr(1);
}

}  // namespace

void export_folded(const Report& report, What what, std::ostream& out) {
  std::map<std::string, uint64_t> lines;
  for (const GpuReport& gpu : report.gpus) {
    for (const auto& [place, group] : gpu.by(By::stack).entries()) {
      uint64_t bytes = what == What::peak ? group.at_peak : what == What::live ? group.live : group.bytes;
      const Stack* stack = report.stack(place);
      if (bytes == 0) {
        continue;
      }
      std::string line = report.gpus.size() > 1 ? gpu.is_gpu() ? "GPU " + std::to_string(gpu.ordinal) : gpu.key : "";
      for (size_t k = stack != nullptr ? stack->frames.size() : 0; k-- > 0;) {
        line += (line.empty() ? "" : ";") + folded_name(*stack->frames[k]);
      }
      lines[line.empty() ? "(no stack)" : line] += bytes;
    }
  }
  for (const auto& [line, bytes] : lines) {
    out << line << ' ' << bytes << '\n';
  }
}

void export_trace(const std::vector<ProcessLog>& logs, std::ostream& out, std::vector<std::string>& problems) {
  LogMerge merge(logs, problems);
  Trace trace(logs, out);
  trace.begin();
  size_t process = 0;
  uint64_t first = merge.span().first;
  uint64_t last = first;  // time of the rows so far
  for (const Event* event = merge.next(process); event != nullptr; event = merge.next(process)) {
    for (size_t each : merge.ended()) {
      trace.forget(each, std::max(last, logs[each].ended_ns) - first);
    }
    if (event->action == action::log_on) {
      trace.forget(process, event->time - std::min(first, event->time));
    }
    trace.take(process, *event, std::min(first, event->time));
    last = event->action == action::lost ? last : std::max(last, event->time);
  }
  trace.end();
}

uint64_t export_rmm(const std::vector<ProcessLog>& logs, uint64_t device, std::ostream& out, std::vector<std::string>& problems) {
  LogMerge merge(logs, problems);
  std::map<size_t, std::unordered_map<uint64_t, std::pair<uint64_t, uint64_t>>> live;  // ptr -> generation, bytes
  uint64_t left_out = 0;
  size_t process = 0;
  // The same address in two processes is two blocks, and a reader of this form has one table of them: a device address has 47 bits.
  auto pointer = [&process](uint64_t ptr) { return hex_text(ptr | (uint64_t{process} << 48)); };
  uint64_t last = 0;  // time of the rows so far
  out << "Thread,Time,Action,Pointer,Size,Stream\n";
  auto row = [&](const Event& event, const char* what, const std::string& ptr, uint64_t bytes) {
    out << event.thread << ',' << time_of_day(event.time) << ',' << what << ',' << ptr << ',' << bytes << ','
        << (event.stream == kNone || event.stream == 0 ? "0" : hex_text(event.stream)) << '\n';
  };
  // Its process has ended, or tells anew what is live.
  auto forget = [&](size_t whose, uint64_t thread) {
    Event end;
    end.thread = thread;
    end.time = last;
    for (const auto& [ptr, block] : live[whose]) {
      row(end, "free", hex_text(ptr | (uint64_t{whose} << 48)), block.second);
    }
    live[whose].clear();
  };
  for (const Event* event = merge.next(process); event != nullptr; event = merge.next(process)) {
    for (size_t each : merge.ended()) {
      forget(each, logs[each].pid);
    }
    last = event->action == action::lost ? last : std::max(last, event->time);
    if (event->action == action::log_on) {
      forget(process, event->thread);
    }
    bool begins = begins_block(*event);
    bool ends = ends_block(*event);
    auto& own = live[process];
    if (begins && (event->device != device || !has_address(event->kind) || event->bytes == kNone)) {
      ++left_out;
    } else if (begins && event->result != "ok") {
      row(*event, "allocate failure", "(nil)", event->bytes);
    } else if (begins && event->ptr != kNone) {
      auto old = own.find(event->ptr);
      if (old != own.end() && old->second.first == event->generation) {
        continue;  // made while the log came on: it has both rows
      }
      if (old != own.end()) {  // freed out of sight
        row(*event, "free", pointer(event->ptr), old->second.second);
      }
      own[event->ptr] = {event->generation, event->bytes};
      row(*event, "allocate", pointer(event->ptr), event->bytes);
    } else if (ends && event->result == "ok") {
      auto known = own.find(event->ptr);
      if (known != own.end() && known->second.first == event->generation) {
        row(*event, "free", pointer(event->ptr), known->second.second);
        own.erase(known);
      } else {
        ++left_out;
      }
    }
  }
  return left_out;
}

}  // namespace xlog::tools
