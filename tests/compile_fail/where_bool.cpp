// build error: \[where\] expects a tensor of bool and two values .*, as in where\(c, x, 0\)
// got: takes<where,bool,tensor<float,-1,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = where(true, x, 0);
