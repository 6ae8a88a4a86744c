// Stacks and what they are called, for people.
#pragma once

#include <string>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

// The frames of a stack, a line each, `frames` at most unless all are wanted; nullptr: there is none.
std::string stack_text(const Stack* stack, const ProcessLog& log, bool all_frames, size_t frames, const std::string& indent);
// What holds a stack's memory, in one line: the cache it belongs to, or its first visible frame.
std::string holder_name(const Report& report, uint32_t place);
std::string gpu_title(const GpuReport& gpu);

}  // namespace xlog::tools
