// libFuzzer over what is read beside logs: symbols, modules with their debug information, suppressions, JSON, options, and the functions
// that make text safe. The first byte says which.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "runtime/base/options.h"
#include "tools/analysis/diff.h"
#include "tools/analysis/suppressions.h"
#include "tools/command/shell_text.h"
#include "tools/log/byte_text.h"
#include "tools/log/demangle.h"
#include "tools/log/json_value.h"
#include "tools/log/symbols.h"
#include "tools/report/brief_name.h"
#include "tools/report/lines.h"
#include "tools/report/safe_text.h"

using namespace xlog::tools;

namespace {

std::string written(const std::string& text) {
  static const std::string kPath = [] {
    char name[] = "/tmp/xlog-fuzz-XXXXXX";
    return std::string(mkdtemp(name)) + "/file";
  }();
  std::ofstream(kPath, std::ios::binary) << text;
  return kPath;
}

void must_hold(bool what) {
  if (!what) {
    std::abort();
  }
}

std::string option_value;  // of every option at once

std::string without_quotes(std::string field) {
  if (!field.starts_with('"')) {
    return field;
  }
  field = field.substr(1, field.size() - 2);
  for (size_t at = field.find("\"\""); at != field.npos; at = field.find("\"\"", at + 1)) {
    field.erase(at, 1);
  }
  return field;
}

void make_safe(const std::string& text) {
  std::string line = terminal_line(text);
  must_hold(terminal_line(line) == line);
  for (char c : line) {
    must_hold(static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
  }
  must_hold(github_error(text, text).find('\n') == std::string::npos);
  must_hold(from_field(without_quotes(whole_field(text))) == text);
  must_hold(columns_of(shortened_in_the_middle(line, 20)) <= 20);
  wrapped(line, 20, "  ");
  brief_name(line);
  shell_word(text);
  fish_word(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      must_hold(demangle(text.c_str()).size() <= kLongestName + text.size());
      break;
    case 1: {
      Symbols module(written(text), "");
      for (uint64_t offset : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0x1129}, uint64_t{0x1200}, UINT64_MAX}) {
        module.names(offset);
      }
      break;
    }
    case 2: {
      std::vector<std::string> problems;
      Suppressions suppressions;
      suppressions.read(written(text), problems);
      break;
    }
    case 3: {
      std::string problem;
      RunSums sums;
      parse_json(text, problem);
      read_baseline(text, sums, problem);
      break;
    }
    case 4: {
      option_value = text.substr(0, text.find('\0'));
      xlog::Options options;
      xlog::parse_options([](const char*) -> const char* { return option_value.c_str(); }, [](std::string_view, bool) {}, options);
      std::string_view near;
      xlog::kind_of_name(option_value, near);
      break;
    }
    default:
      make_safe(text);
      break;
  }
  return 0;
}
