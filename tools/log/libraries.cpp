#include "tools/log/libraries.h"

#include "runtime/record/event.h"

namespace xlog::tools {

std::string library_of(const Stack* stack, const std::map<std::string, std::string>& environment) {
  constexpr std::string_view kBelow[] = {"libxlog", "libcuda.so", "libcudart", "libstdc++", "libc10.so", "[unknown]"};
  if (stack == nullptr || stack->frames.empty()) {
    return "(no stack)";
  }
  std::string cache = cache_of(*stack, environment);
  if (!cache.empty()) {
    return cache;
  }
  for (const Frame* frame : stack->frames) {
    std::string_view name = std::string_view(frame->module).substr(frame->module.rfind('/') + 1);
    bool below = frame->module == kPythonModule;
    for (std::string_view each : kBelow) {
      below = below || name.starts_with(each);
    }
    if (!below) {
      return std::string(name);
    }
  }
  return "(no stack)";
}

}  // namespace xlog::tools
