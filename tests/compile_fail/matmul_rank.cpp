// build error: \[matmul\] expects vectors, matrices or batches of them, and got a scalar
// got: takes<matmul,tensor<float>,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float> x("x");
placeholder<float, 3> y("y");
auto z = matmul(x, y);
