// build error: \[broadcast_to\] expects a shape, .*: broadcast_to\(x, shape<2, 3>\)
// got: takes<broadcast_to,tensor<float,-1,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = broadcast_to(x, 2, 3);
