// build error: \[tensor\] the expression has another shape than the tensor that names it
// got: takes<tensor<float,4,3>,tensor<float,-1,3>>
#include <deft/expr.hpp>
using namespace deft;
placeholder<float, dyn, 3> x("x");
tensor<float, 4, 3> y = x * 2;
