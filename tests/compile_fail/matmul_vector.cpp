// build error: \[matmul\] expects two matrices, and got another rank: use reshape, as in
// got: takes<matmul,tensor<float,3,4>,tensor<float,4>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 4> v("v");
tensor<float> z = sum(square(matmul(x, v)) + 1);
