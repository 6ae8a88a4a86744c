// Folded stacks.
#include <map>

#include "tools/report/export.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

namespace {

// `;` separates frames.
std::string folded_name(const Frame& frame) {
  std::string name = terminal_line(whole_name(frame));
  for (char& c : name) {
    c = c == ';' ? ':' : c;
  }
  return name;
}

}  // namespace

void export_folded(const Report& report, What what, std::ostream& out) {
  std::map<std::string, uint64_t> lines;
  for (const GpuReport& gpu : report.gpus) {
    for (const auto& [place, group] : gpu.by(By::stack).entries()) {
      uint64_t bytes = what == What::peak ? group.at_peak : what == What::live ? group.live : group.bytes;
      const Stack* stack = report.stack(place);
      if (bytes == 0) {
        continue;
      }
      std::string line = report.gpus.size() > 1 ? gpu_name(gpu) : "";
      for (size_t k = stack != nullptr ? stack->frames.size() : 0; k-- > 0;) {
        line += (line.empty() ? "" : ";") + folded_name(*stack->frames[k]);
      }
      lines[line.empty() ? "(no stack)" : line] += bytes;
    }
  }
  for (const auto& [line, bytes] : lines) {
    out << line << ' ' << bytes << '\n';
  }
}

}  // namespace xlog::tools
