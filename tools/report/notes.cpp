// What a reader has to know about the log itself before the figures are believed.
#include "tools/report/notes.h"

#include "tools/report/format.h"

namespace xlog::tools {

namespace {

void add_kept_back(const Report& report, std::vector<std::string>& notes) {
  for (const ProcessLog& log : report.logs) {
    if (log.sample != 0) {
      notes.push_back("a sample, one row in " + size_text(log.sample) + " (XLOG_LOG_SAMPLE): bytes and counts are estimates");
    }
    if (log.least != 0) {
      notes.push_back("blocks below " + size_text(log.least) + " are not in the log (XLOG_LOG_MIN)");
    }
    if (log.sample + log.least != 0) {
      break;
    }
  }
}

void add_ends(const Report& report, std::vector<std::string>& notes) {
  uint64_t open_ended = 0;
  uint64_t running = 0;
  for (size_t i = 0; i < report.logs.size(); ++i) {
    open_ended += report.processes[i].ended || report.processes[i].runs ? 0 : 1;
    running += report.processes[i].runs ? 1 : 0;
    if (report.processes[i].cut) {
      notes.push_back(report.logs[i].csv + ": the last row is not whole; read up to there");
    }
  }
  if (running != 0) {
    notes.push_back((report.logs.size() == 1 ? std::string("the process is") : count_text(running) + " of the processes are") +
                    " still running: what is live may yet be freed");
  }
  if (open_ended != 0 && report.rows != 0) {
    notes.push_back(
        (report.logs.size() == 1 ? std::string("the log ends") : plural(open_ended, "log") + (open_ended == 1 ? " ends" : " end")) +
        " without an end mark: the process was killed, or is running; what is live is live at that moment");
  }
}

}  // namespace

std::vector<std::string> notes_of(const Report& report) {
  std::vector<std::string> notes = report.problems;
  add_ends(report, notes);
  if (report.lost != 0) {
    notes.push_back(plural(report.lost, "row") +
                    " lost (disk full, a size limit, or XLOG_LOG_MAX): figures after that are too low or too high");
  }
  add_kept_back(report, notes);
  if (report.switches != 0) {
    notes.push_back("the log was switched " + plural(report.switches, "time") + " (xlog log), off for " + time_text(report.off_ns) +
                    " in between; what was made and freed then is not here, and what was made then has no stack");
  }
  if (report.left_out != 0) {
    notes.push_back(plural(report.left_out, "allocation") + " of " + size_text(report.left_out_bytes) + " in all without a row");
  }
  if (report.unfinished_rows != 0) {
    notes.push_back(plural(report.unfinished_rows, "call") + " had not returned when the process ended: empty lines, skipped");
  }
  if (report.foreign_rows != 0) {
    notes.push_back(plural(report.foreign_rows, "line") + " not of this log skipped; " + report.notes.front());
  }
  if (report.ended_unseen != 0) {
    notes.push_back(plural(report.ended_unseen, "block") + " freed out of sight (by a route that is not covered)");
  }
  if (report.contradiction_count != 0) {
    notes.push_back("the log contradicts itself in " + plural(report.contradiction_count, "place") + " (xlog report --verify lists them)");
  }
  return notes;
}

}  // namespace xlog::tools
