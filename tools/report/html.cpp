#include "tools/report/html.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/log/libraries.h"
#include "tools/report/format.h"
#include "tools/report/json_parts.h"
#include "tools/report/safe_text.h"
#include "tools/report/sections/section_json.h"
#include "tools/report/stack_text.h"

extern "C" {
extern const char xlog_page_begin[];
extern const char xlog_page_end[];
}

namespace xlog::tools {

using nlohmann::json;

namespace {

constexpr std::string_view kHere = "/*DATA*/";
constexpr size_t kMostBytes = 4'500'000;  // of the data
constexpr size_t kMostFrames = 64;
constexpr size_t kMostGpus = 32;
constexpr size_t kMostRows = 500;
constexpr int kOthers = -1;  // place: all that are not told one by one

// How much is told: halved until it fits.
struct Limits {
  size_t places = 2000;
  size_t per_snapshot = 300;
};

class PageData {
 public:
  PageData(const Report& report, const ReportStyle& style, const Limits& limits) : report_(report), style_(style), limits_(limits) {}

  json make() {
    choose_places();
    json out = {{"title", title()},
                {"verdict", terminal_line(verdict(report_))},
                {"length", report_.span.length()},
                {"notes", notes()},
                {"gpus", json::array()}};
    size_t gpus = 0;
    for (const GpuReport& gpu : report_.gpus) {
      if (gpu.peak != 0 && gpus++ < kMostGpus) {
        out["gpus"].push_back(gpu_json(gpu));
      }
    }
    out["sections"] = page_sections_json(report_, style_);
    out["places"] = std::move(places_json_);
    out["frames"] = std::move(frames_json_);
    return out;
  }

 private:
  std::string title() const {
    const ProcessLog& first = report_.logs.front();
    std::string what = first.arguments.empty() ? first.program.empty() ? first.csv : first.program : first.arguments;
    what += report_.logs.size() > 1 ? " and " + std::to_string(report_.logs.size() - 1) + " more processes" : "";
    return terminal_line(what);
  }

  json notes() const {
    json out = json::array();
    for (const GuardFinding& each : report_.findings) {
      out.push_back(terminal_line("guard: " + each.text));
    }
    for (const GpuReport& gpu : report_.gpus) {
      for (const Refusal& each : gpu.refused) {
        out.push_back(terminal_line(gpu_title(gpu) + ": " + (each.by_limit() ? "the limit" : "the driver") + " refused " +
                                    (each.requested == kNone ? "more than 64 bits hold" : size_text(each.requested)) + " with " +
                                    size_text(each.live) + " in use, " + time_text(each.time - report_.first_time) +
                                    " after the first call, by " + holder_name(report_, each.place)));
      }
    }
    if (report_.lost != 0) {
      out.push_back(plural(report_.lost, "row") + " lost: figures after that are too low or too high");
    }
    return out;
  }

