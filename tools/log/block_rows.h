// Which rows begin a block, and which end one.
#pragma once

#include "runtime/record/event.h"

namespace xlog::tools {

// It was made then, or was live when the log came on; where `result` is not ok, it was refused.
inline bool begins_block(const Event& row) { return row.action == action::allocate || row.action == action::live; }

inline bool ends_block(const Event& row) {
  return row.action == action::deallocate || row.action == action::context_destroyed || row.action == action::ended_unseen;
}

}  // namespace xlog::tools
