// A program that links the runtime: a producer and a consumer on two streams, a budget, a promise for both buffers, and a
// recorder for each launch. Prints what the consumer read.
#include <cuda.h>

#include <cstdio>
#include <vector>

#include "runtime/library/xlog.h"

namespace {

bool failed(const xlog::Status& status, const char* what) {
  if (!status.ok()) {
    xlog::MessageText text;
    xlog::put_message(text, status);
    std::fprintf(stderr, "%s: %.*s\n", what, static_cast<int>(text.size()), text.data());
  }
  return !status.ok();
}

}  // namespace

int main() {
  // XLOG_LOG, XLOG_BUDGET and XLOG_BACKEND say what the stack is made of.
  auto got = xlog::XlogDeviceRuntime::try_get(0);
  if (failed(got.status(), "no runtime")) {
    return 1;
  }
  xlog::XlogDeviceRuntime& runtime = **got;
  xlog::StreamId producer = runtime.streams().acquire().id;
  xlog::StreamId consumer = runtime.streams().acquire().id;
  xlog::DeviceContext::Scope scope(runtime.streams().context());

  constexpr size_t kBytes = size_t{1} << 20;
  auto block = runtime.allocate(kBytes, producer, "frames");
  if (failed(block.status(), "allocate")) {
    return 1;
  }
  std::vector<unsigned char> read(kBytes);
  long sum = 0;
  for (unsigned char frame = 1; frame <= 10; ++frame) {
    xlog::LaunchRecorder write(producer, xlog::LaunchRecorder::Mode::strict);
    write.write(&*block);
    if (failed(write.preflight(runtime), "preflight")) {
      return 1;
    }
    cuMemsetD8Async(block->ptr, frame, kBytes, runtime.streams().resolve(producer));
    if (failed(write.commit(runtime), "commit")) {
      return 1;
    }
    xlog::LaunchRecorder copy(consumer, xlog::LaunchRecorder::Mode::strict);
    copy.read(&*block);
    if (failed(copy.preflight(runtime), "preflight")) {
      return 1;
    }
    cuMemcpyDtoHAsync(read.data(), block->ptr, kBytes, runtime.streams().resolve(consumer));
    if (failed(copy.commit(runtime), "commit") || failed(runtime.wait_for_stream(consumer), "wait")) {
      return 1;
    }
    sum += read[0] + read[kBytes - 1];
  }
  // The copy of the last frame may be late: the free waits for it, and neither stream does.
  if (failed(runtime.deallocate(*block), "deallocate") || failed(runtime.wait_for_stream(producer), "wait") ||
      failed(runtime.reap_pending({.patience_ns = 1'000'000'000}), "reap")) {
    return 1;
  }
  std::printf("sum %ld, outstanding %llu\n", sum, static_cast<unsigned long long>(runtime.bytes_outstanding()));
  return sum == 110 ? 0 : 1;
}
