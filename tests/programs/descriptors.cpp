// Closes every descriptor, opens its own, goes on allocating: the library's must not be among them, nor write there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "programs/program.h"

int main(int, char** argv) {
  start();
  for (int i = 0; i < 100; ++i) {
    MUST(cuMemFree_v2(must_alloc(1000)));
  }
  for (int i = 0; i < 3; ++i) {
    std::printf("next descriptor %d\n", dup(1));
  }
  close_range(3, 4096, 0);
  int first = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
  int others[2000];
  for (int& each : others) {
    each = open(argv[1], O_RDWR);
  }
  for (int i = 0; i < 20000; ++i) {
    MUST(cuMemFree_v2(must_alloc(1000)));
  }
  struct stat info {};
  fstat(first, &info);
  std::printf("first descriptor %d, bytes in the file %ld\n", first, static_cast<long>(info.st_size));
  return 0;
}
