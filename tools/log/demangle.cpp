#include "tools/log/demangle.h"

#define HAVE_DECL_BASENAME 1  // else libiberty declares it anew
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>

namespace xlog::tools {

namespace {

// libiberty's demangler allocates nothing when it hands its text to a function, and it is plain C: it may be left by a
// jump at any moment, out of that function or out of a signal handler.
struct Attempt {
  sigjmp_buf out;
  volatile sig_atomic_t running = 0;
  size_t size = 0;
  char text[kLongestName];
};

thread_local Attempt* current = nullptr;

void take(const char* text, size_t size, void* data) {
  auto* attempt = static_cast<Attempt*>(data);
  if (size > kLongestName - attempt->size) {
    attempt->running = 0;
    siglongjmp(attempt->out, 1);
  }
  std::memcpy(attempt->text + attempt->size, text, size);
  attempt->size += size;
}

void time_is_up(int) {
  Attempt* attempt = current;
  if (attempt != nullptr && attempt->running != 0) {  // else it ended just now
    attempt->running = 0;
    siglongjmp(attempt->out, 1);
  }
}

int timer_signal() { return SIGRTMAX - 2; }

// Runs out after some processor time of the thread that made it.
class Alarm {
 public:
  Alarm() {
    struct sigaction action {};
    action.sa_handler = time_is_up;
    action.sa_flags = SA_NODEFER | SA_RESTART;  // as the handler is left by a jump
    sigemptyset(&action.sa_mask);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timer_signal();
    event._sigev_un._tid = gettid();
    made_ = sigaction(timer_signal(), &action, nullptr) == 0 && timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer_) == 0;
  }
  ~Alarm() {
    if (made_) {
      timer_delete(timer_);
    }
  }
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;
  [[nodiscard]] bool made() const { return made_; }
  void set(long nanoseconds) const {
    itimerspec when{};
    when.it_value.tv_nsec = nanoseconds;
    timer_settime(timer_, 0, &when, nullptr);
  }

 private:
  timer_t timer_{};
  bool made_ = false;
};

enum class Result { name, none, cut };

// Nothing in here may need a destructor: it is left by jumps.
Result attempt_to_demangle(const char* symbol, Attempt& attempt, const Alarm& alarm) {
  attempt.size = 0;
  if (sigsetjmp(attempt.out, 0) != 0) {
    alarm.set(0);
    return Result::cut;
  }
  attempt.running = 1;
  alarm.set(kDemangleNanoseconds);
  int good = cplus_demangle_v3_callback(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_TYPES | DMGL_NO_RECURSE_LIMIT, take, &attempt);
  attempt.running = 0;
  alarm.set(0);
  return good != 0 ? Result::name : Result::none;
}

}  // namespace

std::string demangle(const char* symbol) {
  // A file with hundreds of symbols that take too long was made to waste time: none of its names is worth that.
  constexpr int kMostFailures = 100;
  static std::atomic<int> failures{0};
  bool is_symbol = std::strncmp(symbol, "_Z", 2) == 0 || std::strncmp(symbol, "_GLOBAL_", 8) == 0;
  if (!is_symbol || strnlen(symbol, kLongestSymbol + 1) > kLongestSymbol) {
    return symbol;
  }
  thread_local std::unique_ptr<Attempt> attempt = std::make_unique<Attempt>();
  thread_local Alarm alarm;
  if (!alarm.made() || failures.load(std::memory_order_relaxed) >= kMostFailures) {
    return symbol;
  }
  current = attempt.get();
  Result result = attempt_to_demangle(symbol, *attempt, alarm);
  current = nullptr;
  failures += result == Result::cut ? 1 : 0;
  return result == Result::name ? std::string(attempt->text, attempt->size) : std::string(symbol);
}

}  // namespace xlog::tools
