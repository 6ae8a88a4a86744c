#include "tools/report/header.h"

#include <ctime>
#include <filesystem>
#include <set>

#include "tools/report/format.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

std::string date_text(uint64_t ns) {
  auto seconds = static_cast<time_t>(ns / 1'000'000'000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[48];
  return strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) != 0 ? text : "";
}

// The process that started the others: the first one of the run.
const ProcessLog& first_of(const Report& report) {
  const ProcessLog* first = &report.logs[0];
  for (const ProcessLog& each : report.logs) {
    if (each.start_ns != 0 && (first->start_ns == 0 || each.start_ns < first->start_ns)) {
      first = &each;
    }
  }
  return *first;
}

std::string program_line(const Report& report) {
  const ProcessLog& first = first_of(report);
  std::string text =
      first.program.empty() ? "a program of which only the rows are there" : std::filesystem::path(first.program).filename().string();
  if (!first.arguments.empty()) {
    text = first.arguments;
  }
  if (first.pid != 0) {
    text += "  (pid " + std::to_string(first.pid);
    size_t others = report.logs.size() - 1;
    text += others == 0 ? "" : " and " + count_text(others) + (others == 1 ? " other process" : " other processes");
    text += ")";
  }
  return text;
}

std::string circumstances(const Report& report) {
  const ProcessLog& first = first_of(report);
  std::set<std::string> hosts;
  for (const ProcessLog& each : report.logs) {
    if (!each.host.empty()) {
      hosts.insert(each.host);
    }
  }
  std::string text;
  auto add = [&](const std::string& part) { text += part.empty() ? "" : (text.empty() ? "" : ", ") + part; };
  if (!hosts.empty()) {
    add("on " + (hosts.size() == 1 ? *hosts.begin() : count_text(hosts.size()) + " hosts"));
  }
  if (first.start_ns != 0) {
    add(date_text(first.start_ns));
  }
  if (first.ended_ns > first.start_ns && first.start_ns != 0) {
    add("ran for " + time_text(first.ended_ns - first.start_ns));
  } else if (report.rows != 0) {
    add(time_text(report.last_time - report.first_time) + " from the first call to the last");
  }
  if (first.exit_signal != UINT64_MAX) {
    add("killed by signal " + std::to_string(first.exit_signal));
  } else if (first.exit_status != UINT64_MAX) {
    add("exited with " + std::to_string(first.exit_status));
  }
  return text;
}

}  // namespace

std::vector<std::string> header_of(const Report& report) {
  std::vector<std::string> lines;
  if (report.logs.empty()) {
    return lines;
  }
  lines.push_back(program_line(report));
  if (std::string text = circumstances(report); !text.empty()) {
    lines.push_back(text);
  }
  lines.push_back("log: " + name_of(report.logs));
  return lines;
}

}  // namespace xlog::tools
