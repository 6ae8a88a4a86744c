#include <nlohmann/json.hpp>

#include "tools/report/report.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

// Text from a log need not be UTF-8.
constexpr auto kReplace = json::error_handler_t::replace;

json stack_json(const Report& report, const StackKey& where) {
  json out;
  out["process"] = report.logs[where.process].pid;
  const Stack* stack = report.stacks[where.process].find(where.stack);
  if (stack == nullptr) {
    return out;
  }
  out["stack_id"] = where.stack;
  std::string cache = cache_of(*stack, report.logs[where.process].environment);
  if (!cache.empty()) {
    out["cache"] = cache;
  }
  for (const Frame* frame : stack->frames) {
    json each = {{"module", frame->module}, {"build_id", frame->build_id}, {"offset", frame->offset}};
    if (!frame->function.empty()) {
      each["function"] = frame->function;
    }
    if (!frame->file.empty()) {
      each["file"] = frame->file;
      each["line"] = frame->line;
    }
    out["frames"].push_back(std::move(each));
  }
  return out;
}

json holders_json(const Report& report, const std::vector<Holder>& holders) {
  json list = json::array();
  for (const Holder& each : holders) {
    list.push_back({{"bytes", each.bytes}, {"blocks", each.blocks}, {"stack", stack_json(report, each.where)}});
  }
  return list;
}

json gpu_json(const Report& report, const GpuReport& gpu) {
  constexpr size_t kTop = 50;
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
  out["at_peak"] = holders_json(report, largest(gpu.stacks, &Group::at_peak, &Group::blocks_at_peak, kTop));
  out["never_freed"] = holders_json(report, largest(gpu.stacks, &Group::live, &Group::live_blocks, kTop));
  out["freed_only_at_exit"] = holders_json(report, largest(gpu.stacks, &Group::freed_at_exit, &Group::freed_at_exit_blocks, kTop));
  out["refused"] = json::array();
  for (const Refusal& each : gpu.refused) {
    json refusal = {{"time_ns", each.time}, {"live_bytes", each.live}, {"result", each.result}, {"message", each.message}};
    refusal["requested_bytes"] = each.requested != kNone ? json(each.requested) : json();
    refusal["stack"] = stack_json(report, {each.process, each.stack});
    refusal["in_use"] = holders_json(report, each.holders);
    out["refused"].push_back(std::move(refusal));
  }
  for (auto [what, groups] : {std::pair("kinds", &gpu.kinds), std::pair("tags", &gpu.tags), std::pair("queries", &gpu.queries)}) {
    for (const auto& [name, group] : *groups) {
      out[what][name] = {{"allocations", group.allocations}, {"bytes", group.bytes}, {"at_peak", group.at_peak}, {"live", group.live}};
    }
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
  for (const auto& [key, group] : gpu.threads) {
    auto name = report.thread_names.find(key);
    out["threads"].push_back({{"process", report.logs[key.first].pid},
                              {"thread", key.second},
                              {"name", name != report.thread_names.end() ? name->second : ""},
                              {"allocations", group.allocations},
                              {"at_peak", group.at_peak},
                              {"live", group.live}});
  }
  return out;
}

}  // namespace

std::string report_json(const Report& report) {
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
              {"contradictions", report.contradiction_count}};
  out["findings"] = json::array();
  for (const GuardFinding& each : report.findings) {
    out["findings"].push_back({{"text", each.text},
                               {"found_by", each.found_by},
                               {"time_ns", each.time},
                               {"process", each.where.process},
                               {"stack", each.where.stack}});
  }
  out["processes"] = json::array();
  for (size_t i = 0; i < report.logs.size(); ++i) {
    const ProcessLog& log = report.logs[i];
    bool ended = report.ended[i];
    bool cut = report.cut[i];
    out["processes"].push_back({{"log", log.csv},
                                {"pid", log.pid},
                                {"parent", log.parent},
                                {"program", log.program},
                                {"arguments", log.arguments},
                                {"host", log.host},
                                {"end_mark", ended},
                                {"cut", cut}});
  }
  out["gpus"] = json::array();
  for (const GpuReport& gpu : report.gpus) {
    out["gpus"].push_back(gpu_json(report, gpu));
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
  std::vector<std::pair<StackKey, Saving>> stacks(report.savings.begin(), report.savings.end());
  std::sort(stacks.begin(), stacks.end(), [](const auto& a, const auto& b) {
    return a.second.spent != b.second.spent ? a.second.spent > b.second.spent : a.first < b.first;
  });
  for (const auto& [where, saving] : stacks) {
    json each = savings(saving);
    each["stack"] = stack_json(report, where);
    out["savings_estimate"]["stacks"].push_back(std::move(each));
  }
  out["sizes"] = json::array();
  for (size_t i = 0; i < report.sizes.size(); ++i) {
    if (report.sizes[i] != 0) {
      out["sizes"].push_back({{"below_log2", i}, {"allocations", report.sizes[i]}});
    }
  }
  return out.dump(2, ' ', false, kReplace) + '\n';
}

}  // namespace xlog::tools
