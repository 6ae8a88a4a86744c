// Rows, paths and files of the log.
#include <sys/resource.h>
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <thread>
#include <vector>

#include "runtime/record/log_file.h"
#include "runtime/record/log_path.h"
#include "runtime/record/recorder.h"
#include "runtime/record/row_reader.h"
#include "runtime/record/row_writer.h"
#include "support/process.h"

using namespace xlog;
using test::TempFolder;

namespace {

std::string row(const Event& event, unsigned digits = 1) {
  RowHead head;
  RowTail tail;
  put_row_head(head, event);
  put_row_tail(tail, event, digits);
  return std::string(head.view()) + "7" + std::string(tail.view());
}

Event example() {
  Event e;
  e.thread = 12;
  e.time = 1'700'000'000'123'456'789;
  e.action = action::allocate;
  e.ptr = 0x7f00;
  e.bytes = 512;
  e.stream = 0;
  e.device = 0;
  e.generation = 3;
  e.kind = "async";
  e.api = "cuMemAllocAsync";
  e.result = "ok";
  e.live_bytes = 512;
  e.elapsed_ns = 99;
  e.stack_id = 4;
  e.thread_name = "main";
  return e;
}

std::string field(std::string_view text) {
  Text<2048> out;
  put_field(out, text);
  return std::string(out.view());
}

std::string header() {
  Text<512> out;
  put_header(out);
  return std::string(out.view());
}

std::string expand(std::string_view pattern) {
  Text<200> out;
  PathFacts facts{.pid = 42,
                  .start_time = 1000,
                  .host = "node/1",
                  .program = "app",
                  .folder = "/here",
                  .variable = [](const char* name) -> const char* {
                    return std::string_view(name) == "SLURM_PROCID" ? "3" : std::string_view(name) == "JOB" ? "a/../b" : nullptr;
                  }};
  return expand_log_path(pattern, facts, out) ? std::string(out.view()) : "no";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_row) {
  BOOST_TEST(row(example()) == "12,1700000000123456789,allocate,0x7f00,512,0x0,0,,,7,3,async,cuMemAllocAsync,ok,,512,99,4,main\n");
  BOOST_TEST(row(example(), kHeldDigits).find(",000000000099,") != std::string::npos);
  Event empty;
  empty.action = action::exit;
  BOOST_TEST(row(empty) == "0,0,exit,,,,,,,7,,,,,,,,,\n");
}

BOOST_AUTO_TEST_CASE(fields_are_quoted_as_rfc_4180_says) {
  BOOST_TEST(field("plain text") == "plain text");
  BOOST_TEST(field("a,b") == "\"a,b\"");
  BOOST_TEST(field("say \"x\"") == "\"say \"\"x\"\"\"");
  BOOST_TEST(field("two\nlines\r") == "\"two\\x0alines\\x0d\"");
  BOOST_TEST(field("\x7f\x01") == "\"\\x7f\\x01\"");
  BOOST_TEST(field("gr\xc3\xbc\xc3\x9f") == "\"gr\xc3\xbc\xc3\x9f\"");
  BOOST_TEST(field("\xff\xc0\x80\xed\xa0\x80") == "\"\\xff\\xc0\\x80\\xed\\xa0\\x80\"");
  BOOST_TEST(field(std::string(256, 'x')) == std::string(256, 'x'));
  BOOST_TEST(field(std::string(257, 'x')) == '"' + std::string(256, 'x') + "\xe2\x80\xa6\"");
  BOOST_TEST(field(std::string(255, 'x') + "\xc3\xbc") == '"' + std::string(255, 'x') + "\xe2\x80\xa6\"");  // never half a character
}

BOOST_AUTO_TEST_CASE(what_is_written_reads_back) {
  Event e = example();
  e.tag = "a, \"b\"";
  e.thread_name = "x\ty";
  std::string text = header() + row(e);
  RowReader reader(text);
  BOOST_REQUIRE(reader.good());
  Event back;
  BOOST_REQUIRE(reader.next(back));
  BOOST_TEST(back.ptr == e.ptr);
  BOOST_TEST(back.bytes == e.bytes);
  BOOST_TEST(back.stream == e.stream);
  BOOST_TEST(back.seq == 7);
  BOOST_TEST(back.tag == e.tag);
  BOOST_TEST(back.thread_name == "x\\x09y");
  BOOST_TEST(back.elapsed_ns == e.elapsed_ns);
  BOOST_TEST(!reader.next(back));
  BOOST_TEST(!reader.cut());
}

BOOST_AUTO_TEST_CASE(a_log_cut_at_any_byte_reads_up_to_the_cut) {
  std::string text = header() + row(example()) + row(example()) + row(example());
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    RowReader reader(std::string_view(text).substr(0, cut));
    Event e;
    size_t rows = 0;
    while (reader.next(e)) {
      ++rows;
    }
    size_t head = header().size();
    size_t whole = cut < head ? 0 : (cut - head) / row(example()).size();
    BOOST_TEST(rows == whole);
    BOOST_TEST(reader.good() == (cut >= head));
    BOOST_TEST(reader.foreign_rows() == 0);
  }
}

