// build error: \[cumsum\] expects a tensor of numbers, and got bool
// got: takes<cumsum,tensor<bool,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<bool, 3> x("x");
auto y = cumsum(x, axis<0>);
