#include "tools/analysis/stable_name.h"

#include "runtime/record/event.h"

namespace xlog::tools {

namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// libcublas.so.12.6 is libcublas.so of another version.
std::string_view without_version(std::string_view name) {
  size_t so = name.find(".so.");
  return so == name.npos ? name : name.substr(0, so + 3);
}

}  // namespace

std::string stable_name(const Stack* stack) {
  if (stack == nullptr || stack->frames.empty()) {
    return "(no stack)";
  }
  std::string name;
  for (const Frame* frame : stack->frames) {
    if (frame->module == kPythonModule) {
      name += frame->function + '@' + std::string(file_name(frame->file));
    } else if (!frame->function.empty()) {
      name += frame->function.substr(0, frame->function.find(" [clone")) + '@' + std::string(without_version(file_name(frame->module)));
    } else {
      name += std::string(file_name(frame->module)) + '/' + frame->build_id + '+' + std::to_string(frame->offset);
    }
    name += ';';
  }
  return name;
}

}  // namespace xlog::tools
