// Who held the memory: at the peak, at the end, until the program's exit, and more and more of it.
#include <algorithm>
#include <map>

#include "tools/log/libraries.h"
#include "tools/report/format.h"
#include "tools/report/sections/section_maker.h"
#include "tools/report/sections/sections.h"
#include "tools/report/sections/sparkline.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

// What libraries and caches held, largest first; only where there is more than one.
std::string libraries(const SectionMaker& maker, const GpuReport& gpu, uint64_t Group::*bytes, uint64_t whole) {
  std::map<std::string, uint64_t> held;
  for (const auto& [place, group] : gpu.by(By::stack).entries()) {
    if (group.*bytes != 0) {
      held[library_of(maker.report.stack(place), maker.report.log_of(place).environment)] += group.*bytes;
    }
  }
  if (held.size() < 2) {
    return "";
  }
  std::vector<std::pair<std::string, uint64_t>> all(held.begin(), held.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = "by library:";
  for (size_t i = 0; i < std::min(all.size(), maker.style.top); ++i) {
    text += (i == 0 ? " " : ", ") + all[i].first + ' ' + size_text(all[i].second) + " (" + share_text(all[i].second, whole) + ')';
  }
  return text;
}

// The cache that held most of the peak, and the option that shows what is inside of it.
std::string next_for_caches(const SectionMaker& maker, const GpuReport& gpu) {
  uint64_t hidden = 0;
  std::string cache;
  for (const auto& [place, group] : gpu.by(By::stack).entries()) {
    const Stack* stack = maker.report.stack(place);
    std::string name = group.at_peak != 0 && stack != nullptr ? cache_of(*stack, maker.report.log_of(place).environment) : "";
    if (!name.empty()) {
      hidden += group.at_peak;
      cache = name;
    }
  }
  return hidden * 2 < gpu.peak || hidden == 0 ? "" : "xlog run --per-tensor -- COMMAND   (" + cache + " hides " + size_text(hidden) + ")";
}

void add_by_stack(SectionMaker& maker, const char* key, const std::string& title, uint64_t Group::*bytes, uint64_t Group::*blocks,
                  bool suppress, const std::string& next) {
  for (const GpuReport* gpu : maker.gpus) {
    Groups groups = gpu->by(By::stack);
    uint64_t whole = 0;
    uint64_t suppressed = 0;
    for (const auto& [place, group] : gpu->by(By::stack).entries()) {
      if (suppress && group.*blocks != 0 && maker.style.suppressions.match(maker.report.stack(place))) {
        suppressed += group.*bytes;
        groups.at(place) = {};
      } else {
        whole += group.*bytes;
      }
    }
    std::string hidden = size_text(suppressed) + " more " + title + ", suppressed";
    if (whole == 0) {
      if (suppressed != 0) {
        maker.add(key, gpu, gpu_title(*gpu) + ": " + hidden).is_detail = true;
      }
      continue;
    }
    Section& section = maker.add(key, gpu, gpu_title(*gpu) + ": " + size_text(whole) + " " + title);
    SectionMaker::add_holders(section, largest(groups, bytes, blocks, maker.style.top), whole);
    section.is_detail = !gpu->is_gpu();
    section.next = gpu->is_gpu() ? next : "";
    if (suppressed != 0) {
      section.remarks.push_back(hidden);
    }
  }
}

}  // namespace

