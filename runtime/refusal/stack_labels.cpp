#include "runtime/refusal/stack_labels.h"

#include <fcntl.h>

#include "runtime/base/memory_map.h"
#include "runtime/base/system_calls.h"
#include "runtime/record/event.h"

namespace xlog {

namespace {

constexpr std::string_view kNotTheCaller[] = {"libxlog", "libcuda.so", "libcudart"};

// Where a quoted field's last quote stands: behind the quotes that are doubled, as they are part of the field.
size_t last_quote(std::string_view line) noexcept {
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '"') {
      if (i + 1 == line.size() || line[i + 1] != '"') {
        return i;
      }
      ++i;
    }
  }
  return line.npos;
}

// The line's next field; a quote inside a quoted one stays doubled.
std::string_view next_field(std::string_view& line) noexcept {
  bool quoted = line.starts_with('"');
  size_t end = quoted ? last_quote(line) : line.find(',');
  std::string_view field = line.substr(quoted ? 1 : 0, end == line.npos ? end : end - (quoted ? 1 : 0));
  line.remove_prefix(end == line.npos ? line.size() : end + (quoted ? 2 : 1));
  return field;
}

std::string_view file_name(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }

bool is_the_caller(std::string_view library) noexcept {
  for (std::string_view each : kNotTheCaller) {
    if (library.starts_with(each)) {
      return false;
    }
  }
  return true;
}

void take_line(std::string_view line, StackLabel& label) noexcept {
  next_field(line);  // depth
  std::string_view module = next_field(line);
  next_field(line);  // build id
  std::string_view offset = next_field(line);
  std::string_view function = next_field(line);
  std::string_view file = next_field(line);
  if (module == kPythonModule) {
    bool has_python = !label.text.full() && label.text.view().ends_with(')');
    if (!has_python) {
      label.text.put(label.text.size() == 0 ? "" : " <- ").put(function).put(" (").put(file_name(file)).put(':').put(line).put(')');
    }
  } else if (label.library.size() == 0 && is_the_caller(file_name(module))) {
    label.library.put(file_name(module));
    label.text.put(file_name(module)).put('+').put(offset);
  }
}

uint64_t leading_number(std::string_view line) noexcept {
  uint64_t value = 0;
  for (char c : line) {
    if (c < '0' || c > '9') {
      break;
    }
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

void read_lines(std::string_view text, std::span<StackLabel> labels) noexcept {
  while (!text.empty()) {
    size_t end = text.find('\n');
    if (end == text.npos) {
      return;  // being written
    }
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    uint64_t id = leading_number(line);
    for (StackLabel& each : labels) {
      if (id != 0 && each.stack_id == id) {
        next_field(line);
        take_line(line, each);
        break;
      }
    }
  }
}

}  // namespace

// Read, not mapped: memory that somebody cuts off a mapped file ends whoever reads it.
void read_labels(const char* path, std::span<StackLabel> labels) noexcept {
  constexpr size_t kMost = 64 << 20;
  int fd = kernel::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat info;
  size_t size = fd >= 0 && kernel::status(fd, info) == 0 && S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) : 0;
  size = size < kMost ? size : kMost;
  auto* text = size != 0 ? static_cast<char*>(map_state(size)) : nullptr;
  if (text != nullptr) {
    long read = kernel::read_at(fd, text, size, 0);
    read_lines({text, read > 0 ? static_cast<size_t>(read) : 0}, labels);
    unmap_state(text, size);
  }
  if (fd >= 0) {
    kernel::close(fd);
  }
}

}  // namespace xlog
