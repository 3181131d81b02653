// build error: \[flip\] expects axes, and got something else: flip\(x, axis<0>\)
// got: takes<flip,tensor<float,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = flip(x, 0);
