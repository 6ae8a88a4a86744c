// Launches of kernels with more names than are counted.
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>

#include "runtime/guard/launches.h"

using namespace xlog;

BOOST_AUTO_TEST_CASE(a_kernel_whose_launches_are_not_counted_is_named_without_a_number) {
  static std::string name;
  DriverApi driver{};
  driver.cuFuncGetName = [](const char** out, CUfunction) {
    *out = name.c_str();
    return CUDA_SUCCESS;
  };
  auto launches = std::make_unique<Launches>();
  auto function = reinterpret_cast<CUfunction>(0x10);
  size_t uncounted = 0;
  for (int i = 0; i < 10'000; ++i) {
    name = "kernel_" + std::to_string(i);
    Launch launch = launches->note(driver, function);
    BOOST_TEST(launch.number == static_cast<uint64_t>(i) + 1);
    BOOST_TEST(launch.is_kernel() == (launch.of_name != 0));
    uncounted += launch.of_name == 0 ? 1 : 0;
  }
  BOOST_TEST(uncounted >= 10'000 - 4096);
  name = "kernel_0";
  BOOST_TEST(launches->note(driver, function).of_name == 2);
}
