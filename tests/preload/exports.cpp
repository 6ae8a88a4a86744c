// The forms of `xlog export`, read back by what reads them. tests/web has the readers that come from the package registry.
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/log_text.h"

using namespace xlog::test;
using nlohmann::json;

namespace {

constexpr uint64_t kMiB = 1 << 20;

Outcome exported(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {build_folder() + "/xlog", "export"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return run(command);
}

// As PyTorch's viewer goes through a snapshot: backwards from the segments at the end, each block in a segment at every event.
constexpr const char* kViewer = R"(
import json, pickle, sys
snapshot = pickle.load(open(sys.argv[1], 'rb'))
out = []
for device, trace in enumerate(snapshot['device_traces']):
    segments = {s['address']: s['total_size'] for s in snapshot['segments'] if s['device'] == device}
    blocks = {}
    for s in snapshot['segments']:
        if s['device'] == device:
            assert sum(b['size'] for b in s['blocks']) == s['total_size'] and s['segment_pool_id'] == (0, 0) and not s['is_expandable']
            blocks.update({b['address']: b['size'] for b in s['blocks']})
    peak = 0
    for event in reversed(trace):
        peak = max(peak, sum(blocks.values()))
        address, size, action = event.get('addr'), event['size'], event['action']
        assert address is None or address < 1 << 53
        if action == 'segment_alloc': assert segments.pop(address) == size
        elif action == 'segment_free': assert address not in segments; segments[address] = size
        elif action == 'alloc': assert blocks.pop(address) == size
        elif action == 'free_completed': assert address not in blocks; blocks[address] = size
        elif action == 'free_requested': assert address in blocks
        for block, size in blocks.items(): assert segments[block] >= size
    assert not segments and not blocks
    out.append({'events': [e['action'] for e in trace], 'peak': peak, 'frames': trace[0]['frames'] if trace else []})
print(json.dumps(out))
)";

json viewed(const std::string& file) {
  Outcome seen = run({"python3", "-c", kViewer, file});
  BOOST_TEST(seen.err == "");
  BOOST_REQUIRE(seen.status == 0);
  return json::parse(seen.out);
}

}  // namespace

BOOST_AUTO_TEST_CASE(folded_stacks_have_whole_names) {
  TempFolder folder;
  LogText().allocate({.ptr = 0x1000, .bytes = 100, .stack = 1}).allocate({.ptr = 0x2000, .bytes = 50, .stack = 2}).write(folder);
  std::string name(200, 'n');
  spit(folder / "x.stacks.csv",
       std::string(xlog::kStackColumns) + "\n1,0,/opt/app,abcd,0x1," + name + "a,,\n2,0,/opt/app,abcd,0x2," + name + "b,,\n");
  BOOST_TEST(exported({"folded", folder / "x.csv"}).out == name + "a 100\n" + name + "b 50\n");
}

BOOST_AUTO_TEST_CASE(a_snapshot_for_pytorchs_viewer) {
  TempFolder folder;
  LogText log;
  log.allocate({.ptr = 0x7f0000000000, .bytes = 4 * kMiB, .stack = 1, .stream = 0x55, .generation = 1});
  log.allocate({.ptr = 0x7f0000800000, .bytes = 100, .stack = 2, .generation = 2, .kind = "async"});
  log.allocate({.ptr = 3, .bytes = 2 * kMiB, .generation = 3, .kind = "vmm"});  // a handle
  log.allocate({.bytes = 1 << 30, .stack = 1, .result = "CUDA_ERROR_OUT_OF_MEMORY"});
  log.free({.ptr = 0x7f0000000000, .bytes = 4 * kMiB, .stack = 2, .generation = 1});
  log.allocate({.ptr = 0x7f0000000000, .bytes = kMiB, .generation = 4})
      .allocate({.ptr = 0x7f0000000000, .bytes = 2 * kMiB, .generation = 5});
  log.allocate({.ptr = 0x7f0000000000, .bytes = 10, .device = 1, .generation = 6}).allocate({.ptr = 0x9000, .bytes = 0, .generation = 7});
  log.write(folder);
  BOOST_TEST(exported({"pytorch", "-o", folder / "out", folder / "x.csv"}).status == 0);
  json seen = viewed(folder / "out");
  BOOST_REQUIRE(seen.size() == 2);
  std::vector<std::string> made = {"segment_alloc", "alloc"};
  std::vector<std::string> ended = {"free_requested", "free_completed", "segment_free"};
  std::vector<std::string> expected;
  for (const auto& part : {made, made, made, {"oom"}, ended, made, ended, made}) {
    expected.insert(expected.end(), part.begin(), part.end());
  }
  BOOST_TEST(seen[0]["events"].get<std::vector<std::string>>() == expected, boost::test_tools::per_element());
  BOOST_TEST(seen[0]["peak"] == 6 * kMiB + 100);
  BOOST_TEST(seen[1]["peak"] == 10);
  BOOST_TEST(seen[0]["frames"] ==
             json::parse(R"([{"filename":"app.cpp","line":1,"name":"f1"},{"filename":"app.cpp","line":99,"name":"main"}])"));
}

