#include "shim/python.h"

#include "shim/elf_symbols.h"

namespace xlog {

bool find_python(PythonApi& out) noexcept {
  LoadedFile python =
      find_file([](const LoadedFile& each, const void*) { return each.find("PyGILState_GetThisThreadState") != nullptr; }, nullptr);
  if (!python) {
    return false;
  }
  std::span<const char> eval = python.find_extent("_PyEval_EvalFrameDefault");
  out.this_thread = reinterpret_cast<void* (*)()>(python.find("PyGILState_GetThisThreadState"));
  out.version = reinterpret_cast<const char* (*)()>(python.find("Py_GetVersion"));
  out.code_type = python.find_extent("PyCode_Type").data();
  out.runtime = python.find_extent("_PyRuntime").data();
  out.traces_references = python.find("_Py_ForgetReference") != nullptr;
  out.eval_begin = reinterpret_cast<uintptr_t>(eval.data());
  out.eval_end = out.eval_begin + eval.size();
  return true;
}

}  // namespace xlog
