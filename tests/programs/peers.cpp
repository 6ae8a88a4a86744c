// Two devices, one of which reads and writes the other's memory: blocks made before the access was given and after it.
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kBytes = 1 << 20;

void show(const char* what, long value) { std::printf("%s: %ld\n", what, value); }

// Copies a pattern through every call there is for two devices; the number of wrong bytes.
long carried(CUdeviceptr on_owner, CUcontext owner, CUdeviceptr on_reader, CUcontext reader) {
  CUstream stream = nullptr;
  MUST(cuCtxSetCurrent(reader));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::vector<unsigned char> data(kBytes);
  long wrong = 0;
  for (unsigned char value = 1; value < 4; ++value) {
    MUST(cuMemsetD8Async(on_reader, value, kBytes, stream));
    MUST(cuMemcpyPeerAsync(on_owner, owner, on_reader, reader, kBytes, stream));
    MUST(cuMemsetD8Async(on_reader, 0, kBytes, stream));
    MUST(cuMemcpyPeerAsync(on_reader, reader, on_owner, owner, kBytes, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuMemcpyDtoH_v2(data.data(), on_reader, kBytes));
    for (unsigned char each : data) {
      wrong += each != value;
    }
  }
  MUST(cuStreamDestroy_v2(stream));
  return wrong;
}

}  // namespace

int main() {
  CUcontext owner = start(0);
  CUcontext reader = nullptr;
  int can = 0;
  MUST(cuDeviceCanAccessPeer(&can, 1, 0));
  CUdeviceptr early = must_alloc(kBytes);
  MUST(cuDevicePrimaryCtxRetain(&reader, 1));
  MUST(cuCtxSetCurrent(reader));
  CUdeviceptr own = must_alloc(kBytes);
  show("wrong bytes without access", carried(early, owner, own, reader));
  show("enable", cuCtxEnablePeerAccess(owner, 0));
  show("enable again", cuCtxEnablePeerAccess(owner, 0));
  show("wrong bytes of a block made before", carried(early, owner, own, reader));
  MUST(cuCtxSetCurrent(owner));
  CUdeviceptr late = must_alloc(kBytes);
  show("wrong bytes of a block made after", carried(late, owner, own, reader));
  MUST(cuCtxSetCurrent(owner));
  show("free", cuMemFree_v2(early) + cuMemFree_v2(late));
  show("free with the owner current", cuMemFree_v2(own));
  return can == 1 ? 0 : 1;
}
