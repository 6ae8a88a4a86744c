// A log in the forms that other tools read; a file a form. What has one entry a row is written as it is read: a log may be larger
// than memory.
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
// What torch.cuda.memory._dump_snapshot() writes, for pytorch.org/memory_viz: each block is a segment of its own. `report`: of the
// same logs, for its stacks and GPUs. A log is read once for each of its GPUs.
void export_pytorch(const Report& report, std::ostream& out);
// speedscope's own JSON: for each GPU what was held at the peak, what was live at the end, and what was allocated in all.
void export_speedscope(const Report& report, std::ostream& out);
// A profile.proto for pprof, not compressed yet; pprof takes both.
void export_pprof(const Report& report, std::ostream& out);
// OpenMetrics 1.0 text, for Prometheus and its textfile collector.
void export_openmetrics(const Report& report, std::ostream& out);

// A function's whole name; a frame without a name by its module and offset. Tools add up what has one name, so nothing is cut off.
std::string whole_name(const Frame& frame);
// "GPU 0"; "host" or "import" of memory that is no GPU's.
std::string gpu_name(const GpuReport& gpu);
// Microseconds with their fraction: 1234.567.
std::string micros(uint64_t ns);

}  // namespace xlog::tools
