// build error: \[flatten\] expects an axis, and got a number: flatten\(x, axis<1>\)
// got: takes<flatten,tensor<float,2,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 2, 3> x("x");
auto y = flatten(x, 1);
