// interruptions HOW [ARGS]: what a program may do to a library inside it, beside calls that make and end memory.
//   refused            one request that no GPU can serve
//   data-file FILE     closes its three descriptors first; its data file becomes descriptor 2
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "programs/program.h"

namespace {

constexpr size_t kTooMuch = size_t{1} << 50;

int refused() {
  start();
  CUdeviceptr ptr = 0;
  CUresult much = cuMemAlloc_v2(&ptr, kTooMuch);
  cuMemFree_v2(must_alloc(4096));
  std::printf("%d\n", static_cast<int>(much));
  return 0;
}

int data_file(const char* path) {
  FILE* out = fdopen(dup(1), "w");
  for (int fd : {0, 1, 2}) {
    close(fd);
  }
  bool opened = open("/dev/null", O_RDWR) == 0 && open("/dev/null", O_RDWR) == 1;
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  bool written = write(fd, "DATA", 4) == 4;
  start();
  CUdeviceptr ptr = 0;
  cuMemAlloc_v2(&ptr, kTooMuch);
  written = write(fd, "MORE", 4) == 4 && written;
  std::fprintf(out, "descriptor %d\n", opened && written ? fd : -1);
  std::fclose(out);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string how = argc > 1 ? argv[1] : "";
  if (how == "refused") {
    return refused();
  }
  if (how == "data-file" && argc > 2) {
    return data_file(argv[2]);
  }
  return 2;
}
