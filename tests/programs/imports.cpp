// A block opened by another process, twice: `imports`. With `external`: memory of another API, which only the simulated
// driver gives without that API.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "programs/program.h"

namespace {

constexpr size_t kBytes = 4 << 20;

std::string to_hex(const CUipcMemHandle& handle) {
  std::string text;
  for (unsigned char byte : handle.reserved) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", byte);
    text += two;
  }
  return text;
}

int open_it(const std::string& text) {
  CUipcMemHandle handle;
  for (size_t i = 0; i < sizeof handle.reserved; ++i) {
    handle.reserved[i] = static_cast<char>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  CUdeviceptr base = 0;
  size_t size = 0;
  std::printf("open: %d\n", cuIpcOpenMemHandle_v2(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  std::printf("open again: %d\n", cuIpcOpenMemHandle_v2(&q, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  std::printf(" the same address: %d\n", p == q);
  std::printf("range: %d", cuMemGetAddressRange_v2(&base, &size, p));
  std::printf(", base %d, size %zu\n", base == p, size);
  CUdeviceptr own = must_alloc(kBytes);  // a limit of as much is not touched by what is opened
  std::printf("close: %d\n", cuIpcCloseMemHandle(p));
  std::printf("close: %d\n", cuIpcCloseMemHandle(p));
  MUST(cuMemFree_v2(own));
  std::printf("close once more: %d\n", cuIpcCloseMemHandle(p));
  return 0;
}

int external() {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
  description.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  description.handle.fd = -1;
  description.size = kBytes;
  CUexternalMemory memory = nullptr;
  std::printf("import: %d\n", cuImportExternalMemory(&memory, &description));
  std::printf("destroy: %d\n", cuDestroyExternalMemory(memory));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  start();
  if (argc > 1) {
    return std::strcmp(argv[1], "external") == 0 ? external() : open_it(argv[1]);
  }
  CUdeviceptr p = must_alloc(kBytes);
  CUipcMemHandle handle;
  MUST(cuIpcGetMemHandle(&handle, p));
  std::string text = to_hex(handle);
  char* child[] = {argv[0], text.data(), nullptr};
  pid_t pid = 0;
  if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, child, environ) != 0) {
    return 1;
  }
  int status = 0;
  waitpid(pid, &status, 0);
  std::printf("child: %d\n", status);
  MUST(cuMemFree_v2(p));
  return 0;
}
