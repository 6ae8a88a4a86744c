// A runtime-API program, built with the static and with the shared cudart: allocations of each kind, a kernel, copies,
// an error, a reset. Prints what it computed and every return code.
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

__global__ void add(int* data, int n, int value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    data[i] += value;
  }
}

static void line(const char* what, long value) { std::printf("%s: %ld\n", what, value); }

int main() {
  constexpr int n = 1 << 20;
  int* plain = nullptr;
  int* ordered = nullptr;
  void* pitched = nullptr;
  size_t pitch = 0;
  cudaStream_t stream;
  line("free(0)", cudaFree(nullptr));
  line("stream", cudaStreamCreate(&stream));
  line("malloc", cudaMalloc(&plain, n * sizeof(int)));
  line("memset", cudaMemset(plain, 0, n * sizeof(int)));
  for (int i = 0; i < 100; ++i) {
    line("mallocAsync", cudaMallocAsync(&ordered, n * sizeof(int), stream));
    line("copy", cudaMemcpyAsync(ordered, plain, n * sizeof(int), cudaMemcpyDeviceToDevice, stream));
    add<<<n / 256, 256, 0, stream>>>(ordered, n, i);
    line("copy back", cudaMemcpyAsync(plain, ordered, n * sizeof(int), cudaMemcpyDeviceToDevice, stream));
    line("freeAsync", cudaFreeAsync(ordered, stream));
  }
  line("pitch", cudaMallocPitch(&pitched, &pitch, 1000003, 100));
  line(" pitch", static_cast<long>(pitch));
  std::vector<int> host(n);
  line("sync", cudaStreamSynchronize(stream));
  line("to host", cudaMemcpy(host.data(), plain, n * sizeof(int), cudaMemcpyDeviceToHost));
  long sum = 0;
  for (int each : host) {
    sum += each;
  }
  line("sum", sum);
  void* zero = reinterpret_cast<void*>(0x1234);
  line("malloc(0)", cudaMalloc(&zero, 0));
  line(" is null", zero == nullptr);
  line("too much", cudaMalloc(&zero, size_t{1} << 50));
  line("last error", cudaGetLastError());
  line("free", cudaFree(plain));
  line("double free", cudaFree(plain));
  line("free pitched", cudaFree(pitched));
  line("reset", cudaDeviceReset());
  line("malloc after reset", cudaMalloc(&plain, 1024));
  line("free after reset", cudaFree(plain));
  return 0;
}
