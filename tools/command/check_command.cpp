// For CI: is a run within what it may use.
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "tools/analysis/diff.h"
#include "tools/command/commands.h"
#include "tools/report/format.h"
#include "tools/report/json_parts.h"
#include "tools/report/report.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

struct CheckOptions {
  std::vector<std::string> names;
  std::string max_peak;
  bool no_leaks = false;
  bool no_findings = false;
  bool no_refusals = false;
  std::string baseline;
  std::string tolerance = "2%";
  std::string write_baseline;
  std::string suppressions;
  bool github = false;
  bool json = false;
};

struct Failure {
  std::string check;
  std::string text;
};

// "2%", as a share of 1.
double parse_tolerance(const std::string& text) {
  size_t used = 0;
  double value = -1;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  bool good = used != 0 && (text.substr(used) == "%" || text.substr(used) == " %") && value >= 0 && value <= 1e6;
  if (!good) {
    throw CLI::ValidationError("--tolerance", "\"" + text + "\" is no percentage: give it as 2%");
  }
  return value / 100;
}

void check_peak(const Report& report, uint64_t most, std::vector<Failure>& failures) {
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.is_gpu() && gpu.peak > most) {
      auto top = largest(gpu.by(By::stack), &Group::at_peak, &Group::blocks_at_peak, 1);
      failures.push_back({"max-peak", gpu_title(gpu) + ": peak " + size_text(gpu.peak) + ", " + size_text(gpu.peak - most) + " above " +
                                          size_text(most) + "; most of it by " + (top.empty() ? "" : holder_name(report, top[0].place))});
    }
  }
}

// What is freed at exit is no leak.
void check_leaks(const Report& report, const Suppressions& suppressions, std::vector<Failure>& failures) {
  for (const GpuReport& gpu : report.gpus) {
    if (gpu.key == "import") {
      continue;
    }
    for (const Holder& each : largest(gpu.by(By::stack), &Group::live, &Group::live_blocks, SIZE_MAX)) {
      if (!suppressions.match(report.stack(each.place))) {
        failures.push_back({"no-leaks", gpu_title(gpu) + ": " + size_text(each.bytes) + " in " + plural(each.blocks, "block") + ' ' +
                                            left_text(report) + ", made by " + holder_name(report, each.place)});
      }
    }
  }
}

void check_baseline(const RunSums& before, const RunSums& after, double tolerance, std::vector<Failure>& failures) {
  constexpr uint64_t kLeast = 1 << 20;  // a stack that grew by less is no news
  auto above = [&](uint64_t was, uint64_t is) { return static_cast<double>(is) > static_cast<double>(was) * (1 + tolerance); };
  if (above(before.peak, after.peak)) {
    failures.push_back({"baseline", "peak " + size_text(after.peak) + ", was " + size_text(before.peak)});
  }
  for (const StackChange& each : differences(before, after, What::peak)) {
    if (each.after > each.before && each.distance() >= kLeast && above(each.before, each.after)) {
      failures.push_back({"baseline", size_text(each.after) + " at the peak, was " + size_text(each.before) + ", by " + each.name});
    }
  }
}

bool read_runs(const std::string& path, RunSums& out) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::string problem;
  if (in && text.str().starts_with("{")) {
    if (!read_baseline(text.str(), out, problem)) {
      std::cerr << "xlog: " << path << ": " << problem << '\n';
      return false;
    }
    return true;
  }
  std::vector<ProcessLog> logs = named_logs({path});
  if (logs.empty()) {
    return false;
  }
  Report report = read_report(std::move(logs), {.snapshots = 0});
  out = sums_of(report);
  return report.problems.empty();
}

// GitHub's form of an annotation; a line end would end it.
std::string annotation(const Failure& failure) {
  std::string text;
  for (char c : failure.text) {
    text += c == '%' ? "%25" : c == '\n' ? "%0A" : c == '\r' ? "%0D" : std::string(1, c);
  }
  return "::error title=xlog " + failure.check + "::" + text;
}

std::string failures_json(const std::vector<Failure>& failures, const RunSums& sums) {
  nlohmann::json out = {
      {"format", kFormatVersion}, {"good", failures.empty()}, {"peak_bytes", sums.peak}, {"failures", nlohmann::json::array()}};
  for (const Failure& each : failures) {
    out["failures"].push_back({{"check", each.check}, {"text", each.text}});
  }
  return dump(out);
}

