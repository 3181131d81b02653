// build error: \[matmul\] expects two matrices, and got another rank
// got: takes<matmul,tensor<float,3>,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3> x("x");
auto z = matmul(x, x);
