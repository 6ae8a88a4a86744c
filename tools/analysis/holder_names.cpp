#include "tools/analysis/holder_names.h"

#include <algorithm>
#include <map>
#include <set>

#include "tools/analysis/analysis.h"
#include "tools/log/frame_text.h"

namespace xlog::tools {

namespace {

constexpr size_t kMostParts = 64;

// What can be said of one stack, part by part.
struct Parts {
  size_t place = 0;
  std::string name;
  std::vector<std::string> callers;  // outwards
  std::vector<std::string> inner;    // from the program's own code inwards
  size_t said = 0;                   // of the callers
};

std::string text_of(const Frame& frame) { return name_of(frame) + ' ' + where_of(frame); }

bool is_header(const Frame& frame) {
  std::string_view file = base_name(frame.file);
  size_t dot = file.rfind('.');
  return dot != file.npos && file.substr(dot).find_first_of("hi") == 1;  // .h, .hpp, .hh, .hxx, .inl, .ipp
}

Parts parts_of(const Report& report, size_t place, const Stack& stack) {
  Parts out{.place = place, .name = "", .callers = {}, .inner = {}, .said = 0};
  std::vector<const Frame*> shown = visible_frames(stack, false);
  std::string cache = cache_of(stack, report.log_of(static_cast<uint32_t>(place)).environment);
  size_t next = 0;
  if (!cache.empty()) {
    out.name = cache + " (what is inside is not visible)";
  } else {
    out.name = text_of(*shown[next++]);
    // A function of a header is anybody's: up to the file that calls it.
    while (next < shown.size() && next < 8 && is_header(*shown[next - 1])) {
      out.name += " <- " + text_of(*shown[next++]);
    }
  }
  for (; next < shown.size() && out.callers.size() < kMostParts; ++next) {
    out.callers.push_back(text_of(*shown[next]));
  }
  for (const Frame* each : inner_frames(stack)) {
    if (out.inner.size() < kMostParts) {
      out.inner.push_back(text_of(*each));
    }
  }
  return out;
}

using Alike = std::vector<Parts*>;

const std::string* part(const std::vector<std::string>& parts, size_t i) { return i < parts.size() ? &parts[i] : nullptr; }

// The first part in which the group's members differ; npos when there is none.
size_t first_difference(const Alike& group, std::vector<std::string> Parts::*list, size_t from) {
  for (size_t i = from; i < kMostParts; ++i) {
    const std::string* first = part(group[0]->*list, i);
    bool same = true;
    bool any = first != nullptr;
    for (const Parts* each : group) {
      const std::string* here = part(each->*list, i);
      any = any || here != nullptr;
      same = same && (here == nullptr ? first == nullptr : first != nullptr && *here == *first);
    }
    if (!same) {
      return i;
    }
    if (!any) {
      break;
    }
  }
  return std::string::npos;
}

std::vector<Alike> split(const Alike& group, std::vector<std::string> Parts::*list, size_t at) {
  std::map<std::string, Alike> apart;
  for (Parts* each : group) {
    const std::string* here = part(each->*list, at);
    apart[here != nullptr ? *here : ""].push_back(each);
  }
  std::vector<Alike> out;
  out.reserve(apart.size());
  for (auto& [text, members] : apart) {
    out.push_back(std::move(members));
  }
  return out;
}

class Namer {
 public:
  explicit Namer(const Report& report) : report_(report) {}

  void by_callers(const Alike& group, size_t from) const {
    if (group.size() == 1) {
      return;
    }
    size_t at = first_difference(group, &Parts::callers, from);
    if (at == std::string::npos) {
      by_inner(group, 0);
      return;
    }
    for (Parts* each : group) {
      for (; each->said <= at && each->said < each->callers.size(); ++each->said) {
        each->name += " <- " + each->callers[each->said];
      }
    }
    for (const Alike& part : split(group, &Parts::callers, at)) {
      by_callers(part, at + 1);
    }
  }

  void add_number(Parts& parts) const {
    const StackKey& key = report_.places[parts.place];
    parts.name += " (stack " + std::to_string(key.stack) +
                  (report_.logs.size() > 1 ? " of process " + std::to_string(report_.logs[key.process].pid) : "") + ')';
  }

 private:
  void by_inner(const Alike& group, size_t from) const {
    if (group.size() == 1) {
      return;
    }
    size_t at = first_difference(group, &Parts::inner, from);
    if (at == std::string::npos) {
      for (Parts* each : group) {
        add_number(*each);
      }
      return;
    }
    for (Parts* each : group) {
      each->name += at < each->inner.size() ? " -> " + each->inner[at] : "";
    }
    for (const Alike& part : split(group, &Parts::inner, at)) {
      by_inner(part, at + 1);
    }
  }

  const Report& report_;
};

}  // namespace

std::vector<std::string> name_holders(const Report& report) {
  std::vector<std::string> names(report.places.size(), "(no stack)");
  std::vector<Parts> all;
  for (size_t i = 0; i < names.size(); ++i) {
    const Stack* stack = report.stack(static_cast<uint32_t>(i));
    if (stack != nullptr && !stack->frames.empty()) {
      all.push_back(parts_of(report, i, *stack));
    }
  }
  std::map<std::string, Alike> same;
  for (Parts& each : all) {
    same[each.name].push_back(&each);
  }
  Namer namer(report);
  for (const auto& [name, group] : same) {
    namer.by_callers(group, 0);
  }
  std::set<std::string> taken;  // what was appended to one may be another's own name
  for (Parts& each : all) {
    if (!taken.insert(each.name).second) {
      namer.add_number(each);
    }
    names[each.place] = each.name;
  }
  return names;
}

const std::string& holder_name(const Report& report, uint32_t place) {
  if (report.holder_names.size() != report.places.size()) {
    report.holder_names = name_holders(report);
  }
  return report.holder_names[place];
}

}  // namespace xlog::tools
