// build error: \[cumsum\] expects an axis, and got none, or a number: cumsum\(x, axis<1>\)
// got: takes<cumsum,tensor<float,2,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 3> x("x");
auto y = cumsum(x, 1);
