// libFuzzer over everything that reads a log: three files, apart by a line of their own, through every command's functions.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "tools/analysis/diff.h"
#include "tools/analysis/simulate.h"
#include "tools/analysis/whole_log.h"
#include "tools/report/export.h"
#include "tools/report/html.h"
#include "tools/report/oom.h"

using namespace xlog::tools;

namespace {

std::string folder() {
  static const std::string kPath = [] {
    char name[] = "/tmp/xlog-fuzz-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  return kPath;
}

void put(const std::string& name, const std::string& text) { std::ofstream(folder() + name, std::ios::binary) << text; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr const char* kApart = "\n=====\n";
  constexpr size_t kApartSize = 7;
  static const char* const kNames[] = {"/x.7.csv", "/x.7.stacks.csv", "/x.7.run.json", "/x.7.oom.1.json"};
  std::string text(reinterpret_cast<const char*>(data), size);
  for (const char* name : kNames) {
    size_t end = text.find(kApart);
    put(name, text.substr(0, end));
    text.erase(0, end == text.npos ? text.size() : end + kApartSize);
  }
  // Each input goes through the pass that all share, and through one of the others.
  size_t way = 0;
  for (size_t i = 0; i < size; i += 1 + size / 64) {
    way = way * 31 + data[i];
  }
  std::vector<std::string> problems;
  std::vector<ProcessLog> logs = find_logs({folder() + "/x.7.csv"}, problems);
  ReportStyle style;
  std::ostringstream sink;
  std::string page;
  if (way % 8 == 0) {
    logs.push_back(logs[0]);
  }
  Report report = analyse(logs, {.resolve = false, .snapshots = way % 8 == 1 ? kHtmlSnapshots : 8});
  report_text(report, style);
  switch (way % 8) {
    case 1:
      report_html(report, style, page, page);
      break;
    case 2:
      report_json(report, style);
      summary_text(report, "the program exited with 1", 1, "here");
      break;
    case 3:
      for (Split split : {Split::stack, Split::thread, Split::stream, Split::library, Split::device, Split::process}) {
        split_text(report, style, split);
      }
      break;
    case 4: {
      RunSums sums;
      std::string problem;
      read_baseline(std::string(reinterpret_cast<const char*>(data), size), sums, problem);
      diff_text(sums_of(report), sums, What::peak, 5);
      break;
    }
    case 5: {
      export_folded(report, What::total, sink);
      export_trace(logs, sink, problems);
      export_rmm(logs, 0, sink, problems);
      export_pytorch(report, sink);
      export_speedscope(report, sink);
      export_pprof(report, sink);
      export_openmetrics(report, sink);
      examine_log(report);
      break;
    }
    case 6: {
      SimulateOptions small{.gpu_bytes = 1 << 20, .resolve = false};
      simulation_text(simulate(logs, small), small);
      break;
    }
    default: {
      read_oom_reports(logs, 5, false);
      WhatisQuery query{.address = 0x7f0000000010, .at = "1ms"};
      WhatisAnswer answer = what_is(query, logs, false);
      whatis_text(answer, query, true);
      whatis_json(answer, query);
      break;
    }
  }
  return 0;
}
