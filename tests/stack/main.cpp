#define BOOST_TEST_MODULE stack
#include <boost/test/included/unit_test.hpp>
