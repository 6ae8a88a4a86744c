// The calls themselves: their time, what a backend would have saved of it, how long blocks lived, and their sizes.
#include <algorithm>

#include "tools/report/format.h"
#include "tools/report/sections/section_maker.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

// Savings below this are no reason to change anything.
constexpr uint64_t kLeastSaving = 1'000'000;  // ns

// The numbers of `values`, largest first by `of`; values of 0 are left out.
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

std::string options_for(Saver saver) {
  switch (saver) {
    case Saver::async_wait:
      return "--backend async";
    case Saver::async_ordered:
      return "--backend async --async-free ordered";
    case Saver::cache_wait:
      return "--backend cache";
    case Saver::cache_ordered:
      return "--backend cache --async-free ordered";
  }
  return "";
}

std::string bar(uint64_t value, uint64_t most) { return std::string(static_cast<size_t>(1 + 39 * value / most), '#'); }

}  // namespace

void make_time(SectionMaker& maker) {
  const Report& report = maker.report;
  if (report.calls == 0 || report.call_ns == 0) {
    return;
  }
  // Calls reach beyond the rows; what threads do at once is a share of the time of them all.
  TimeSpan span = report.call_span;
  span.add({report.first_time, report.last_time});
  uint64_t threads = std::max<uint64_t>(report.threads.size(), 1);
  uint64_t whole = std::max(span.length() * threads, report.call_ns);
  Section& section = maker.add("time", nullptr,
                               "Time in allocation calls: " + time_text(report.call_ns) + " in " + plural(report.calls, "call") + ", " +
                                   share_text(report.call_ns, whole) + " of the time " +
                                   (threads > 1 ? "of " + count_text(threads) + " threads " : "") + "from first to last");
  section.is_detail = true;
  section.columns = {
      {"ns", Unit::nanoseconds}, {"share", Unit::share}, {"calls", Unit::count, "call"}, {"ns_each", Unit::nanoseconds, "each"}};
  auto order = by_size(report.time, [](const StackTime& time) { return time.ns; });
  for (size_t i = 0; i < std::min(order.size(), maker.style.top); ++i) {
    const StackTime& time = report.time[order[i]];
    if (time.ns * 100 < report.call_ns) {
      break;
    }
    section.rows.push_back(
        {.cells = {{time.ns}, share_of(time.ns, report.call_ns), {time.calls}, {time.ns / time.calls}}, .place = order[i]});
  }
}

void make_savings(SectionMaker& maker) {
  const Saving& all = maker.report.saving;
  Saver best = all.best();
  if (all.by(best) < kLeastSaving) {
    return;
  }
  Section& section = maker.add("savings", nullptr,
                               "Estimate: " + time_text(all.by(best)) + " of " + time_text(all.spent) +
                                   " in cuMemAlloc and cuMemFree would be saved by " + saver_name(best) + ", most for");
  section.is_detail = all.by(best) * 100 < maker.report.last_time - maker.report.first_time;
  section.columns = {{"saved_ns", Unit::nanoseconds}, {"spent_ns", Unit::nanoseconds, "spent"}};
  auto order = by_size(maker.report.savings, [best](const Saving& saving) { return saving.by(best); });
  for (size_t i = 0; i < std::min(order.size(), maker.style.top); ++i) {
    const Saving& saving = maker.report.savings[order[i]];
    if (saving.by(best) * 100 < all.by(best)) {
      break;
    }
    section.rows.push_back({.cells = {{saving.by(best)}, {saving.spent}}, .place = order[i]});
  }
  std::string each = "each backend:";
  for (size_t i = 0; i < kSavers; ++i) {
    each += (i == 0 ? " " : "; ") + std::string(saver_name(static_cast<Saver>(i))) + " " + time_text(all.saved[i]);
  }
  section.remarks.push_back(each);
  section.next = "xlog run " + options_for(best) + " -- COMMAND";
}

