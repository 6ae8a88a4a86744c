// The sentence that says it all, and the few lines that `xlog run` ends with.
#include <algorithm>

#include "tools/report/brief_name.h"
#include "tools/report/format.h"
#include "tools/report/report.h"
#include "tools/report/safe_text.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

std::string brief_holder(const Report& report, uint32_t place) { return brief_name(holder_name(report, place)); }

uint64_t freed_only_at_exit(const GpuReport& gpu) {
  uint64_t bytes = 0;
  for (const auto& [place, group] : gpu.by(By::stack).entries()) {
    bytes += group.freed_at_exit;
  }
  return bytes;
}

// The stack that grew by the most.
std::string growing_text(const Report& report) {
  const Growth* most = nullptr;
  for (const GpuReport& gpu : report.gpus) {
    for (const Growth& each : gpu.growing) {
      most = gpu.is_gpu() && (most == nullptr || each.to - each.from > most->to - most->from) ? &each : most;
    }
  }
  return most == nullptr ? ""
                         : " Still growing: " + brief_holder(report, most->place) + ", from " + size_text(most->from) + " to " +
                               size_text(most->to) + " over the second half.";
}

}  // namespace

std::string left_text(const Report& report) {
  bool of_ended = false;
  bool of_running = false;
  for (const GpuReport& gpu : report.gpus) {
    for (const auto& [process, group] : gpu.by(By::process).entries()) {
      bool runs = report.processes[process].runs;
      of_running = of_running || (runs && group.live_blocks != 0);
      of_ended = of_ended || (!runs && group.live_blocks != 0);
    }
  }
  return !of_running ? "never freed" : of_ended ? "never freed or still live" : "still live";
}

std::string verdict(const Report& report) {
  if (report.rows == 0) {
    return "No device memory call is in the log.";
  }
  uint64_t refusals = 0;
  uint64_t leaked = 0;
  uint64_t at_exit = 0;
  const GpuReport* highest = nullptr;
  for (const GpuReport& gpu : report.gpus) {
    refusals += gpu.refusals;
    leaked += gpu.is_gpu() ? gpu.live : 0;
    at_exit += gpu.is_gpu() ? freed_only_at_exit(gpu) : 0;
    if (gpu.is_gpu() && (highest == nullptr || gpu.peak > highest->peak)) {
      highest = &gpu;
    }
  }
  std::string text;
  if (!report.findings.empty()) {
    text = "The guard found " + plural(report.findings.size(), "misuse") + " of memory. ";
  }
  if (refusals != 0) {
    text += "Out of memory: " + plural(refusals, "request") + " refused.";
  }
  if (highest != nullptr && highest->peak != 0) {
    auto top = largest(highest->by(By::stack), &Group::at_peak, &Group::blocks_at_peak, 1);
    text += (text.empty() || text.back() == ' ' ? "" : " ") + std::string("Peak ") + size_text(highest->peak) + " on GPU " +
            std::to_string(highest->ordinal);
    if (!top.empty()) {
      text += ", " + share_text(top[0].bytes, highest->peak) + " of it held by " + brief_holder(report, top[0].place);
    }
    text += '.';
  }
  if (leaked != 0) {
    text += " " + size_text(leaked) + ' ' + left_text(report) + '.';
  } else if (highest != nullptr) {
    text += at_exit != 0 ? " Everything was freed, " + size_text(at_exit) + " of it only at the exit." : " Everything was freed.";
  }
  text += growing_text(report);
  return text.empty() ? "No memory was allocated." : text;
}

std::string summary_text(const Report& report, const std::string& ending, uint64_t wall_ns, const std::string& where) {
  std::string out;
  size_t lines = 0;
  auto line = [&](const std::string& text) {
    if (lines++ < 9) {
      out += "xlog: " + terminal_line(text) + '\n';
    }
  };
  if (!ending.empty()) {
    line(ending);
  }
  auto gpus = std::count_if(report.gpus.begin(), report.gpus.end(), [](const GpuReport& gpu) { return gpu.is_gpu(); });
  for (const GpuReport& gpu : report.gpus) {
    if (!gpu.is_gpu()) {
      if (gpu.peak != 0 && gpu.key == "host") {
        line(gpu_title(gpu) + ": peak " + size_text(gpu.peak));
      }
    } else if (gpu.peak != 0) {
      line(gpu_title(gpu) + ": peak " + size_text(gpu.peak) +
           (gpu.info.limit_bytes != UINT64_MAX ? " of " + size_text(gpu.info.limit_bytes) + " allowed" : "") + ", " +
           (gpu.live != 0 ? size_text(gpu.live) + ' ' + left_text(report) : "everything freed") + "; at the peak:");
      for (const Holder& each : largest(gpu.by(By::stack), &Group::at_peak, &Group::blocks_at_peak, gpus > 1 ? 1 : 3)) {
        line("  " + size_text(each.bytes) + "  " + share_text(each.bytes, gpu.peak) + "  " + holder_name(report, each.place));
      }
    }
    if (gpu.most_look.beyond() != 0) {
      line(gpu_title(gpu) + ": the driver had up to " + size_text(gpu.most_look.used) + " in use, " + size_text(gpu.most_look.beyond()) +
           " more than these blocks");
    }
    // Where the program ended in trouble, the last refusal is why, unless it got the memory later.
    if (gpu.refused_since != 0 && !ending.empty()) {
      const Refusal& last = gpu.refused.back();
      line(gpu_title(gpu) + ": out of memory at the end: asked for " +
           (last.requested == kNone ? "more than there is" : size_text(last.requested)) + " with " + size_text(last.live) +
           " in use, refused by " + (last.by_limit() ? "the limit" : "the driver") + ", by " + holder_name(report, last.place));
    } else if (gpu.refusals != 0) {
      const Refusal& first = gpu.refused.front();
      line(gpu_title(gpu) + ": " + plural(gpu.refusals, "request") + " refused for want of memory; the first asked for " +
           (first.requested == kNone ? "more than there is" : size_text(first.requested)) + " with " + size_text(first.live) + " in use");
    }
  }
  if (report.rows == 0) {
    line("no device memory call was seen (xlog doctor -- COMMAND says what would be)");
  } else if (report.call_ns != 0) {
    bool at_once = report.call_ns > wall_ns;  // by several threads: no share of the wall time
    line("allocation calls: " + plural(report.calls, "call") + ", " + time_text(report.call_ns) +
         (at_once ? " in all threads" : ", " + share_text(report.call_ns, wall_ns) + " of wall time"));
  }
  if (report.lost != 0) {
    out += "xlog: " + plural(report.lost, "row") + " not logged (see the report)\n";
  }
  if (!where.empty() && report.rows != 0) {
    bool refused = std::any_of(report.gpus.begin(), report.gpus.end(), [](const GpuReport& gpu) { return gpu.refusals != 0; });
    std::string safe = terminal_line(where);
    out += "xlog: log in " + safe + "\nxlog: next: xlog report " + (refused ? "--oom " : "") + safe + '\n';
  }
  return out;
}

}  // namespace xlog::tools
