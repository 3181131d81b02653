// build error: \[split\] expects the number of parts .*: split<3>\(x, axis<1>\)
// got: takes<split,tensor<float,-1,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto [a, b, c] = split<3>(x, 1);
