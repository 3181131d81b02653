// build error: \[ensure_shape\] expects a shape, .*: ensure_shape\(x, shape<dyn, 3>\)
// got: takes<ensure_shape,tensor<float,-1,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = ensure_shape(x, 2, 3);
