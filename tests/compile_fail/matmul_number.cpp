// build error: \[matmul\] expects two operands, and got one, or a number: x \* 3 multiplies
// got: takes<matmul,tensor<float,-1,3>,float>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
auto y = matmul(x, 3.f);
