#include "tools/report/json_parts.h"
#include "tools/report/report.h"
#include "tools/report/sections/section_json.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

json gpu_json(const Report& report, const GpuReport& gpu, const ReportStyle& style, bool whole) {
  const size_t kTop = whole ? 50 : 5;
  json out = {{"ordinal", gpu.is_gpu() ? json(gpu.ordinal) : json()},
              {"memory", gpu.is_gpu() ? "gpu" : gpu.key},
              {"uuid", gpu.info.uuid},
              {"name", gpu.info.name},
              {"total_bytes", gpu.info.total_bytes},
              {"peak_bytes", gpu.peak},
              {"peak_time_ns", gpu.peak_time},
              {"live_bytes", gpu.live},
              {"live_blocks", gpu.live_blocks},
              {"allocations", gpu.allocations},
              {"failed", gpu.failed},
              {"refusals", gpu.refusals}};
  out["limit_bytes"] = gpu.info.limit_bytes != UINT64_MAX ? json(gpu.info.limit_bytes) : json();
  out["at_peak"] = holders_json(report, largest(gpu.by(By::stack), &Group::at_peak, &Group::blocks_at_peak, kTop), whole);
  Groups unsuppressed = gpu.by(By::stack);
  uint64_t suppressed = 0;
  for (const auto& [place, group] : gpu.by(By::stack).entries()) {
    if (group.live_blocks != 0 && style.suppressions.match(report.stack(place))) {
      suppressed += group.live;
      unsuppressed.at(place) = {};
    }
  }
  out["never_freed"] = holders_json(report, largest(unsuppressed, &Group::live, &Group::live_blocks, kTop), whole);
  out["suppressed_bytes"] = suppressed;
  out["freed_only_at_exit"] =
      holders_json(report, largest(gpu.by(By::stack), &Group::freed_at_exit, &Group::freed_at_exit_blocks, kTop), whole);
  out["refused"] = json::array();
  for (const Refusal& each : gpu.refused) {
    json refusal = {{"time_ns", each.time}, {"live_bytes", each.live}, {"result", each.result}, {"message", each.message}};
    refusal["requested_bytes"] = each.requested != kNone ? json(each.requested) : json();
    refusal["api"] = each.api;
    refusal["stack"] = stack_json(report, each.place, whole);
    refusal["in_use"] = holders_json(report, each.holders, whole);
    refusal["holes"] = holes_json(each.holes);
    out["refused"].push_back(std::move(refusal));
  }
  for (auto [what, by] :
       {std::pair("kinds", By::kind), std::pair("tags", By::tag), std::pair("queries", By::query), std::pair("streams", By::stream)}) {
    for (const auto& [number, group] : gpu.by(by).entries()) {
      bool unnamed = number == 0 && (by == By::tag || by == By::query);
      if (has_figures(group) && !unnamed) {
        out[what][label(report, by, number)] = group_json(group);
      }
    }
  }
  out["peak_taken_bytes"] = gpu.peak_taken;
  out["holes_at_the_end"] = holes_json(gpu.holes);
  out["growing"] = json::array();
  for (const Growth& each : gpu.growing) {
    out["growing"].push_back({{"from_bytes", each.from}, {"to_bytes", each.to}, {"stack", stack_json(report, each.place)}});
  }
  if (gpu.looks != 0) {
    out["driver_used"] = {{"looks", gpu.looks},
                          {"most_bytes", gpu.most_look.used},
                          {"counted_bytes", gpu.most_look.counted},
                          {"beyond_bytes", gpu.most_look.beyond()},
                          {"beyond_at_first_bytes", gpu.first_look.beyond()},
                          {"default_pool_idle_bytes", gpu.most_look.pool_idle}};
  }
  out["threads"] = json::array();
  for (const auto& [number, group] : gpu.by(By::thread).entries()) {
    if (has_figures(group)) {
      json each = group_json(group);
      each["process"] = report.logs[report.threads[number].process].pid;
      each["thread"] = report.threads[number].thread;
      each["name"] = report.threads[number].name;
      out["threads"].push_back(std::move(each));
    }
  }
  return out;
}

}  // namespace

