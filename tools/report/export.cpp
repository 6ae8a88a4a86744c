// What the forms share.
#include "tools/report/export.h"

#include "tools/report/format.h"

namespace xlog::tools {

std::string whole_name(const Frame& frame) {
  if (!frame.function.empty()) {
    return frame.function;
  }
  return frame.module.substr(frame.module.rfind('/') + 1) + '+' + hex_text(frame.offset);
}

std::string gpu_name(const GpuReport& gpu) { return gpu.is_gpu() ? "GPU " + std::to_string(gpu.ordinal) : gpu.key; }

std::string micros(uint64_t ns) { return std::to_string(ns / 1000) + '.' + std::to_string(1000 + ns % 1000).substr(1); }

}  // namespace xlog::tools