void make_temporary(SectionMaker& maker) {
  constexpr uint64_t kMany = 100;
  for (const GpuReport* gpu : maker.gpus) {
    const std::vector<Groups::Entry>& stacks = gpu->by(By::stack).entries();
    uint64_t temporary = 0;
    uint64_t short_lived = 0;
    for (const auto& [place, group] : stacks) {
      temporary += group.temporary;
      short_lived += group.short_lived;
    }
    uint64_t most = std::max(temporary, short_lived);
    if (most < kMany || most * 10 < gpu->allocations) {
      continue;
    }
    Section& section =
        maker.add("temporary", gpu,
                  gpu_title(*gpu) + ": " + count_text(temporary) + " of " + plural(gpu->allocations, "allocation") + " (" +
                      share_text(temporary, gpu->allocations) + ") freed before their thread made another; " + count_text(short_lived) +
                      " (" + share_text(short_lived, gpu->allocations) + ") lived less than 1 ms; most by");
    section.columns = {{"temporary", Unit::count, "temporary block"},
                       {"short_lived", Unit::count, "below 1 ms"},
                       {"allocations", Unit::count, "allocation"},
                       {"bytes_each", Unit::bytes, "each"}};
    section.columns[1].noun = "short-lived block";
    auto order = by_size(stacks, [](const Groups::Entry& each) { return std::max(each.group.temporary, each.group.short_lived); });
    for (size_t i = 0; i < std::min(order.size(), maker.style.top); ++i) {
      const Group& group = stacks[order[i]].group;
      if (std::max(group.temporary, group.short_lived) * 100 < most) {
        break;
      }
      section.rows.push_back(
          {.cells = {{group.temporary}, {group.short_lived}, {group.allocations}, {group.bytes / std::max<uint64_t>(group.allocations, 1)}},
           .place = stacks[order[i]].number});
    }
  }
}

void make_lifetimes(SectionMaker& maker) {
  constexpr const char* kNames[] = {"no time",      "below 10 ns",    "below 100 ns",    "below 1 us", "below 10 us", "below 100 us",
                                    "below 1 ms",   "below 10 ms",    "below 100 ms",    "below 1 s",  "below 10 s",  "below 100 s",
                                    "below 1000 s", "below 10,000 s", "below 100,000 s", "more"};
  constexpr uint64_t kFew = 20;
  const auto& classes = maker.report.lifetimes;
  uint64_t all = 0;
  uint64_t most = 0;
  for (const LifetimeClass& each : classes) {
    all += each.blocks;
    most = std::max(most, each.blocks);
  }
  if (all < kFew) {
    return;
  }
  Section& section = maker.add("lifetimes", nullptr, "How long blocks lived");
  section.is_detail = true;
  section.columns = {{"class", Unit::text}, {"blocks", Unit::count}, {"bytes", Unit::bytes}, {"bar", Unit::text}};
  for (size_t i = 0; i < classes.size(); ++i) {
    if (classes[i].blocks != 0) {
      section.rows.push_back({.cells = {{0, kNames[i]}, {classes[i].blocks}, {classes[i].bytes}, {0, bar(classes[i].blocks, most)}}});
    }
  }
}

void make_sizes(SectionMaker& maker) {
  const auto& sizes = maker.report.sizes;
  uint64_t most = 0;
  for (const SizeClass& each : sizes) {
    most = std::max(most, each.allocations);
  }
  if (most == 0) {
    return;
  }
  Section& section = maker.add("sizes", nullptr, "Sizes requested: how many, how much in all, and what the driver's rounding adds");
  section.is_detail = true;
  section.columns = {
      {"class", Unit::text}, {"allocations", Unit::count}, {"bytes", Unit::bytes}, {"rounding_bytes", Unit::bytes}, {"bar", Unit::text}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].allocations != 0) {
      std::string name = i == 64 ? size_text(uint64_t{1} << 63) + " and more" : "below " + size_text(uint64_t{1} << i);
      uint64_t waste = sizes[i].taken > sizes[i].bytes ? sizes[i].taken - sizes[i].bytes : 0;
      section.rows.push_back(
          {.cells = {{0, name}, {sizes[i].allocations}, {sizes[i].bytes}, {waste}, {0, bar(sizes[i].allocations, most)}}});
    }
  }
}

}  // namespace xlog::tools
