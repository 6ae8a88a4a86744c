// The calling thread's Python functions, read from the interpreter's own frames: without its lock, without an allocation
// and without the program's help. Where the frames stand is known for CPython 3.9 to 3.15 (python_layouts.def).
//
// Only the thread itself changes its frames, and it is in a call of ours; they keep their code objects alive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/text.h"

namespace xlog {

// What the interpreter exports, found by whoever composes the stack.
struct PythonApi {
  void* (*this_thread)() = nullptr;    // PyGILState_GetThisThreadState: needs no lock
  const char* (*version)() = nullptr;  // Py_GetVersion
  const char* code_type = nullptr;     // PyCode_Type
  const char* runtime = nullptr;       // _PyRuntime, which begins with the offsets of a newer version
  bool traces_references = false;      // objects have another head then
  uintptr_t eval_begin = 0;            // _PyEval_EvalFrameDefault: a native frame in it stands for Python frames
  uintptr_t eval_end = 0;
};

// False when no interpreter is loaded.
using FindPython = bool (*)(PythonApi& out) noexcept;

// Without initial values: each logged call has an array of them on its stack.
struct PythonFrame {
  const char* code;
  int32_t at;     // offset of the instruction in bytes
  bool is_entry;  // the outermost one of its native frame
};

inline constexpr size_t kMaxPythonDepth = 64;

struct PythonLayout;

// Thread-safe. All zero knows no interpreter.
class PythonFrames {
 public:
  // Once, before frames are taken. Says so when there is an interpreter that is not known.
  void use(const PythonApi& api) noexcept;
  // Innermost first; returns how many. 0 in a thread that runs no Python.
  size_t take(PythonFrame* out, size_t depth) noexcept;
  [[nodiscard]] bool is_interpreter(uintptr_t address) const noexcept {
    return layout_.load(std::memory_order_acquire) != nullptr && address - api_.eval_begin < api_.eval_end - api_.eval_begin;
  }
  // Of a frame that was just taken: its function and instruction as a number. A code object that comes to stand where
  // another one stood has other names.
  [[nodiscard]] uint64_t identity(const PythonFrame& frame) const noexcept;
  void describe(const PythonFrame& frame, TextSink& function, TextSink& file, uint32_t& line) const noexcept;

 private:
  bool looks_right(const char* thread) noexcept;

  PythonApi api_;
  std::atomic<const PythonLayout*> layout_;
  std::atomic<bool> looked_;  // the first frames were read with care, and are what they should be
};

}  // namespace xlog
