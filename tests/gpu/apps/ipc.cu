// Two processes and one block: the parent fills it, the child finds the pattern through an IPC handle, changes it, and the
// parent sees that; a hundred times, with a new block each time. Prints what the driver answered where it refuses.
#include <cuda_runtime.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

static constexpr size_t kBytes = 2 << 20;
static constexpr int kRounds = 100;

#define MUST(call)                                              \
  do {                                                          \
    if (cudaError_t result = (call)) {                          \
      std::printf("%s: %s\n", #call, cudaGetErrorName(result)); \
      std::fflush(stdout);                                      \
      std::_Exit(3);                                            \
    }                                                           \
  } while (0)

static int child() {
  cudaIpcMemHandle_t handle;
  for (int i = 0; i < kRounds && read(0, &handle, sizeof handle) == sizeof handle; ++i) {
    void* data = nullptr;
    unsigned char seen = 0;
    MUST(cudaIpcOpenMemHandle(&data, handle, cudaIpcMemLazyEnablePeerAccess));
    MUST(cudaMemcpy(&seen, static_cast<char*>(data) + kBytes - 1, 1, cudaMemcpyDeviceToHost));
    MUST(cudaMemset(data, seen + 1, kBytes));
    MUST(cudaDeviceSynchronize());
    MUST(cudaIpcCloseMemHandle(data));
    if (write(1, &seen, 1) != 1) {
      return 4;
    }
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc > 1) {
    return child();
  }
  int to[2];
  int from[2];
  if (pipe(to) != 0 || pipe(from) != 0) {
    return 4;
  }
  pid_t pid = fork();  // before the driver is used
  if (pid == 0) {
    dup2(to[0], 0);
    dup2(from[1], 1);
    for (int fd : {to[0], to[1], from[0], from[1]}) {
      close(fd);
    }
    execl("/proc/self/exe", argv[0], "child", nullptr);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  int good = 0;
  cudaError_t refused = cudaSuccess;
  for (int i = 0; i < kRounds && refused == cudaSuccess; ++i) {
    void* data = nullptr;
    cudaIpcMemHandle_t handle;
    unsigned char seen = 0;
    unsigned char after = 0;
    MUST(cudaMalloc(&data, kBytes));
    MUST(cudaMemset(data, i, kBytes));
    MUST(cudaDeviceSynchronize());
    refused = cudaIpcGetMemHandle(&handle, data);
    if (refused == cudaSuccess) {
      if (write(to[1], &handle, sizeof handle) != sizeof handle || read(from[0], &seen, 1) != 1) {
        break;
      }
      MUST(cudaMemcpy(&after, data, 1, cudaMemcpyDeviceToHost));
      good += seen == i && after == i + 1;
    }
    MUST(cudaFree(data));
  }
  close(to[1]);
  int status = 0;
  waitpid(pid, &status, 0);
  std::printf("handle: %s\nrounds: %d\nchild: %d\n", cudaGetErrorName(refused), good, WEXITSTATUS(status));
  return 0;
}
