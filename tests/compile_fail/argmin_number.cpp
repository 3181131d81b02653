// build error: \[argmin\] expects one axis, and neither a number nor keepdims: argmin\(x, axis<1>\)
// got: takes<argmin,tensor<float,-1,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = argmin(x, 1);
