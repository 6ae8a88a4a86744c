#include "tools/log/folding.h"

#include <algorithm>
#include <filesystem>

#include "runtime/record/event.h"
#include "tools/log/byte_text.h"
#include "tools/log/frame_text.h"
#include "tools/log/stacks.h"

namespace xlog::tools {

namespace {

enum class What { module, function, source, python, folder };

struct Rule {
  Level level;
  What what;
  bool installed;  // code of the current folder is the program's own all the same
  const char* owner;
  std::string_view pattern;
};

constexpr Rule kRules[] = {
#define XLOG_FOLDED(level, owner, what, pattern) {Level::level, What::what, false, owner, pattern},
#define XLOG_INSTALLED(level, owner, what, pattern) {Level::level, What::what, true, owner, pattern},
#include "tools/log/folded.def"
#undef XLOG_FOLDED
#undef XLOG_INSTALLED
};

bool begins(std::string_view text, std::string_view pattern) {
  return pattern.ends_with('$') ? text == pattern.substr(0, pattern.size() - 1) : text.starts_with(pattern);
}

// What the rules are asked about, made once for a frame.
struct Subject {
  const Frame& frame;
  bool is_python;
  bool is_shared;  // a shared library
  std::string_view module;
  std::string function;

  // The path that the rule's pattern stands in.
  [[nodiscard]] std::string_view path(What what) const {
    return what == What::folder ? std::string_view(frame.module) : std::string_view(frame.file);
  }
  [[nodiscard]] bool fits(const Rule& rule) const {
    switch (rule.what) {
      case What::module:
        return !is_python && begins(module, rule.pattern);
      case What::function:
        return !is_python && begins(function, rule.pattern);
      case What::source:
        return !is_python && frame.file.find(rule.pattern) != frame.file.npos;
      case What::python:
        return is_python && frame.file.find(rule.pattern) != frame.file.npos;
      case What::folder:
        return !is_python && is_shared && frame.module.find(rule.pattern) != frame.module.npos;
    }
    return false;
  }
};

bool is_of_this_folder(const std::string& file) {
  static const std::string kFolder = [] {
    std::error_code error;
    std::string here = std::filesystem::current_path(error);
    return error || here == "/" ? std::string() : here + '/';
  }();
  return !kFolder.empty() && file.starts_with(kFolder);
}

// libcublas.so.12.6 is libcublas.so.
std::string_view without_version(std::string_view name) {
  size_t so = name.find(".so.");
  return so == name.npos ? name : name.substr(0, so + 3);
}

std::string owner_of(const Rule& rule, std::string_view path) {
  if (*rule.owner != '\0') {
    return rule.owner;
  }
  std::string_view rest = path.substr(path.find(rule.pattern) + rule.pattern.size());
  bool has_folder = rule.what == What::source || rule.pattern.ends_with("-packages/");
  size_t slash = has_folder ? rest.find('/') : rest.npos;
  return printable(slash != rest.npos ? rest.substr(0, slash) : without_version(base_name(path)), 60);
}

}  // namespace

Ownership ownership_of(const Frame& frame) {
  std::string_view module = base_name(frame.module);
  Subject subject{.frame = frame,
                  .is_python = frame.module == kPythonModule,
                  .is_shared = module.find(".so") != module.npos,
                  .module = module,
                  .function = plain_function(frame.function)};
  bool here = is_of_this_folder(frame.file);
  for (const Rule& rule : kRules) {
    if (!(rule.installed && here) && subject.fits(rule)) {
      return {rule.level, owner_of(rule, subject.path(rule.what))};
    }
  }
  return {};
}

namespace {

bool is_python(const Frame* frame) { return frame->module == kPythonModule; }
// PyTorch calls each module's forward through functions of its own that say nothing.
bool is_wrapper(const Frame* frame) { return is_python(frame) && frame->function.ends_with("_call_impl"); }

// Of a Python program that has no code of its own in the stack: the native function that asked, and the Python functions.
std::vector<const Frame*> of_libraries(const Stack& stack, const std::vector<Ownership>& owners) {
  Level least = Level::plumbing;
  for (const Ownership& each : owners) {
    least = std::min(least, each.level);
  }
  bool has_python = std::any_of(stack.frames.begin(), stack.frames.end(), is_python);
  std::vector<const Frame*> shown;
  for (size_t i = 0; i < stack.frames.size(); ++i) {
    bool is_further_native = has_python && !is_python(stack.frames[i]) && !shown.empty();
    if (owners[i].level == least && !is_further_native && !is_wrapper(stack.frames[i])) {
      shown.push_back(stack.frames[i]);
    }
  }
  return shown.empty() ? stack.frames : shown;
}

std::vector<Ownership> owners_of(const Stack& stack) {
  std::vector<Ownership> out;
  for (const Frame* each : stack.frames) {
    out.push_back(ownership_of(*each));
  }
  return out;
}

std::vector<const Frame*> visible(const Stack& stack, const std::vector<Ownership>& owners) {
  std::vector<const Frame*> own;
  for (size_t i = 0; i < owners.size(); ++i) {
    if (owners[i].level == Level::own) {
      own.push_back(stack.frames[i]);
    }
  }
  return own.empty() ? of_libraries(stack, owners) : own;
}

}  // namespace

std::vector<const Frame*> visible_frames(const Stack& stack, bool all) { return all ? stack.frames : visible(stack, owners_of(stack)); }

std::vector<StackLine> folded_stack(const Stack& stack) {
  std::vector<Ownership> owners = owners_of(stack);
  std::vector<const Frame*> shown = visible(stack, owners);
  std::vector<StackLine> lines;
  StackLine group;
  bool is_worth_a_line = false;
  size_t next = 0;
  for (size_t i = 0; i < stack.frames.size() && next < shown.size(); ++i) {
    if (stack.frames[i] != shown[next]) {
      ++group.folded;
      if (owners[i].level != Level::plumbing) {
        is_worth_a_line = true;
        bool keep = group.frame != nullptr && (is_python(group.frame) || is_wrapper(stack.frames[i]));
        group.frame = keep ? group.frame : stack.frames[i];
        group.owner = owners[i].owner;
      }
      continue;
    }
    if (is_worth_a_line) {
      lines.push_back(group);
    }
    lines.push_back({.frame = shown[next++], .folded = 0, .owner = ""});
    group = {};
    is_worth_a_line = false;
  }
  return lines;
}

std::vector<const Frame*> inner_frames(const Stack& stack) {
  std::vector<Ownership> owners = owners_of(stack);
  const Frame* first = visible(stack, owners).front();
  std::vector<const Frame*> inner;
  for (size_t i = 0; i < stack.frames.size() && stack.frames[i] != first; ++i) {
    if (owners[i].level != Level::plumbing && !is_wrapper(stack.frames[i])) {
      inner.push_back(stack.frames[i]);
    }
  }
  std::reverse(inner.begin(), inner.end());
  return inner;
}

}  // namespace xlog::tools
