// build error: \[broadcast_to\] expects extents of 1 where it repeats, and got others
// got: takes<broadcast_to,tensor<float,3>,shape_t<2,4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = broadcast_to(x, shape<2, 4>);
