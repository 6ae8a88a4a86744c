#include <memory>

#include "tools/command/commands.h"
#include "tools/command/messages.h"
#include "tools/report/report.h"

namespace xlog::tools {

namespace {

struct Options {
  std::string address;
  WhatisQuery query;
  std::vector<std::string> names;
  bool all_frames = false;
  bool json = false;
};

int whatis_command(const Options& options) {
  WhatisQuery query = options.query;
  std::optional<uint64_t> parsed = parse_address(options.address);
  if (!parsed) {
    complain("\"" + options.address + "\" is no address: give it as 0x7f0000000000");
    return kTrouble;
  }
  query.address = *parsed;
  std::vector<ProcessLog> logs = named_logs(options.names);
  WhatisAnswer answer = what_is(query, logs, true);
  for (const std::string& each : answer.problems) {
    complain(each);
  }
  for (const AddressInProcess& each : answer.processes) {
    if (each.is_before || each.is_after) {
      complain("--at " + query.at + " is " + (each.is_before ? "before the first row of " : "after the last row of ") + each.log.csv);
    }
  }
  int status = logs.empty() || !answer.problems.empty() ? kTrouble : answer.found() ? kYes : kNo;
  return options.json ? print_json(whatis_json(answer, query), status) : print_text(whatis_text(answer, query, options.all_frames), status);
}

}  // namespace

Command add_whatis(CLI::App& app) {
  auto options = std::make_shared<Options>();
  auto* whatis = app.add_subcommand("whatis", "what stood at a device address (exit 1: no block of the log)");
  whatis->add_option("address", options->address, "0x7f...")->required();
  whatis->add_option("log", options->names, "folders or .csv files; the newest here if none is named")->type_name("LOG");
  whatis->add_option("--at", options->query.at, "when: ns since the epoch, or 1.5s, 20ms, 300us after the first row");
  whatis->add_flag("--all-frames", options->all_frames, "whole stacks");
  whatis->add_flag("--json", options->json, "for machines");
  whatis->footer("  xlog whatis 0x7f5a3c001200 xlog.train/");
  return {whatis, [options] { return whatis_command(*options); }};
}

}  // namespace xlog::tools
