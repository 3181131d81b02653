// build error: \[logical_not\] expects bool, and got another dtype: compare with 0
// got: takes<logical_not,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto z = !x;
