#include <iostream>
#include <memory>

#include "tools/analysis/moment.h"
#include "tools/command/commands.h"
#include "tools/command/messages.h"
#include "tools/report/format.h"
#include "tools/report/html.h"
#include "tools/report/oom.h"
#include "tools/report/report.h"

namespace xlog::tools {

namespace {

struct ReportOptions {
  std::vector<std::string> names;
  ReportStyle style;
  bool json = false;
  bool verify = false;
  bool oom = false;
  std::string at;
  std::string by;
  std::string html;
  std::string suppressions;
};

// Logs of which none could be read are trouble; of which some could, not.
int status_of(const Report& report) { return report.problems.size() == report.logs.size() ? kTrouble : kYes; }

int verify(const Report& report) {
  for (const std::string& each : report.contradictions) {
    std::cout << each << '\n';
  }
  uint64_t live = 0;
  for (const GpuReport& gpu : report.gpus) {
    live += gpu.live;
  }
  std::cout << report.rows << " rows, " << report.contradiction_count << " contradictions, " << report.foreign_rows << " foreign, "
            << report.unfinished_rows << " unfinished, " << report.lost << " lost, live at the end " << live << " bytes\n";
  return report.contradiction_count == 0 && report.problems.empty() && report.foreign_rows == 0 ? kYes : kNo;
}

void say_if_outside(const std::string& at, uint64_t moment, const Report& whole) {
  std::string length = time_text(whole.last_time - whole.first_time);
  if (moment > whole.last_time) {
    complain("--at " + at + " is after the last row, which is " + length + " after the first: what was live at the end follows");
  } else if (moment < whole.first_time) {
    complain("--at " + at + " is before the first row: nothing was live then; the log lasts " + length);
  }
}

// "peak" is the moment at which the GPU that had the most had it.
int report_at(const std::string& at, std::vector<ProcessLog> logs, const ReportOptions& options) {
  Report whole = read_report(logs, {.resolve = false, .snapshots = 0});
  const GpuReport* highest = nullptr;
  for (const GpuReport& gpu : whole.gpus) {
    highest = highest == nullptr || gpu.peak > highest->peak ? &gpu : highest;
  }
  auto moment = at == "peak"  ? std::optional(highest != nullptr ? highest->peak_time : 0)
                : at == "end" ? std::optional(UINT64_MAX)
                              : parse_moment(at, whole.first_time);
  if (!moment) {
    std::cerr << "xlog: --at " << at << ": give peak, end, nanoseconds since the epoch, or 1.5s, 20ms, 300us after the first row\n";
    return kTrouble;
  }
  if (*moment != UINT64_MAX && whole.rows != 0) {
    say_if_outside(at, *moment, whole);
  }
  Report report = analyse(std::move(logs), {.until = *moment});
  std::string told =
      at == "end" ? "at the end" : "at " + time_text(*moment > whole.first_time ? *moment - whole.first_time : 0) + " after the first call";
  std::cout << (options.json ? report_json(report, options.style) : live_text(report, options.style, told)) << std::flush;
  return status_of(report);
}

int report_oom(const std::vector<ProcessLog>& logs, const ReportOptions& options) {
  OomReports reports = read_oom_reports(logs, options.style.top, options.style.all_frames);
  for (const std::string& each : reports.problems) {
    std::cerr << "xlog: " << each << '\n';
  }
  if (options.json) {
    std::cout << reports.json << std::flush;
  } else {
    std::cout << (reports.count != 0 ? reports.text : "No memory was refused, or the log is of a version that did not tell.\n")
              << std::flush;
  }
  return reports.problems.empty() ? kYes : kTrouble;
}

int run_report(ReportOptions& options) {
  std::vector<std::string> problems;
  if (!options.suppressions.empty()) {
    options.style.suppressions.read(options.suppressions, problems);
  }
  std::optional<Split> split = parse_split(options.by);
  for (const std::string& each : problems) {
    std::cerr << "xlog: " << each << '\n';
  }
  std::vector<ProcessLog> logs = named_logs(options.names);
  if (logs.empty() || !problems.empty()) {
    return kTrouble;
  }
  if (options.oom) {
    return report_oom(logs, options);
  }
  if (!options.at.empty()) {
    return report_at(options.at, std::move(logs), options);
  }
  AnalysisOptions analysis;
  analysis.snapshots = options.html.empty() ? analysis.snapshots : kHtmlSnapshots;
  Report report = read_report(std::move(logs), analysis);
  if (options.verify) {
    return verify(report);
  }
  if (!options.html.empty()) {
    std::string page;
    std::string problem;
    if (!report_html(report, options.style, page, problem)) {
      std::cerr << "xlog: " << problem << '\n';
      return kTrouble;
    }
    return write_out(options.html, page) ? status_of(report) : kTrouble;
  }
  if (split) {
    std::cout << (options.json ? split_json(report, *split) : split_text(report, options.style, *split)) << std::flush;
  } else {
    std::cout << (options.json ? report_json(report, options.style) : report_text(report, options.style)) << std::flush;
  }
  return status_of(report);
}

}  // namespace

Command add_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  auto* report = app.add_subcommand("report", "what held the memory: newest log here, or the ones named");
  report->add_flag("--json", options->json, "for machines (report.schema.json)");
  report->add_option("--at", options->at, "what was live at a moment: peak, end, 1.5s or 20ms after the first row, or ns since the epoch");
  report->add_option("--by", options->by, "one table, by: stack, thread, stream, kind, tag, query, process, device, library")
      ->check(CLI::IsMember({"stack", "thread", "stream", "kind", "tag", "query", "process", "device", "library"}));
  report->add_option("--html", options->html, "a page for a browser, in this one file")->type_name("FILE");
  report->add_flag("--oom", options->oom, "what was known when memory was refused");
  report->add_option("--suppressions", options->suppressions, "leaks that are accepted: a file of lines leak:PATTERN")->type_name("FILE");
  report->add_flag("--all-frames", options->style.all_frames, "whole stacks");
  report->add_option("--top", options->style.top, "stacks a section")->default_val(5)->check(count_check());
  report->add_flag("--verify", options->verify, "check that the log agrees with itself; exit 1 when it does not");
  report->add_option("log", options->names, "folders or .csv files, also RMM's")->type_name("LOG");
  report->footer(
      "  xlog report                              the newest log here\n"
      "  xlog report --at peak run.4711.csv       all that was live at the peak\n"
      "  xlog report --by library xlog.train.*/   what each library held");
  return {report, [options] { return run_report(*options); }};
}

}  // namespace xlog::tools
