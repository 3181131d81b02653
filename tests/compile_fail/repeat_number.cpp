// build error: \[repeat\] expects an axis before the number of times: repeat<2>\(x, axis<0>\)
// got: takes<repeat,tensor<float,3>,int,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = repeat(x, 2, 0);
