// build error: \[broadcast_to\] expects extents of 1 where it stretches, and got others
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = broadcast_to(x, shape<2, 4>);
