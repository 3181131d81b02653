// build error: \[roll\] expects an axis, and got a number: roll\(x, 1, axis<0>\)
// got: takes<roll,tensor<float,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = roll(x, 1, 0);
