// planted_write RESOURCE WHERE: a kernel writes one byte where it must not, in memory of one resource of the stack: for
// compute-sanitizer, to see what it can see. RESOURCE: direct, async, pool, raw (cuMemAlloc, without us). WHERE: none,
// end (first byte past a block of 1000), neighbour (past a block of 1024, into the next live one), far (64 MiB past the
// end), freed. Prints the result of the synchronise.
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/library/xlog.h"

namespace {

constexpr const char* kKernel = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry store_byte(.param .u64 where) {
  .reg .u64 %rd<3>;
  .reg .u16 %rs<2>;
  ld.param.u64 %rd1, [where];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u16 %rs1, 171;
  st.global.u8 [%rd2], %rs1;
  ret;
}
)";

void check(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "%s: %d\n", what, result);
    std::exit(2);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: planted_write direct|async|pool|raw none|end|neighbour|far|freed\n");
    return 2;
  }
  std::string_view which = argv[1];
  std::string_view where = argv[2];
  const xlog::DriverApi* driver = xlog::load_driver();
  if (driver == nullptr) {
    return 2;
  }
  xlog::StreamPool streams(*driver, 0);
  if (!streams.status().ok()) {
    return 2;
  }
  xlog::DirectCudaResource direct(streams.context());
  xlog::AsyncCudaResource async(streams);
  xlog::PoolResource pool(async, streams);
  xlog::DeviceMemoryResource* resource = which == "direct" ? static_cast<xlog::DeviceMemoryResource*>(&direct)
                                         : which == "pool" ? static_cast<xlog::DeviceMemoryResource*>(&pool)
                                                           : &async;
  xlog::DeviceContext::Scope scope(streams.context());
  xlog::StreamId on = streams.acquire().id;
  CUstream stream = streams.resolve(on);
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  check(cuModuleLoadData(&module, kKernel), "cuModuleLoadData");
  check(cuModuleGetFunction(&kernel, module, "store_byte"), "cuModuleGetFunction");

  size_t bytes = where == "neighbour" ? 1024 : 1000;
  std::vector<xlog::DeviceBlock> blocks;
  CUdeviceptr ptr = 0;
  CUdeviceptr next = 0;
  if (which == "raw") {
    check(cuMemAlloc(&ptr, bytes), "cuMemAlloc");
    check(cuMemAlloc(&next, bytes), "cuMemAlloc");
  } else {
    for (int i = 0; i < 2; ++i) {
      auto block = resource->allocate(bytes, on);
      if (!block.ok()) {
        return 2;
      }
      blocks.push_back(std::move(*block));
    }
    ptr = blocks[0].ptr;
    next = blocks[1].ptr;
  }
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  CUdeviceptr target = where == "end" || where == "neighbour" ? ptr + bytes : where == "far" ? ptr + bytes + (64 << 20) : ptr;
  if (where == "neighbour" && next != target) {
    std::printf("the neighbour is not next to it\n");
  }
  if (where == "freed") {
    if (which == "raw") {
      check(cuMemFree(ptr), "cuMemFree");
    } else if (!resource->deallocate(blocks[0]).ok()) {
      return 2;
    }
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  void* arguments[] = {&target};
  check(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr), "cuLaunchKernel");
  std::printf("%s %s: synchronise %d\n", argv[1], argv[2], cuStreamSynchronize(stream));
  std::fflush(stdout);
  _Exit(0);  // what is left is not cleaned up: after a fault nothing can be
}
