// build error: \[ndarray\] expects the dyn extents alone, or all.*; elements go in braces
// got: takes<ndarray<float>,int,int>
#include <deft/deft.hpp>
using namespace deft;
ndarray<float> m(2, 3);
