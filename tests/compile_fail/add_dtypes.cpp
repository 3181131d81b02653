// build error: \[add\] expects operands of one dtype, and got several: use cast<T>\(x\)
// got: takes<add,tensor<float,3>,tensor<double,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
placeholder<double, 3> y("y");
auto z = x + y;
