// What the commands share: which logs, how far reading is, where the answer goes.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>

#include "runtime/base/size_text.h"
#include "tools/command/commands.h"
#include "tools/command/messages.h"
#include "tools/command/pager.h"
#include "tools/log/debuginfod.h"
#include "tools/log/text_file.h"
#include "tools/report/format.h"
#include "tools/report/output_file.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

std::vector<ProcessLog> named_logs(const std::vector<std::string>& names) {
  std::vector<std::string> problems;
  std::vector<ProcessLog> logs = find_logs(names, problems);
  for (const std::string& each : problems) {
    complain(each);
  }
  return logs;
}

void add_debuginfod_option(CLI::App* command) {
  command
      ->add_option_function<unsigned>("--debuginfod", allow_debuginfod,
                                      "ask the servers of DEBUGINFOD_URLS for debug information, for so many seconds in all")
      ->check(CLI::Range(1, 3600));
}

std::string progress_line(uint64_t done, uint64_t whole, uint64_t elapsed_ns) {
  constexpr uint64_t kWorthIt = 500'000'000;
  constexpr size_t kWidth = 40;
  if (whole == 0 || done == 0 || elapsed_ns < kWorthIt) {
    return {};
  }
  double part = std::min(static_cast<double>(done) / static_cast<double>(whole), 1.0);
  auto full = static_cast<size_t>(part * kWidth);
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3.0f", part * 100);
  auto left = static_cast<uint64_t>(static_cast<double>(elapsed_ns) * (1 - part) / part);
  return "xlog: reading [" + std::string(full, '#') + std::string(kWidth - full, '.') + "] " + percent + " %, " + time_text(left) + " left";
}

namespace {

// Drawn in place, and wiped at its end.
class Bar {
 public:
  ~Bar() {
    if (drawn_) {
      std::fputs("\r\033[K", stderr);
    }
  }
  void draw(uint64_t done, uint64_t whole) {
    using namespace std::chrono;
    auto now = steady_clock::now();
    std::string line = progress_line(done, whole, static_cast<uint64_t>(nanoseconds(now - begun_).count()));
    if (line.empty() || now - last_ < milliseconds(100)) {
      return;
    }
    std::fprintf(stderr, "\r%s\033[K", line.c_str());
    last_ = now;
    drawn_ = true;
  }

 private:
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_;
  bool drawn_ = false;
};

}  // namespace

Progress terminal_progress() {
  if (isatty(STDERR_FILENO) == 0) {
    return {};
  }
  auto bar = std::make_shared<Bar>();
  return [bar](uint64_t done, uint64_t whole) { bar->draw(done, whole); };
}

Report read_report(std::vector<ProcessLog> logs, AnalysisOptions options) {
  options.progress = terminal_progress();
  Report report = analyse(std::move(logs), options);
  options.progress = {};
  for (const std::string& each : report.problems) {
    complain(each);
  }
  for (const std::string& each : report.notes) {
    complain(each);
  }
  return report;
}

uint64_t parse_size_option(const std::string& name, const std::string& text) {
  uint64_t bytes = 0;
  SizeError error = parse_bytes(text, bytes);
  if (error != SizeError::none) {
    Text<200> why;
    explain(error, text, why);
    throw CLI::ValidationError(name, std::string(why.view()));
  }
  return bytes;
}

CLI::Validator count_check() {
  return CLI::Validator(
      [](const std::string& text) {
        bool good = !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string::npos;
        return good ? std::string() : "\"" + text + "\" is no number of 0 or more";
      },
      "");
}

bool write_out(const std::string& path, std::string_view text) {
  OutputFile out(path);
  out.stream() << text;
  if (!out.commit()) {
    complain(out.problem());
    return false;
  }
  return true;
}

int print_safe_text(std::string_view text, int status) { return shown_by_pager(text) || write_out("", text) ? status : kTrouble; }

int print_text(std::string_view text, int status) { return print_safe_text(terminal_text(text), status); }

int print_json(std::string_view json, int status) { return write_out("", json) ? status : kTrouble; }

int finish_output(int status) {
  if (!std::cout.flush()) {
    complain("standard output cannot be written");
    return kTrouble;
  }
  return status;
}

}  // namespace xlog::tools