void make_peak(SectionMaker& maker) {
  for (const GpuReport* each : maker.gpus) {
    const GpuReport& gpu = *each;
    if (gpu.peak == 0) {
      continue;
    }
    std::string title = gpu_title(gpu) + ": peak " + size_text(gpu.peak);
    if (gpu.is_gpu() && gpu.info.limit_bytes != UINT64_MAX) {
      title += gpu.peak > gpu.info.limit_bytes  // a limit is one process's
                   ? " of several processes, each with the limit " + size_text(gpu.info.limit_bytes)
                   : ", " + share_text(gpu.peak, gpu.info.limit_bytes) + " of the limit " + size_text(gpu.info.limit_bytes);
    } else if (gpu.is_gpu() && gpu.info.total_bytes != 0) {
      title += gpu.peak > gpu.info.total_bytes  // managed memory, which may lie on the host
                   ? ", more than the GPU's " + size_text(gpu.info.total_bytes)
                   : ", " + share_text(gpu.peak, gpu.info.total_bytes) + " of " + size_text(gpu.info.total_bytes);
    }
    title = gpu.stands_for != 1 ? gpu_title(gpu) + ": " + size_text(gpu.peak) + " in all, each at its own peak; held by"
                                : title + ", " + time_text(gpu.peak_time - maker.report.first_time) + " after the first call; held by";
    Section& section = maker.add("peak", &gpu, title);
    SectionMaker::add_holders(section, largest(gpu.by(By::stack), &Group::at_peak, &Group::blocks_at_peak, maker.style.top), gpu.peak);
    section.is_detail = !gpu.is_gpu();
    if (!gpu.is_gpu()) {
      continue;
    }
    if (std::string text = libraries(maker, gpu, &Group::at_peak, gpu.peak); !text.empty()) {
      section.remarks.push_back(text);
    }
    if (gpu.peak_taken > gpu.peak + gpu.peak / 50) {
      section.remarks.push_back("the driver rounds that to " + size_text(gpu.peak_taken) + ": " + size_text(gpu.peak_taken - gpu.peak) +
                                " more (512 B steps, 2 MiB above 1 MiB)");
    }
    if (!gpu.timeline.highest().empty()) {
      section.remarks.push_back("over the run: |" + sparkline(gpu) + "|");
    }
    section.next = next_for_caches(maker, gpu);
    if (section.next.empty()) {
      section.next = "xlog report --at peak " + maker.log_name;
    }
  }
}

void make_never_freed(SectionMaker& maker) {
  add_by_stack(maker, "never_freed", left_text(maker.report), &Group::live, &Group::live_blocks, true,
               "xlog report --at end " + maker.log_name);
}

void make_freed_at_exit(SectionMaker& maker) {
  add_by_stack(maker, "freed_at_exit", "freed only at exit", &Group::freed_at_exit, &Group::freed_at_exit_blocks, false, "");
}

void make_live_sections(const Report& report, const ReportStyle& style, const std::string& moment, Sections& out) {
  SectionMaker maker{.report = report, .style = style, .gpus = told_gpus(report, out.sum), .log_name = ""};
  for (const GpuReport* gpu : maker.gpus) {
    Section& section = maker.add(
        "live", gpu,
        gpu_title(*gpu) + ": " + size_text(gpu->live) + " in " + plural(gpu->live_blocks, "block") + " live " + moment + "; held by");
    SectionMaker::add_holders(section, largest(gpu->by(By::stack), &Group::live, &Group::live_blocks, style.top), gpu->live);
    if (std::string text = libraries(maker, *gpu, &Group::live, gpu->live); !text.empty()) {
      section.remarks.push_back(text);
    }
    SectionMaker::add_holes(section, gpu->holes);
  }
  out.list = std::move(maker.made);
}

void make_growth(SectionMaker& maker) {
  for (const GpuReport* gpu : maker.gpus) {
    if (gpu->growing.empty()) {
      continue;
    }
    Section& section =
        maker.add("growth", gpu, gpu_title(*gpu) + ": still growing, from one eighth of the run to the next over its second half");
    section.columns = {{"from_bytes", Unit::bytes, "before"}, {"to_bytes", Unit::bytes, "then"}};
    for (size_t i = 0; i < std::min(maker.style.top, gpu->growing.size()); ++i) {
      const Growth& each = gpu->growing[i];
      section.rows.push_back({.cells = {{each.from}, {each.to}}, .place = each.place});
    }
    section.is_trouble = true;
    section.next = "xlog report --html report.html " + maker.log_name + "   (over time)";
  }
}

}  // namespace xlog::tools
