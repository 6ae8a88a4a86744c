#define BOOST_TEST_MODULE preload
#include <boost/test/unit_test.hpp>
