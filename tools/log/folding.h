// Which frames of a stack are the program's own, and whose the others are.
#pragma once

#include <string>
#include <vector>

#include "tools/log/frame_table.h"

namespace xlog::tools {

struct Stack;

// The program's own: a function of the executable, of a shared library that is not an installed one, of a source file under
// the current folder, or of a Python file outside site-packages, dist-packages and Python's library. The others: folded.def.
enum class Level { own, library, support, plumbing };

struct Ownership {
  Level level = Level::own;
  std::string owner;  // empty: the program
};

Ownership ownership_of(const Frame& frame);

// The frames to show: the program's own; where it has none, those that come nearest to the caller of a library; all, when
// `all`.
std::vector<const Frame*> visible_frames(const Stack& stack, bool all);

// A line of a stack as it is shown: a frame, or several that are folded.
struct StackLine {
  const Frame* frame = nullptr;  // of folded ones, the innermost Python function, else what the frame that follows called
  size_t folded = 0;             // 0: the frame itself
  std::string owner;             // of what is folded
};

// All visible frames, and between them what a library has there. What every program has is left out.
std::vector<StackLine> folded_stack(const Stack& stack);

// Where the program's own code went into a library or the driver, and further in: innermost last. Frames that every program
// has are left out.
std::vector<const Frame*> inner_frames(const Stack& stack);

}  // namespace xlog::tools
