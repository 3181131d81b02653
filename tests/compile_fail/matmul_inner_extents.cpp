// build error: \[matmul\] expects equal inner extents, and got different ones
// got: takes<matmul,tensor<float,-1,784>,tensor<float,785,10>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 784> x("x");
variable<float, 785, 10> w("w", zeros());
auto z = matmul(x, w);
