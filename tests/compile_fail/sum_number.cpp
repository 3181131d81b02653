// build error: \[sum\] expects axes, and got a number: sum\(x, axis<0>\), .*, or sum\(x, axes{0}\)
// got: takes<sum,tensor<float,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = sum(x, 0);
