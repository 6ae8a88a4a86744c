#include "tools/report/stack_text.h"

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

namespace {

std::string line_of(const Frame& frame) { return name_of(frame) + "  " + where_of(frame); }

}  // namespace

std::string stack_text(const Stack* stack, const ProcessLog& log, bool all_frames, size_t frames, const std::string& indent) {
  if (stack == nullptr) {
    return indent + "(no stack)\n";
  }
  std::string text;
  std::string cache = cache_of(*stack, log.environment);
  if (!cache.empty()) {
    text += indent + cache + ": what is inside is not visible\n";
  }
  if (all_frames) {
    for (const Frame* each : stack->frames) {
      text += indent + line_of(*each) + '\n';
    }
    return text;
  }
  size_t shown = 0;
  for (const StackLine& line : folded_stack(*stack)) {
    if (shown == frames) {
      break;
    }
    shown += line.folded == 0 ? 1 : 0;
    text += indent +
            (line.folded == 0 ? line_of(*line.frame)
                              : "... " + plural(line.folded, "frame") + " of " + line.owner + ", in " + line_of(*line.frame)) +
            '\n';
  }
  return text;
}

}  // namespace xlog::tools
