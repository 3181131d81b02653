// build error: \[prod\] expects axes, and got a tensor: x \* y is elementwise
// got: takes<prod,tensor<float,3>,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = prod(x, x);
