// The out-of-memory story: what was asked for, who refused it, and who held the memory then.
#include <algorithm>

#include "tools/report/format.h"
#include "tools/report/sections/section_maker.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

std::string requested_text(const Refusal& refusal) {
  return refusal.requested == kNone ? "more than 64 bits hold" : size_text(refusal.requested);
}

const char* who_refused(const Refusal& refusal, const GpuReport& gpu) {
  if (refusal.result == "rmm::bad_alloc") {
    return "the resource (rmm::bad_alloc)";
  }
  if (!refusal.by_limit()) {
    return "the driver";
  }
  return gpu.is_gpu() ? "the limit (XLOG_BUDGET)" : "the limit (XLOG_HOST_BUDGET)";
}

}  // namespace

void make_refusals(SectionMaker& maker) {
  constexpr size_t kShown = 3;
  for (const GpuReport* gpu : maker.gpus) {
    if (gpu->refusals == 0) {
      continue;
    }
    Section& list = maker.add("refusals", gpu, gpu_title(*gpu) + ": " + plural(gpu->refusals, "request") + " refused for want of memory");
    list.columns = {{"after_ns", Unit::nanoseconds, "after the first call"},
                    {"requested_bytes", Unit::bytes, "wanted"},
                    {"in_use_bytes", Unit::bytes, "in use"},
                    {"refused_by", Unit::text}};
    list.is_trouble = true;
    size_t shown = std::min(kShown, gpu->refused.size());
    for (size_t i = 0; i < shown; ++i) {
      const Refusal& each = gpu->refused[i];
      list.rows.push_back({.cells = {{each.time - maker.report.first_time},
                                     {each.requested, each.requested == kNone ? "more than 64 bits hold wanted" : ""},
                                     {each.live},
                                     {0, std::string("refused by ") + who_refused(each, *gpu)}},
                           .place = each.place});
    }
    list.next = "xlog report --oom " + maker.log_name;
    for (size_t i = 0; i < shown; ++i) {
      const Refusal& each = gpu->refused[i];
      if (each.holders.empty() || each.live == 0) {
        continue;
      }
      Section& held = maker.add("in_use_when_refused", gpu,
                                gpu_title(*gpu) + ": in use when " + requested_text(each) + " was refused, " +
                                    time_text(each.time - maker.report.first_time) + " after the first call");
      std::vector<Holder> top(each.holders.begin(),
                              each.holders.begin() + static_cast<long>(std::min(maker.style.top, each.holders.size())));
      SectionMaker::add_holders(held, top, each.live);
      SectionMaker::add_holes(held, each.holes);
      held.is_detail = i != 0;
    }
  }
}

}  // namespace xlog::tools
