#include "tools/report/stack_text.h"

#include <algorithm>

#include "tools/report/format.h"

namespace xlog::tools {

std::string gpu_title(const GpuReport& gpu) {
  if (!gpu.is_gpu()) {
    return gpu.key == "host" ? "Pinned host memory" : "Imported memory (other processes' or APIs', not counted)";
  }
  if (gpu.stands_for != 1) {
    return count_text(gpu.stands_for) + " GPUs";
  }
  std::string title = "GPU " + std::to_string(gpu.ordinal);
  return gpu.info.name.empty() ? title : title + " (" + gpu.info.name + ")";
}

std::string holder_name(const Report& report, uint32_t place) {
  const Stack* stack = report.stack(place);
  if (stack == nullptr || stack->frames.empty()) {
    return "(no stack)";
  }
  std::string cache = cache_of(*stack, report.log_of(place).environment);
  if (!cache.empty()) {
    return cache + " (what is inside is not visible)";
  }
  const Frame& first = *visible_frames(*stack, false).front();
  return name_of(first) + "  " + where_of(first);
}

std::string stack_text(const Stack* stack, const ProcessLog& log, bool all_frames, size_t frames, const std::string& indent) {
  if (stack == nullptr) {
    return indent + "(no stack)\n";
  }
  std::string text;
  std::string cache = cache_of(*stack, log.environment);
  if (!cache.empty()) {
    text += indent + cache + ": what is inside is not visible\n";
  }
  std::vector<const Frame*> shown = visible_frames(*stack, all_frames);
  size_t n = all_frames ? shown.size() : std::min(frames, shown.size());
  for (size_t i = 0; i < n; ++i) {
    text += indent + name_of(*shown[i]) + "  " + where_of(*shown[i]) + '\n';
  }
  return text;
}

}  // namespace xlog::tools
