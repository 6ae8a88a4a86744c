// For CI: is a run within what it may use.
#include <memory>

#include "tools/command/checks.h"
#include "tools/command/commands.h"
#include "tools/command/messages.h"
#include "tools/log/json_value.h"
#include "tools/log/text_file.h"
#include "tools/report/format.h"
#include "tools/report/json_parts.h"
#include "tools/report/report.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

namespace {

struct CheckOptions {
  std::vector<std::string> names;
  std::string max_peak;
  bool no_leaks = false;
  bool no_findings = false;
  bool no_refusals = false;
  bool no_growth = false;
  bool require_end = false;
  bool allow_empty = false;
  bool allow_partial = false;
  std::string baseline;
  std::string tolerance = "2%";
  std::string write_baseline;
  std::string suppressions;
  bool github = false;
  bool json = false;
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

// False, and the reasons on stderr, where the logs do not hold all of the run: nothing that is not seen can be passed.
bool can_judge(const WholeLog& whole) {
  for (const std::string& each : whole.doubts) {
    complain(each);
  }
  if (!whole.doubts.empty()) {
    complain("the log is not whole, so nothing is checked");
  }
  return whole.doubts.empty();
}

uint64_t requests_in(const Report& report) {
  uint64_t requests = 0;
  for (const GpuReport& gpu : report.gpus) {
    requests += gpu.allocations + gpu.failed + gpu.live_blocks;
  }
  return requests;
}

bool read_runs(const std::string& path, RunSums& out) {
  std::string text;
  std::string problem;
  bool may_be_baseline = !path.ends_with(".csv") && special_file(path) != "a folder";
  if (may_be_baseline && !read_text_file(path, text, problem, kJsonBytes)) {
    complain(problem);
    return false;
  }
  if (text.starts_with('{')) {
    if (!read_baseline(text, out, problem)) {
      complain(path + ": " + problem);
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
  return can_judge(examine_log(report));
}

// `doubts`: why nothing was checked.
std::string answer_json(const std::vector<std::string>& doubts, const std::vector<Failure>& failures, const RunSums& sums) {
  nlohmann::json out = {{"format", kFormatVersion},
                        {"good", failures.empty() && doubts.empty()},
                        {"judged", doubts.empty()},
                        {"doubts", doubts},
                        {"peak_bytes", doubts.empty() ? nlohmann::json(sums.peak) : nlohmann::json()},
                        {"failures", nlohmann::json::array()}};
  for (const Failure& each : failures) {
    out["failures"].push_back({{"check", each.check}, {"text", each.text}});
  }
  return dump(out);
}

// The failures, or that there are none.
int answer(const CheckOptions& options, const std::vector<Failure>& failures, const RunSums& sums) {
  int status = failures.empty() ? kYes : kNo;
  if (options.json) {
    return print_json(answer_json({}, failures, sums), status);
  }
  std::string text;
  for (const Failure& each : failures) {
    text += (options.github ? github_error("xlog " + each.check, each.text) : terminal_line(each.check + ": " + each.text)) + '\n';
  }
  if (failures.empty() && options.write_baseline != "-") {
    text = "good: peak " + size_text(sums.peak) + ", " + plural(sums.allocations, "allocation") + '\n';
  }
  return print_text(text, status);
}

// What stderr says already, for those who read something else.
int say_doubts(const CheckOptions& options, const std::vector<std::string>& doubts) {
  if (options.json) {
    return print_json(answer_json(doubts, {}, {}), kTrouble);
  }
  std::string text;
  for (const std::string& each : doubts) {
    text += options.github ? github_error("xlog check: not judged", each) + '\n' : "";
  }
  return print_text(text, kTrouble);
}

int run_check(const CheckOptions& options) {
  double tolerance = parse_tolerance(options.tolerance);
  uint64_t most = options.max_peak.empty() ? UINT64_MAX : parse_size_option("--max-peak", options.max_peak);
  bool nothing = options.max_peak.empty() && !options.no_leaks && !options.no_growth && !options.no_findings && !options.no_refusals &&
                 !options.require_end && options.baseline.empty() && options.write_baseline.empty();
  if (nothing) {
    complain(
        "nothing to check: give --max-peak, --no-leaks, --no-growth, --no-findings, --no-refusals, --require-end, --baseline or "
        "--write-baseline");
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
    complain(each);
  }
  if (logs.empty() || !problems.empty() || (!options.baseline.empty() && !read_runs(options.baseline, before))) {
    return kTrouble;
  }
  constexpr size_t kSnapshots = 8;  // growth is measured from them
  Report report = read_report(std::move(logs), {.snapshots = options.no_growth ? kSnapshots : 0});
  WholeLog whole = examine_log(report);
  if (requests_in(report) == 0 && !options.allow_empty) {
    whole.doubts.emplace_back("no allocation is in the log (--allow-empty: that is as it should be)");
  }
  for (const std::string& each : whole.left_out) {
    options.allow_partial ? complain(each) : whole.doubts.push_back(each + " (--allow-partial: what there is is judged)");
  }
  if (!can_judge(whole)) {
    return say_doubts(options, whole.doubts);
  }
  std::vector<Failure> failures;
  for (const std::string& each : whole.open_ends) {
    if (options.require_end) {
      failures.push_back({"require-end", each});
    } else {
      complain(each + " (--require-end: that is a failure)");
    }
  }
  RunSums sums = sums_of(report);
  check_peak(report, most, failures);
  if (options.no_leaks) {
    check_leaks(report, suppressions, failures);
  }
  if (options.no_growth) {
    check_growth(report, whole, failures);
  }
  if (options.no_findings) {
    check_findings(report, failures);
  }
  if (options.no_refusals) {
    check_refusals(report, failures);
  }
  if (!options.baseline.empty()) {
    check_baseline(before, sums, tolerance, failures);
  }
  if (!options.write_baseline.empty() && !write_out(options.write_baseline, baseline_json(sums))) {
    return kTrouble;
  }
  return answer(options, failures, sums);
}

}  // namespace

Command add_check(CLI::App& app) {
  auto options = std::make_shared<CheckOptions>();
  auto* check = app.add_subcommand("check", "for CI: exit 1, and the reason, when a run used more than it may");
  check->add_option("--max-peak", options->max_peak, "most that a GPU may have at its peak: 8G");
  check->add_flag("--no-leaks", options->no_leaks, "everything must be freed");
  check->add_flag("--no-findings", options->no_findings, "the guard must have found nothing");
  check->add_flag("--no-refusals", options->no_refusals, "no request may have been refused for want of memory");
  check->add_flag("--no-growth", options->no_growth, "no memory may grow until the end, also where it is freed at the exit");
  check->add_flag("--require-end", options->require_end, "each log must have its end mark: no process was killed or is running");
  check->add_flag("--allow-empty", options->allow_empty, "a log without any allocation is good, too");
  check->add_flag("--allow-partial", options->allow_partial, "judge a log that was off at times, or that leaves blocks out by an option");
  check->add_option("--baseline", options->baseline, "a log, or what --write-baseline wrote: no stack may hold more at the peak")
      ->type_name("FILE");
  check->add_option("--tolerance", options->tolerance, "how much more than the baseline is accepted")->default_val("2%");
  check->add_option("--write-baseline", options->write_baseline, "write what the run held, by stack, for a later --baseline")
      ->type_name("FILE");
  check->add_option("--suppressions", options->suppressions, "leaks that are accepted: a file of lines leak:PATTERN")->type_name("FILE");
  check->add_flag("--github", options->github, "failures as GitHub annotations");
  check->add_flag("--json", options->json, "for machines");
  check->add_option("log", options->names, "folders or .csv files; the newest here if none is named")->type_name("LOG");
  check->footer(
      "  xlog check --max-peak 8G --no-leaks --no-findings xlog.tests/\n"
      "  xlog check --write-baseline peak.json xlog.tests/      once, and commit it\n"
      "  xlog check --baseline peak.json --tolerance 2% xlog.tests/");
  return {check, [options] { return run_check(*options); }};
}

}  // namespace xlog::tools
