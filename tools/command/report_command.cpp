#include <memory>

#include "tools/analysis/moment.h"
#include "tools/command/commands.h"
#include "tools/command/messages.h"
#include "tools/command/terminal.h"
#include "tools/report/format.h"
#include "tools/report/html.h"
#include "tools/report/oom.h"
#include "tools/report/report.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

namespace {

struct ReportOptions {
  std::vector<std::string> names;
  ReportStyle style;
  bool json = false;
  bool verify = false;
  bool full = false;
  std::string colour = "auto";
  bool oom = false;
  std::string at;
  std::string by;
  std::string html;
  std::string suppressions;
};

// Logs of which none could be read are trouble; of which some could, not.
int status_of(const Report& report) { return report.problems.size() == report.logs.size() ? kTrouble : kYes; }

int verify(const Report& report) {
  std::string text;
  for (const std::string& each : report.contradictions) {
    text += terminal_line(each) + '\n';
  }
  uint64_t live = 0;
  for (const GpuReport& gpu : report.gpus) {
    live += gpu.live;
  }
  text += std::to_string(report.rows) + " rows, " + std::to_string(report.contradiction_count) + " contradictions, " +
          std::to_string(report.foreign_rows) + " foreign, " + std::to_string(report.unfinished_rows) + " unfinished, " +
          std::to_string(report.lost) + " lost, live at the end " + std::to_string(live) + " bytes\n";
  return print_text(text, report.contradiction_count == 0 && report.problems.empty() && report.foreign_rows == 0 ? kYes : kNo);
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
    complain("--at " + at + ": give peak, end, nanoseconds since the epoch, or 1.5s, 20ms, 300us after the first row");
    return kTrouble;
  }
  if (*moment != UINT64_MAX && whole.rows != 0) {
    say_if_outside(at, *moment, whole);
  }
  Report report = analyse(std::move(logs), {.until = *moment});
  std::string told =
      at == "end" ? "at the end" : "at " + time_text(*moment > whole.first_time ? *moment - whole.first_time : 0) + " after the first call";
  return options.json ? print_json(report_json(report, options.style), status_of(report))
                      : print_text(live_text(report, options.style, told), status_of(report));
}

int report_oom(const std::vector<ProcessLog>& logs, const ReportOptions& options) {
  OomReports reports = read_oom_reports(logs, options.style.top, options.style.all_frames);
  for (const std::string& each : reports.problems) {
    complain(each);
  }
  int status = reports.problems.empty() ? kYes : kTrouble;
  if (options.json) {
    return print_json(reports.json, status);
  }
  return print_text(reports.count != 0 ? reports.text : "No memory was refused, or the log is of a version that did not tell.\n", status);
}

int run_report(ReportOptions& options) {
  std::vector<std::string> problems;
  if (!options.suppressions.empty()) {
    options.style.suppressions.read(options.suppressions, problems);
  }
  options.full = options.full || options.style.all_frames;
  std::optional<Split> split = parse_split(options.by);
  for (const std::string& each : problems) {
    complain(each);
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
      complain(problem);
      return kTrouble;
    }
    return write_out(options.html, page) ? status_of(report) : kTrouble;
  }
  int status = status_of(report);
  if (split) {
    return options.json ? print_json(split_json(report, *split), status) : print_text(split_text(report, options.style, *split), status);
  }
  if (options.json) {
    return print_json(report_json(report, options.style), status);
  }
  return options.full ? print_text(report_text(report, options.style), status)
                      : print_safe_text(short_report_text(report, options.style, terminal_of(options.colour)), status);
}

}  // namespace

Command add_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  auto* report = app.add_subcommand("report", "what held the memory: newest log here, or the ones named");
  report->add_flag("--json", options->json, "for machines (report.schema.json)");
  report->add_option("--at", options->at, "what was live at a moment: peak, end, 1.5s or 20ms after the first row, or ns since the epoch");
  report
      ->add_option("--by", options->by,
                   "one table, by: stack, thread, stream, kind, tag, query, process, device, library (that of the program's own frame), "
                   "module (that asked the driver)")
      ->check(CLI::IsMember({"stack", "thread", "stream", "kind", "tag", "query", "process", "device", "library", "module"}));
  report->add_option("--html", options->html, "a page for a browser, in this one file")->type_name("FILE");
  report->add_flag("--oom", options->oom, "what was known when memory was refused");
  report->add_option("--suppressions", options->suppressions, "leaks that are accepted: a file of lines leak:PATTERN")->type_name("FILE");
  report->add_flag("--full", options->full, "every section, with stacks; the short report has at most 40 lines");
  report->add_flag("--all-frames", options->style.all_frames, "whole stacks, in the full report");
  report->add_option("--color", options->colour, "auto (where the output is a terminal and NO_COLOR is not set), always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  report->add_option("--top", options->style.top, "stacks a section")->default_val(5)->check(count_check());
  add_debuginfod_option(report);
  report->add_flag("--verify", options->verify, "check that the log agrees with itself; exit 1 when it does not");
  report->add_option("log", options->names, "folders or .csv files, also RMM's")->type_name("LOG");
  report->footer(
      "  xlog report                              the newest log here\n"
      "  xlog report --at peak run.4711.csv       all that was live at the peak\n"
      "  xlog report --by library xlog.train.*/   what each library held");
  return {report, [options] { return run_report(*options); }};
}

}  // namespace xlog::tools
