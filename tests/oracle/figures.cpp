// Every figure that the command tells of generated logs is the oracle's. XLOG_ORACLE_SEEDS=n for n logs; the folder of one that
// differs is kept, and named.
#include <boost/test/unit_test.hpp>

#include "oracle/generate.h"
#include "oracle/other_figures.h"
#include "oracle/report_figures.h"

using namespace xlog::oracle;

namespace {

// `compare` is called with the folder of each seed and the oracle's reading of it.
template <class Compare>
void each_log(uint64_t usual, Compare compare) {
  for (uint64_t seed = 0; seed < seeds(usual); ++seed) {
    GeneratedFolder folder(seed);
    Oracle right(read_folder(folder.path()));
    Differences found;
    compare(seed, folder.path(), right, found);
    if (!found.none()) {
      folder.keep();
    }
    BOOST_TEST(found.none(), "seed " << seed << ", " << folder.path() << found.text());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(figures_of_a_report) {
  each_log(210, [](uint64_t, const std::string& folder, const Oracle& right, Differences& found) {
    compare_report(ask({"report", "--json", folder}).json(), right, found);
  });
}

BOOST_AUTO_TEST_CASE(figures_by_each_dimension) {
  static const char* const kBy[] = {"stack", "thread", "stream", "kind", "tag", "query", "process", "device", "library"};
  each_log(140, [](uint64_t seed, const std::string& folder, const Oracle& right, Differences& found) {
    std::string by = kBy[seed % std::size(kBy)];
    if (sort_of(seed) != Sort::rmm) {
      compare_split(ask({"report", "--json", "--by", by, folder}).json(), ask({"report", "--json", folder}).json(), by, right, found);
    }
  });
}

BOOST_AUTO_TEST_CASE(figures_at_a_moment) {
  each_log(140, [](uint64_t seed, const std::string& folder, const Oracle& right, Differences& found) {
    compare_moment(folder, right, right.first + (right.last - right.first) * (seed % 9 + 1) / 10, found);
  });
}

BOOST_AUTO_TEST_CASE(figures_that_decide) {
  each_log(70, [](uint64_t, const std::string& folder, const Oracle& right, Differences& found) { compare_check(folder, right, found); });
}

BOOST_AUTO_TEST_CASE(figures_of_two_runs) {
  each_log(42, [](uint64_t seed, const std::string& folder, const Oracle& right, Differences& found) {
    if (sort_of(seed) != Sort::rmm) {
      GeneratedFolder other(seed + kSorts * 100);
      compare_diff(folder, right, other.path(), Oracle(read_folder(other.path())), found);
    }
  });
}

BOOST_AUTO_TEST_CASE(figures_of_another_gpu) {
  each_log(140, [](uint64_t seed, const std::string& folder, const Oracle& right, Differences& found) {
    if (sort_of(seed) == Sort::pages) {
      compare_simulation(folder, right, found);
    }
  });
}

BOOST_AUTO_TEST_CASE(figures_of_an_address) {
  each_log(140, [](uint64_t seed, const std::string& folder, const Oracle& right, Differences& found) {
    const auto& blocks = right.blocks();
    const Block& block = blocks[seed * 31 % blocks.size()];
    const std::string& kind = block.made->kind;
    if (sort_of(seed) != Sort::rmm && kind != "vmm" && kind != "array" && kind != "graph" && kind != "host") {
      compare_whatis(folder, right, *block.made->ptr + *block.made->bytes / 2, found);
    }
  });
}

BOOST_AUTO_TEST_CASE(figures_of_the_page) {
  each_log(42, [](uint64_t, const std::string& folder, const Oracle& right, Differences& found) { compare_page(folder, right, found); });
}

// The text has shares of many wholes.
BOOST_AUTO_TEST_CASE(no_share_is_more_than_the_whole) {
  each_log(70, [](uint64_t, const std::string& folder, const Oracle&, Differences& found) {
    std::string text = ask({"report", folder}).out;
    for (size_t at = text.find(" %"); at != text.npos; at = text.find(" %", at + 1)) {
      size_t begin = text.find_last_not_of("0123456789.", at - 1) + 1;
      if (std::stod(text.substr(begin, at - begin)) > 100) {
        found.note(text.substr(text.rfind('\n', at) + 1, text.find('\n', at) - text.rfind('\n', at) - 1));
      }
    }
  });
}

BOOST_AUTO_TEST_CASE(figures_that_are_exported) {
  each_log(140, [](uint64_t seed, const std::string& folder, const Oracle& right, Differences& found) {
    if (sort_of(seed) != Sort::rmm) {
      compare_folded(folder, right, found);
      compare_trace(folder, right, found);
      compare_rmm(folder, right, found);
    }
  });
}
