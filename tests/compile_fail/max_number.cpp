// build error: \[max\] expects axes, and got a number: max\(x, axis<0>\), .*, or max\(x, axes{0}\)
// got: takes<max,tensor<float,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = max(x, 1);
