// What is not in the blocks of the log: what the guard found in them, what the driver had in use beside them, and calls that the log
// does not have.
#include "tools/report/format.h"
#include "tools/report/sections/section_maker.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

void make_guard_findings(SectionMaker& maker) {
  const Report& report = maker.report;
  if (report.findings.empty()) {
    return;
  }
  Section& section = maker.add("guard_findings", nullptr, "The guard found " + plural(report.findings.size(), "misuse") + " of memory");
  section.is_trouble = true;
  section.columns = {{"finding", Unit::text}};
  for (const GuardFinding& each : report.findings) {
    bool has_stack = report.places[each.place].stack != kNone;
    section.rows.push_back({.cells = {{0, each.text + "; found by " + each.found_by + ", " + time_text(each.time - report.first_time) +
                                              " after the first call" + (has_stack ? "; the block was allocated at" : "")}},
                            .place = has_stack ? each.place : kNoPlace});
  }
}

// Contexts, modules and what libraries take without asking; and all of other processes on the same GPU.
void make_driver_used(SectionMaker& maker) {
  for (const GpuReport* gpu : maker.gpus) {
    const DriverLook& most = gpu->most_look;
    if (most.beyond() == 0) {
      continue;
    }
    Section& section = maker.add("driver_used", gpu,
                                 gpu_title(*gpu) + ": the driver had up to " + size_text(most.used) + " in use, for all processes; " +
                                     size_text(most.beyond()) + " more than the blocks above");
    section.columns = {{"bytes", Unit::bytes}, {"what", Unit::text}};
    section.rows.push_back(
        {.cells = {{gpu->first_look.beyond()},
                   {0, "when it was first asked (contexts, modules, other processes; XLOG_BUDGET_CONTEXT counts a part)"}}});
    if (most.pool_idle != 0) {
      section.rows.push_back({.cells = {{most.pool_idle}, {0, "held by the default pool and in no block"}}});
    }
    section.is_detail = true;
  }
}

void make_not_covered(SectionMaker& maker) {
  if (maker.report.unhooked.empty()) {
    return;
  }
  std::string names;
  for (const std::string& each : maker.report.unhooked) {
    names += ' ' + each;
  }
  maker.add("not_covered", nullptr, "Handed out and not covered, though they may make memory:" + names).is_detail = true;
}

}  // namespace xlog::tools