int run_check(const CheckOptions& options) {
  double tolerance = parse_tolerance(options.tolerance);
  uint64_t most = options.max_peak.empty() ? UINT64_MAX : parse_size_option("--max-peak", options.max_peak);
  bool nothing = options.max_peak.empty() && !options.no_leaks && !options.no_findings && !options.no_refusals &&
                 options.baseline.empty() && options.write_baseline.empty();
  if (nothing) {
    std::cerr << "xlog: nothing to check: give --max-peak, --no-leaks, --no-findings, --no-refusals or --baseline\n";
    return kTrouble;
  }
  Suppressions suppressions;
  std::vector<std::string> problems;
  if (!options.suppressions.empty()) {
    suppressions.read(options.suppressions, problems);
  }
  RunSums before;
  std::vector<ProcessLog> logs = named_logs(options.names);
  for (const std::string& each : problems) {
    std::cerr << "xlog: " << each << '\n';
  }
  if (logs.empty() || !problems.empty() || (!options.baseline.empty() && !read_runs(options.baseline, before))) {
    return kTrouble;
  }
  Report report = read_report(std::move(logs), {.snapshots = 0});
  // A check that could not see all of the run is not passed.
  if (!report.problems.empty() || report.rows == 0 || report.lost != 0 || report.foreign_rows != 0) {
    std::cerr << "xlog: the log is not whole: " << report.rows << " rows, " << report.lost << " lost, " << report.foreign_rows
              << " lines of something else; nothing is checked\n";
    return kTrouble;
  }
  std::vector<Failure> failures;
  RunSums sums = sums_of(report);
  check_peak(report, most, failures);
  if (options.no_leaks) {
    check_leaks(report, suppressions, failures);
  }
  for (const GuardFinding& each : report.findings) {
    if (options.no_findings) {
      failures.push_back({"no-findings", "guard: " + each.text});
    }
  }
  for (const GpuReport& gpu : report.gpus) {
    if (options.no_refusals && gpu.refusals != 0) {
      failures.push_back({"no-refusals", gpu_title(gpu) + ": " + plural(gpu.refusals, "request") + " refused for want of memory"});
    }
  }
  if (!options.baseline.empty()) {
    check_baseline(before, sums, tolerance, failures);
  }
  if (!options.write_baseline.empty() && !write_out(options.write_baseline, baseline_json(sums))) {
    return kTrouble;
  }
  if (options.json) {
    std::cout << failures_json(failures, sums);
  } else {
    for (const Failure& each : failures) {
      std::cout << (options.github ? annotation(each) : each.check + ": " + each.text) << '\n';
    }
    if (failures.empty() && options.write_baseline != "-") {
      std::cout << "good: peak " << size_text(sums.peak) << ", " << plural(sums.allocations, "allocation") << '\n';
    }
  }
  return failures.empty() ? kYes : kNo;
}

}  // namespace

Command add_check(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  auto* check = app.add_subcommand("check", "for CI: exit 1, and the reason, when a run used more than it may");
  check->add_option("--max-peak", options->max_peak, "most that a GPU may have at its peak: 8G");
  check->add_flag("--no-leaks", options->no_leaks, "everything must be freed");
  check->add_flag("--no-findings", options->no_findings, "the guard must have found nothing");
  check->add_flag("--no-refusals", options->no_refusals, "no request may have been refused for want of memory");
  check->add_option("--baseline", options->baseline, "a log, or what --write-baseline wrote: no stack may hold more at the peak");
  check->add_option("--tolerance", options->tolerance, "how much more than the baseline is accepted")->default_val("2%");
  check->add_option("--write-baseline", options->write_baseline, "write what the run held, by stack, for a later --baseline");
  check->add_option("--suppressions", options->suppressions, "leaks that are accepted: a file of lines leak:PATTERN");
  check->add_flag("--github", options->github, "failures as GitHub annotations");
  check->add_flag("--json", options->json, "for machines");
  check->add_option("log", options->names, "folders or .csv files; the newest here if none is named");
  check->footer(
      "  xlog check --max-peak 8G --no-leaks --no-findings xlog.tests/\n"
      "  xlog check --write-baseline peak.json xlog.tests/      once, and commit it\n"
      "  xlog check --baseline peak.json --tolerance 2% xlog.tests/");
  return {check, [options] { return run_check(*options); }};
}

}  // namespace xlog::tools
