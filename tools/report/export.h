// A log in the forms that other tools read. Written as it is made: a log may be larger than memory.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tools/analysis/analysis.h"
#include "tools/analysis/diff.h"

namespace xlog::tools {

// One line a stack, outermost frame first: `main;train;cudaMalloc 1048576`, for flamegraph.pl, speedscope and others.
void export_folded(const Report& report, What what, std::ostream& out);
// The JSON that Perfetto and chrome://tracing read: what is live on each GPU as counters, calls as slices, refusals as
// instants. `problems` receives a line for each log that cannot be read.
void export_trace(const std::vector<ProcessLog>& logs, std::ostream& out, std::vector<std::string>& problems);
// RMM's own CSV, which its REPLAY_BENCH takes: what stands at a device address on one GPU. Returns how many rows were left out,
// of other memory and of other GPUs.
uint64_t export_rmm(const std::vector<ProcessLog>& logs, uint64_t device, std::ostream& out, std::vector<std::string>& problems);

}  // namespace xlog::tools
