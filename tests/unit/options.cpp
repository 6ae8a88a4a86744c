// C34: sizes as people type them, and as they mistype them; the options table.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/options.h"

using namespace xlog;
namespace data = boost::unit_test::data;

namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

uint64_t bytes_of(std::string_view text) {
  SizeSpec spec;
  BOOST_TEST(static_cast<int>(parse_size(text, spec)) == 0, "\"" << text << "\" is a size");
  return spec.on(80 * kGiB);
}

std::string reason_of(std::string_view text) {
  SizeSpec spec;
  Text<400> out;
  SizeError error = parse_size(text, spec);
  BOOST_TEST(static_cast<int>(error) != 0, "\"" << text << "\" is no size");
  explain(error, text, out);
  return std::string(out.view());
}

std::map<std::string, std::string> variables;
std::vector<std::string> complaints;

bool parse(std::map<std::string, std::string> given, Options& out) {
  variables = std::move(given);
  complaints.clear();
  return parse_options([](const char* name) -> const char* { return variables.count(name) != 0 ? variables[name].c_str() : nullptr; },
                       [](std::string_view line, bool) { complaints.emplace_back(line); }, out);
}

}  // namespace

BOOST_AUTO_TEST_CASE(sizes_as_people_type_them) {
  for (const char* text : {"4G", "4g", "4Gi", "4gi", "4GB", "4gb", "4GiB", "4gib", " 4G ", "\t4G", "4 G", "4096M", "4096mb", "4194304K",
                           "4294967296B", "5%"}) {
    BOOST_TEST(bytes_of(text) == 4 * kGiB, text);
  }
  BOOST_TEST(bytes_of("1.5G") == 1610612736);
  BOOST_TEST(bytes_of("0.5k") == 512);
  BOOST_TEST(bytes_of("0.1G") == 107374182);
  BOOST_TEST(bytes_of("2T") == 2048 * kGiB);
  BOOST_TEST(bytes_of("0G") == 0);
  BOOST_TEST(bytes_of("0%") == 0);
  BOOST_TEST(bytes_of("12.5%") == 10 * kGiB);
  BOOST_TEST(bytes_of("100%") == 80 * kGiB);
  BOOST_TEST(bytes_of("16777215T") == uint64_t{16777215} << 40);
}

BOOST_AUTO_TEST_CASE(sizes_as_people_mistype_them) {
  BOOST_TEST(reason_of("8") == "\"8\" has no unit: 8 bytes is \"8B\", 8 GiB is \"8G\"");
  BOOST_TEST(reason_of("0").find("no unit") != std::string::npos);
  BOOST_TEST(reason_of("08G").find("begins with a zero") != std::string::npos);
  BOOST_TEST(reason_of("99999999999G").find("64 bits") != std::string::npos);
  BOOST_TEST(reason_of("16777216T").find("64 bits") != std::string::npos);
  BOOST_TEST(reason_of("").find("is empty") != std::string::npos);
  BOOST_TEST(reason_of("101%").find("share") != std::string::npos);
  for (const char* text : {"0x10",  "-1", "-1G", "+4G",  "4X",   "4GX", "4GiBs",      "4Gbi", "4KG",  "1.5.G", ".5G", "1.G",
                           "4 G B", "G",  "1e9", "1,5G", "1.5B", "4iB", "1.0000001G", "four", "4G\n", "100.5", "%",   "4%%"}) {
    BOOST_TEST(!reason_of(text).empty());
  }
}

BOOST_AUTO_TEST_CASE(sizes_for_people) {
  auto text = [](uint64_t bytes) {
    Text<32> out;
    put_size(out, bytes);
    return std::string(out.view());
  };
  BOOST_TEST(text(0) == "0 B");
  BOOST_TEST(text(1023) == "1023 B");
  BOOST_TEST(text(1536) == "1.50 KiB");
  BOOST_TEST(text(8 * kGiB) == "8.00 GiB");
  BOOST_TEST(text(kGiB - 1) == "1023.99 MiB");
  BOOST_TEST(text(UINT64_MAX) == "15.99 EiB");
}

BOOST_AUTO_TEST_CASE(defaults) {
  Options options;
  BOOST_TEST(parse({}, options));
  BOOST_TEST(!options.any());
  BOOST_TEST(options.backtrace == 32);
  BOOST_TEST(options.log_max == UINT64_MAX);
  BOOST_TEST(options.budget.limit(0, "GPU-1", 80 * kGiB) == UINT64_MAX);
}

