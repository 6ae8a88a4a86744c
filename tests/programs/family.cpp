// family N: allocates N + 1 bytes, then starts two of itself with N - 1, one by posix_spawn and one by vfork and exec.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "programs/program.h"

int main(int, char** argv) {
  int generations = std::atoi(argv[1]);
  start();
  must_alloc(static_cast<size_t>(generations) + 1);
  if (generations == 0) {
    return 0;
  }
  std::string fewer = std::to_string(generations - 1);
  char* arguments[] = {argv[0], fewer.data(), nullptr};
  pid_t children[2] = {};
  if (posix_spawn(&children[0], argv[0], nullptr, nullptr, arguments, environ) != 0) {
    return 1;
  }
  children[1] = vfork();
  if (children[1] == 0) {
    execv(argv[0], arguments);
    _exit(127);
  }
  for (pid_t each : children) {
    int status = 0;
    waitpid(each, &status, 0);
    if (status != 0) {
      return 1;
    }
  }
  return 0;
}