BOOST_AUTO_TEST_CASE(columns_in_another_order_and_more_of_them) {
  std::string text = "extra,bytes,action,ptr,time,thread\nx,512,allocate,0x200,5,9\n\n\n,,,,,\n";
  RowReader reader(text);
  Event e;
  BOOST_REQUIRE(reader.next(e));
  BOOST_TEST(e.bytes == 512);
  BOOST_TEST(e.thread == 9);
  BOOST_TEST(!reader.next(e));
  BOOST_TEST(reader.empty_lines() == 2);
  BOOST_TEST(reader.foreign_rows() == 1);
}

BOOST_AUTO_TEST_CASE(paths) {
  BOOST_TEST(expand("run.csv") == "/here/run.42");
  BOOST_TEST(expand("run") == "/here/run.42");
  BOOST_TEST(expand("/tmp/%p-x.csv") == "/tmp/42-x");
  BOOST_TEST(expand("/tmp/dir/") == "/tmp/dir/app.42");
  BOOST_TEST(expand("%h.%r.%t.csv") == "/here/node_1.3.1000.42");
  BOOST_TEST(expand("%q{JOB}%q{NONE}%%.csv") == "/here/a_.._b%.42");
  BOOST_TEST(expand("%z") == "no");
  BOOST_TEST(expand("%") == "no");
  BOOST_TEST(expand("%q{JOB") == "no");
  BOOST_TEST(expand("") == "no");
  BOOST_TEST(expand("/" + std::string(300, 'x')) == "no");
}

BOOST_AUTO_TEST_CASE(places_are_filled_by_many_threads_in_any_order) {
  TempFolder folder;
  auto file = std::make_unique<LogFile>();
  *reinterpret_cast<char*>(file.get()) = 0;
  BOOST_REQUIRE(file->create(folder / "x", UINT64_MAX) == 0);
  Lock lock{};
  std::vector<std::thread> all;
  constexpr int kThreads = 8;
  constexpr int kRows = 5000;
  for (int t = 0; t < kThreads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < kRows; ++i) {
        std::string text = "row " + std::to_string(t) + ' ' + std::to_string(i);
        LogPlace place;
        {
          LockGuard guard(lock);
          BOOST_REQUIRE(file->claim(text.size() + 1, place) == LogFailure::none);
        }
        file->fill(place, text.substr(0, 3), text.substr(3), "\n");
      }
    });
  }
  for (auto& each : all) {
    each.join();
  }
  file->settle();
  std::string text = test::slurp(folder / "x.csv");
  BOOST_TEST(std::count(text.begin(), text.end(), '\n') == kThreads * kRows);
  BOOST_TEST(text.find("\n\n") == text.npos);
  LogPlace place;  // after it was settled, rows still follow
  BOOST_TEST((file->claim(5, place) == LogFailure::none));
  file->fill(place, "late", "", "\n");
  BOOST_TEST(test::slurp(folder / "x.csv").ends_with("\nlate\n"));
}

BOOST_AUTO_TEST_CASE(a_place_that_is_never_filled_reads_as_empty_lines) {
  TempFolder folder;
  auto file = std::make_unique<LogFile>();
  BOOST_REQUIRE(file->create(folder / "x", UINT64_MAX) == 0);
  LogPlace unfilled;
  LogPlace filled;
  file->claim(100, unfilled);
  file->claim(4, filled);
  file->fill(filled, "row", "", "\n");
  std::string text = test::slurp(folder / "x.csv");
  BOOST_TEST(text.substr(0, 104) == std::string(100, '\n') + "row\n");
}

BOOST_AUTO_TEST_CASE(the_largest_size_is_kept) {
  TempFolder folder;
  auto file = std::make_unique<LogFile>();
  BOOST_REQUIRE(file->create(folder / "x", 1000) == 0);
  LogPlace place;
  int granted = 0;
  while (file->claim(64, place) == LogFailure::none) {
    file->fill(place, std::string(63, 'x'), "", "\n");
    ++granted;
  }
  BOOST_TEST(granted == 15);
  BOOST_TEST((file->claim(64, place) == LogFailure::max_bytes));
  BOOST_TEST((file->claim_beyond_max(64, place) == LogFailure::none));
}
