// build error: \[tile\] expects a number of times for each axis: tile\(x, copies<2, 3>\)
// got: takes<tile,tensor<float,3>,int>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto y = tile(x, 2);
