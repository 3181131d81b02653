// build error: \[outer\] expects operands of one dtype, and got two: use cast
// got: takes<outer,tensor<float,3>,tensor<double,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<double, 3> y("y");
auto z = outer(x, y) + 1;
