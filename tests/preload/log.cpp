// The log of real processes: complete, in order, private, and never the program's trouble.
#include <sys/resource.h>
#include <sys/stat.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "support/process.h"
#include "tools/analysis/analysis.h"

using namespace xlog::test;
using xlog::tools::analyse;
using xlog::tools::find_logs;
namespace data = boost::unit_test::data;

namespace {

xlog::tools::Report report_of(const std::string& path, bool resolve = false) {
  std::vector<std::string> problems;
  return analyse(find_logs({path}, problems), {.resolve = resolve});
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_call_has_its_row_and_pointers_alternate) {
  TempFolder folder;
  Outcome ours = run_with_library({program("threads"), "8", "2000"}, {{"XLOG_LOG", folder / "x.csv"}});
  BOOST_TEST(ours.out == "allocations 32000\n");
  auto report = report_of(log_in(folder));
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_TEST(report.gpus.at(0).allocations == 32000);
  BOOST_TEST(report.gpus.at(0).live == 0);
  auto rows = rows_of(log_in(folder));
  size_t looks = count(rows, "action", "driver_used");
  BOOST_TEST(looks >= 1);
  BOOST_TEST(report.rows == 64001 + looks);  // and the end mark
  BOOST_TEST(report.threads.front().name == "wo,rk\"er");
  BOOST_TEST(rows.size() == 64001 + looks);
  for (size_t i = 0; i < rows.size(); ++i) {
    BOOST_REQUIRE(rows[i]["seq"] == std::to_string(i + 1));
  }
}

BOOST_AUTO_TEST_CASE(files_are_private_and_never_overwritten) {
  TempFolder folder;
  for (int i = 0; i < 2; ++i) {
    run_with_library({program("demo")}, {{"XLOG_LOG", folder / "%%fixed-%q{WHO}.csv"}, {"WHO", "a/b"}});
  }
  for (const std::string& name : folder.files()) {
    struct stat info {};
    BOOST_TEST(stat((folder / name).c_str(), &info) == 0);
    BOOST_TEST((info.st_mode & 0777) == 0600);
    BOOST_TEST(name.starts_with("%fixed-a_b."));
  }
  BOOST_TEST(folder.files().size() == 6);
}

BOOST_AUTO_TEST_CASE(an_existing_name_gets_a_number) {
  TempFolder folder;
  // The pid is not known before: a script that becomes the program keeps it.
  Outcome ours = run(
      {"bash", "-c",
       "touch x.$$.csv x.$$.1.csv; export XLOG_LOG=x.csv LD_PRELOAD=" + build_folder() + "/libxlog.so; echo $$; exec " + program("demo")},
      {}, folder.path());
  std::string pid = ours.out.substr(0, ours.out.find('\n'));
  BOOST_TEST(slurp(folder / ("x." + pid + ".csv")).empty());
  BOOST_TEST(rows_of(folder / ("x." + pid + ".2.csv")).size() > 50);
  BOOST_TEST(!slurp(folder / ("x." + pid + ".2.run.json")).empty());
}

BOOST_AUTO_TEST_CASE(links_are_not_followed) {
  TempFolder folder;
  Outcome ours = run(
      {"bash", "-c", "ln -s victim x.$$.csv; export XLOG_LOG=x.csv LD_PRELOAD=" + build_folder() + "/libxlog.so; exec " + program("demo")},
      {}, folder.path());
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(access((folder / "victim").c_str(), F_OK) != 0);
}

// C26: whatever kills the program, each call that had returned is there once.
BOOST_DATA_TEST_CASE(whole_after_any_end, data::make({"return", "exit", "_exit", "quick_exit", "abort", "segv", "kill"}), how) {
  TempFolder folder;
  run_with_library({program("shutdown"), how}, {{"XLOG_LOG", folder / "x.csv"}});
  auto report = report_of(log_in(folder));
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_TEST(report.gpus.at(0).allocations == 10003);
  bool orderly = std::string(how) == "return" || std::string(how) == "exit";
  BOOST_TEST(report.processes.at(0).ended == orderly);
  auto rows = rows_of(log_in(folder));
  size_t frees = 10001 + (orderly ? 2 : 0);  // the static object's and the handler's come with exit
  BOOST_TEST(count(rows, "action", "deallocate") == frees);
}

BOOST_AUTO_TEST_CASE(freed_at_exit_is_told_apart) {
  TempFolder folder;
  run_with_library({program("shutdown"), "return"}, {{"XLOG_LOG", folder / "x.csv"}});
  auto report = report_of(log_in(folder), true);
  uint64_t at_exit = 0;
  for (const auto& [place, group] : report.gpus.at(0).by(xlog::tools::By::stack).entries()) {
    at_exit += group.freed_at_exit;
  }
  BOOST_TEST(at_exit == 3000);
}

BOOST_AUTO_TEST_CASE(a_forked_child_leaves_the_log_alone) {
  TempFolder folder;
  Outcome ours = run_with_library({program("conformance")}, {{"XLOG_LOG", folder / "x.csv"}});
  BOOST_TEST(folder.files().size() == 4);  // the child's calls all failed: it has no log; one request of the parent's was refused
  BOOST_TEST(report_of(log_in(folder)).contradiction_count == 0);
}

BOOST_AUTO_TEST_CASE(a_path_that_cannot_be_written_is_one_message) {
  for (const char* path : {"/proc/nowhere/x.csv", "/dev/full/x", "x%z.csv"}) {
    TempFolder folder;
    Outcome ours = run_with_library({program("demo")}, {{"XLOG_LOG", path}}, folder.path());
    BOOST_TEST_CONTEXT(path) {
      BOOST_TEST(ours.status == 0);
      BOOST_TEST(ours.out == run({program("demo")}).out);
      BOOST_TEST(std::count(ours.err.begin(), ours.err.end(), '\n') == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_full_disk_costs_rows_not_the_program) {
  TempFolder folder;
  SmallDisk disk(folder.path(), "tmpfs", "size=300k");
  if (!disk.mounted()) {
    BOOST_TEST_MESSAGE("skipped: not allowed to mount");
    return;
  }
  Outcome ours = run_with_library({program("threads"), "4", "5000"}, {{"XLOG_LOG", folder / "x.csv"}});
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.out == "allocations 40000\n");
  BOOST_TEST(ours.err.find("no space left on the disk; later rows are only counted, the program goes on\n") != std::string::npos);
  auto report = report_of(log_in(folder));
  BOOST_TEST(report.rows > 100);
  BOOST_TEST(report.foreign_rows == 0);
}

// Where the log cannot be mapped, one pwrite a row, with the same promises: rows complete and in order, descriptors the
// program's own, whole after a kill.
BOOST_AUTO_TEST_CASE(a_file_system_that_cannot_map) {
  TempFolder folder;
  SmallDisk disk(folder.path(), "ramfs", "mode=700");
  if (!disk.mounted()) {
    BOOST_TEST_MESSAGE("skipped: not allowed to mount");
    return;
  }
  for (const std::vector<std::string>& command : {std::vector<std::string>{program("threads"), "4", "1000"},
                                                  {program("shutdown"), "kill"},
                                                  {program("descriptors"), "/dev/shm/xlog-test-own"}}) {
    run({"bash", "-c", "rm -f " + folder.path() + "/*"});
    Outcome native = run(command);
    Outcome ours = run_with_library(command, {{"XLOG_LOG", folder / "x.csv"}});
    BOOST_TEST(ours.out == native.out);
    BOOST_TEST(ours.status == native.status);
    auto report = report_of(log_in(folder));
    BOOST_TEST(report.contradiction_count == 0);
    BOOST_TEST(report.foreign_rows == 0);
    BOOST_TEST(report.gpus.at(0).allocations == (command.size() == 3 ? 8000 : command[1] == "kill" ? 10003 : 20100));
  }
  run({"rm", "-f", "/dev/shm/xlog-test-own"});
}

BOOST_AUTO_TEST_CASE(a_file_size_limit_costs_rows_not_the_program) {
  TempFolder folder;
  Outcome ours =
      run({"bash", "-c",
           "ulimit -f 64; export XLOG_LOG=x.csv LD_PRELOAD=" + build_folder() + "/libxlog.so; exec " + program("threads") + " 4 5000"},
          {}, folder.path());
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(ours.out == "allocations 40000\n");
  BOOST_TEST(ours.err.find("file size limit (ulimit -f) reached") != std::string::npos);
  BOOST_TEST(std::count(ours.err.begin(), ours.err.end(), '\n') == 1);
}

BOOST_AUTO_TEST_CASE(the_largest_log_is_kept_to) {
  TempFolder folder;
  Outcome ours = run_with_library({program("threads"), "2", "5000"}, {{"XLOG_LOG", folder / "x.csv"}, {"XLOG_LOG_MAX", "100K"}});
  BOOST_TEST(ours.out == "allocations 20000\n");
  struct stat info {};
  stat(log_in(folder).c_str(), &info);
  BOOST_TEST(info.st_size <= 101 << 10);
  auto report = report_of(log_in(folder));
  uint64_t all = report.rows + report.lost;  // the end mark, and looks at the driver: lost too
  BOOST_TEST(all > 40000 + 1);
  BOOST_TEST(all < 40000 + 100);
}

// Not even the header fits: the program must not notice.
BOOST_AUTO_TEST_CASE(a_log_without_room_for_its_header) {
  for (const char* most : {"0K", "1B"}) {
    TempFolder folder;
    Outcome ours = run({"timeout", "20", "env", "LD_PRELOAD=" + build_folder() + "/libxlog.so", "XLOG_LOG=" + (folder / "x.csv"),
                        std::string("XLOG_LOG_MAX=") + most, program("threads"), "2", "500"});
    BOOST_TEST(ours.status == 0);
    BOOST_TEST(ours.out == "allocations 2000\n");
    BOOST_TEST(ours.err.find("XLOG_LOG_MAX reached; later rows are only counted") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_fifo_is_written_as_it_is) {
  TempFolder folder;
  Outcome ours = run({"bash", "-c",
                      "mkfifo pipe; exec 3<>pipe; XLOG_LOG=pipe LD_PRELOAD=" + build_folder() + "/libxlog.so " + program("demo") +
                          "; s=$?; timeout 1 cat <&3 > seen; exit $s"},
                     {}, folder.path());
  BOOST_TEST(ours.status == 0);
  BOOST_TEST(folder.files().size() == 2);
  auto rows = rows_of(folder / "seen");
  BOOST_TEST(rows.size() - count(rows, "action", "driver_used") == 85);
}

// C37: the names of a library that was unloaded are not those of the one that came after it.
BOOST_AUTO_TEST_CASE(libraries_loaded_in_turn_keep_their_names) {
  TempFolder folder;
  run_with_library({program("plugins_in_turn"), build_folder() + "/programs/plugins"}, {{"XLOG_LOG", folder / "x.csv"}});
  auto report = report_of(log_in(folder), true);
  size_t right = 0;
  for (const auto& row : rows_of(log_in(folder))) {
    if (row.at("action") == "allocate") {
      const auto* stack = report.stacks.at(0).find(std::stoull(row.at("stack_id")));
      BOOST_REQUIRE(stack != nullptr);
      std::string want = row.at("bytes") == "1111" ? "allocate_in_plugin_a" : "allocate_in_plugin_b";
      right += stack->frames.at(0)->function == want ? 1 : 0;
    }
  }
  BOOST_TEST(right == 6);
}

BOOST_AUTO_TEST_CASE(tags_and_kinds) {
  TempFolder folder;
  run_with_library({program("resolver")},
                   {{"XLOG_LOG", folder / "x.csv"}, {"XLOG_TAG", "a \"tag\", with\nall"}, {"XLOG_QUERY_ID", "q\xff"}});
  auto rows = rows_of(log_in(folder));
  BOOST_TEST(rows.at(0).at("tag") == "a \"tag\", with\\x0aall");
  BOOST_TEST(rows.at(0).at("query_id") == "q\\xff");
  BOOST_TEST(count(rows, "kind", "pool") == 2);
}

// C10: what we did not see made is the driver's to free.
BOOST_AUTO_TEST_CASE(memory_made_or_freed_out_of_sight) {
  TempFolder folder;
  Outcome ours = run_with_library({program("unseen")}, {{"XLOG_LOG", folder / "x.csv"}, {"XLOG_BUDGET", "1G"}});
  BOOST_TEST(ours.out == run({program("unseen")}).out);
  auto report = report_of(log_in(folder));
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_TEST(report.foreign_frees == 1);
  BOOST_TEST(report.ended_unseen == 1);
  BOOST_TEST(report.gpus.at(0).live == 0);
}

// What is left out of the log is counted, and the rows that are there pair up.
BOOST_AUTO_TEST_CASE(small_blocks_can_be_left_out) {
  TempFolder folder;
  Outcome native = run({program("sizes")});
  Outcome ours = run_with_library({program("sizes")}, {{"XLOG_LOG", folder / "x.csv"}, {"XLOG_LOG_MIN", "64KiB"}});
  BOOST_TEST(ours.out == native.out);
  auto report = report_of(log_in(folder));
  BOOST_TEST(report.contradiction_count == 0);
  BOOST_TEST(report.gpus.at(0).allocations == 1051);
  BOOST_TEST(report.gpus.at(0).live == 0);
  BOOST_TEST(report.gpus.at(0).failed >= 1);
  BOOST_TEST(report.left_out == 4000);
  BOOST_TEST(report.left_out_bytes == 4000 * 4096);
  auto rows = rows_of(log_in(folder));
  BOOST_TEST(count(rows, "bytes", "4096") == 0);
  BOOST_TEST(count(rows, "action", "context_destroyed") > 500);
}

BOOST_AUTO_TEST_CASE(a_sample_gives_totals_without_bias) {
  TempFolder folder;
  run_with_library({program("sizes")}, {{"XLOG_LOG", folder / "x.csv"}, {"XLOG_LOG_SAMPLE", "64KiB"}});
  auto report = report_of(log_in(folder));
  BOOST_TEST(report.contradiction_count == 0);
  const auto& gpu = report.gpus.at(0);
  uint64_t larger = 1000 * 65536 + 50 * (4 << 20) + 512 * 200;  // all of these are taken
  auto rows = rows_of(log_in(folder));
  size_t small = 0;
  for (const Row& row : rows) {
    small += row.at("action") == "allocate" && row.at("bytes") == "4096" ? 1 : 0;
  }
  BOOST_TEST(small > 150);  // 250 are expected, with a deviation of 15
  BOOST_TEST(small < 350);
  BOOST_TEST(gpu.allocations == 1051 + small * 16);
  BOOST_TEST(gpu.peak <= larger + small * 65536);
  BOOST_TEST(gpu.peak > larger);
  BOOST_TEST(gpu.live == 0);
  BOOST_TEST(report.left_out == 4000 - small);
}
