// build error: \[variance\] expects axes, and got a number: variance\(x, axis<0>\)
// got: takes<variance,tensor<float,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = variance(x, 0);
