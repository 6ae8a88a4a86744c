// XlogDeviceRuntime and LaunchRecorder: who gets one, what they forward, and every way to hold the protocol wrong.

#include <atomic>
#include <chrono>
#include <thread>
#include <typeinfo>

#include "runtime/library/launch_recorder.h"
#include "tests/stack/harness.h"

using namespace stack_tests;

BOOST_TEST_DONT_PRINT_LOG_VALUE(Error)
BOOST_TEST_DONT_PRINT_LOG_VALUE(BlockState)

namespace {

struct RuntimeFixture {
  StreamPool streams{*Gpu::get().api, 0};
  StreamId s = streams.acquire().id;
  StreamId u = streams.acquire().id;
  AsyncCudaResource async{streams};
  DirectCudaResource direct{streams.context()};
  XlogDeviceRuntime runtime = std::move(*XlogDeviceRuntime::with_resource(0, streams, async));
  XlogDeviceRuntime untracked = std::move(*XlogDeviceRuntime::with_resource(0, streams, direct));
  Current current{streams};

  RuntimeFixture() { Gpu::get().seed(0); }
  DeviceBlock allocate(size_t bytes, StreamId on) {
    ResourceResult<DeviceBlock> result = runtime.allocate(bytes, on);
    BOOST_REQUIRE(result.ok());
    return std::move(*result);
  }
};
using Mode = LaunchRecorder::Mode;

}  // namespace

BOOST_FIXTURE_TEST_CASE(parts_of_one_device, RuntimeFixture) {
  BOOST_TEST((XlogDeviceRuntime::with_resource(1, streams, async).status().error == Error::driver));
  StreamPool nowhere(*Gpu::get().api, 99);
  BOOST_TEST((XlogDeviceRuntime::with_resource(99, nowhere, async).status().error == Error::driver));
  XlogDeviceRuntime nothing;
  BOOST_TEST((nothing.allocate(64).status().error == Error::stream_misuse));
  BOOST_TEST((nothing.reap_pending().error == Error::stream_misuse));
  BOOST_TEST(!nothing.supports_block_use_tracking());
}

namespace {

// What a program adds to the stack, with run-time types of its own.
class CountingAdaptor final : public ResourceAdaptor {
 public:
  explicit CountingAdaptor(DeviceMemoryResource& inner) noexcept : ResourceAdaptor(inner) {}
  using ResourceAdaptor::allocate, ResourceAdaptor::deallocate, ResourceAdaptor::reap_pending;
  Status allocate(const AllocationRequest& request, DeviceBlock& out) noexcept override {
    ++allocations;
    return inner_.allocate(request, out);
  }
  int allocations = 0;
};

// The least that is a resource that tracks: it has no blocks.
class EmptyResource final : public TrackedResource {
 public:
  explicit EmptyResource(StreamPool& streams) noexcept : TrackedResource(streams) {}
  using DeviceMemoryResource::allocate, DeviceMemoryResource::deallocate, DeviceMemoryResource::reap_pending;
  Status allocate(const AllocationRequest&, DeviceBlock&) noexcept override { return Status::from(CUDA_ERROR_OUT_OF_MEMORY); }
  Status deallocate(DeviceBlock& block, const FreeRequest&) noexcept override { return Status::use_after_free(block.generation); }
  [[nodiscard]] uint64_t bytes_outstanding() const noexcept override { return 0; }

