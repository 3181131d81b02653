// build error: \[ndarray\] expects an ndarray of its own dtype and shape, and got another
// got: takes<ndarray<float,2>,ndarray<float,-1>>
#include <deft/expr.hpp>
using namespace deft;
ndarray<float, dyn> v(2);
ndarray<float, 2> w = v;
