// build error: \[max\] expects axes, and got a tensor: maximum\(x, y\) is elementwise
// got: takes<max,tensor<float,-1,3>,tensor<float,-1,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = max(x, x);
