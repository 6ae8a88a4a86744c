#include "tools/report/json_parts.h"

#include "tools/log/libraries.h"

namespace xlog::tools {

using nlohmann::json;

json stack_json(const Report& report, uint32_t place, bool with_frames) {
  const StackKey& where = report.places[place];
  json out;
  out["process"] = report.logs[where.process].pid;
  const Stack* stack = report.stack(place);
  if (stack == nullptr) {
    return out;
  }
  out["stack_id"] = where.stack;
  std::string cache = cache_of(*stack, report.logs[where.process].environment);
  if (!cache.empty()) {
    out["cache"] = cache;
  }
  out["library"] = library_of(stack, report.logs[where.process].environment);
  if (!with_frames) {
    return out;
  }
  out["frames"] = json::array();
  for (const Frame* frame : stack->frames) {
    json each = {{"module", frame->module}, {"build_id", frame->build_id}, {"offset", frame->offset}};
    if (!frame->function.empty()) {
      each["function"] = frame->function;
    }
    if (!frame->file.empty()) {
      each["file"] = frame->file;
      each["line"] = frame->line;
    }
    out["frames"].push_back(std::move(each));
  }
  return out;
}

json holders_json(const Report& report, const std::vector<Holder>& holders, bool with_frames) {
  json list = json::array();
  for (const Holder& each : holders) {
    list.push_back({{"bytes", each.bytes}, {"blocks", each.blocks}, {"stack", stack_json(report, each.place, with_frames)}});
  }
  return list;
}

json group_json(const Group& group) {
  return {{"allocations", group.allocations}, {"bytes", group.bytes},
          {"at_peak", group.at_peak},         {"live", group.live},
          {"live_blocks", group.live_blocks}, {"freed_only_at_exit", group.freed_at_exit},
          {"failures", group.failures},       {"temporary", group.temporary},
          {"short_lived", group.short_lived}};
}

json holes_json(const Holes& holes) {
  return holes.known ? json{{"count", holes.count}, {"bytes", holes.bytes}, {"largest_bytes", holes.largest}} : json();
}

std::string dump(const json& value) { return value.dump(2, ' ', false, json::error_handler_t::replace) + '\n'; }

}  // namespace xlog::tools
