// Who serves plain calls, by what the driver and the device can do. C32
#include "runtime/plain_backend.h"

#include <boost/test/unit_test.hpp>

namespace xlog {

namespace {

int pools = 1;

DriverApi complete() {
  DriverApi driver;
  driver.cuCtxRecordEvent = [](CUcontext, CUevent) { return CUDA_SUCCESS; };
  driver.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  driver.cuMemPoolCreate = [](CUmemoryPool*, const CUmemPoolProps*) { return CUDA_SUCCESS; };
  driver.cuMemPoolTrimTo = [](CUmemoryPool, size_t) { return CUDA_SUCCESS; };
  driver.cuMemAllocFromPoolAsync = [](CUdeviceptr*, size_t, CUmemoryPool, CUstream) { return CUDA_SUCCESS; };
  driver.cuMemFreeAsync = [](CUdeviceptr, CUstream) { return CUDA_SUCCESS; };
  driver.cuDeviceGetAttribute = [](int* value, CUdevice_attribute, CUdevice) {
    *value = pools;
    return CUDA_SUCCESS;
  };
  return driver;
}

Maker asked_for(Backend backend, const DriverApi& driver) {
  Options options;
  options.backend = backend;
  return plain_maker(driver, options, 0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_backend_that_was_asked_for) {
  BOOST_TEST((asked_for(Backend::native, complete()) == Maker::driver));
  BOOST_TEST((asked_for(Backend::direct, complete()) == Maker::driver));
  BOOST_TEST((asked_for(Backend::async, complete()) == Maker::pool));
  BOOST_TEST((asked_for(Backend::cache, complete()) == Maker::cache));
}

BOOST_AUTO_TEST_CASE(a_driver_that_lacks_a_function) {
  DriverApi old = complete();
  old.cuCtxRecordEvent = nullptr;  // before 12.5
  BOOST_TEST((asked_for(Backend::async, old) == Maker::driver));
  BOOST_TEST((asked_for(Backend::cache, old) == Maker::driver));
  DriverApi older = complete();
  older.cuMemAllocFromPoolAsync = nullptr;  // before 11.2
  BOOST_TEST((asked_for(Backend::async, older) == Maker::driver));
  BOOST_TEST((asked_for(Backend::cache, older) == Maker::cache));
}

BOOST_AUTO_TEST_CASE(a_device_without_pools_is_asked_by_itself) {
  pools = 0;
  BOOST_TEST((asked_for(Backend::async, complete()) == Maker::driver));
  BOOST_TEST((asked_for(Backend::cache, complete()) == Maker::cache));
  pools = 1;
}

BOOST_AUTO_TEST_CASE(bounds_are_shares_of_the_device_and_of_the_limit) {
  Options options;
  options.async_keep = {.bytes = 0, .share_ppm = 250'000, .is_share = true};
  options.async_pending.is_auto = true;
  DeviceFacts facts;
  facts.total_bytes = uint64_t{80} << 30;
  facts.limit = uint64_t{8} << 30;
  PlainSettings settings = plain_settings(options, facts);
  BOOST_TEST(settings.keep == uint64_t{20} << 30);
  BOOST_TEST(settings.most_pending == UINT64_MAX);
  BOOST_TEST(settings.most_pending_by_use == uint64_t{20} << 30);
  BOOST_TEST(settings.limit == uint64_t{8} << 30);
  BOOST_TEST(!settings.ordered);
}

}  // namespace xlog
