// A program that changes its environment before it first calls the driver, and asks for 1 GiB: `environment HOW`.
#include <sys/wait.h>
#include <unistd.h>

#include <string_view>

#include "programs/program.h"

namespace {

CUresult ask() {
  start();
  CUdeviceptr block = 0;
  return cuMemAlloc_v2(&block, size_t{1} << 30);
}

// As programs do that show their state in `ps`.
void overwrite_all() {
  for (char** each = environ; *each != nullptr; ++each) {
    std::memset(*each, 'x', std::strlen(*each));
  }
}

}  // namespace

int main(int, char** arguments) {
  std::string_view how = arguments[1];
  static char put[] = "XLOG_BUDGET=1T";
  if (how == "clearenv") {
    clearenv();
  } else if (how == "unsetenv" || how == "fork") {
    unsetenv("XLOG_BUDGET");
  } else if (how == "setenv" || how == "exec") {
    setenv("XLOG_BUDGET", "1T", 1);
  } else if (how == "putenv") {
    putenv(put);
  } else if (how == "overwrite") {
    overwrite_all();
  }
  if (how == "exec") {
    execl("/proc/self/exe", arguments[0], "nothing", nullptr);
  }
  if (how == "fork") {
    pid_t child = fork();
    if (child == 0) {
      return ask() == CUDA_ERROR_OUT_OF_MEMORY ? 2 : 0;
    }
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("in the child: %d\n", WEXITSTATUS(status));
  }
  std::printf("1 GiB: %d\n", ask());
  return 0;
}
