// build error: \[matmul\] expects operands of one dtype, and got two
// got: takes<matmul,tensor<float,3,3>,tensor<double,3,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 3> x("x");
placeholder<double, 3, 3> y("y");
auto z = matmul(x, y);
