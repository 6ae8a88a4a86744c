#include "tools/analysis/analysis.h"
#include "tools/report/format.h"

namespace xlog::tools {

namespace {

std::string thread_label(const Report& report, const ThreadName& thread) {
  std::string text = "thread " + std::to_string(thread.thread) + (thread.name.empty() ? "" : " (" + thread.name + ")");
  return report.logs.size() > 1 ? text + " of " + std::to_string(report.logs[thread.process].pid) : text;
}

std::string stream_label(const Report& report, const StreamName& stream) {
  std::string text = stream.handle == kNone ? "no stream" : stream.handle == 0 ? "the default stream" : "stream " + hex_text(stream.handle);
  return report.logs.size() > 1 ? text + " of " + std::to_string(report.logs[stream.process].pid) : text;
}

}  // namespace

std::string label(const Report& report, By what, size_t number) {
  switch (what) {
    case By::thread:
      return thread_label(report, report.threads[number]);
    case By::stream:
      return stream_label(report, report.streams[number]);
    case By::kind:
      return report.kinds[number];
    case By::tag:
      return number == 0 ? "no tag" : report.tags[number];
    case By::query:
      return number == 0 ? "no query" : report.queries[number];
    case By::process: {
      const ProcessLog& log = report.logs[number];
      return std::to_string(log.pid) + ' ' + (log.arguments.empty() ? log.program : log.arguments).substr(0, 100);
    }
    case By::stack:
      return holder_name(report, static_cast<uint32_t>(number));
  }
  return {};
}

}  // namespace xlog::tools
