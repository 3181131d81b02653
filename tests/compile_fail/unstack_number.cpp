// build error: \[unstack\] expects an axis, and got none, or a number: unstack\(x, axis<0>\)
// got: takes<unstack,tensor<float,-1,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = unstack(x, 1);
