// build error: \[sum\] expects a tensor of numbers, and got bool
// got: takes<sum,tensor<bool,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<bool, 3> x("x");
auto y = sum(x);
