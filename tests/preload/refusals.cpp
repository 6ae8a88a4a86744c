// What is told when memory is refused: NAME.oom.N.json and XLOG_SUMMARY.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "support/process.h"

using namespace xlog::test;
using nlohmann::json;

namespace {

constexpr uint64_t kMiB = 1 << 20;

std::vector<std::string> told(const TempFolder& folder) {
  std::vector<std::string> names;
  for (const std::string& name : folder.files()) {
    if (name.find(".oom.") != name.npos) {
      names.push_back(name);
    }
  }
  return names;
}

json last_told(const TempFolder& folder) {
  auto names = told(folder);
  BOOST_REQUIRE(!names.empty());
  return json::parse(slurp(folder / names.back()));
}

Outcome script(const TempFolder& folder, std::vector<std::string> steps, Environment environment) {
  steps.insert(steps.begin(), program("script"));
  environment.emplace("XLOG_LOG", folder / "x.csv");
  Outcome ours = run_with_library(steps, environment, folder.path());
  environment.erase("XLOG_LOG");
  return ours;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_refusal_is_told_when_it_happens) {
  TempFolder folder;
  Outcome ours = script(folder, {"+100", "+20", "-1", "+30", "+200", "kill"}, {{"XLOG_BUDGET", "256M"}});
  BOOST_TEST(ours.out == "+100 0\n+20 0\n-1 0\n+30 0\n+200 2\n");
  BOOST_TEST(ours.err.empty());
  BOOST_REQUIRE(told(folder).size() == 1);
  struct stat info {};
  BOOST_TEST(stat((folder / told(folder)[0]).c_str(), &info) == 0);
  BOOST_TEST((info.st_mode & 0777) == 0600);
  json oom = last_told(folder);
  BOOST_TEST(oom["refused_by"] == "limit");
  BOOST_TEST(oom["requested_bytes"] == 200 * kMiB);
  BOOST_TEST(oom["limit_bytes"] == 256 * kMiB);
  BOOST_TEST(oom["counted_bytes"] == 130 * kMiB);
  BOOST_TEST(oom["live_bytes"] == 130 * kMiB);
  BOOST_TEST(oom["live_blocks"] == 2);
  BOOST_TEST(oom["api"] == "cuMemAlloc_v2");
  BOOST_TEST(oom["device"] == 0);
  BOOST_TEST(oom["driver_total_bytes"] > oom["driver_free_bytes"]);
  BOOST_REQUIRE(oom["holders"].size() == 1);
  BOOST_TEST(oom["holders"][0]["bytes"] == 130 * kMiB);
  BOOST_TEST(oom["holders"][0]["blocks"] == 2);
  BOOST_TEST(oom["holders"][0]["library"] == "script");
  auto rows = rows_of(log_in(folder));
  auto row = std::find_if(rows.begin(), rows.end(), [](Row& each) { return each["result"] == "CUDA_ERROR_OUT_OF_MEMORY"; });
  BOOST_REQUIRE((row != rows.end()));
  BOOST_TEST((*row)["stack_id"] == std::to_string(oom["stack_id"].get<uint64_t>()));
}

BOOST_AUTO_TEST_CASE(the_drivers_refusals_too) {
  TempFolder folder;
  script(folder, {"h+50", "+600", "+900"}, {{"XLOG_SIM_MEMORY", std::to_string(1024 * kMiB)}});
  json oom = last_told(folder);
  BOOST_TEST(oom["refused_by"] == "driver");
  BOOST_TEST(oom["limit_bytes"].is_null());
  BOOST_TEST(oom["driver_free_bytes"] == 424 * kMiB);
  BOOST_TEST(oom["live_bytes"] == 600 * kMiB);
}

BOOST_AUTO_TEST_CASE(a_program_that_backs_off_is_one_episode) {
  TempFolder folder;
  script(folder, {"+800", "+720", "+400", "+200", "+40", "+200", "+100", "+50"}, {{"XLOG_BUDGET", "100M"}});
  BOOST_TEST(told(folder).size() == 1);  // +40 is less than a quarter of the 200 that was refused
  TempFolder again;
  script(again, {"+800", "+400", "+60", "-0", "+800"}, {{"XLOG_BUDGET", "200M"}});
  BOOST_TEST(told(again).size() == 1);
  TempFolder later;
  script(later, {"+800", "+400", "+150", "-0", "+800"}, {{"XLOG_BUDGET", "200M"}});
  BOOST_TEST(told(later).size() == 2);
}

// When it is refused again and holds something else meanwhile, the episode's file says what it holds now.
BOOST_AUTO_TEST_CASE(an_episode_is_told_anew_when_memory_has_changed) {
  TempFolder folder;
  script(folder, {"+800", "wait", "+10", "+799", "wait", "+798"}, {{"XLOG_BUDGET", "200M"}});
  BOOST_TEST(told(folder).size() == 1);
  BOOST_TEST(last_told(folder)["live_bytes"] == 10 * kMiB);
  BOOST_TEST(last_told(folder)["requested_bytes"] == 799 * kMiB);  // by then nothing had changed again
  BOOST_TEST(last_told(folder)["refusals_so_far"] == 2);
}

BOOST_AUTO_TEST_CASE(at_most_five_and_the_fifth_is_the_last) {
  TempFolder folder;
  std::vector<std::string> steps;
  for (int i = 0; i < 9; ++i) {
    steps.insert(steps.end(), {"+" + std::to_string(201 + i), "+150", "-" + std::to_string(i)});
  }
  steps.insert(steps.end(), {"wait", "+299"});
  script(folder, steps, {{"XLOG_BUDGET", "200M"}});
  BOOST_TEST(told(folder).size() == 5);
  BOOST_TEST(json::parse(slurp(folder / told(folder)[0]))["requested_bytes"] == 201 * kMiB);
  BOOST_TEST(last_told(folder)["requested_bytes"] == 299 * kMiB);
}

BOOST_AUTO_TEST_CASE(who_else_is_on_the_gpu) {
  TempFolder folder;
  std::string own = std::to_string(getpid());
  script(folder, {"+300"}, {{"XLOG_BUDGET", "200M"}, {"XLOG_SIM_PROCESSES", "self:1000 " + own + ":2000 4294967295:3000"}});
  json oom = last_told(folder);
  BOOST_TEST(oom["pids_are_of_this_namespace"] == true);
  BOOST_REQUIRE(oom["processes"].size() == 3);
  BOOST_TEST(oom["processes"][0]["command"] == program("script") + " +300");
  BOOST_TEST(oom["processes"][1]["pid"] == getpid());
  BOOST_TEST(oom["processes"][1]["uid"] == getuid());
  BOOST_TEST(oom["processes"][1]["bytes"] == 2000);
  BOOST_TEST(oom["processes"][1]["command"] == "preload_tests");  // its name, without its arguments
  BOOST_TEST(!oom["processes"][2].contains("command"));           // gone, or another user's
  // A container has numbers of its own, which may be other processes' here.
  TempFolder container;
  script(container, {"+300"}, {{"XLOG_BUDGET", "200M"}, {"XLOG_SIM_PROCESSES", own + ":2000"}});
  oom = last_told(container);
  BOOST_TEST(oom["pids_are_of_this_namespace"] == false);
  BOOST_TEST(oom["processes"].size() == 1);
  BOOST_TEST(!oom["processes"][0].contains("command"));
}

// Driver 580 lists to a container its own processes only: what the others have is left over.
BOOST_AUTO_TEST_CASE(processes_that_cannot_be_seen) {
  TempFolder folder;
  Environment with{{"XLOG_BUDGET", "300M"}, {"XLOG_SUMMARY", "why"}, {"XLOG_SIM_PROCESSES", "self:" + std::to_string(20 * kMiB)}};
  script(folder, {"+250", "+300"}, with);
  BOOST_TEST(last_told(folder)["unseen_bytes"] == 230 * kMiB);
  BOOST_TEST(slurp(folder / "why").find("also on this GPU: 230.00 MiB of processes that cannot be seen from here") != std::string::npos);
  with["XLOG_SIM_PROCESSES"] = "self:" + std::to_string(250 * kMiB);
  TempFolder seen;
  script(seen, {"+250", "+300"}, with);
  BOOST_TEST(last_told(seen)["unseen_bytes"] == 0);
}

// No NVML: what it would have told is not known, which is not nobody.
BOOST_AUTO_TEST_CASE(a_machine_without_nvml) {
  TempFolder folder;
  script(folder, {"+300"}, {{"XLOG_BUDGET", "200M"}, {"LD_LIBRARY_PATH", build_folder() + "/noop"}});
  json oom = last_told(folder);
  BOOST_TEST(oom["refused_by"] == "limit");
  BOOST_TEST(oom["processes"].is_null());
  BOOST_TEST(
      run({build_folder() + "/xlog", "report", "--oom", folder.path()}).out.find("other processes on the GPU: not known (no NVML)") !=
      std::string::npos);
}

BOOST_AUTO_TEST_CASE(more_processes_than_fit) {
  TempFolder folder;
  std::string list = "self:1";
  for (int i = 1; i <= 300; ++i) {
    list += ' ' + std::to_string(1000000 + i) + ":5";
  }
  script(folder, {"+300"}, {{"XLOG_BUDGET", "200M"}, {"XLOG_SIM_PROCESSES", list}});
  json oom = last_told(folder);
  BOOST_TEST(oom["processes"].size() == 64);
  BOOST_TEST(oom["more_processes"] == 301 - 64);
}

BOOST_AUTO_TEST_CASE(a_summary_outlives_a_kill) {
  TempFolder folder;
  script(folder, {"+100", "+300", "kill"}, {{"XLOG_BUDGET", "200M"}, {"XLOG_SUMMARY", "why"}, {"XLOG_SIM_PROCESSES", "self:1 2:3145728"}});
  std::string text = slurp(folder / "why");
  BOOST_TEST(text.find("out of memory: script (pid ") == 0);
  BOOST_TEST(text.find("asked for 300.00 MiB on GPU 0") != text.npos);
  BOOST_TEST(text.find("refused by the limit XLOG_BUDGET of 200.00 MiB") != text.npos);
  BOOST_TEST(text.find("100.00 MiB in 1 block, script+0x") != text.npos);
  BOOST_TEST(text.find("also on this GPU: 3.00 MiB") != text.npos);
  // What was there is replaced, and a program that went on leaves no alarm.
  script(folder, {"+300", "+150"}, {{"XLOG_BUDGET", "200M"}, {"XLOG_SUMMARY", folder / "why"}});
  BOOST_TEST(slurp(folder / "why") == "memory was refused 1 times, and given later\n");
}

BOOST_AUTO_TEST_CASE(a_summary_has_no_lines_of_others) {
  TempFolder folder;
  std::string name = folder / "evil\nout of memory: \x1b[2J\xc2\x9b";
  BOOST_TEST(run({"cp", program("script"), name}).status == 0);
  run_with_library({name, "+300", "kill"}, {{"XLOG_BUDGET", "200M"}, {"XLOG_SUMMARY", folder / "why"}}, folder.path());
  std::string text = slurp(folder / "why");
  BOOST_TEST(text.starts_with("out of memory: evil?out of memory: ?[2J? (pid "), text);
  BOOST_TEST(text.find('\x1b') == text.npos);
}

BOOST_AUTO_TEST_CASE(a_summary_needs_no_log) {
  TempFolder folder;
  Outcome ours =
      run_with_library({program("script"), "+100", "+300"}, {{"XLOG_BUDGET", "200M"}, {"XLOG_SUMMARY", "stderr"}}, folder.path());
  BOOST_TEST(ours.err.find("xlog: out of memory: script") == 0);
  BOOST_TEST(folder.files().empty());
  ours = run_with_library({program("script"), "+300", "+100"}, {{"XLOG_BUDGET", "200M"}, {"XLOG_SUMMARY", "stderr"}}, folder.path());
  BOOST_TEST(ours.err.empty());
}

BOOST_AUTO_TEST_CASE(a_summary_follows_no_link) {
  TempFolder folder;
  spit(folder / "precious", "precious");
  BOOST_TEST(symlink("precious", (folder / "why").c_str()) == 0);
  Outcome ours = script(folder, {"+300", "+301"}, {{"XLOG_BUDGET", "200M"}, {"XLOG_SUMMARY", "why"}});
  BOOST_TEST(slurp(folder / "precious") == "precious");
  BOOST_TEST(ours.err.find("xlog: XLOG_SUMMARY: cannot write ") == 0);
  BOOST_TEST(std::count(ours.err.begin(), ours.err.end(), '\n') == 1);
}

BOOST_AUTO_TEST_CASE(pinned_memory_that_is_refused) {
  TempFolder folder;
  script(folder, {"+100", "h+100", "h+300"}, {{"XLOG_HOST_BUDGET", "200M"}, {"XLOG_SUMMARY", "why"}});
  json oom = last_told(folder);
  BOOST_TEST(oom["device"].is_null());
  BOOST_TEST(oom["live_bytes"] == 100 * kMiB);
  BOOST_TEST(oom["processes"].is_null());
  BOOST_TEST(slurp(folder / "why").find("of pinned host memory by cuMemHostAlloc, refused by the limit XLOG_HOST_BUDGET") !=
             std::string::npos);
}
