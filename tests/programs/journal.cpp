// journal FILE: allocates and frees in eight threads until it is killed, and notes in FILE, which is shared memory, each
// call that has returned.
#include "programs/journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

void note(JournalThread& journal, CUdeviceptr ptr, bool free) {
  uint32_t n = journal.calls.load(std::memory_order_relaxed);
  journal.call[n] = ptr | (free ? 1 : 0);
  journal.calls.store(n + 1, std::memory_order_release);
}

void run(CUcontext context, JournalThread& journal) {
  MUST(cuCtxSetCurrent(context));
  constexpr uint32_t kHeld = 3;
  CUdeviceptr held[kHeld] = {};
  while (journal.calls.load(std::memory_order_relaxed) + 2 * kHeld < kJournalCalls) {
    for (CUdeviceptr& each : held) {
      each = must_alloc(4096);
      note(journal, each, false);
    }
    journal.tid.store(static_cast<uint32_t>(gettid()), std::memory_order_release);
    for (CUdeviceptr each : held) {
      MUST(cuMemFree_v2(each));
      note(journal, each, true);
    }
  }
  pause();
}

}  // namespace

int main(int, char** argv) {
  int fd = open(argv[1], O_RDWR | O_CLOEXEC);
  void* shared = mmap(nullptr, sizeof(Journal), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (shared == MAP_FAILED) {
    return 2;
  }
  auto* journal = static_cast<Journal*>(shared);
  CUcontext context = start();
  std::vector<std::thread> all;
  for (JournalThread& each : journal->threads) {
    all.emplace_back(run, context, std::ref(each));
  }
  for (std::thread& each : all) {
    each.join();
  }
  return 0;
}