std::string report_json(const Report& report, const ReportStyle& style) {
  json out = {{"format", kFormatVersion},
              {"verdict", verdict(report)},
              {"rows", report.rows},
              {"lost_rows", report.lost},
              {"empty_lines", report.empty_lines},
              {"unfinished_rows", report.unfinished_rows},
              {"left_out_allocations", report.left_out},
              {"left_out_bytes", report.left_out_bytes},
              {"log_switches", report.switches},
              {"log_off_ns", report.off_ns},
              {"foreign_rows", report.foreign_rows},
              {"ended_unseen", report.ended_unseen},
              {"unhooked", report.unhooked},
              {"first_time_ns", report.first_time},
              {"last_time_ns", report.last_time},
              {"calls", report.calls},
              {"call_ns", report.call_ns},
              {"problems", report.problems},
              {"notes", report.notes},
              {"contradictions", report.contradiction_count}};
  out["findings"] = json::array();
  for (const GuardFinding& each : report.findings) {
    out["findings"].push_back({{"text", each.text},
                               {"found_by", each.found_by},
                               {"time_ns", each.time},
                               {"process", report.logs[each.process].pid},
                               {"stack", stack_json(report, each.place)}});
  }
  out["processes"] = json::array();
  for (size_t i = 0; i < report.logs.size(); ++i) {
    const ProcessLog& log = report.logs[i];
    const ProcessReport& process = report.processes[i];
    out["processes"].push_back({{"log", log.csv},
                                {"pid", log.pid},
                                {"parent", log.parent},
                                {"program", log.program},
                                {"arguments", log.arguments},
                                {"host", log.host},
                                {"rows", process.rows},
                                {"allocations", process.allocations},
                                {"peak_bytes", process.peak},
                                {"live_bytes", process.live},
                                {"refusals", process.refusals},
                                {"end_mark", process.ended},
                                {"running", process.runs},
                                {"cut", process.cut}});
  }
  out["gpus"] = json::array();
  GpuReport sum;
  bool whole = told_gpus(report, sum).size() == report.gpus.size();
  for (const GpuReport& gpu : report.gpus) {
    out["gpus"].push_back(gpu_json(report, gpu, style, whole || !gpu.is_gpu()));
  }
  if (!whole) {
    out["all_gpus"] = gpu_json(report, sum, style, true);
  }
  auto savings = [](const Saving& saving) {
    json all = {{"spent_ns", saving.spent}};
    for (size_t i = 0; i < kSavers; ++i) {
      all["saved_ns"][saver_name(static_cast<Saver>(i))] = saving.saved[i];
    }
    return all;
  };
  out["savings_estimate"] = savings(report.saving);
  out["savings_estimate"]["stacks"] = json::array();
  for (size_t i = 0; i < report.savings.size(); ++i) {
    if (report.savings[i].spent != 0) {
      json each = savings(report.savings[i]);
      each["stack"] = stack_json(report, static_cast<uint32_t>(i));
      out["savings_estimate"]["stacks"].push_back(std::move(each));
    }
  }
  out["sizes"] = json::array();
  for (size_t i = 0; i < report.sizes.size(); ++i) {
    const SizeClass& each = report.sizes[i];
    if (each.allocations != 0) {
      out["sizes"].push_back({{"below_log2", i}, {"allocations", each.allocations}, {"bytes", each.bytes}, {"taken_bytes", each.taken}});
    }
  }
  out["lifetimes"] = json::array();
  for (size_t i = 0; i < report.lifetimes.size(); ++i) {
    const LifetimeClass& each = report.lifetimes[i];
    if (each.blocks != 0) {
      bool last = i + 1 == report.lifetimes.size();
      out["lifetimes"].push_back({{"below_log10_ns", last ? json() : json(i)}, {"blocks", each.blocks}, {"bytes", each.bytes}});
    }
  }
  out["sections"] = sections_json(report, style);
  return dump(out);
}

}  // namespace xlog::tools
