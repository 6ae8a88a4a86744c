// The sections about calls: their time, how long blocks lived, and their sizes.
#include <algorithm>

#include "tools/report/text_page.h"

namespace xlog::tools {

namespace {

// Not worth a line for less than this.
constexpr uint64_t kWorthTelling = 1'000'000;

// The places of `values`, largest first by `value`.
template <class Value, class Of>
std::vector<uint32_t> by_size(const std::vector<Value>& values, Of of) {
  std::vector<uint32_t> order;
  for (size_t i = 0; i < values.size(); ++i) {
    if (of(values[i]) != 0) {
      order.push_back(static_cast<uint32_t>(i));
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return of(values[a]) > of(values[b]); });
  return order;
}

std::string bar(uint64_t value, uint64_t most) { return std::string(static_cast<size_t>(1 + 39 * value / most), '#'); }

std::string padded(const std::string& text, size_t width) { return text + std::string(text.size() < width ? width - text.size() : 1, ' '); }

}  // namespace

void write_time(TextPage& page) {
  const Report& report = page.report;
  if (report.calls == 0 || report.call_ns == 0) {
    return;
  }
  // Calls reach beyond the rows; what threads do at once is a share of the time of them all.
  TimeSpan span = report.call_span;
  span.add({report.first_time, report.last_time});
  uint64_t threads = std::max<uint64_t>(report.threads.size(), 1);
  uint64_t whole = std::max(span.length() * threads, report.call_ns);
  page.heading("Time in allocation calls: " + time_text(report.call_ns) + " in " + plural(report.calls, "call") + ", " +
               share_text(report.call_ns, whole) + " of the time " + (threads > 1 ? "of " + count_text(threads) + " threads " : "") +
               "from first to last");
  auto order = by_size(report.time, [](const StackTime& time) { return time.ns; });
  for (size_t i = 0; i < std::min(order.size(), page.style.top); ++i) {
    const StackTime& time = report.time[order[i]];
    if (time.ns * 100 < report.call_ns) {
      break;
    }
    page.line("  " + time_text(time.ns) + "  " + share_text(time.ns, report.call_ns) + "  " + plural(time.calls, "call") + ", " +
              time_text(time.ns / time.calls) + " each");
    page.frames(order[i], "      ");
  }
}

void write_savings(TextPage& page) {
  const Saving& all = page.report.saving;
  Saver best = all.best();
  if (all.by(best) < kWorthTelling) {
    return;
  }
  page.heading("Estimate: of " + time_text(all.spent) + " in cuMemAlloc and cuMemFree a backend would have saved");
  for (size_t i = 0; i < kSavers; ++i) {
    page.line("  " + time_text(all.saved[i]) + "  " + share_text(all.saved[i], all.spent) + "  " + saver_name(static_cast<Saver>(i)));
  }
  page.line("  by " + std::string(saver_name(best)) + ", most for");
  auto order = by_size(page.report.savings, [best](const Saving& saving) { return saving.by(best); });
  for (size_t i = 0; i < std::min(order.size(), page.style.top); ++i) {
    const Saving& saving = page.report.savings[order[i]];
    if (saving.by(best) * 100 < all.by(best)) {
      break;
    }
    page.line("  " + time_text(saving.by(best)) + "  of " + time_text(saving.spent));
    page.frames(order[i], "      ");
  }
}

void write_temporary(TextPage& page) {
  constexpr uint64_t kMany = 100;
  for (const GpuReport* each_gpu : page.gpus) {
    const GpuReport& gpu = *each_gpu;
    const std::vector<Groups::Entry>& stacks = gpu.by(By::stack).entries();
    uint64_t temporary = 0;
    uint64_t short_lived = 0;
    for (const auto& [place, group] : stacks) {
      temporary += group.temporary;
      short_lived += group.short_lived;
    }
    uint64_t most = std::max(temporary, short_lived);
    if (most < kMany || most * 10 < gpu.allocations) {
      continue;
    }
    page.heading(gpu_title(gpu) + ": " + count_text(temporary) + " of " + plural(gpu.allocations, "allocation") + " (" +
                 share_text(temporary, gpu.allocations) + ") freed before their thread made another; " + count_text(short_lived) + " (" +
                 share_text(short_lived, gpu.allocations) + ") lived less than 1 ms; most by");
    auto order = by_size(stacks, [](const Groups::Entry& each) { return std::max(each.group.temporary, each.group.short_lived); });
    for (size_t i = 0; i < std::min(order.size(), page.style.top); ++i) {
      const Group& group = stacks[order[i]].group;
      if (std::max(group.temporary, group.short_lived) * 100 < most) {
        break;
      }
      page.line("  " + count_text(group.temporary) + " and " + count_text(group.short_lived) + " of " +
                plural(group.allocations, "allocation") + ", " + size_text(group.bytes / std::max<uint64_t>(group.allocations, 1)) +
                " each");
      page.frames(stacks[order[i]].number, "      ");
    }
  }
}

void write_lifetimes(TextPage& page) {
  constexpr const char* kNames[] = {"0 ns",   "10 ns", "100 ns", "1 us",  "10 us",  "100 us",   "1 ms",      "10 ms",
                                    "100 ms", "1 s",   "10 s",   "100 s", "1000 s", "10,000 s", "100,000 s", ""};
  constexpr uint64_t kFew = 20;
  const auto& classes = page.report.lifetimes;
  uint64_t all = 0;
  uint64_t most = 0;
  for (const LifetimeClass& each : classes) {
    all += each.blocks;
    most = std::max(most, each.blocks);
  }
  if (all < kFew) {
    return;
  }
  page.heading("How long blocks lived");
  for (size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].blocks != 0) {
      std::string name = i + 1 == classes.size() ? "more" : std::string("below ") + kNames[i == 0 ? 0 : i];
      page.line("  " + padded(i == 0 ? "no time" : name, 18) + padded(count_text(classes[i].blocks), 12) +
                padded(size_text(classes[i].bytes), 12) + bar(classes[i].blocks, most));
    }
  }
}

void write_sizes(TextPage& page) {
  const auto& sizes = page.report.sizes;
  uint64_t most = 0;
  for (const SizeClass& each : sizes) {
    most = std::max(most, each.allocations);
  }
  if (most == 0) {
    return;
  }
  page.heading("Sizes requested: how many, how much in all, and what the driver's rounding adds");
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].allocations != 0) {
      std::string label = i == 64 ? size_text(uint64_t{1} << 63) + " and more" : "below " + size_text(uint64_t{1} << i);
      uint64_t waste = sizes[i].taken > sizes[i].bytes ? sizes[i].taken - sizes[i].bytes : 0;
      page.line("  " + padded(label, 18) + padded(count_text(sizes[i].allocations), 12) + padded(size_text(sizes[i].bytes), 12) +
                padded(waste != 0 ? "+" + size_text(waste) : "", 12) + bar(sizes[i].allocations, most));
    }
  }
}

}  // namespace xlog::tools
