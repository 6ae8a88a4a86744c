// The commands of `xlog`: each adds itself, with its options, and runs.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

struct Command {
  CLI::App* app;
  std::function<int()> run;  // exit status
};

// Exit status of commands that ask: yes, no, and that it could not be asked.
enum Answer : int { kYes = 0, kNo = 1, kTrouble = 2 };

Command add_run(CLI::App& app);
Command add_env(CLI::App& app);
Command add_log(CLI::App& app);
Command add_doctor(CLI::App& app);
Command add_report(CLI::App& app);
Command add_whatis(CLI::App& app);
Command add_check(CLI::App& app);
Command add_diff(CLI::App& app);
Command add_simulate(CLI::App& app);
Command add_export(CLI::App& app);
Command add_completion(CLI::App& app);
Command add_help(CLI::App& app);

// Logs that were named; troubles are told on stderr. Empty: none can be read.
std::vector<ProcessLog> named_logs(const std::vector<std::string>& names);
// With a bar on stderr where that is a terminal and reading takes a while; problems of the logs are told there, too.
Report read_report(std::vector<ProcessLog> logs, AnalysisOptions options = {});
Progress terminal_progress();
// Empty while it is not worth a bar.
std::string progress_line(uint64_t done, uint64_t whole, uint64_t elapsed_ns);
// --debuginfod SECONDS, for commands that look names up.
void add_debuginfod_option(CLI::App* command);
// "8G" and so on; ends the parse with a message where it is none.
uint64_t parse_size_option(const std::string& name, const std::string& text);
// To `path`, or to stdout where it is empty, as OutputFile does it. False, and a line on stderr, when that fails.
bool write_out(const std::string& path, std::string_view text);
// Prints an answer and returns `status`; kTrouble where it cannot be written. Text for people, through a pager where it is longer than
// the terminal; the same of which all that is not this tool's is safe already, so that it may have colours; JSON as dump() makes it.
int print_text(std::string_view text, int status);
int print_safe_text(std::string_view text, int status);
int print_json(std::string_view json, int status);
// `status`; kTrouble, and a line on stderr, where what was written to std::cout did not arrive.
int finish_output(int status);
// A number of things: digits alone, and few enough of them.
CLI::Validator count_check();

}  // namespace xlog::tools
