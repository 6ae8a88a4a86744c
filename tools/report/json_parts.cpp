#include "tools/report/json_parts.h"

#include "tools/log/libraries.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

json frame_json(const Frame& frame) {
  json out = {{"module", frame.module}, {"build_id", frame.build_id}, {"offset", frame.offset}};
  if (!frame.function.empty()) {
    out["function"] = frame.function;
  }
  if (!frame.file.empty()) {
    out["file"] = frame.file;
    out["line"] = frame.line;
  }
  return out;
}

json stack_json(const ProcessLog& log, const Stack* stack, uint64_t id, bool with_frames) {
  json out = {{"process", log.pid}};
  if (stack == nullptr) {
    return out;
  }
  out["stack_id"] = id;
  std::string cache = cache_of(*stack, log.environment);
  if (!cache.empty()) {
    out["cache"] = cache;
  }
  out["library"] = library_of(stack, log.environment);
  if (with_frames) {
    out["frames"] = json::array();
    for (const Frame* frame : stack->frames) {
      out["frames"].push_back(frame_json(*frame));
    }
  }
  return out;
}

}  // namespace

json stack_json(const Report& report, uint32_t place, bool with_frames) {
  return stack_json(report.log_of(place), report.stack(place), report.places[place].stack, with_frames);
}

json stack_json(const ProcessLog& log, const StackFile& stacks, uint64_t id) { return stack_json(log, stacks.find(id), id, true); }

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

std::string dump(const json& value) { return json_for_terminal(value.dump(2, ' ', false, json::error_handler_t::replace)) + '\n'; }

}  // namespace xlog::tools
