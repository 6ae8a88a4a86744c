// LoggingResource and its sinks: which records there are, what they say, what a refusing sink changes (nothing).
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/stack/harness.h"
#include "tools/log/row_reader.h"

using namespace stack_tests;

BOOST_TEST_DONT_PRINT_LOG_VALUE(Error)
BOOST_TEST_DONT_PRINT_LOG_VALUE(LogAction)
BOOST_TEST_DONT_PRINT_LOG_VALUE(SinkError)

namespace {

class RefusingSink final : public LoggingSink {
 public:
  SinkError emit(LogEntry&) noexcept override { return SinkError::refused; }
};

struct LogFixture {
  StreamPool streams{*Gpu::get().api, 0};
  StreamId s = streams.acquire().id;
  AsyncCudaResource async{streams};

  LogFixture() { Gpu::get().seed(0); }
};

struct Folder {
  std::filesystem::path path;
  Folder() {
    char name[] = "/tmp/xlog-stack-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_record_for_each_call, LogFixture) {
  InMemorySink sink;
  LoggingResource logging(async, sink);
  ResourceResult<DeviceBlock> a = logging.allocate(100, s, "first");
  ResourceResult<DeviceBlock> b = logging.allocate(200);
  uint64_t generation = a->generation.value;
  uint64_t ptr = a->ptr;
  BOOST_TEST(logging.deallocate(*a).ok());
  BOOST_TEST(logging.deallocate(*b).ok());
  BOOST_TEST(logging.reap_pending(ReapGoal{.patience_ns = 2'000'000'000}).ok());
  BOOST_TEST((logging.allocate(0, s, "none").status().error == Error::driver));
  std::vector<LogRecord> records = sink.snapshot();
  BOOST_REQUIRE(records.size() == 6);
  LogAction actions[] = {LogAction::allocate,   LogAction::allocate,     LogAction::deallocate,
                         LogAction::deallocate, LogAction::reap_pending, LogAction::allocate};
  for (size_t i = 0; i < 6; ++i) {
    BOOST_TEST((records[i].action == actions[i]));
    BOOST_TEST(records[i].device_ordinal == 0);
    BOOST_TEST(records[i].thread_id == static_cast<uint32_t>(gettid()));
    BOOST_TEST(records[i].timestamp_nanos > uint64_t{1'700'000'000} * 1'000'000'000);
    BOOST_TEST((i == 0 || records[i].order_counter > records[i - 1].order_counter));
  }
  for (size_t i : {0, 2}) {
    BOOST_TEST(*records[i].ptr == ptr);
    BOOST_TEST(*records[i].bytes == 100);
    BOOST_TEST(*records[i].stream_id == s.index());
    BOOST_TEST(*records[i].generation == generation);
    BOOST_TEST(*records[i].tag == "first");
    BOOST_TEST(records[i].result.ok());
  }
  BOOST_TEST(*records[1].stream_id == 0);
  BOOST_TEST(*records[1].tag == "untagged");
  BOOST_TEST(!records[4].stream_id.has_value());
  BOOST_TEST(!records[4].ptr.has_value());
  BOOST_TEST(!records[4].bytes.has_value());
  BOOST_TEST(!records[4].tag.has_value());
  BOOST_TEST(*records[5].bytes == 0);
  BOOST_TEST(!records[5].ptr.has_value());
  BOOST_TEST(!records[5].generation.has_value());
  BOOST_TEST((records[5].result.kind == Error::driver));
  BOOST_TEST(records[5].result.message.starts_with("CUDA driver error"));
  // Uses are too many to be records.
  sink.clear();
  ResourceResult<DeviceBlock> c = logging.allocate(100, s);
  BOOST_TEST(logging.prepare_block_use(c->id(), kDefaultStream, Access::read).ok());
  BOOST_TEST(logging.finish_block_use(c->id(), kDefaultStream, Access::read).ok());
  BOOST_TEST(sink.len() == 1);
  BOOST_TEST(logging.deallocate(*c).ok());
}

BOOST_FIXTURE_TEST_CASE(a_failed_deallocate_says_what_was_passed, LogFixture) {
  InMemorySink sink;
  LoggingResource logging(async, sink);
  DeviceBlock bogus;
  bogus.ptr = 0xdeadbeef00;
  bogus.bytes = 77;
  bogus.device = 0;
  bogus.generation = {123456789};
  BOOST_TEST(!logging.deallocate(bogus).ok());
  std::vector<LogRecord> records = sink.snapshot();
  BOOST_REQUIRE(records.size() == 1);
  BOOST_TEST(*records[0].ptr == 0xdeadbeef00);
  BOOST_TEST(*records[0].bytes == 77);
  BOOST_TEST((records[0].result.kind == Error::use_after_free));
  BOOST_TEST(records[0].result.message == "use-after-free on generation 123456789");
  BOOST_TEST(logging.live_bytes() == 0);
}

BOOST_FIXTURE_TEST_CASE(a_refusing_sink_changes_nothing, LogFixture) {
  RefusingSink sink;
  LoggingResource logging(async, sink);
  ResourceResult<DeviceBlock> block = logging.allocate(100, s);
  BOOST_REQUIRE(block.ok());
  BOOST_TEST(logging.deallocate(*block).ok());
  BOOST_TEST(logging.dropped_records() == 2);
}

BOOST_FIXTURE_TEST_CASE(refusals_are_seen_where_the_log_is_outermost, LogFixture) {
  InMemorySink sink;
  DeviceLedger ledger;
  GlobalDeviceBudget budget(async, 100, ledger);
  LoggingResource logging(budget, sink);
  BOOST_TEST(!logging.allocate(101, s, "large").ok());
  std::vector<LogRecord> records = sink.snapshot();
  BOOST_REQUIRE(records.size() == 1);
  BOOST_TEST((records[0].result.kind == Error::out_of_budget));
  BOOST_TEST(records[0].result.message ==
             "out of budget: current 0 bytes, requested 101 bytes, required 101 bytes, limit 100 bytes, remaining 100 bytes");
}

BOOST_FIXTURE_TEST_CASE(a_ring_keeps_the_last, LogFixture) {
  RingBufferSink ring(3);
  LoggingResource logging(async, ring);
  for (size_t i = 1; i <= 5; ++i) {
    ResourceResult<DeviceBlock> block = logging.allocate(i, s);
    BOOST_TEST(async.deallocate(*block).ok());
  }
  std::vector<LogRecord> records = ring.snapshot();
  BOOST_REQUIRE(records.size() == 3);
  BOOST_TEST(*records[0].bytes == 3);
  BOOST_TEST(*records[2].bytes == 5);
  BOOST_TEST(ring.overwritten() == 2);
}

BOOST_AUTO_TEST_CASE(messages_are_cut_where_a_character_ends) {
  std::string umlauts;
  for (int i = 0; i < 200; ++i) {
    umlauts += "\xC3\xA4";
  }
  BOOST_TEST(cut_text(umlauts, 256).size() == 256);
  BOOST_TEST(cut_text("x" + umlauts, 256).size() == 255);
  BOOST_TEST(cut_text("short", 256) == "short");
  BOOST_TEST(cut_text(umlauts, 0).empty());
  BOOST_TEST(cut_text("\xF0\x9F\x98\x80", 3).empty());
  std::string detail(400, 'a');
  detail.replace(200, 100, umlauts.substr(0, 100));
  MessageText message;
  put_message(message, Status::stream_misuse(detail.c_str()));
  BOOST_TEST(message.size() <= 259);
  BOOST_TEST(message.view().ends_with("\xE2\x80\xA6"));
  BOOST_TEST(message.view().size() >= 255);
  MessageText whole;
  put_message(whole, Status::use_after_free({7}));
  BOOST_TEST(whole.view() == "use-after-free on generation 7");
}

BOOST_FIXTURE_TEST_CASE(a_csv_file_of_ones_own, LogFixture) {
  Folder folder;
  {
    CsvFileSink sink((folder.path / "own.csv").native(), 8);
    LoggingResource logging(async, sink);
    ResourceResult<DeviceBlock> block = logging.allocate(4096, s, AllocTag::intern("made at run time"));
    BOOST_REQUIRE(block.ok());
    BOOST_TEST(logging.deallocate(*block).ok());
    BOOST_TEST(logging.reap_pending().ok());
    BOOST_TEST(logging.dropped_records() == 0);
  }
  std::string csv;
  for (const auto& each : std::filesystem::directory_iterator(folder.path)) {
    std::string name = each.path().filename();
    BOOST_TEST((std::filesystem::status(each).permissions() == std::filesystem::perms(0600)));
    if (name.ends_with(".csv") && name.find("stacks") == std::string::npos) {
      csv = each.path();
    }
  }
  BOOST_REQUIRE(!csv.empty());
  std::ifstream file(csv);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  BOOST_TEST(text.find("made at run time") != std::string::npos);
  BOOST_TEST(text.find(",allocate,0x") != std::string::npos);
  BOOST_TEST(text.find(",deallocate,0x") != std::string::npos);
  BOOST_TEST(text.find(",reap_pending,") != std::string::npos);
  CsvFileSink nowhere("/nonexistent/folder/x.csv");
  LoggingResource logging(async, nowhere);
  ResourceResult<DeviceBlock> block = logging.allocate(64, s);
  BOOST_TEST(block.ok());
  BOOST_TEST(logging.deallocate(*block).ok());
  BOOST_TEST(logging.dropped_records() == 2);
}

BOOST_AUTO_TEST_CASE(tags_made_at_run_time) {
  std::string text = "tag number 7";
  AllocTag first = AllocTag::intern(text);
  text[0] = 'X';
  AllocTag again = AllocTag::intern("tag number 7");
  BOOST_TEST(first.text() == "tag number 7");
  BOOST_TEST(first.text().data() == again.text().data());
  BOOST_TEST(AllocTag::intern("").is_untagged());
  BOOST_TEST(AllocTag::intern(std::string(500, 'x')).text().size() == 120);
  std::vector<std::thread> threads;
  std::vector<std::string_view> seen(8);
  for (size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&seen, t] {
      for (int i = 0; i < 1000; ++i) {
        std::string_view kept = AllocTag::intern("shared " + std::to_string(i)).text();
        seen[t] = i == 500 ? kept : seen[t];
      }
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
  for (std::string_view each : seen) {
    BOOST_TEST(each.data() == seen[0].data());
    BOOST_TEST(each == "shared 500");
  }
}
