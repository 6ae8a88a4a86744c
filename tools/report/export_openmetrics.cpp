// OpenMetrics: https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md.
#include <utility>

#include "tools/report/export.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

namespace {

using Labels = std::vector<std::pair<const char*, std::string>>;

// A value of a label: valid UTF-8, and no line end of its own.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : terminal_line(text)) {
    out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return out + '"';
}

std::string label_text(const Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    out += (out.empty() ? "{" : ",") + std::string(name) + '=' + quoted(value);
  }
  return out.empty() ? out : out + '}';
}

struct Family {
  const char* name;  // a unit is its last word
  const char* type;
  const char* unit;  // empty: none
  const char* help;
};

class Exposition {
 public:
  explicit Exposition(std::ostream& out) : out_(out) {}
  // Samples of a family stand together, behind what is said of it.
  void begin(const Family& family) {
    out_ << "# TYPE " << family.name << ' ' << family.type << '\n';
    if (*family.unit != '\0') {
      out_ << "# UNIT " << family.name << ' ' << family.unit << '\n';
    }
    out_ << "# HELP " << family.name << ' ' << family.help << '\n';
    suffix_ = std::string_view(family.type) == "counter" ? "_total" : std::string_view(family.type) == "info" ? "_info" : "";
    name_ = family.name;
  }
  void sample(const Labels& labels, const std::string& value) { out_ << name_ << suffix_ << label_text(labels) << ' ' << value << '\n'; }
  void sample(const Labels& labels, uint64_t value) { sample(labels, std::to_string(value)); }
  void end() { out_ << "# EOF\n"; }

 private:
  std::ostream& out_;
  std::string name_;
  const char* suffix_ = "";
};

std::string seconds(uint64_t ns) {
  return std::to_string(ns / 1'000'000'000) + '.' + std::to_string(1'000'000'000 + ns % 1'000'000'000).substr(1);
}

Labels labels_of(const GpuReport& gpu) {
  return {{"device_index", gpu.is_gpu() ? std::to_string(gpu.ordinal) : ""},
          {"device_uuid", gpu.info.uuid},
          {"memory", gpu.is_gpu() ? "gpu" : gpu.key}};
}

// Of each GPU, and of memory that is no GPU's.
template <class Value>
void put_gpus(Exposition& out, const Report& report, const Family& family, Value value) {
  out.begin(family);
  for (const GpuReport& gpu : report.gpus) {
    out.sample(labels_of(gpu), value(gpu));
  }
}

template <class Value>
void put_processes(Exposition& out, const Report& report, const Family& family, Value value) {
  out.begin(family);
  for (const GpuReport& gpu : report.gpus) {
    for (const auto& [process, group] : gpu.by(By::process).entries()) {
      if (group.allocations + group.live + group.failures != 0) {
        Labels labels = labels_of(gpu);
        labels.emplace_back("pid", std::to_string(report.logs[process].pid));
        labels.emplace_back("log", report.logs[process].csv);  // a number of a process comes again
        out.sample(labels, value(group));
      }
    }
  }
}

void put_limits(Exposition& out, const Report& report) {
  out.begin({"xlog_limit_bytes", "gauge", "bytes", "Limit of a process on the GPU (XLOG_BUDGET)."});
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.info.limit_bytes != UINT64_MAX) {
      out.sample(labels_of(gpu), gpu.info.limit_bytes);
    }
  }
}

void put_driver(Exposition& out, const Report& report) {
  out.begin({"xlog_driver_used_peak_bytes", "gauge", "bytes", "Most that the driver had in use on the GPU, for all processes."});
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.looks != 0) {
      out.sample(labels_of(gpu), gpu.most_look.used);
    }
  }
  out.begin({"xlog_unattributed_bytes", "gauge", "bytes", "What of that no block of these logs stands for."});
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.looks != 0) {
      out.sample(labels_of(gpu), gpu.most_look.beyond());
    }
  }
}

}  // namespace

void export_openmetrics(const Report& report, std::ostream& stream) {
  Exposition out(stream);
  put_gpus(out, report, {"xlog_memory_bytes", "gauge", "bytes", "Memory that was live when the log ended."},
           [](const GpuReport& gpu) { return gpu.live; });
  put_gpus(out, report, {"xlog_peak_bytes", "gauge", "bytes", "Most memory that was live at once."},
           [](const GpuReport& gpu) { return gpu.peak; });
  put_limits(out, report);
  put_driver(out, report);
  put_gpus(out, report, {"xlog_refusals", "counter", "", "Requests that were refused for want of memory."},
           [](const GpuReport& gpu) { return gpu.refusals; });
  put_processes(out, report, {"xlog_process_memory_bytes", "gauge", "bytes", "Memory of a process that was live when its log ended."},
                [](const Group& group) { return group.live; });
  put_processes(out, report, {"xlog_process_at_peak_bytes", "gauge", "bytes", "Memory of a process when its GPU had most in use."},
                [](const Group& group) { return group.at_peak; });
  put_processes(out, report, {"xlog_allocations", "counter", "", "Allocations that succeeded."},
                [](const Group& group) { return group.allocations; });
  put_processes(out, report, {"xlog_allocated_bytes", "counter", "bytes", "Bytes of all allocations."},
                [](const Group& group) { return group.bytes; });
  out.begin({"xlog_call_seconds", "counter", "seconds", "Time in calls that make or end memory."});
  out.sample({}, seconds(report.call_ns));
  out.begin({"xlog_calls", "counter", "", "Calls that make or end memory."});
  out.sample({}, report.calls);
  out.begin({"xlog_lost_rows", "counter", "", "Rows that could not be written: other figures are too low or too high."});
  out.sample({}, report.lost);
  out.begin({"xlog_process", "info", "", "The processes of the run."});
  for (const ProcessLog& log : report.logs) {
    out.sample({{"pid", std::to_string(log.pid)}, {"log", log.csv}, {"program", log.program}, {"host", log.host}}, 1);
  }
  out.end();
}

}  // namespace xlog::tools
