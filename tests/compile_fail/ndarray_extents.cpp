// build error: \[ndarray\] expects the dyn extents alone, or all if one is dyn: .*ndarray<float,
// got: takes<ndarray<float,2,3>,int,int>
#include <deft/deft.hpp>
using namespace deft;
ndarray<float, 2, 3> m(2, 3);
