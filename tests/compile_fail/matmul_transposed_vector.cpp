// build error: \[matmul\] expects matrices where one is transposed, or batches of them, and got
// got: takes<matmul_tn,tensor<float,3,4>,tensor<float,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, 3, 4> x("x");
placeholder<float, 3> v("v");
tensor<float> z = sum(square(ext::matmul_tn(x, v)) + 1);
