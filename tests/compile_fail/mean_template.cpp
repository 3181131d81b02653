// build error: \[mean\] expects axes, and got a number: mean\(x, axis<0>\)
// got: takes<mean,tensor<float,-1,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = mean<1>(x);
