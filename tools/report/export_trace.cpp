// Perfetto, chrome://tracing.
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tools/log/block_rows.h"
#include "tools/report/export.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

std::string json_text(std::string_view text) { return json_for_terminal(json(text).dump(-1, ' ', false, json::error_handler_t::replace)); }

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
  // The process has ended, or logs anew what is live: it has nothing from here on.
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

}  // namespace

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

}  // namespace xlog::tools
