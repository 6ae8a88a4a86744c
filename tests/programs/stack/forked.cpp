// A process that forks with a runtime in use: the child's calls fail as the driver's do in a fork child, and nothing
// worse; the parent goes on.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "runtime/library/xlog.h"

int main() {
  auto got = xlog::XlogDeviceRuntime::try_get(0);
  if (!got.ok()) {
    return 1;
  }
  xlog::XlogDeviceRuntime& runtime = **got;
  xlog::StreamId stream = runtime.streams().acquire().id;
  auto block = runtime.allocate(4096, stream, "parent");
  if (!block.ok()) {
    return 1;
  }
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    auto own = runtime.allocate(4096, stream, "child");
    static_cast<void>(runtime.reap_pending());
    bool freed = runtime.deallocate(*block).ok();
    std::printf("child: allocate %d, deallocate %d\n", own.ok(), freed);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child ended with %d\n", status);
  bool ok = runtime.deallocate(*block).ok() && runtime.wait_for_stream(stream).ok() && runtime.reap_pending().ok();
  std::printf("parent: %d, outstanding %llu\n", ok, static_cast<unsigned long long>(runtime.bytes_outstanding()));
  return 0;
}
