// build error: \[min\] expects axes, and got a number: min\(x, axis<0>\), .*, or min\(x, axes{0}\)
// got: takes<min,tensor<float,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = min(x, 1);