  // Those that held most at some moment.
  void choose_places() {
    std::vector<std::pair<uint64_t, uint32_t>> most(report_.places.size());
    for (size_t i = 0; i < most.size(); ++i) {
      most[i].second = static_cast<uint32_t>(i);
    }
    for (const GpuReport& gpu : report_.gpus) {
      for (const Snapshot& snapshot : gpu.snapshots) {
        for (const auto& [place, bytes] : snapshot.places) {
          most[place].first = std::max(most[place].first, bytes);
        }
      }
      for (const auto& [place, group] : gpu.by(By::stack).entries()) {
        most[place].first = std::max(most[place].first, group.at_peak);
      }
    }
    std::sort(most.begin(), most.end(),
              [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
    for (size_t i = 0; i < std::min(most.size(), limits_.places) && most[i].first != 0; ++i) {
      numbers_[most[i].second] = static_cast<int>(i);
      places_json_.push_back({{"frames", frames_of(most[i].second)}});
    }
  }

  json frames_of(uint32_t place) {
    json out = json::array();
    const Stack* stack = report_.stack(place);
    if (stack == nullptr || stack->frames.empty()) {
      out.push_back(frame_number("(no stack)"));
      return out;
    }
    std::vector<const Frame*> frames = visible_frames(*stack, style_.all_frames);
    frames.resize(std::min(frames.size(), kMostFrames));
    for (size_t i = frames.size(); i-- > 0;) {
      out.push_back(frame_number(name_of(*frames[i]) + "  " + where_of(*frames[i])));
    }
    std::string cache = cache_of(*stack, report_.log_of(place).environment);
    if (!cache.empty()) {
      out.push_back(frame_number(cache));
    }
    return out;
  }

  size_t frame_number(const std::string& name) {
    auto [it, fresh] = frame_numbers_.try_emplace(name, frame_numbers_.size());
    if (fresh) {
      frames_json_.push_back(terminal_line(name));
    }
    return it->second;
  }

  json snapshot_json(uint64_t time, uint64_t live, const std::vector<std::pair<uint32_t, uint64_t>>& places) const {
    json list = json::array();
    uint64_t told = 0;
    for (size_t i = 0; i < std::min(places.size(), limits_.per_snapshot); ++i) {
      auto number = numbers_.find(places[i].first);
      if (number != numbers_.end()) {
        list.push_back({number->second, places[i].second});
        told += places[i].second;
      }
    }
    if (live > told) {
      list.push_back({kOthers, live - told});
    }
    return {{"time", time}, {"live", live}, {"places", list}};
  }

  uint64_t since(uint64_t time) const { return time > report_.span.first ? time - report_.span.first : 0; }

  json gpu_json(const GpuReport& gpu) const {
    json out = {{"title", terminal_line(gpu_title(gpu))},
                {"peak", gpu.peak},
                {"peak_time", since(gpu.peak_time)},
                {"steps", gpu.timeline.highest()},
                {"snapshots", json::array()}};
    std::vector<std::pair<uint32_t, uint64_t>> at_peak;
    for (const Holder& each : largest(gpu.by(By::stack), &Group::at_peak, &Group::blocks_at_peak, SIZE_MAX)) {
      at_peak.emplace_back(each.place, each.bytes);
    }
    out["at_peak"] = snapshot_json(since(gpu.peak_time), gpu.peak, at_peak);
    for (const Snapshot& each : gpu.snapshots) {
      out["snapshots"].push_back(snapshot_json(since(each.time), each.live, each.places));
    }
    for (auto [title, by] :
         {std::pair("Stacks", By::stack), std::pair("Threads", By::thread), std::pair("Streams", By::stream), std::pair("Kinds", By::kind),
          std::pair("Tags", By::tag), std::pair("Queries", By::query), std::pair("Processes", By::process)}) {
      json rows = table(gpu, by);
      if (rows.size() > 1 || by == By::stack) {
        out["tables"].push_back({title, rows});
      }
    }
    return out;
  }

  json table(const GpuReport& gpu, By by) const {
    std::vector<Groups::Entry> order;
    for (const Groups::Entry& each : gpu.by(by).entries()) {
      if (has_figures(each.group)) {
        order.push_back(each);
      }
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return a.group.at_peak != b.group.at_peak ? a.group.at_peak > b.group.at_peak : a.group.bytes > b.group.bytes;
    });
    json rows = json::array();
    for (size_t i = 0; i < std::min({order.size(), kMostRows, limits_.places}); ++i) {
      json row = group_json(order[i].group);
      row["name"] = terminal_line(by == By::stack ? stack_name(order[i].number) : label(report_, by, order[i].number));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::string stack_name(uint32_t place) const {
    const Stack* stack = report_.stack(place);
    std::string library = library_of(stack, report_.log_of(place).environment);
    return stack == nullptr ? library : library + ": " + holder_name(report_, place);
  }

  const Report& report_;
  const ReportStyle& style_;
  const Limits limits_;
  std::map<uint32_t, int> numbers_;  // on the page, of those that are told
  std::map<std::string, size_t> frame_numbers_;
  json places_json_ = json::array();
  json frames_json_ = json::array();
};

// Inside a script element: nothing may end it. Characters that would act on the page are in no text above.
std::string for_script(const json& data) { return json_for_script(data.dump(-1, ' ', false, json::error_handler_t::replace)); }

}  // namespace

bool report_html(const Report& report, const ReportStyle& style, std::string& page, std::string& problem) {
  std::string_view frame(xlog_page_begin, static_cast<size_t>(xlog_page_end - xlog_page_begin));
  size_t here = frame.find(kHere);
  if (here == frame.npos) {
    problem = "this program was built without the page: npm was not there";
    return false;
  }
  std::string data;
  Limits limits;
  do {
    data = for_script(PageData(report, style, limits).make());
    limits.places /= 2;
    limits.per_snapshot /= 2;
  } while (data.size() > kMostBytes && limits.per_snapshot != 0);
  page = std::string(frame.substr(0, here)) + data + std::string(frame.substr(here + kHere.size()));
  return true;
}

}  // namespace xlog::tools
