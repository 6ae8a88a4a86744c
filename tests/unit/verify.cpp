// What `xlog report --verify` calls a contradiction of a log with itself, and what it does not.
#include <boost/test/unit_test.hpp>

#include "support/log_text.h"

using namespace xlog;

namespace {

class Log : public test::LogText {
 public:
  Log& allocate(uint64_t thread, uint64_t ptr, uint64_t live, uint64_t seq) { return block(action::allocate, thread, ptr, live, seq); }
  Log& block(std::string_view action, uint64_t thread, uint64_t ptr, uint64_t live, uint64_t seq) {
    Event e;
    e.thread = thread;
    e.action = action;
    e.ptr = ptr;
    e.bytes = 512;
    e.device = 0;
    e.kind = "plain";
    e.result = "ok";
    e.live_bytes = live;
    e.seq = seq;
    put(e);
    return *this;
  }
  Log& mark(std::string_view action, uint64_t seq) {
    Event e;
    e.action = action;
    e.result = "ok";
    e.seq = seq;
    put(e);
    return *this;
  }
  Log& place_never_filled() {
    raw(std::string(100, '\n'));
    return *this;
  }
  [[nodiscard]] uint64_t contradictions() const { return report().contradiction_count; }
};

}  // namespace

BOOST_AUTO_TEST_CASE(live_bytes_of_one_thread_add_up) {
  BOOST_TEST(Log().allocate(7, 0x1000, 512, 1).allocate(7, 0x2000, 1024, 2).contradictions() == 0);
  BOOST_TEST(Log().allocate(7, 0x1000, 512, 1).allocate(7, 0x2000, 512, 2).mark(action::exit, 3).contradictions() == 1);
  // Of a process that was killed other threads may have no row yet.
  BOOST_TEST(Log().allocate(7, 0x1000, 512, 1).allocate(7, 0x2000, 512, 2).contradictions() == 0);
}

BOOST_AUTO_TEST_CASE(bytes_of_a_thread_count_before_its_row) {
  BOOST_TEST(Log().allocate(7, 0x1000, 1024, 1).allocate(8, 0x2000, 512, 2).contradictions() == 0);
}

BOOST_AUTO_TEST_CASE(a_number_is_missing_only_where_a_place_is) {
  BOOST_TEST(Log().allocate(7, 0x1000, 512, 1).allocate(7, 0x2000, 1024, 3).contradictions() == 1);
  BOOST_TEST(Log().allocate(7, 0x1000, 512, 1).place_never_filled().allocate(7, 0x2000, 1024, 3).contradictions() == 0);
  BOOST_TEST(Log().allocate(7, 0x1000, 512, 2).allocate(7, 0x2000, 1024, 1).contradictions() > 0);
}

BOOST_AUTO_TEST_CASE(an_end_without_a_beginning) {
  using namespace action;
  BOOST_TEST(Log().block(deallocate, 7, 0x1000, 0, 1).contradictions() == 1);
  BOOST_TEST(Log().allocate(7, 0x1000, 512, 1).mark(log_off, 2).mark(log_on, 3).block(deallocate, 7, 0x1000, 0, 4).contradictions() == 0);
}
