#include <memory>

#include "tools/analysis/diff.h"
#include "tools/command/commands.h"

namespace xlog::tools {

namespace {

struct DiffOptions {
  std::string before;
  std::string after;
  std::string what = "peak";
  size_t top = 10;
  bool json = false;
};

int run_diff(const DiffOptions& options) {
  RunSums sums[2];
  const std::string* names[2] = {&options.before, &options.after};
  for (size_t i = 0; i < 2; ++i) {
    std::vector<ProcessLog> logs = named_logs({*names[i]});
    if (logs.empty()) {
      return kTrouble;
    }
    Report report = read_report(std::move(logs), {.snapshots = 0});
    if (report.problems.size() == report.logs.size()) {
      return kTrouble;
    }
    sums[i] = sums_of(report);
  }
  What what = parse_what(options.what);
  return options.json ? print_json(diff_json(sums[0], sums[1], what), kYes)
                      : print_text(diff_text(sums[0], sums[1], what, options.top), kYes);
}

}  // namespace

Command add_diff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  auto* diff = app.add_subcommand("diff", "two runs, stack by stack: new, gone, grown, shrunk");
  diff->add_option("before", options->before, "a folder or .csv file")->required()->type_name("LOG");
  diff->add_option("after", options->after, "a folder or .csv file")->required()->type_name("LOG");
  diff->add_option("--what", options->what, "peak = held at the peak, live = at the end, total = allocated in all")
      ->check(CLI::IsMember({"peak", "live", "total"}));
  diff->add_option("--top", options->top, "stacks of each sort")->check(count_check());
  diff->add_flag("--json", options->json, "for machines");
  diff->footer("  xlog diff xlog.train.monday/ xlog.train.tuesday/\nStacks are told by function and library: the same after a rebuild.");
  return {diff, [options] { return run_diff(*options); }};
}

}  // namespace xlog::tools
