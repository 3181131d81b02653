// build error: \[min\] expects axes, and got a number: .*; minimum\(x, 0\) is elementwise
// got: takes<min,tensor<float,-1,3>,float>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = min(x, 6.f);
