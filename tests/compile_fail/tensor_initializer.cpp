// build error: \[tensor\] expects an expression, and got an.*zeros\(shape<2, 3>\) is a tensor
// got: takes<tensor<float,3>,initializer>
#include <deft/expr.hpp>
using namespace deft;
tensor<float, 3> b = zeros();
