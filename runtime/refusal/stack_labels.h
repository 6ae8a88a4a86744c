// What to call a stack in one line, from NAME.stacks.csv as it stands: names are resolved later, by the tool.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/text.h"

namespace xlog {

struct StackLabel {
  uint64_t stack_id = 0;
  Text<64> library;  // file name of the first frame's that is neither ours nor the driver's nor the CUDA runtime's
  Text<200> text;    // library+0xoffset, and behind it the innermost Python function: `train (train.py:17)`
};

// Fills in those of the file at `path` that stand there; leaves the others empty.
void read_labels(const char* path, std::span<StackLabel> labels) noexcept;

}  // namespace xlog
