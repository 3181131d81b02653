// build error: \[split\] expects the number of parts as an argument of the.*split<3>\(x, axis<1>\)
// got: takes<split,tensor<float,-1,3>,int,axis_t<1>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = split(x, 3, axis<1>);
