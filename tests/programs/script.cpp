// script STEP...: +N asks for N MiB of device memory, h+N of pinned memory, -I frees the Ith that was given, kill ends the
// process by SIGKILL, wait takes a second. Prints what each step returned.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "programs/program.h"

int main(int argc, char** argv) {
  start();
  std::vector<CUdeviceptr> given;
  for (int i = 1; i < argc; ++i) {
    std::string step = argv[i];
    if (step == "kill") {
      std::fflush(stdout);
      std::raise(SIGKILL);
    }
    if (step == "wait") {
      sleep(1);
      continue;
    }
    CUresult result = CUDA_SUCCESS;
    if (step[0] == 'h') {
      void* pinned = nullptr;
      result = cuMemHostAlloc(&pinned, std::strtoull(step.c_str() + 2, nullptr, 10) << 20, 0);
    } else if (step[0] == '+') {
      CUdeviceptr ptr = 0;
      result = cuMemAlloc_v2(&ptr, std::strtoull(step.c_str() + 1, nullptr, 10) << 20);
      if (result == CUDA_SUCCESS) {
        given.push_back(ptr);
      }
    } else {
      result = cuMemFree_v2(given.at(std::strtoull(step.c_str() + 1, nullptr, 10)));
    }
    std::printf("%s %d\n", argv[i], result);
  }
  return 0;
}
