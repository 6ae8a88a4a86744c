// Rows, paths and files of the log.
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <map>
#include <sstream>
#include <thread>
#include <vector>

#include "runtime/record/file_io.h"
#include "runtime/record/log_file.h"
#include "runtime/record/log_path.h"
#include "runtime/record/log_windows.h"
#include "runtime/record/recorder.h"
#include "runtime/record/row_writer.h"
#include "support/process.h"
#include "tools/log/mapped_file.h"
#include "tools/log/row_reader.h"

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
  PathFacts facts{
      .pid = 42,
      .start_time = 1000,
      .host = "node/1",
      .program = "app",
      .folder = "/here",
      .variable = [](const char* name) -> const char* {
        std::string_view asked(name);
        return asked == "SLURM_PROCID" ? "3" : asked == "JOB" ? "a/../b" : asked == "UP" ? ".." : asked == "DOT" ? "." : nullptr;
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

// What does not fit a field's room is left out of the field, not of the row.
BOOST_AUTO_TEST_CASE(a_row_of_the_longest_fields_fits_its_buffers) {
  std::string bytes(400, '\xff');
  Event e = example();
  e.tag = e.query_id = e.message = e.thread_name = bytes;
  e.time = e.ptr = e.bytes = e.stream = e.device = e.generation = e.live_bytes = e.elapsed_ns = e.stack_id = kNone - 1;
  RowHead head;
  RowTail tail;
  put_row_head(head, e);
  put_row_tail(tail, e);
  BOOST_TEST(!head.full());
  BOOST_TEST(!tail.full());
  std::string text = header() + std::string(head.view()) + '1' + std::string(tail.view());
  RowReader reader(text);
  Event read;
  BOOST_TEST(reader.next(read));
  BOOST_TEST(read.elapsed_ns == kNone - 1);
  BOOST_TEST(reader.foreign_rows() == 0);
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

// Whatever part of a row was written when the process died, the rest of the place is empty lines and its begin is.
BOOST_AUTO_TEST_CASE(a_row_in_pieces_is_no_row) {
  std::string whole = row(example());
  for (size_t from = kWrittenLast; from < whole.size(); ++from) {
    for (size_t to = from; to <= whole.size(); to += 1 + (to + from) % 3) {
      std::string pieces(whole.size(), '\n');
      pieces.replace(from, to - from, whole, from, to - from);
      for (bool last : {false, true}) {
        std::string text = header() + whole + pieces + (last ? std::string(9, '\n') : whole);
        RowReader reader(text);
        Event e;
        size_t rows = 0;
        while (reader.next(e)) {
          ++rows;
        }
        bool blank = pieces.find_first_not_of('\n') == pieces.npos;
        BOOST_REQUIRE(rows == (last ? 1 : 2));
        BOOST_REQUIRE(reader.unfinished_rows() == (last && blank ? 0 : 1));
        BOOST_REQUIRE(reader.foreign_rows() == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(columns_in_another_order_and_more_of_them) {
  std::string text = "extra,bytes,action,ptr,time,thread\nx,512,allocate,0x200,5,9\n\n\nx,512,allocate,0x200,5,9\n,,,,,\n";
  RowReader reader(text);
  Event e;
  BOOST_REQUIRE(reader.next(e));
  BOOST_TEST(e.bytes == 512);
  BOOST_TEST(e.thread == 9);
  BOOST_TEST(reader.next(e));
  BOOST_TEST(!reader.next(e));
  BOOST_TEST(reader.empty_lines() == 2);
  BOOST_TEST(reader.unfinished_rows() == 0);
  BOOST_TEST(reader.foreign_rows() == 1);
}

BOOST_AUTO_TEST_CASE(paths) {
  BOOST_TEST(expand("run.csv") == "/here/run.42");
  BOOST_TEST(expand("run") == "/here/run.42");
  BOOST_TEST(expand("/tmp/%p-x.csv") == "/tmp/42-x");
  BOOST_TEST(expand("/tmp/dir/") == "/tmp/dir/app.42");
  BOOST_TEST(expand("%h.%r.%t.csv") == "/here/node_1.3.1000.42");
  BOOST_TEST(expand("%q{JOB}%q{NONE}%%.csv") == "/here/a_.._b%.42");
  BOOST_TEST(expand("/tmp/%q{UP}/x") == "/tmp/_./x.42");
  BOOST_TEST(expand("/tmp/.%q{DOT}/x") == "/tmp/._/x.42");
  BOOST_TEST(expand("/tmp/%q{DOT}%q{DOT}/x") == "/tmp/_./x.42");
  BOOST_TEST(expand("/tmp/%q{NONE}%q{UP}/x") == "/tmp/_./x.42");
  BOOST_TEST(expand("%q{UP}/%q{UP}/x") == "/here/_./_./x.42");
  BOOST_TEST(expand("/tmp/%q{UP}") == "/tmp/_..42");
  BOOST_TEST(expand("%z") == "no");
  BOOST_TEST(expand("%") == "no");
  BOOST_TEST(expand("%q{JOB") == "no");
  BOOST_TEST(expand("") == "no");
  BOOST_TEST(expand("/" + std::string(300, 'x')) == "no");
}

BOOST_AUTO_TEST_CASE(places_are_filled_by_many_threads_in_any_order) {
  TempFolder folder;
  auto file = std::make_unique<LogFile>();
  BOOST_REQUIRE(file->create(folder / "x", UINT64_MAX) == 0);
  std::vector<std::thread> all;
  std::atomic<int> refused{0};
  constexpr int kThreads = 8;
  constexpr int kRows = 5000;
  for (int t = 0; t < kThreads; ++t) {
    all.emplace_back([&, t] {
      for (int i = 0; i < kRows; ++i) {
        std::string text = "row " + std::to_string(t) + ' ' + std::to_string(i) + ' ';
        LogPlace place;
        uint64_t seq = 0;
        refused += file->claim(text.size() + 1, place, seq) != LogFailure::none ? 1 : 0;  // Boost's checks are one thread's
        file->fill(place, text, std::to_string(seq), "\n");
      }
    });
  }
  for (auto& each : all) {
    each.join();
  }
  BOOST_REQUIRE(refused == 0);
  file->settle();
  std::string text = test::slurp(folder / "x.csv");
  std::istringstream lines(text);
  std::map<int, int> rows_of_thread;
  int numbered = 0;
  std::string row;
  while (std::getline(lines, row)) {  // in the order of numbers, each thread's in its own
    if (row.empty()) {
      continue;
    }
    int thread = std::stoi(row.substr(4));
    int& next = rows_of_thread[thread];
    BOOST_REQUIRE(row == "row " + std::to_string(thread) + ' ' + std::to_string(next) + ' ' + std::to_string(numbered + 1));
    ++next;
    ++numbered;
  }
  BOOST_TEST(text.find("\n\n\n\n\n\n\n\n\n") == text.npos);  // at most a few bytes between windows
  BOOST_TEST(numbered == kThreads * kRows);
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

// Killed between any two instructions: the child is stopped at each one of them, and what a reader would find is judged.
BOOST_AUTO_TEST_CASE(a_row_is_there_whole_or_not_at_all) {
  constexpr int kNotAllowed = 77;
  Event long_one = example();
  std::string message(200, 'm');
  long_one.message = message;
  std::string text = row(long_one);
  for (size_t before_boundary : {size_t{2000}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{60}, text.size() - 1}) {
    TempFolder folder;
    pid_t child = fork();
    if (child == 0) {
      auto file = std::make_unique<LogFile>();
      LogPlace place;
      constexpr size_t kFirstWindow = 64 << 10;
      std::string first = header() + std::string(kFirstWindow - before_boundary - header().size(), '\n');
      bool made = file->create(folder / "x", UINT64_MAX) == 0;
      for (size_t at = 0; made && at < first.size(); at += 1000) {
        std::string_view part = std::string_view(first).substr(at, 1000);
        made = file->claim(part.size(), place) == LogFailure::none;
        file->fill(place, part, {}, {});
      }
      made = made && file->claim(text.size(), place) == LogFailure::none;
      if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
        _exit(kNotAllowed);
      }
      raise(SIGSTOP);
      file->fill(place, text, {}, {});
      _exit(made ? 0 : 1);
    }
    int status = 0;
    uint64_t steps = 0;
    size_t rows = 0;
    MappedFile* seen = nullptr;
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
      seen = seen == nullptr ? new MappedFile(folder / "x.csv") : seen;
      std::string near = header() + std::string(seen->text().substr((64 << 10) - before_boundary, text.size() + 8));
      RowReader reader(near);
      rows = 0;
      Event e;
      for (; reader.next(e); ++rows) {
        BOOST_REQUIRE(e.thread == example().thread);
        BOOST_REQUIRE(e.time == example().time);
        BOOST_REQUIRE(e.message == message);
        BOOST_REQUIRE(e.thread_name == example().thread_name);
        BOOST_REQUIRE(e.bytes == example().bytes);
      }
      BOOST_REQUIRE(reader.foreign_rows() == 0);
      ++steps;
      ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
    }
    delete seen;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kNotAllowed) {
      BOOST_TEST_MESSAGE("skipped: not allowed to trace");
      return;
    }
    BOOST_TEST(status == 0);
    BOOST_TEST(rows == 1);
    BOOST_TEST(steps > 50);
  }
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

// A file system that has refused is asked again.
BOOST_AUTO_TEST_CASE(rows_go_on_when_there_is_room_again) {
  TempFolder folder;
  auto file = std::make_unique<LogFile>();
  BOOST_REQUIRE(file->create(folder / "x", UINT64_MAX) == 0);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit tight{.rlim_cur = 16384, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  LogPlace place;
  LogFailure failure = LogFailure::none;
  int granted = 0;
  for (; failure == LogFailure::none; failure = file->claim(64, place)) {
    ++granted;
  }
  LogFailure again = file->claim(64, place);
  setrlimit(RLIMIT_FSIZE, &before);
  BOOST_TEST(granted == 16384 / 64 + 1);
  BOOST_TEST((failure == LogFailure::file_limit));
  BOOST_TEST((again == LogFailure::file_limit));
  while (file->claim(64, place) != LogFailure::none) {
    usleep(10'000);
  }
  BOOST_TEST(place.offset == 16384);
}

// What a container's files lie on. A folder on tmpfs shows nothing of reserved space, so there a row is written by itself.
BOOST_AUTO_TEST_CASE(an_overlay_is_mapped_where_what_is_below_reserves_space) {
  constexpr unsigned long kExt4 = 0xEF53;
  constexpr unsigned long kTmpfs = 0x01021994;
  TempFolder folder;
  for (const char* part : {"lower", "upper", "work", "merged"}) {
    mkdir((folder / part).c_str(), 0700);
  }
  test::SmallDisk disk(folder / "merged", "overlay",
                       "lowerdir=" + (folder / "lower") + ",upperdir=" + (folder / "upper") + ",workdir=" + (folder / "work"));
  if (!disk.mounted()) {
    BOOST_TEST_MESSAGE("skipped: not allowed to mount");
    return;
  }
  struct statfs below {};
  BOOST_REQUIRE(statfs(folder.path().c_str(), &below) == 0);
  auto type = static_cast<unsigned long>(below.f_type);
  int fd = open((folder / "merged/file").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  BOOST_REQUIRE(fd >= 0);
  if (type == kExt4 || type == kTmpfs) {
    BOOST_TEST(can_map(fd) == (type == kExt4));
  }
  struct stat info {};
  BOOST_TEST(fstat(fd, &info) == 0);
  BOOST_TEST(info.st_size == 0);
  close(fd);
}
