// build error: \[add\] the operands' shapes cannot be broadcast together
// got: takes<add,tensor<float,4,3>,tensor<float,4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 4, 3> x("x");
placeholder<float, 4> y("y");
auto z = x + y;