BOOST_AUTO_TEST_CASE(limits_of_several_gpus) {
  Options options;
  BOOST_TEST(parse({{"XLOG_BUDGET", "0=8GiB, 1=50%,GPU-ABCDEF01=4G"}}, options));
  BOOST_TEST(options.budget.limit(0, "GPU-00000000-1", 80 * kGiB) == 8 * kGiB);
  BOOST_TEST(options.budget.limit(1, "GPU-00000000-1", 80 * kGiB) == 40 * kGiB);
  BOOST_TEST(options.budget.limit(2, "GPU-00000000-1", 80 * kGiB) == UINT64_MAX);
  BOOST_TEST(options.budget.limit(0, "GPU-abcdef01-2345", 80 * kGiB) == 4 * kGiB);
}

BOOST_AUTO_TEST_CASE(strict_options_fail_closed_and_others_do_not) {
  Options options;
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"XLOG_BUDGET", "8"},
                                                                                    {"XLOG_BUDGET", ""},
                                                                                    {"XLOG_BACKEND", "async!"},
                                                                                    {"XLOG_BACKEND", " "},
                                                                                    {"XLOG_BUDGET_COUNT", "pages"},
                                                                                    {"XLOG_ASYNC_FREE", "later"},
                                                                                    {"XLOG_ASYNC_PENDING", "8"},
                                                                                    {"XLOG_ASYNC_PENDING", "101%"},
                                                                                    {"XLOG_ASYNC_KEEP", "auto"},
                                                                                    {"XLOG_ASYNC_KEEP", ""},
                                                                                    {"XLOG_ASYNC_ALWAYS", "yes"}}) {
    BOOST_TEST(!parse({{name, value}}, options));
    BOOST_TEST(complaints.size() == 1);
    BOOST_TEST(complaints.at(0).starts_with(name + "=" + value + ": "));
  }
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"XLOG_BACKTRACE", "0"},
                                                                                    {"XLOG_BACKTRACE", "129"},
                                                                                    {"XLOG_VERBOSE", "yes"},
                                                                                    {"XLOG_LOG_MAX", "10%"},
                                                                                    {"XLOG_TAG", std::string(121, 'x')}}) {
    BOOST_TEST(parse({{name, value}}, options));
    BOOST_TEST(complaints.size() == 1);
  }
  BOOST_TEST(parse({{"XLOG_VERBOSE", "1\nxlog: forged\x1b"}}, options));
  BOOST_TEST(complaints.at(0) == "XLOG_VERBOSE=1?xlog: forged?: give 0 or 1; ignored");
  BOOST_TEST(options.backtrace == 32);
  BOOST_TEST(options.tag.view().empty());
}

BOOST_AUTO_TEST_CASE(names_that_are_nearly_right) {
  auto judged = [](std::string_view name, std::string_view want) {
    std::string_view nearest;
    NameKind kind = kind_of_name(name, nearest);
    BOOST_TEST(nearest == want, name << ": " << nearest);
    return kind;
  };
  for (const char* name : {"XLOG_BUGDET", "XLOG_BUDGETS", "XLOG_BUDGE", "XLOG_BUDJET", "XLOG_BDGT", "XLOG_LIMIT", "XLOG_GPU_LIMIT",
                           "XLOG_MEMORY_BUDGET", "XLOG_QUOTA", "xlog_budget", "XLOGBUDGET", "Xlog_Budget"}) {
    BOOST_TEST((judged(name, "XLOG_BUDGET") == NameKind::like_limit), name);
  }
  BOOST_TEST((judged("XLOG_HOSTBUDGET", "XLOG_HOST_BUDGET") == NameKind::like_limit));
  BOOST_TEST((judged("XLOG_BUDGET_COUNTS", "XLOG_BUDGET_COUNT") == NameKind::like_limit));
  BOOST_TEST((judged("XLOG_LOGS", "XLOG_LOG") == NameKind::unknown));
  BOOST_TEST((judged("XLOG_BACKNED", "XLOG_BACKEND") == NameKind::unknown));
  BOOST_TEST((judged("XLOG_WCOJ_POOL_MB_PER_STREAM", "") == NameKind::unknown));
  BOOST_TEST((judged("XLOG_SIM_MEMORY", "") == NameKind::not_ours));
  BOOST_TEST((judged("XLOGIN_SHELL", "") == NameKind::not_ours));
  for (const OptionRow& row : kOptions) {
    std::string_view nearest;
    BOOST_TEST((kind_of_name(row.name, nearest) == NameKind::option), row.name);
  }
}

BOOST_AUTO_TEST_CASE(parts_that_name_no_gpu) {
  Options options;
  BOOST_TEST(parse({{"XLOG_BUDGET", "4G,0=1G,17=2G,GPU-ab=1G,GPU-cd=1G"}}, options));
  BudgetMatches matches;
  options.budget.match(0, "GPU-abcd", matches);
  BOOST_TEST(options.budget.unmatched(matches)->ordinal == 17);
  options.budget.match(17, "GPU-cd00", matches);
  BOOST_TEST((options.budget.unmatched(matches) == nullptr));
  BOOST_TEST(options.budget.limit(17, "GPU-ef", 80 * kGiB) == 2 * kGiB);
}
