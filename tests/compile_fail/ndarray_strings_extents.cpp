// build error: \[ndarray\] expects the dyn extents alone, or all.*; elements go in braces
// got: takes<ndarray<basic_string<char>,2>,int>
#include <deft/deft.hpp>
using namespace deft;
ndarray<std::string, 2> m(2);
