// build error: \[sub\] the operands' shapes cannot be broadcast together
// got: takes<sub,tensor<float,3>,tensor<float,4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<float, 4> y("y");
tensor<float, 4> z = x * 2 - y;
