// C26: the log of a process that is killed between any two instructions has every call that had returned, once and whole.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <random>

#include "programs/journal.h"
#include "support/process.h"
#include "tools/analysis/analysis.h"
#include "tools/log/mapped_file.h"
#include "tools/log/row_reader.h"

using namespace xlog;
using namespace xlog::test;

namespace {

class SharedJournal {
 public:
  explicit SharedJournal(const std::string& path) {
    std::ofstream(path) << '\0';
    BOOST_REQUIRE(truncate(path.c_str(), sizeof(Journal)) == 0);
    int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* shared = mmap(nullptr, sizeof(Journal), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    BOOST_REQUIRE(shared != MAP_FAILED);
    journal_ = static_cast<Journal*>(shared);
  }
  ~SharedJournal() { munmap(journal_, sizeof(Journal)); }
  SharedJournal(const SharedJournal&) = delete;
  SharedJournal& operator=(const SharedJournal&) = delete;
  Journal& operator*() { return *journal_; }
  Journal* operator->() { return journal_; }

 private:
  Journal* journal_;
};

// The calls of each thread as the log has them; what is wrong with the log itself goes to `wrong`.
std::map<uint64_t, std::vector<uint64_t>> calls_in(const std::string& log, std::string& wrong) {
  std::map<uint64_t, std::vector<uint64_t>> calls;
  MappedFile file(log);
  RowReader reader(file.text());
  wrong += reader.error();
  uint64_t last = 0;
  for (Event event; reader.next(event);) {
    if (event.seq != kNone && event.seq <= last) {
      wrong += " seq goes back;";
    }
    last = event.seq != kNone ? event.seq : last;
    bool free = event.action == action::deallocate;
    if (free || event.action == action::allocate) {
      calls[event.thread].push_back(event.ptr | (free ? 1 : 0));
    }
    wrong += event.elapsed_ns == kNone && event.action != action::driver_used ? " a row without its duration;" : "";
  }
  wrong += reader.foreign_rows() != 0 ? " broken rows;" : "";
  wrong += reader.unfinished_rows() > kJournalThreads ? " more unfinished rows than threads;" : "";
  return calls;
}

// Empty when the log has what the journal has.
std::string judge(Journal& journal, const std::string& log) {
  std::string wrong;
  auto calls = calls_in(log, wrong);
  for (JournalThread& each : journal.threads) {
    const auto& logged = calls[each.tid];
    uint32_t returned = each.calls;
    // One more may have its row and not be noted.
    bool same = logged.size() >= returned && logged.size() <= returned + 1 && std::equal(each.call, each.call + returned, logged.begin());
    if (each.tid != 0 && !same) {
      wrong += " thread " + std::to_string(each.tid) + ": " + std::to_string(returned) + " returned, " + std::to_string(logged.size()) +
               " in the log;";
    }
  }
  return wrong;
}

void kill_at_random_moments(int times, const std::string& log_folder) {
  TempFolder folder;
  std::mt19937 random(7);
  uint64_t returned = 0;
  for (int i = 0; i < times; ++i) {
    SharedJournal journal(folder / "journal");
    std::string log = log_folder + "/x.csv";
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      execl("/usr/bin/env", "env", ("LD_PRELOAD=" + build_folder() + "/libxlog.so").c_str(), ("XLOG_LOG=" + log).c_str(),
            ("LD_LIBRARY_PATH=" + build_folder() + "/noop").c_str(), program("journal").c_str(), (folder / "journal").c_str(),
            static_cast<char*>(nullptr));
      _exit(127);
    }
    int status = 0;
    while (journal->threads[i % kJournalThreads].tid == 0 && waitpid(child, &status, WNOHANG) == 0) {
      usleep(200);
    }
    usleep(static_cast<useconds_t>(random() % 4000));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    BOOST_REQUIRE(WIFSIGNALED(status));
    for (const JournalThread& each : journal->threads) {
      returned += each.calls;
    }
    std::string stem = log_folder + "/x." + std::to_string(child);
    std::vector<std::string> problems;
    std::string wrong = judge(*journal, stem + ".csv");
    for (const std::string& each : tools::analyse(tools::find_logs({stem + ".csv"}, problems), {}).contradictions) {
      wrong += ' ' + each + ';';
    }
    BOOST_REQUIRE_MESSAGE(wrong.empty(), "kill " + std::to_string(i) + ": " + wrong);
    for (const char* end : {".csv", ".stacks.csv", ".run.json"}) {
      unlink((stem + end).c_str());
    }
  }
  BOOST_TEST(returned > static_cast<uint64_t>(times) * 100);
}

}  // namespace

// XLOG_KILLS=1000 for as many as the README speaks of.
BOOST_AUTO_TEST_CASE(no_returned_call_is_missing_after_a_kill) {
  const char* times = getenv("XLOG_KILLS");
  TempFolder folder;
  kill_at_random_moments(times != nullptr ? atoi(times) : 200, folder.path());
}

BOOST_AUTO_TEST_CASE(nor_on_the_file_system_of_a_container) {
  TempFolder folder;
  for (const char* part : {"lower", "upper", "work", "merged"}) {
    mkdir((folder / part).c_str(), 0700);
  }
  SmallDisk disk(folder / "merged", "overlay",
                 "lowerdir=" + (folder / "lower") + ",upperdir=" + (folder / "upper") + ",workdir=" + (folder / "work"));
  if (!disk.mounted()) {
    BOOST_TEST_MESSAGE("skipped: not allowed to mount");
    return;
  }
  const char* times = getenv("XLOG_KILLS");
  kill_at_random_moments(times != nullptr ? atoi(times) : 100, folder / "merged");
}

BOOST_AUTO_TEST_CASE(nor_where_the_log_cannot_be_mapped) {
  TempFolder folder;
  SmallDisk disk(folder.path(), "ramfs", "mode=700");
  if (!disk.mounted()) {
    BOOST_TEST_MESSAGE("skipped: not allowed to mount");
    return;
  }
  const char* times = getenv("XLOG_KILLS");
  kill_at_random_moments(times != nullptr ? atoi(times) : 100, folder.path());
}
