// speedscope: https://www.speedscope.app/file-format-schema.json.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "tools/report/export.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

class Profiles {
 public:
  explicit Profiles(const Report& report) : report_(report) {}

  json make() {
    for (const GpuReport& gpu : report_.gpus) {
      add(gpu, "at the peak", &Group::at_peak);
      add(gpu, "live at the end", &Group::live);
      add(gpu, "allocated in all", &Group::bytes);
    }
    return {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
            {"exporter", "xlog"},
            {"name", "GPU memory"},
            {"activeProfileIndex", 0},
            {"shared", {{"frames", std::move(frames_)}}},
            {"profiles", std::move(profiles_)}};
  }

 private:
  void add(const GpuReport& gpu, const std::string& title, uint64_t Group::*bytes_of) {
    json samples = json::array();
    json weights = json::array();
    uint64_t sum = 0;
    for (const auto& [place, group] : gpu.by(By::stack).entries()) {
      if (group.*bytes_of != 0) {
        samples.push_back(stack_of(place));
        weights.push_back(group.*bytes_of);
        sum += group.*bytes_of;
      }
    }
    if (sum != 0) {
      profiles_.push_back({{"type", "sampled"},
                           {"name", gpu_name(gpu) + ", " + title},
                           {"unit", "bytes"},
                           {"startValue", 0},
                           {"endValue", sum},
                           {"samples", std::move(samples)},
                           {"weights", std::move(weights)}});
    }
  }

  // Outermost first.
  json stack_of(uint32_t place) {
    json out = json::array();
    const Stack* stack = report_.stack(place);
    for (size_t i = stack != nullptr ? stack->frames.size() : 0; i-- > 0;) {
      out.push_back(number_of(stack->frames[i]));
    }
    if (out.empty()) {
      out.push_back(number_of(nullptr));
    }
    return out;
  }

  size_t number_of(const Frame* frame) {
    auto [it, is_new] = numbers_.try_emplace(frame, numbers_.size());
    if (is_new) {
      json out = {{"name", frame != nullptr ? whole_name(*frame) : "(no stack)"}};
      if (frame != nullptr) {
        out["file"] = frame->file.empty() ? frame->module : frame->file;
      }
      if (frame != nullptr && frame->line != 0) {
        out["line"] = frame->line;
      }
      frames_.push_back(std::move(out));
    }
    return it->second;
  }

  const Report& report_;
  std::unordered_map<const Frame*, size_t> numbers_;
  json frames_ = json::array();
  json profiles_ = json::array();
};

}  // namespace

void export_speedscope(const Report& report, std::ostream& out) {
  out << json_for_terminal(Profiles(report).make().dump(-1, ' ', false, json::error_handler_t::replace)) << '\n';
}

}  // namespace xlog::tools