 private:
  void with_uses(const BlockId&, UsesVisitor& visitor) noexcept override { visitor.visit(nullptr); }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(resources_of_ones_own, RuntimeFixture) {
  CountingAdaptor counting(async);
  DeviceMemoryResource& top = counting;
  BOOST_TEST((typeid(top) == typeid(CountingAdaptor)));
  XlogDeviceRuntime own = std::move(*XlogDeviceRuntime::with_resource(0, streams, counting));
  ResourceResult<DeviceBlock> block = own.allocate(4096, s);
  BOOST_REQUIRE(block.ok());
  BOOST_TEST(own.prepare_block_use(block->id(), u, Access::read).ok());
  BOOST_TEST(own.finish_block_use(block->id(), u, Access::read).ok());
  BOOST_TEST(own.deallocate(*block).ok());
  BOOST_TEST(counting.allocations == 1);
  EmptyResource empty(streams);
  DeviceMemoryResource& none = empty;
  BOOST_TEST((typeid(none) == typeid(EmptyResource)));
  BOOST_TEST((none.prepare_block_use(block->id(), u, Access::read).error == Error::use_after_free));
}

BOOST_AUTO_TEST_CASE(ordinals_that_are_none) {
  for (int ordinal : {-1, 16, 1000}) {
    BOOST_TEST(XlogDeviceRuntime::try_get(ordinal).status().code == CUDA_ERROR_INVALID_DEVICE);
  }
  BOOST_TEST(!XlogDeviceRuntime::try_get(15).ok());
}

BOOST_FIXTURE_TEST_CASE(first_use, RuntimeFixture) {
  DeviceBlock block = allocate(4096, s);
  BOOST_TEST(runtime.prepare_first_use(&block, u, Access::write).ok());
  fill(streams, u, block, 7);
  BOOST_TEST(runtime.finish_first_use(&block, u, Access::write).ok());
  BOOST_TEST((runtime.prepare_first_use(nullptr, u, Access::write).error == Error::stream_misuse));
  BOOST_TEST((runtime.finish_first_use(nullptr, u, Access::write).error == Error::stream_misuse));
  BOOST_TEST(runtime.deallocate(block).ok());
}

BOOST_FIXTURE_TEST_CASE(a_launch_is_ordered_against_all_uses, RuntimeFixture) {
  for (unsigned round = 1; round <= 64; ++round) {
    Gpu::get().seed(round);
    DeviceBlock in = allocate(4096, s);
    DeviceBlock out = allocate(4096, u);
    LaunchRecorder first(s, Mode::strict);
    first.write(&in);
    BOOST_TEST(first.preflight(runtime).ok());
    fill(streams, s, in, 0x11);
    BOOST_TEST(first.commit(runtime).ok());

    LaunchRecorder second(u, Mode::strict);
    second.read(&in);
    second.write(&out);
    second.write(&in);  // the same block once more: read and write
    BOOST_TEST(second.preflight(runtime).ok());
    fill(streams, u, out, 0x22);
    fill(streams, u, in, 0x33);
    BOOST_TEST(second.commit(runtime).ok());

    LaunchRecorder third(s, Mode::permissive);
    third.read_write(&in);
    third.read(nullptr);
    BOOST_TEST(third.preflight(runtime).ok());
    fill(streams, s, in, 0x44);
    BOOST_TEST(third.commit(runtime).ok());
    sync(streams, s);
    BOOST_TEST(all_are(read_now(in), 0x44));
    BOOST_TEST(runtime.deallocate(in).ok());
    BOOST_TEST(runtime.deallocate(out).ok());
  }
}

BOOST_FIXTURE_TEST_CASE(every_way_to_hold_it_wrong, RuntimeFixture) {
  DeviceBlock block = allocate(4096, s);
  auto misuse = [](const Status& status) { return status.error == Error::stream_misuse; };
  {  // a buffer that is no block, strictly
    LaunchRecorder recorder(u, Mode::strict);
    recorder.read(nullptr);
    BOOST_TEST(misuse(recorder.preflight(runtime)));
    BOOST_TEST(misuse(recorder.commit(runtime)));
  }
  {  // never preflighted
    LaunchRecorder recorder(u, Mode::strict);
    recorder.read(&block);
    BOOST_TEST(misuse(recorder.commit(runtime)));
  }
  {  // nothing to order
    LaunchRecorder recorder(u, Mode::strict);
    BOOST_TEST(recorder.commit(runtime).ok());
    BOOST_TEST(misuse(recorder.commit(runtime)));
  }
  {  // registered too late
    LaunchRecorder recorder(u, Mode::strict);
    recorder.read(&block);
    BOOST_TEST(recorder.preflight(runtime).ok());
    BOOST_TEST(misuse(recorder.preflight(runtime)));
    recorder.write(&block);
    BOOST_TEST(misuse(recorder.commit(runtime)));
  }
  {  // another runtime
    XlogDeviceRuntime other = std::move(*XlogDeviceRuntime::with_resource(0, streams, async));
    LaunchRecorder recorder(u, Mode::strict);
    recorder.read(&block);
    BOOST_TEST(recorder.preflight(runtime).ok());
    BOOST_TEST(misuse(recorder.commit(other)));
  }
  {  // a runtime that does not track
    LaunchRecorder recorder(u, Mode::permissive);
    recorder.read(&block);
    BOOST_TEST(misuse(recorder.preflight(untracked)));
    LaunchRecorder empty(u, Mode::permissive);
    BOOST_TEST(empty.preflight(untracked).ok());
  }
  {  // a stream that is none
    LaunchRecorder recorder(StreamId{UINT32_MAX}, Mode::strict);
    recorder.read(&block);
    BOOST_TEST(misuse(recorder.preflight(runtime)));
  }
  BOOST_TEST(runtime.deallocate(block).ok());
  BOOST_TEST(runtime.reap_pending(ReapGoal{.patience_ns = 2'000'000'000}).ok());
  BOOST_TEST(runtime.bytes_outstanding() == 0);
}

// A block that ends between preflight and commit: the launched work is waited for, and the error is told.
BOOST_FIXTURE_TEST_CASE(a_commit_that_fails_leaves_nothing_unprotected, RuntimeFixture) {
  DeviceBlock a = allocate(4096, s);
  DeviceBlock b = allocate(4096, s);
  LaunchRecorder recorder(u, Mode::strict);
  recorder.write(&a);
  recorder.write(&b);
  BOOST_TEST(recorder.preflight(runtime).ok());
  Gate gate(streams);
  gate.hold(u);
  fill(streams, u, b, 1);
  BOOST_TEST(runtime.deallocate(a).ok());
  std::atomic<bool> opened{false};
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    opened = true;
    gate.open();
  });
  BOOST_TEST((recorder.commit(runtime).error == Error::use_after_free));
  BOOST_TEST(opened);  // it waited
  opener.join();
  BOOST_TEST(async.pending_use_count(b.ptr) == 1);
  BOOST_TEST(runtime.deallocate(b).ok());
}

// A preflight of which the second block fails undoes the first; a recorder that is dropped is closed.
BOOST_FIXTURE_TEST_CASE(a_launch_that_does_not_happen, RuntimeFixture) {
  DeviceBlock a = allocate(4096, s);
  DeviceBlock gone = allocate(4096, s);
  {
    LaunchRecorder recorder(u, Mode::strict);
    recorder.write(&a);
    recorder.write(&gone);
    BOOST_TEST(runtime.deallocate(gone).ok());
    BOOST_TEST((recorder.preflight(runtime).error == Error::use_after_free));
  }
  {
    LaunchRecorder recorder(u, Mode::strict);
    recorder.write(&a);
    BOOST_TEST(recorder.preflight(runtime).ok());
  }
  BOOST_TEST(runtime.deallocate(a).ok());
  BOOST_TEST(becomes_idle(streams, u));
  BOOST_TEST(runtime.reap_pending(ReapGoal{.patience_ns = 2'000'000'000}).ok());
  BOOST_TEST(runtime.bytes_outstanding() == 0);
}