BOOST_AUTO_TEST_CASE(a_long_snapshot_of_two_processes) {
  TempFolder folder;
  LogText log;
  for (uint64_t i = 0; i < 3000; ++i) {
    log.allocate({.ptr = 0x7f0000000000, .bytes = 512 + i, .stack = i % 9 + 1, .generation = i})
        .free({.ptr = 0x7f0000000000, .generation = i});
  }
  log.allocate({.ptr = 0x7f0000000000, .generation = 9000});
  log.write(folder, "a.1");
  log.write(folder, "a.2");
  BOOST_TEST(exported({"pytorch", "-o", folder / "out", folder.path()}).status == 0);
  json seen = viewed(folder / "out");
  BOOST_TEST(seen.at(0)["events"].size() == 2 * (3000 * 5 + 2));
  // The viewer takes what stands between two marks at once, as arguments of one call.
  Outcome marks = run({"python3", "-c",
                       "import pickletools, sys\nmost = since = 0\nfor op, arg, at in pickletools.genops(open(sys.argv[1], 'rb')):\n"
                       "  since = 0 if op.name == 'APPENDS' else since + 1\n  most = max(most, since)\n  assert op.proto <= 2\nprint(most)",
                       folder / "out"});
  BOOST_TEST(marks.err == "");
  BOOST_TEST(std::stoul(marks.out) < 30'000);
}

BOOST_AUTO_TEST_CASE(a_compressed_trace) {
  TempFolder folder;
  LogText log;
  for (int i = 0; i < 2000; ++i) {
    log.allocate({.ptr = 0x1000, .stack = 1}).free({.ptr = 0x1000});
  }
  log.write(folder);
  std::string plain = exported({"trace", folder / "x.csv"}).out;
  BOOST_TEST(json::parse(plain)["traceEvents"].size() > 2000);
  BOOST_TEST(exported({"trace", "-o", folder / "trace.json.gz", folder / "x.csv"}).status == 0);
  BOOST_TEST(run({"gzip", "-dc", folder / "trace.json.gz"}).out == plain);
  BOOST_TEST(slurp(folder / "trace.json.gz").size() * 8 < plain.size());
  BOOST_TEST(exported({"trace", "--gzip", folder / "x.csv"}).out == slurp(folder / "trace.json.gz"));
}

BOOST_AUTO_TEST_CASE(figures_for_prometheus) {
  TempFolder folder;
  LogText().allocate({.ptr = 0x1000, .bytes = 100, .stack = 1}).allocate({.bytes = 7, .result = "CUDA_ERROR_OUT_OF_MEMORY"}).write(folder);
  spit(folder / "x.run.json",
       json({{"pid", 7}, {"program", "a\"b\\c\nd"}, {"gpus", {{{"ordinal", 0}, {"uuid", "GPU-1"}, {"limit_bytes", 500}}}}}).dump());
  std::string text = exported({"openmetrics", folder / "x.csv"}).out;
  for (const char* line : {"# TYPE xlog_peak_bytes gauge\n# UNIT xlog_peak_bytes bytes\n# HELP xlog_peak_bytes ",
                           "\nxlog_peak_bytes{device_index=\"0\",device_uuid=\"GPU-1\",memory=\"gpu\"} 100\n", "\nxlog_limit_bytes{",
                           "} 500\n", "\nxlog_refusals_total{device_index=\"0\",device_uuid=\"GPU-1\",memory=\"gpu\"} 1\n",
                           "program=\"a\\\"b\\\\c\\\\nd\"", "\n# EOF\n"}) {
    BOOST_TEST(text.find(line) != text.npos, line << " in " << text);
  }
  BOOST_TEST(text.ends_with("# EOF\n"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_exported_leaves_nothing) {
  TempFolder folder;
  spit(folder / "x.csv", "no log\n");
  for (const char* format : {"folded", "speedscope", "pprof", "pytorch", "trace", "openmetrics", "rmm"}) {
    BOOST_TEST(exported({format, "-o", folder / "out", folder / "x.csv"}).status == 2, format);
    BOOST_TEST(folder.files().size() == 1, format);
  }
  BOOST_TEST(exported({"svg", folder / "x.csv"}).status == 2);
}
