// The Python interpreter of the process, if it has one.
#pragma once

#include "runtime/base/python_frames.h"

namespace xlog {

// False when none is loaded. Thread-safe.
bool find_python(PythonApi& out) noexcept;

}  // namespace xlog
