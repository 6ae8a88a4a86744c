// A fork beside a thread that walks the loaded files: the child can load and look up.
#include "runtime/base/loaded_files.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <csignal>
#include <thread>

namespace xlog {

namespace {

using namespace std::chrono_literals;

// A walk that lasts until `stop`, then 50 ms more.
struct LongWalk {
  std::atomic<bool> under_way{false};
  std::atomic<bool> stop{false};
  static int visit(dl_phdr_info*, size_t, void* data) {
    auto* walk = static_cast<LongWalk*>(data);
    walk->under_way = true;
    while (!walk->stop) {
      std::this_thread::sleep_for(1ms);
    }
    std::this_thread::sleep_for(50ms);
    return 7;
  }
};

// Wait status of a child that uses the loader; one that waits for ever is ended by SIGALRM.
int child_with_loader() {
  pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    void* handle = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
    int files = 0;
    walk_loaded_files(
        [](dl_phdr_info*, size_t, void* data) {
          ++*static_cast<int*>(data);
          return 0;
        },
        &files);
    _exit(handle != nullptr && files > 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_fork_waits_for_the_walk_of_another_thread) {
  make_forks_wait();
  make_forks_wait();
  for (int i = 0; i < 3; ++i) {
    LongWalk walk;
    std::atomic<int> result{0};
    std::thread walker([&] { result = walk_loaded_files(LongWalk::visit, &walk); });
    while (!walk.under_way) {
      std::this_thread::sleep_for(1ms);
    }
    walk.stop = true;
    BOOST_TEST(child_with_loader() == 0);
    walker.join();
    BOOST_TEST(result == 7);
  }
}

// As when a signal handler forks.
BOOST_AUTO_TEST_CASE(a_fork_inside_its_own_walk_does_not_wait_for_itself) {
  make_forks_wait();
  bool quick = false;
  for (int i = 0; i < 5 && !quick; ++i) {  // a wait for itself would take a second each time; a busy machine, once
    auto before = std::chrono::steady_clock::now();
    walk_loaded_files(
        [](dl_phdr_info*, size_t, void*) {
          pid_t pid = fork();
          if (pid == 0) {
            _exit(0);
          }
          int status = 0;
          waitpid(pid, &status, 0);
          return 1;
        },
        nullptr);
    quick = std::chrono::steady_clock::now() - before < 900ms;
  }
  BOOST_TEST(quick);
}

// Neither waits for ever for the other, whatever the walk waits for.
BOOST_AUTO_TEST_CASE(a_walk_that_waits_for_the_fork) {
  make_forks_wait();
  LongWalk walk;
  std::thread walker([&] { walk_loaded_files(LongWalk::visit, &walk); });
  while (!walk.under_way) {
    std::this_thread::sleep_for(1ms);
  }
  pid_t pid = fork();
  if (pid == 0) {
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  walk.stop = true;
  walker.join();
  BOOST_TEST(status == 0);
}

}  // namespace xlog
