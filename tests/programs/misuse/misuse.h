// One misuse of device memory a program, named for it. With the argument `correct` the same program does it right. Bytes are
// stored and read by a kernel, which nothing checks; what the program prints is the same in all modes.
#pragma once

#include "programs/program.h"

namespace misuse {

inline bool wrong = true;
inline CUfunction store = nullptr;
inline CUfunction load = nullptr;

inline constexpr char kKernels[] = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry store_bytes(.param .u64 to, .param .u64 count, .param .u32 value) {
  .reg .u64 %to, %left;
  .reg .u32 %value;
  .reg .pred %done;
  ld.param.u64 %to, [to];
  ld.param.u64 %left, [count];
  ld.param.u32 %value, [value];
again:
  setp.eq.u64 %done, %left, 0;
  @%done bra end;
  st.global.u8 [%to], %value;
  add.u64 %to, %to, 1;
  sub.u64 %left, %left, 1;
  bra again;
end:
  ret;
}
.visible .entry load_byte(.param .u64 from, .param .u64 to) {
  .reg .u64 %from, %to;
  .reg .u32 %value;
  ld.param.u64 %from, [from];
  ld.param.u64 %to, [to];
  ld.global.u8 %value, [%from];
  st.global.u8 [%to], %value;
  ret;
}
)";

inline void begin(int argc, char** argv) {
  wrong = argc < 2 || std::strcmp(argv[1], "correct") != 0;
  start();
  CUmodule module = nullptr;
  MUST(cuModuleLoadData(&module, kKernels));
  MUST(cuModuleGetFunction(&store, module, "store_bytes"));
  MUST(cuModuleGetFunction(&load, module, "load_byte"));
}

// Bytes that are not the guard's pattern for long.
inline void write(CUdeviceptr to, size_t count, CUstream stream = nullptr) {
  uint64_t n = count;
  uint32_t value = 0x5A;
  void* arguments[] = {&to, &n, &value};
  MUST(cuLaunchKernel(store, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
}

inline void read(CUdeviceptr from, CUdeviceptr to) {
  void* arguments[] = {&from, &to};
  MUST(cuLaunchKernel(load, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
}

inline CUstream make_stream() {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

inline CUdeviceptr must_alloc_async(size_t bytes, CUstream stream) {
  CUdeviceptr ptr = 0;
  MUST(cuMemAllocAsync(&ptr, bytes, stream));
  return ptr;
}

inline void show(const char* what, CUresult result) {
  std::printf("%s: %d\n", what, result);
  std::fflush(stdout);
}

// A write of `count` bytes over the end of a block, or up to it.
inline void write_over(CUdeviceptr block, size_t bytes, size_t count, CUstream stream = nullptr) {
  write(wrong ? block + bytes : block + bytes - (count < bytes ? count : bytes), wrong ? count : (count < bytes ? count : bytes), stream);
}

inline void free_and_synchronise(CUdeviceptr block) {
  show("free", cuMemFree_v2(block));
  show("synchronise", cuCtxSynchronize());
}

}  // namespace misuse

#define MISUSE_PROGRAM              \
  int main(int argc, char** argv) { \
    misuse::begin(argc, argv);      \
    run();                          \
    return 0;                       \
  }
