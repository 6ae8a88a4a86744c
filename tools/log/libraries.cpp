#include "tools/log/libraries.h"

#include "runtime/record/event.h"
#include "tools/log/byte_text.h"

namespace xlog::tools {

std::string module_of(const Stack* stack, const std::map<std::string, std::string>& environment) {
  constexpr std::string_view kBelow[] = {"libxlog", "libcuda.so", "libcudart", "libstdc++", "libc10.so", "[unknown]"};
  if (stack == nullptr || stack->frames.empty()) {
    return "(no stack)";
  }
  std::string cache = cache_of(*stack, environment);
  if (!cache.empty()) {
    return cache;
  }
  for (const Frame* frame : stack->frames) {
    std::string_view name = base_name(frame->module);
    bool below = frame->module == kPythonModule;
    for (std::string_view each : kBelow) {
      below = below || name.starts_with(each);
    }
    if (!below) {
      return printable(name);
    }
  }
  return "(no stack)";
}

std::string library_of(const Stack* stack, const std::map<std::string, std::string>& environment) {
  std::string module = module_of(stack, environment);
  if (stack == nullptr || stack->frames.empty() || !cache_of(*stack, environment).empty()) {
    return module;
  }
  const Frame& first = *visible_frames(*stack, false).front();
  if (ownership_of(first).level != Level::own) {
    return module;
  }
  return printable(base_name(first.module == kPythonModule ? first.file : first.module));
}

}  // namespace xlog::tools
