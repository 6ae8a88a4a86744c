#include "runtime/record/log_path.h"

namespace xlog {

namespace {

constexpr std::string_view kRankVariables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK",    "PMI_RANK",
                                               "MV2_COMM_WORLD_RANK",  "SLURM_PROCID", "RANK"};

// A dot that would begin a name, or be its second one, becomes '_': no value leads to the folder above.
void put_safe(TextSink& out, std::string_view text) noexcept {
  for (char c : text) {
    bool leads = c == '.' && (out.view().ends_with('/') || out.view().ends_with("/."));
    out.put(leads || c == '/' || static_cast<unsigned char>(c) < 0x20 ? '_' : c);
  }
}

void put_variable(TextSink& out, std::string_view name, const PathFacts& facts) noexcept {
  Text<128> terminated;
  terminated.put(name).put('\0');
  const char* value = facts.variable != nullptr && !terminated.full() ? facts.variable(terminated.data()) : nullptr;
  put_safe(out, value != nullptr ? value : "");
}

void put_rank(TextSink& out, const PathFacts& facts) noexcept {
  for (std::string_view name : kRankVariables) {
    const char* value = facts.variable != nullptr ? facts.variable(name.data()) : nullptr;
    if (value != nullptr) {
      put_safe(out, value);
      return;
    }
  }
  out.put('0');
}

// Expands one placeholder that begins at pattern[i] == '%'; returns the index behind it, or 0 when unknown.
size_t expand_one(std::string_view pattern, size_t i, const PathFacts& facts, TextSink& out, bool& has_pid) noexcept {
  if (i + 1 >= pattern.size()) {
    return 0;
  }
  switch (pattern[i + 1]) {
    case '%':
      out.put('%');
      return i + 2;
    case 'p':
      has_pid = true;
      out.decimal(facts.pid);
      return i + 2;
    case 'h':
      put_safe(out, facts.host);
      return i + 2;
    case 'r':
      put_rank(out, facts);
      return i + 2;
    case 't':
      out.decimal(facts.start_time);
      return i + 2;
    case 'q': {
      size_t close = pattern.find('}', i);
      if (i + 2 >= pattern.size() || pattern[i + 2] != '{' || close == pattern.npos) {
        return 0;
      }
      put_variable(out, pattern.substr(i + 3, close - i - 3), facts);
      return close + 1;
    }
    default:
      return 0;
  }
}

}  // namespace

bool expand_log_path(std::string_view pattern, const PathFacts& facts, TextSink& out) noexcept {
  if (pattern.empty()) {
    return false;
  }
  if (pattern[0] != '/') {
    out.put(facts.folder).put('/');
  }
  bool has_pid = false;
  for (size_t i = 0; i < pattern.size();) {
    if (pattern[i] != '%') {
      out.put(pattern[i++]);
      continue;
    }
    i = expand_one(pattern, i, facts, out, has_pid);
    if (i == 0) {
      return false;
    }
  }
  if (out.view().ends_with('/')) {
    put_safe(out, facts.program);
  } else if (out.view().ends_with(".csv")) {
    out.rewind(out.size() - 4);
  }
  if (!has_pid) {
    out.put('.').decimal(facts.pid);
  }
  return !out.full();
}

}  // namespace xlog
