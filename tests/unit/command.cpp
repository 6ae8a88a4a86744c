// Parts of the command `xlog` that need no process: text for shells and terminals, and the options of the library as flags.
#include <boost/test/unit_test.hpp>

#include <set>

#include "runtime/refusal/refusal.h"
#include "support/process.h"
#include "tools/command/library_options.h"
#include "tools/command/log_folder.h"
#include "tools/command/messages.h"
#include "tools/command/shell_text.h"
#include "tools/log/text_file.h"

using namespace xlog;
using namespace xlog::tools;

BOOST_AUTO_TEST_CASE(a_word_for_a_shell_is_the_text_whatever_it_holds) {
  BOOST_TEST(shell_word("/opt/x-1.csv") == "/opt/x-1.csv");
  BOOST_TEST(shell_word("") == "''");
  BOOST_TEST(shell_word("a'; touch X #") == "'a'\\''; touch X #'");
  std::string all;
  for (int c = 1; c < 256; ++c) {
    all += static_cast<char>(c);
  }
  for (const std::string& text : {all, std::string("~"), std::string("-n"), std::string("a b\n"), std::string("$(x)`y`\\")}) {
    std::string out = xlog::test::run({"bash", "-c", "printf '%s.' " + shell_word(text)}).out;
    BOOST_TEST(out == text + '.');
  }
  BOOST_TEST(fish_word("it's \\") == "'it\\'s \\\\'");
}

BOOST_AUTO_TEST_CASE(a_report_on_refused_memory_has_only_its_own_lines) {
  auto refusal = std::make_unique<Refusal>();
  refusal->device = 0;
  refusal->program = "a\nxlog: forged 1";
  refusal->gpu_name = "b\nxlog: forged 2";
  refusal->processes.known = refusal->processes.same_pids = true;
  refusal->processes.count = 1;
  refusal->processes.list[0].has_user = true;
  refusal->processes.list[0].pid = 1;
  std::string_view command = "c\nxlog: forged 3";
  command.copy(refusal->processes.list[0].command, command.size());
  Text<4000> out;
  put_refusal_text(out, *refusal, {});
  std::string text(out.view());
  BOOST_TEST(text.find("?xlog: forged 1") != text.npos, text);
  BOOST_TEST(text.find("?xlog: forged 2") != text.npos, text);
  BOOST_TEST(text.find("?xlog: forged 3") != text.npos, text);
  BOOST_TEST(text.find("\nxlog") == text.npos, text);
}

BOOST_AUTO_TEST_CASE(flags_are_made_from_the_list_of_options) {
  const std::vector<LibraryOption>& all = library_options();
  BOOST_TEST(all.size() == std::size(kOptions));
  std::set<std::string> flags;
  std::map<std::string, std::vector<std::string>> words;
  for (const LibraryOption& each : all) {
    BOOST_TEST(flags.insert(each.flags).second);
    words[each.flags] = each.words;
    for (const std::string& word : each.words) {
      BOOST_TEST(value_trouble(each.row->name, word) == "", word);
    }
  }
  using Words = std::vector<std::string>;
  BOOST_TEST((words.at("--backend") == Words{"native", "direct", "async", "cache"}));
  BOOST_TEST((words.at("--async-free") == Words{"wait", "ordered"}));
  BOOST_TEST((words.at("--async-pending") == Words{"auto"}));
  BOOST_TEST((words.at("--guard") == Words{"off", "canary", "fence"}));
  BOOST_TEST((words.at("--guard-check") == Words{"free", "exit", "launch"}));
  BOOST_TEST((words.at("--poison") == Words{"off", "alloc", "free", "alloc,free"}));
  BOOST_TEST((words.at("--backtrace") == Words{"off"}));
  BOOST_TEST((words.at("--summary") == Words{"off", "stderr"}));
  BOOST_TEST((words.at("--nvml") == Words{"0", "1"}));
  BOOST_TEST(words.at("--limit,--budget").empty());
  BOOST_TEST(words.at("--sample,--log-sample").empty());
  BOOST_TEST(words.at("--tag").empty());
  BOOST_TEST(words.at("--log").empty());
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_value) {
  BOOST_TEST(value_trouble("XLOG_BACKEND", "fast") == "give native, direct, async or cache");
  BOOST_TEST(value_trouble("XLOG_TAG", std::string(121, 'x')) == "give text of at most 120 bytes");
  BOOST_TEST(value_trouble("XLOG_LOG_MAX", "10").starts_with("\"10\" has no unit"));
  BOOST_TEST(value_trouble("XLOG_BACKEND", ": ") == "give native, direct, async or cache");
  BOOST_TEST(value_trouble("XLOG_BACKEND", std::string(300, ':')) == "give native, direct, async or cache");
}

BOOST_AUTO_TEST_CASE(how_far_two_texts_are_apart) {
  BOOST_TEST(edit_distance("report", "report") == 0);
  BOOST_TEST(edit_distance("reprt", "report") == 1);
  BOOST_TEST(edit_distance("reprot", "report") == 1);
  BOOST_TEST(edit_distance("", "abc") == 3);
  BOOST_TEST(edit_distance(std::string(33, 'x'), "x") == SIZE_MAX);
}

BOOST_AUTO_TEST_CASE(a_literal_in_a_pattern_stands_for_itself) { BOOST_TEST(literal_pattern("/a/100%p/%%") == "/a/100%%p/%%%%"); }

BOOST_AUTO_TEST_CASE(only_regular_files_are_read) {
  std::string text;
  std::string problem;
  BOOST_TEST(read_text_file("VERSION", text, problem));
  BOOST_TEST(!text.empty());
  BOOST_TEST(problem == "");
  BOOST_TEST(!read_text_file("VERSION", text, problem, 1));
  BOOST_TEST(problem.starts_with("VERSION: too large ("), problem);
  BOOST_TEST(!read_text_file("/dev/zero", text, problem));
  BOOST_TEST(problem == "/dev/zero is a device, not a file");
  BOOST_TEST(!read_text_file("no/such", text, problem));
  BOOST_TEST(problem == "no/such: No such file or directory");
}
