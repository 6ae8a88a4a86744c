// Stacks and what they are called, for people.
#pragma once

#include <string>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

// The frames of a stack, a line each: the program's own, `frames` at most, and a line for those of a library before and between
// them; or all frames. nullptr: there is no stack.
std::string stack_text(const Stack* stack, const ProcessLog& log, bool all_frames, size_t frames, const std::string& indent);
std::string gpu_title(const GpuReport& gpu);

}  // namespace xlog::tools
