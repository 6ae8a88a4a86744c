// What the README promises is what the code has: its tables are compared with the lists that they are about.
#include <boost/test/unit_test.hpp>

#include "runtime/base/options.h"
#include "runtime/record/event.h"
#include "support/process.h"

namespace {
const std::string readme = xlog::test::slurp("README.md");
bool has(const std::string& text) { return readme.find(text) != readme.npos; }
}  // namespace

BOOST_AUTO_TEST_CASE(every_option_stands_in_the_readme_and_in_help) {
  std::string help = xlog::test::run({xlog::test::build_folder() + "/xlog", "help"}).out;
  for (const xlog::OptionRow& row : xlog::kOptions) {
    std::string line = "| `" + std::string(row.name) + "` | " + (row.fallback.empty() ? "" : "`" + std::string(row.fallback) + "`") +
                       " | " + std::string(row.help) + " |";
    BOOST_TEST(has(line), line);
    BOOST_TEST(help.find(std::string(row.name)) != help.npos);
    BOOST_TEST(help.find(std::string(row.help)) != help.npos);
  }
}

BOOST_AUTO_TEST_CASE(every_column_stands_in_the_readme) {
  for (std::string_view column : xlog::kColumns) {
    BOOST_TEST(has("| `" + std::string(column) + "` |"), column);
  }
}

BOOST_AUTO_TEST_CASE(every_intercepted_function_stands_in_the_readme) {
#define XLOG_ROW(role, name) BOOST_TEST(has("`" #name "`"), #name);
#include "shim/intercepted.def"
#undef XLOG_ROW
}
