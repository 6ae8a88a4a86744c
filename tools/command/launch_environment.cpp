#include "tools/command/launch_environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>

#include "runtime/base/options.h"
#include "runtime/record/log_path.h"
#include "tools/command/log_folder.h"
#include "tools/command/needed_files.h"

namespace xlog::tools {

namespace fs = std::filesystem;

namespace {

// A relative log is the run's, from wherever a process of it is started.
std::string absolute_pattern(const std::string& pattern) {
  std::error_code error;
  fs::path here = fs::current_path(error);
  return pattern.empty() || pattern[0] == '/' || error ? pattern : literal_pattern(here) + '/' + pattern;
}

bool is_pattern(const std::string& text) {
  Text<4096> out;
  PathFacts facts;
  facts.folder = "/";
  return expand_log_path(text, facts, out);
}

}  // namespace

std::string library_path() {
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  for (const fs::path& each : {self.parent_path() / "libxlog.so", self.parent_path().parent_path() / "lib" / "libxlog.so"}) {
    if (fs::exists(each, error)) {
      return each;
    }
  }
  return "";
}

std::string library_trouble() {
  std::string path = library_path();
  if (path.empty()) {
    return "libxlog.so is neither beside this command nor in ../lib";
  }
  // LD_PRELOAD separates with both, and has no way to quote.
  return path.find_first_of(" :") != path.npos ? path + ": LD_PRELOAD cannot name a path with a space or a colon" : "";
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::string preload_list(const std::vector<std::string>& command, std::string given) {
  std::string first = command.empty() ? "" : sanitizer_of(command[0]);
  std::string rest;
  std::replace(given.begin(), given.end(), ' ', ':');
  std::istringstream parts(given);
  for (std::string each; std::getline(parts, each, ':');) {
    if (must_be_first(each)) {
      first = each;
    } else if (!each.empty() && each != library_path()) {  // a run within a run has it already
      rest += ':' + each;
    }
  }
  return (first.empty() ? "" : first + ':') + library_path() + rest;
}

Variables launch_variables(const LaunchOptions& options) {
  Variables out;
  auto is_given = [&options](const char* name) { return options.values.contains(name) || std::getenv(name) != nullptr; };
  for (const OptionRow& row : kOptions) {
    auto found = options.values.find(std::string(row.name));
    if (found != options.values.end()) {
      out.emplace_back(row.name, row.name == "XLOG_LOG" ? absolute_pattern(found->second) : found->second);
    }
  }
  if (options.per_tensor) {
    for (const auto& [name, value] : {std::pair{"XLOG_BACKEND", "async"}, std::pair{"XLOG_ASYNC_FREE", "ordered"}}) {
      if (!is_given(name)) {
        out.emplace_back(name, value);
      }
    }
    out.emplace_back("PYTORCH_NO_CUDA_MEMORY_CACHING", "1");
    out.emplace_back("XLA_PYTHON_CLIENT_ALLOCATOR", "platform");
  }
  if (options.no_log) {
    out.emplace_back("XLOG_LOG", "");
    return out;
  }
  if (std::getenv("NVTX_INJECTION64_PATH") == nullptr) {
    out.emplace_back("NVTX_INJECTION64_PATH", library_path());  // the program's ranges become tags
  }
  if (needs_log_folder(options)) {
    if (!is_given("XLOG_LOG_MAX")) {
      out.emplace_back("XLOG_LOG_MAX", "2GiB");
    }
  } else if (!options.values.contains("XLOG_LOG") && absolute_pattern(variable("XLOG_LOG")) != variable("XLOG_LOG")) {
    out.emplace_back("XLOG_LOG", absolute_pattern(variable("XLOG_LOG")));
  }
  return out;
}

bool needs_log_folder(const LaunchOptions& options) {
  bool named = options.values.contains("XLOG_LOG") || std::getenv("XLOG_LOG") != nullptr;
  return !options.no_log && (!options.folder.empty() || !named);
}

std::string inherited_text(const Variables& replaced) {
  std::string list;
  size_t count = 0;
  for (const OptionRow& row : kOptions) {
    const char* value = std::getenv(std::string(row.name).c_str());
    bool is_replaced = std::any_of(replaced.begin(), replaced.end(), [&](const auto& each) {
      return each.first == row.name && (each.first != "XLOG_LOG" || value == nullptr || each.second != absolute_pattern(value));
    });
    if (value != nullptr && !is_replaced) {
      list += (list.empty() ? "" : ", ") + std::string(row.name) + '=' + value;
      ++count;
    }
  }
  return list.empty() ? "" : list + " of the environment " + (count == 1 ? "applies" : "apply");
}

bool check_environment(std::vector<std::string>& complaints) {
  static std::vector<std::string> lines;  // the parser's callback has no place for a pointer
  lines.clear();
  auto parsed = std::make_unique<Options>();
  parse_options([](const char* name) -> const char* { return std::getenv(name); },
                [](std::string_view line, bool) { lines.emplace_back(line); }, *parsed);
  complaints = lines;
  if (parsed->log.size != 0 && !is_pattern(std::string(parsed->log.view()))) {
    complaints.push_back("XLOG_LOG=" + std::string(parsed->log.view()) +
                         ": after a % stands p, h, r, t or q{VARIABLE}; a % itself is written %%");
  }
  for (char** each = environ; *each != nullptr; ++each) {
    std::string_view name = std::string_view(*each).substr(0, std::string_view(*each).find('='));
    std::string_view near;
    NameKind kind = kind_of_name(name, near);
    if (kind == NameKind::unknown || kind == NameKind::like_limit) {
      complaints.push_back(std::string(name) + " is not an option of this library" +
                           (near.empty() ? "" : "; did you mean " + std::string(near) + "?"));
    }
  }
  return complaints.empty();
}

}  // namespace xlog::tools
